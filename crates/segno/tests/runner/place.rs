//! Where the store may be, and who may look into it.

use std::fs::Permissions;
use std::fs::{self};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::chown;
use std::os::unix::fs::symlink;

use crate::common::SEGNO;
use crate::common::TestEnv;

#[test]
fn named_places() {
    let mut env = TestEnv::new();
    env.ok(&["--store", "sqlite:own.db", "new", "relative"]);
    assert!(env.path("project/own.db").exists());
    let absolute = format!("sqlite:{}", env.path("deep/er/abs.db").display());
    env.ok(&["--store", &absolute, "new", "absolute"]);
    let url = format!("sqlite://{}", env.path("deep/er/abs.db").display());
    assert_eq!(env.json(&["--store", &url, "ls"])["total"], 1);
    assert!(!env.path("data/segno/segno.db").exists());
    let refused = env.show_all(&[
        &["--store", "postgres://me:hunter2@db/x", "ls"],
        &["--store", "postgres://me:hunter2@db/x", "new", "x", "--json"],
        &["--store", "sqlite:", "ls"],
        &["--store", "mysql://x", "ls"],
        &["--store", "own.db", "ls"],
        &["--store", "sqlite:.", "new", "x"],
        &["--store", "sqlite:none.db", "ls"],
        &["--store", "sqlite:none.db", "show"],
    ]);
    env.set("SEGNO_STORE", "sqlite:own.db");
    assert_eq!(env.json(&["ls"])["sessions"][0]["topic"], "relative");
    assert_eq!(env.json(&["--store", &absolute, "ls"])["sessions"][0]["topic"], "absolute", "the flag wins");
    insta::assert_snapshot!("place_named", refused);
}

#[test]
fn a_project_cannot_move_the_store() {
    let env = TestEnv::new();
    env.write("project/.segno/config.toml", "[store]\nurl = \"sqlite:/tmp/segno-stolen.db\"\n");
    env.trust();
    let said = env.ok(&["new", "mine"]);
    assert!(said.stderr.contains("store.url is ignored"), "{}", said.stderr);
    assert!(env.path("data/segno/segno.db").exists());
    assert!(!fs::exists("/tmp/segno-stolen.db").unwrap());
}

#[test]
fn private_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let env = TestEnv::new();
        let said = env.shell(&format!(
            "umask {umask}; $SEGNO new x && $SEGNO ls && $SEGNO backup && $SEGNO complete && $SEGNO cleanup --days 0 --yes"
        ));
        assert_eq!(said.code, 0, "{}", said.stderr);
        for directory in ["data/segno", "data/segno/backup", "data/segno/archive", "state/segno/lists"] {
            let mode = fs::metadata(env.path(directory)).unwrap().mode() & 0o777;
            assert_eq!(mode, 0o700, "umask {umask}: {directory} is {mode:o}");
        }
        for path in env.files().keys() {
            let private = path.starts_with(env.path("data")) || path.starts_with(env.path("state"));
            let mode = fs::metadata(path).unwrap().mode() & 0o777;
            assert!(!private || mode == 0o600, "umask {umask}: {} is {mode:o}", path.display());
        }
    }
}

#[test]
fn directories_that_others_can_write() {
    let env = TestEnv::new();
    fs::create_dir_all(env.path("open")).unwrap();
    fs::set_permissions(env.path("open"), Permissions::from_mode(0o777)).unwrap();
    fs::create_dir_all(env.path("closed")).unwrap();
    fs::set_permissions(env.path("closed"), Permissions::from_mode(0o700)).unwrap();
    env.write("closed/target.db", "");
    symlink(env.path("closed/target.db"), env.path("closed/link.db")).unwrap();
    insta::assert_snapshot!(
        "place_open",
        env.show_all(&[
            &["--store", "sqlite:../open/x.db", "new", "x"],
            &["--store", "sqlite:../closed/link.db", "new", "x"],
            &["--store", "sqlite:../closed", "new", "x"],
            &["--store", "sqlite:/proc/segno.db", "new", "x"],
        ])
    );
    assert_eq!(env.read("closed/target.db"), "");
    assert_eq!(fs::read_dir(env.path("open")).unwrap().count(), 0);
}

/// Somebody without special rights, in a directory where nothing can be written.
#[test]
fn a_directory_that_is_read_only() {
    const NOBODY: u32 = 65_534;
    let env = TestEnv::new();
    env.start(&["seen"]);
    env.ok(&["backup", "../copy.db"]);
    fs::create_dir_all(env.path("fixed")).unwrap();
    fs::copy(env.path("copy.db"), env.path("fixed/segno.db")).unwrap();
    fs::create_dir_all(env.path("fixed/empty")).unwrap();
    let root = rustix::process::geteuid().is_root();
    let setpriv = "/usr/bin/setpriv";
    if root && !fs::exists(setpriv).unwrap() {
        println!("skipped: to the superuser nothing is read-only, and there is no setpriv");
        return;
    }
    if root {
        for name in ["", "home", "project", "project/.segno", "fixed", "fixed/empty", "fixed/segno.db"] {
            chown(env.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        for name in ["data", "state", "config"] {
            let _ = fs::remove_dir_all(env.path(name));
        }
    }
    fs::set_permissions(env.path("fixed/empty"), Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(env.path("fixed"), Permissions::from_mode(0o500)).unwrap();
    let mut shown = String::new();
    for words in [
        "--store sqlite:../fixed/empty/segno.db new x",
        "--store sqlite:../fixed/segno.db ls",
        "--store sqlite:../fixed/segno.db note x",
    ] {
        let mut command = if root {
            let mut command = env.command(setpriv);
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", SEGNO]);
            command
        } else {
            env.command(SEGNO)
        };
        let output = command.args(words.split(' ')).output().unwrap();
        shown += &format!("$ segno {words}\n{}", env.normalise(&String::from_utf8_lossy(&output.stdout)));
        shown += &format!("--- stderr\n{}", env.normalise(&String::from_utf8_lossy(&output.stderr)));
        shown += &format!("--- exit code {}\n\n", output.status.code().unwrap());
    }
    fs::set_permissions(env.path("fixed"), Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(env.path("fixed/empty"), Permissions::from_mode(0o700)).unwrap();
    insta::assert_snapshot!("place_read_only", shown);
}

#[test]
fn without_a_store_nothing_waits() {
    let env = TestEnv::new();
    assert_eq!(env.ok(&["answer"]).stdout, "nothing waits for an answer\n");
    assert_eq!(env.json(&["answer"]), serde_json::json!({ "questions": [] }));
    for words in [&["answer", "5f0c"][..], &["answer", "5f0c", "yes"]] {
        let said = env.run(words);
        assert!(said.stderr.contains("no question 5f0c waits: nothing does"), "{}", said.stderr);
        assert_eq!((said.code, said.stdout.as_str()), (5, ""), "{}", said.stderr);
    }
}
