//! Killed at the n-th write, sync, rename or removal, for every n: while a store is brought to a newer form, and while
//! one is salvaged.

use std::path::Path;

use segno_core::SessionId;
use segno_store::Error;
use segno_store::OpenOptions;
use segno_store::sqlite::SqliteStore;
use segno_store::sqlite::salvage::salvage;
use segno_store::sqlite::schema;
use segno_store::verify;

use crate::common::*;
use crate::home::Home;
use crate::home::older;
use crate::home::role;
use crate::is_full;
use crate::trace;

/// The calls that change something, and of how many each one is tried when not everything is asked for.
const CALLS: [(&str, usize); 5] = [
    ("pwrite64", 12),
    ("fsync,fdatasync", 3),
    ("rename,renameat,renameat2,link,linkat", 1),
    ("unlink,unlinkat", 2),
    ("ftruncate,fallocate", 2),
];

/// Kills a process at each of its calls in turn, until it is no longer reached. Answers how often it was killed.
fn sweep(test: &str, prepare: impl Fn() -> Home, check: impl Fn(&Home, &str)) -> u64 {
    let mut kills = 0;
    for (calls, stride) in CALLS {
        let stride = if is_full() { 1 } else { stride };
        for when in (1..).step_by(stride) {
            let home = prepare();
            let fault = format!("{calls}:signal=KILL:when={when}");
            let output = trace::run_with(&fault, test, home.dir().to_str().unwrap());
            let killed = trace::was_killed(&output);
            if !killed {
                trace::assert_ended_well(&output, &fault);
            }
            check(&home, &fault);
            if !killed {
                break;
            }
            kills += 1;
        }
    }
    kills
}

fn copy_files(from: &Path) -> Home {
    let home = Home::quick();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), home.file(entry.file_name().to_str().unwrap())).unwrap();
        }
    }
    home
}

#[test]
fn bringing_a_store_to_a_newer_form_may_be_killed_anywhere() {
    const TEST: &str = "steps::bringing_a_store_to_a_newer_form_may_be_killed_anywhere";
    if let Some(dir) = role() {
        SqliteStore::open(&Path::new(&dir).join("segno.db"), OpenOptions::default()).unwrap();
        return;
    }
    if let Some(why) = trace::unavailable() {
        println!("skipped: strace cannot be used here ({why})");
        return;
    }
    let (old, session) = older(1);
    let kills = sweep(
        TEST,
        || copy_files(old.dir()),
        |home, fault| {
            let form = schema::version(&home.raw()).unwrap();
            assert!(form == 1 || form == schema::NEWEST, "{fault}: form {form}");
            if form == 1 {
                let events: u64 =
                    home.raw().query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
                assert_eq!(events, 11, "{fault}");
            }
            let store = home.open();
            assert_eq!(assert_whole(&store, session).state.seq, 11, "{fault}");
            assert_eq!(jot(&store, session, "after"), 12);
            let copy =
                rusqlite::Connection::open(home.file(&format!("segno.db.before-form-{}", schema::NEWEST)))
                    .unwrap();
            assert_eq!(schema::version(&copy).unwrap(), 1, "{fault}");
            let events: u64 = copy.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
            assert_eq!(events, 11, "{fault}: the copy is not whole");
        },
    );
    println!("killed {kills} times while the form changed");
    assert!(kills > 5, "{kills}");
}

/// A store of three sessions with a page of garbage in the second.
fn damaged() -> (Home, Vec<SessionId>) {
    let home = Home::quick();
    let store = home.open();
    let sessions: Vec<_> = (1..=3).map(|second| make(&store, second)).collect();
    for n in 2..=12 {
        for session in &sessions {
            append(&store, facts(*session, &format!("n{n}"), vec![note(&"x".repeat(900))])).unwrap();
        }
    }
    drop(store);
    home.checkpoint();
    let page: usize = home
        .raw()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'states'", [], |row| row.get(0))
        .unwrap();
    let mut bytes = home.bytes();
    bytes[(page - 1) * 4096..page * 4096].fill(0xA5);
    std::fs::write(home.db(), bytes).unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(home.file(&format!("segno.db{suffix}")));
    }
    (home, sessions)
}

#[test]
fn salvaging_may_be_killed_anywhere_and_done_again() {
    const TEST: &str = "steps::salvaging_may_be_killed_anywhere_and_done_again";
    if let Some(dir) = role() {
        salvage(&Path::new(&dir).join("segno.db"), "first").unwrap();
        return;
    }
    if let Some(why) = trace::unavailable() {
        println!("skipped: strace cannot be used here ({why})");
        return;
    }
    let (bad, sessions) = damaged();
    let original = bad.bytes();
    // The store itself is gone: what is copied from here on is the store, not a copy of one that is still there.
    let kept = copy_files(bad.dir());
    drop(bad);
    let kills = sweep(
        TEST,
        || copy_files(kept.dir()),
        |home, fault| {
            // Either nothing has happened yet, or it is all done, or whoever opens it is told to finish it.
            match home.try_open() {
                Ok(store) => assert_eq!(ids(&store).len(), 3, "{fault}"),
                Err(Error::Damaged { .. }) => {}
                Err(why) => panic!("{fault}: {why}"),
            }
            let salvaged = salvage(&home.db(), "second").unwrap();
            assert_eq!(salvaged.whole.len(), 3, "{fault}: {salvaged:?}");
            let store = home.open();
            for session in &sessions {
                assert_eq!(assert_whole(&store, *session).state.seq, 12, "{fault}");
                assert_eq!(jot(&store, *session, "after"), 13);
            }
            assert!(verify::verify(&store, true, |_, _| {}).unwrap().is_clean(), "{fault}");
            let kept = ["first", "second"].iter().any(|stamp| {
                std::fs::read(home.file(&format!("quarantine/{stamp}/segno.db")))
                    .is_ok_and(|kept| kept == original)
            });
            assert!(kept, "{fault}: the damaged file is gone");
        },
    );
    println!("killed {kills} times while salvaging");
    assert!(kills > 5, "{kills}");
}
