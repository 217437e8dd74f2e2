//! The doctor: a store that is well, stores that are not, and copies.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::common::TestEnv;

/// A store in one file, with enough in it to have a middle.
fn store(env: &TestEnv) -> Vec<u8> {
    let filler = "text that takes room, and more of it, and more of it again; ".repeat(60);
    for topic in ["one", "two", "three", "four"] {
        let id = env.start(&[topic, "--parallel"]);
        for n in 0..6 {
            env.ok(&["note", &format!("{n} {filler}"), "--session", &id]);
        }
    }
    env.ok(&["backup", "../whole.db"]);
    // A copy is one file; opened as a store it becomes one that has a log beside it, once.
    let url = plant(env, "whole", &fs::read(env.path("whole.db")).unwrap());
    env.ok(&["--store", &url, "doctor", "--adopt"]);
    let database = rusqlite::Connection::open(env.path("whole/segno.db")).unwrap();
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(database);
    // It is planted elsewhere: beside the store that it was made from it would be a copy.
    let bytes = fs::read(env.path("whole/segno.db")).unwrap();
    fs::remove_file(env.path("whole/segno.db")).unwrap();
    bytes
}

fn plant(env: &TestEnv, name: &str, bytes: &[u8]) -> String {
    let directory = env.path(name);
    fs::create_dir_all(&directory).unwrap();
    let mut mode = fs::metadata(&directory).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o700);
    fs::set_permissions(&directory, mode).unwrap();
    let file = directory.join("segno.db");
    fs::write(&file, bytes).unwrap();
    format!("sqlite:{}", file.display())
}

fn filters() -> Vec<(&'static str, &'static str)> {
    vec![
        // What exactly is wrong is said by the store, which has tests of its own.
        (r#"is damaged: [^"\n]*"#, "is damaged: [what]"),
        (r"\d{4}-\d\d-\d\dT[\d-]+Z", "[stamp]"),
        (r"\d+\.\d kB, checked", "[size], checked"),
        (r"(?i)(on tree page|Tree|page|cell|2nd reference to page|rowid) \d+", "$1 [n]"),
    ]
}

#[test]
fn healthy() {
    let env = TestEnv::new();
    let nothing = env.show_all(&[&["doctor"], &["backup"], &["doctor", "--repair"]]);
    store(&env);
    let well =
        env.show_all(&[&["doctor"], &["doctor", "--deep"], &["doctor", "--repair"], &["doctor", "--json"]]);
    insta::with_settings!({filters => filters()}, {
        insta::assert_snapshot!("damage_healthy", [nothing, well].join("\n"));
    });
}

#[test]
fn a_destroyed_beginning() {
    let env = TestEnv::new();
    let mut bytes = store(&env);
    bytes[..100].fill(b'x');
    let url = plant(&env, "broken", &bytes);
    let file = env.path("broken/segno.db");
    let commands: &[&[&str]] = &[
        &["ls"],
        &["ls", "--json"],
        &["show", "last"],
        &["note", "x"],
        &["tokens", "1"],
        &["new", "x"],
        &["resume"],
        &["log"],
        &["export"],
        &["import", "../none.json"],
        &["cleanup", "--days", "0", "--yes"],
        &["rm", "1234567", "--yes"],
        &["backup", "../copy.db"],
        &["doctor"],
    ];
    let mut first = None;
    for args in commands {
        let mut all = vec!["--store", &url];
        all.extend(*args);
        let said = env.run(&all);
        assert_eq!(said.code, 10, "{args:?}: {}", said.stderr);
        assert!(
            said.stdout.is_empty() && said.stderr.contains("segno doctor --repair"),
            "{args:?}: {}",
            said.stderr
        );
        if !args.contains(&"--json") {
            let first = first.get_or_insert_with(|| said.stderr.clone());
            assert_eq!(&said.stderr, first, "{args:?}");
        }
        assert!(fs::read(&file).unwrap() == bytes, "{args:?} changed the file");
    }
    let entries = fs::read_dir(env.path("broken")).unwrap().count();
    assert_eq!(entries, 1, "nothing appears beside it");
    let repaired = env.show_all(&[
        &["--store", &url, "ls"],
        &["--store", &url, "ls", "--json"],
        &["--store", &url, "doctor", "--repair"],
        &["--store", &url, "doctor"],
        &["--store", &url, "ls"],
    ]);
    insta::with_settings!({filters => filters()}, {
        insta::assert_snapshot!("damage_beginning", repaired);
    });
    assert_kept(&env.path("broken"), &bytes);
    env.ok(&["--store", &url, "new", "life goes on", "--parallel"]);
}

/// The damaged file is kept, whole, in a place of its own that is private.
fn assert_kept(directory: &Path, bytes: &[u8]) {
    let mut found = false;
    let entries =
        |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    for folder in entries(&directory.join("quarantine")) {
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700, "{}", folder.display());
        for file in entries(&folder) {
            found |= fs::read(&file).unwrap() == bytes;
        }
    }
    assert!(found, "the damaged file is not kept below {}", directory.display());
}

#[test]
fn a_destroyed_middle() {
    let env = TestEnv::new();
    let whole = store(&env);
    let pages = whole.len() / 4096;
    assert!(pages > 12, "{pages} pages");
    let mut noticed = 0;
    // Which page hurts which command is chance; that damage is never passed over in silence is not.
    for page in (2..pages).step_by(pages / 6) {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
        let name = format!("broken-{page}");
        let url = plant(&env, &name, &bytes);
        let said = env.run(&["--store", &url, "doctor", "--deep"]);
        assert!(said.code == 10 || said.code == 0, "page {page}: {}", said.stderr);
        noticed += usize::from(said.code == 10);
        for args in
            [&["ls", "--all"][..], &["log", "last"], &["show", "last", "--history"], &["export", "last"]]
        {
            let mut all = vec!["--store", &url];
            all.extend(args);
            let said = env.run(&all);
            // 3 if the page held the row by which the session is found.
            assert!(matches!(said.code, 0 | 3 | 10), "page {page} {args:?}: {} {}", said.code, said.stderr);
            if said.code == 10 {
                assert!(said.stderr.contains("hint: segno doctor"), "{}", said.stderr);
            }
        }
        assert!(
            fs::read(env.path(&name).join("segno.db")).unwrap() == bytes,
            "page {page}: looking changed the file"
        );
        let repaired = env.run(&["--store", &url, "doctor", "--repair"]);
        // 10 if the page held something that nothing else tells of: then the repair names what is lost.
        assert!(matches!(repaired.code, 0 | 10), "page {page}: {}", repaired.stderr);
        if repaired.stdout.contains("salvaged") {
            assert_kept(&env.path(&name), &bytes);
        }
        let again = env.run(&["--store", &url, "doctor"]);
        assert!(matches!(again.code, 0 | 10), "page {page}: {}", again.stderr);
        let left = env.json(&["--store", &url, "ls", "--all"])["total"].as_u64().unwrap();
        assert!(left >= 3, "page {page}: one bad page took {} sessions of 4\n{}", 4 - left, repaired.stdout);
    }
    assert!(noticed >= 3, "only {noticed} of the damaged stores were called damaged");
}

#[test]
fn copies() {
    let env = TestEnv::new();
    env.start(&["copied"]);
    env.write("project/there.db", "mine");
    let shown = env.show_all(&[
        &["backup"],
        &["backup", "copy.db"],
        &["backup", "copy.db"],
        &["backup", "there.db"],
        &["backup", "none/copy.db"],
        &["backup", "."],
        &["--store", "sqlite:copy.db", "ls"],
        &["--store", "sqlite:copy.db", "note", "not in a copy"],
        &["--store", "sqlite:copy.db", "doctor", "--adopt"],
        &["--store", "sqlite:copy.db", "note", "in the copy only"],
        &["doctor"],
        &["--store", "sqlite:copy.db", "doctor"],
        &["--store", "sqlite:there.db", "ls"],
    ]);
    insta::with_settings!({filters => filters().into_iter().chain([(r"segno-[\dT-]+Z\.db", "segno-[stamp].db")]).collect::<Vec<_>>()}, {
        insta::assert_snapshot!("damage_copies", shown);
    });
    assert_eq!(env.read("project/there.db"), "mine");
    assert_eq!(fs::metadata(env.path("project/copy.db")).unwrap().mode() & 0o777, 0o600);
    let bytes = env.json(&["backup", "other.db"])["bytes"].as_u64().unwrap();
    assert_eq!(bytes, fs::metadata(env.path("project/other.db")).unwrap().len());
    let lines = |store: &str| env.ok(&["--store", store, "log", "last"]).stdout.lines().count();
    assert_eq!((lines("sqlite:copy.db"), lines("sqlite:other.db")), (2, 1));
}
