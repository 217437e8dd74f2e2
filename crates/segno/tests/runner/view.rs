//! The readable copy in the project.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::symlink;

use crate::common::TestEnv;

#[test]
fn it_shows_the_session() {
    let env = TestEnv::new();
    let id = env.start(&["seen", "--phases", "red,green", "--budget", "5k"]);
    let view = format!("project/.segno/sessions/{id}/session.yaml");
    env.ok(&["phase", "green"]);
    env.ok(&["artifact", "add", "src/a.rs", "created"]);
    env.ok(&["decide", "which?", "--choice", "this one"]);
    insta::assert_snapshot!("view_file", env.normalise(&env.read(&view)));
    assert_eq!(fs::metadata(env.path(&view)).unwrap().mode() & 0o777, 0o600);
    assert_eq!(env.read("project/.segno/sessions/.gitkeep"), "");
    let ignored = env.read("project/.segno/.gitignore");
    assert!(ignored.ends_with("\n*\n"), "{ignored}");
    // Removed on purpose, it stays away.
    fs::remove_file(env.path("project/.segno/.gitignore")).unwrap();
    env.ok(&["note", "one more"]);
    assert!(!env.path("project/.segno/.gitignore").exists());
}

#[test]
fn edited_by_hand() {
    let env = TestEnv::new();
    let id = env.start(&["edited"]);
    let folder = format!("project/.segno/sessions/{id}");
    let view = format!("{folder}/session.yaml");
    let edited = env.read(&view).replace("edited", "changed by hand");
    env.write(&view, &edited);
    insta::with_settings!({filters => [(r"session\.edited-\d+\.yaml", "session.edited-[n].yaml")]}, {
        insta::assert_snapshot!("view_edited", env.show_all(&[&["phase", "next"], &["note", "and on"], &["show"]]));
    });
    assert!(env.read(&view).contains("edited") && !env.read(&view).contains("changed by hand"));
    let kept: Vec<_> = fs::read_dir(env.path(&folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("session.edited-"))
        .collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read_to_string(&kept[0]).unwrap(), edited);
}

#[test]
fn turned_off() {
    let env = TestEnv::new();
    env.write("config/segno/config.toml", "[view]\nenabled = false\n");
    env.start(&["unseen"]);
    env.ok(&["phase", "next"]);
    assert!(!env.path("project/.segno/sessions").exists());
}

#[test]
fn nowhere_to_write_it() {
    let env = TestEnv::new();
    let id = env.start(&["kept"]);
    fs::remove_dir_all(env.path("project/.segno")).unwrap();
    env.write("elsewhere/file", "");
    symlink(env.path("elsewhere"), env.path("project/.segno")).unwrap();
    let linked = env.show(&["note", "through a link", "--session", &id]);
    assert_eq!(fs::read_dir(env.path("elsewhere")).unwrap().count(), 1);
    fs::remove_dir_all(env.path("project")).unwrap();
    let show = |args: &[&str]| {
        let said = env.run_in("home", args);
        format!(
            "$ segno {}\n{}--- stderr\n{}--- exit code {}\n",
            args[0], said.stdout, said.stderr, said.code
        )
    };
    let gone = show(&["note", "the project is gone", "--session", &id]);
    let ended = show(&["complete", "--session", &id, "--json"]);
    let history = show(&["history", &id]);
    insta::assert_snapshot!("view_nowhere", [linked, gone, ended, history].join("\n"));
    assert!(!env.path("project").exists());
}
