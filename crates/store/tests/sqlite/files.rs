//! The files of a store: their settings, modes and places.

use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use segno_store::Error;
use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;

use crate::common::*;
use crate::home::Home;
use crate::home::again;
use crate::home::role;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn the_settings_that_last_are_in_the_file() {
    let home = Home::new();
    make(&home.open(), 1);
    let raw = home.raw();
    let ask =
        |pragma: &str| raw.pragma_query_value(None, pragma, |row| row.get::<_, rusqlite::types::Value>(0));
    assert_eq!(ask("journal_mode").unwrap(), "wal".to_owned().into());
    assert_eq!(ask("application_id").unwrap(), i64::from(segno_store::sqlite::schema::APPLICATION_ID).into());
    assert_eq!(ask("user_version").unwrap(), i64::from(segno_store::sqlite::schema::NEWEST).into());
    assert_eq!(ask("auto_vacuum").unwrap(), 0.into(), "salvaging relies on tables staying where they are");
    assert_eq!(ask("page_size").unwrap(), 4096.into(), "salvaging relies on it");
}

#[test]
fn every_append_is_synced_before_it_is_answered() {
    // The setting is each connection's own, so it is seen in what the process does: a sync for every append.
    if let Some(dir) = role() {
        let store = SqliteStore::open(&Path::new(&dir).join("segno.db"), OpenOptions::default()).unwrap();
        let session = make(&store, 1);
        for n in 0..20 {
            jot(&store, session, &format!("n{n}"));
        }
        return;
    }
    let home = Home::new();
    let trace = home.file("trace");
    let child = again("files::every_append_is_synced_before_it_is_answered", home.dir().to_str().unwrap());
    let mut strace = std::process::Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]).arg(&trace);
    strace.arg(child.get_program()).args(child.get_args()).env("SEGNO_TEST_ROLE", home.dir());
    match strace.output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(why) => {
            println!("skipped: strace cannot be run here ({why})");
            return;
        }
    }
    let syncs =
        std::fs::read_to_string(&trace).unwrap().lines().filter(|line| line.contains("sync(")).count();
    assert!(syncs >= 21, "{syncs} syncs for 21 writes");
}

#[test]
fn files_are_private_whatever_the_umask() {
    if let Some(dir) = role() {
        let path = Path::new(&dir).join("new/deep/segno.db");
        let store = SqliteStore::open(&path, OpenOptions::default()).unwrap();
        make(&store, 1);
        store.backup(&path.with_file_name("copy.db")).unwrap();
        for name in ["segno.db", "segno.db-wal", "segno.db-shm", "copy.db"] {
            assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
        }
        assert_eq!((mode(&Path::new(&dir).join("new")), mode(path.parent().unwrap())), (0o700, 0o700));
        return;
    }
    for umask in ["000", "077"] {
        let home = Home::new();
        let child = again("files::files_are_private_whatever_the_umask", home.dir().to_str().unwrap());
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(format!("umask {umask}; exec \"$0\" \"$@\""));
        shell.arg(child.get_program()).args(child.get_args()).env("SEGNO_TEST_ROLE", home.dir());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_store_that_others_could_read_is_closed_to_them() {
    let home = Home::new();
    make(&home.open(), 1);
    std::fs::set_permissions(home.db(), std::fs::Permissions::from_mode(0o644)).unwrap();
    home.open();
    assert_eq!(mode(&home.db()), 0o600);
}

#[test]
fn a_folder_that_others_may_write_is_refused() {
    for existing in [false, true] {
        let home = Home::new();
        if existing {
            make(&home.open(), 1);
        }
        for open_mode in [0o777, 0o770, 0o722] {
            std::fs::set_permissions(home.dir(), std::fs::Permissions::from_mode(open_mode)).unwrap();
            let refused = home.try_open().err();
            assert!(matches!(refused, Some(Error::UnusableLocation { .. })), "{refused:?}");
            assert_eq!(home.db().exists(), existing);
        }
        // In a folder like /tmp nobody can replace the files of others.
        std::fs::set_permissions(home.dir(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        home.open();
    }
}

#[test]
fn links_folders_and_missing_stores_are_refused() {
    let home = Home::new();
    make(&home.open(), 1);
    let open = |name: &str, create| {
        SqliteStore::open(&home.file(name), OpenOptions { create, ..OpenOptions::default() }).err()
    };
    std::os::unix::fs::symlink(home.db(), home.file("link.db")).unwrap();
    std::os::unix::fs::symlink(home.file("nowhere"), home.file("dangling.db")).unwrap();
    std::fs::create_dir(home.file("folder.db")).unwrap();
    for name in ["link.db", "dangling.db", "folder.db"] {
        let refused = open(name, true);
        assert!(matches!(refused, Some(Error::UnusableLocation { .. })), "{name}: {refused:?}");
    }
    assert!(!home.file("nowhere").exists());
    assert!(matches!(open("none.db", false), Some(Error::NoStore(_))));
    assert!(!home.file("none.db").exists());
}

#[test]
fn looking_writes_nothing() {
    let home = Home::new();
    let session = make(&home.open(), 1);
    home.checkpoint();
    for suffix in ["-wal", "-shm", ".heads", ".turn"] {
        let _ = std::fs::remove_file(home.file(&format!("segno.db{suffix}")));
    }
    let before = home.bytes();
    let store = home.open_for(Purpose::Inspect);
    assert_whole(&store, session);
    assert!(matches!(append(&store, facts(session, "a", vec![note("a")])), Err(Error::ReadOnly { .. })));
    assert!(matches!(store.delete(session, None), Err(Error::ReadOnly { .. })));
    drop(store);
    assert_eq!(home.bytes(), before);
    let files: Vec<_> = std::fs::read_dir(home.dir()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files, ["segno.db"]);
}

#[test]
fn nobody_writes_into_a_file_that_was_moved_away() {
    for purpose in [Purpose::OneShot, Purpose::LongLived] {
        let home = Home::new();
        let store = home.open_for(purpose);
        let session = make(&store, 1);
        jot(&store, session, "a");
        for suffix in ["", "-wal", "-shm"] {
            let name = format!("segno.db{suffix}");
            std::fs::rename(home.file(&name), home.file(&format!("away-{name}"))).unwrap();
        }
        let gone = append(&store, facts(session, "b", vec![note("b")]));
        assert!(matches!(gone, Err(Error::NoStore(_))), "{gone:?}");
        let other = make(&home.open(), 2);
        let gone = append(&store, facts(session, "b", vec![note("b")]));
        assert!(matches!(gone, Err(Error::NotFound(_))), "{gone:?}");
        assert_eq!(jot(&store, other, "c"), 2);
        assert_eq!(assert_whole(&home.open(), other).state.seq, 2);
    }
}

#[test]
fn tending_keeps_the_log_small() {
    let home = Home::quick();
    let store = home.open();
    let session = make(&store, 1);
    let log = || std::fs::metadata(home.file("segno.db-wal")).unwrap().len();
    let mut largest = 0;
    for n in 0..60 {
        let batch = (0..10).map(|m| facts(session, &format!("n{n}-{m}"), vec![note(&"x".repeat(4_000))]));
        for result in store.append(batch.collect()) {
            result.unwrap();
        }
        largest = largest.max(log());
        store.maintain().unwrap();
    }
    assert!(largest > 256 * 1024, "it was never tended: {largest}");
    assert!(largest < 1024 * 1024, "{largest}");
    // A reader that stays keeps the log from being emptied, and nobody from going on.
    let raw = home.raw();
    raw.execute_batch("BEGIN; SELECT count(*) FROM sessions;").unwrap();
    for n in 0..60 {
        let name = format!("more{n}");
        append(&store, facts(session, &name, (0..10).map(|_| note(&"y".repeat(4_000))).collect())).unwrap();
        store.maintain().unwrap();
    }
    drop(raw);
    store.maintain().unwrap();
    assert!(log() < 256 * 1024, "{}", log());
    assert_whole(&home.open(), session);
}
