//! Copies that are taken while others write.

use segno_store::Error;
use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;
use segno_store::verify;

use crate::common::*;
use crate::home::Home;

#[test]
fn a_copy_is_a_whole_prefix_while_others_write() {
    for purpose in [Purpose::OneShot, Purpose::LongLived] {
        let home = Home::quick();
        let writer = home.open_for(purpose);
        let sessions: Vec<_> = (1..=3).map(|second| make(&writer, second)).collect();
        let done = std::sync::atomic::AtomicBool::new(false);
        let mut copies = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..10_000 {
                    if done.load(std::sync::atomic::Ordering::Acquire) {
                        break;
                    }
                    let name = format!("n{n}");
                    // Two sessions at once, so that a copy of half a transaction would show.
                    let pair =
                        [sessions[0], sessions[1]].map(|s| facts(s, &name, vec![note(&"x".repeat(2_000))]));
                    assert!(writer.append(pair.into()).iter().all(Result::is_ok));
                }
            });
            let reader = home.open_for(purpose);
            for n in 0..5 {
                let path = home.file(&format!("copy-{n}.db"));
                let bytes = reader.backup(&path).unwrap();
                assert_eq!(bytes, std::fs::metadata(&path).unwrap().len());
                copies.push(path);
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        let now = sessions.iter().map(|s| journal(&writer, *s)).collect::<Vec<_>>();
        let mut lengths = Vec::new();
        for path in copies {
            let copy =
                SqliteStore::open(&path, OpenOptions { create: false, ..OpenOptions::default() }).unwrap();
            assert!(verify::verify(&copy, true, |_, _| {}).unwrap().is_clean());
            for (session, now) in sessions.iter().zip(&now) {
                let then = journal(&copy, *session);
                assert_eq!(then[..], now[..then.len()]);
            }
            let [one, two] = [sessions[0], sessions[1]].map(|s| copy.load(s).unwrap().state.seq);
            assert_eq!(one, two, "half a transaction");
            lengths.push(one);
            copy.adopt().unwrap();
            assert_eq!(jot(&copy, sessions[2], "in the copy".replace(' ', "-").as_str()), 2);
        }
        assert!(lengths.is_sorted(), "{lengths:?}");
        assert_eq!(writer.load(sessions[2]).unwrap().state.seq, 1, "the copy is its own store");
    }
}

#[test]
fn a_copy_goes_nowhere_that_is_taken_or_missing() {
    let home = Home::quick();
    let store = home.open();
    make(&store, 1);
    std::fs::write(home.file("taken"), b"mine").unwrap();
    std::os::unix::fs::symlink(home.file("nowhere"), home.file("link")).unwrap();
    for name in ["taken", "segno.db", "link", "no/such/folder"] {
        let refused = store.backup(&home.file(name));
        assert!(matches!(refused, Err(Error::UnusableLocation { .. })), "{name}: {refused:?}");
    }
    assert_eq!(std::fs::read(home.file("taken")).unwrap(), b"mine");
    let mut names: Vec<_> = std::fs::read_dir(home.dir())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["link", "segno.db", "segno.db-shm", "segno.db-wal", "segno.db.heads", "segno.db.turn", "taken"]
    );
}

#[test]
fn what_a_killed_copier_left_is_cleared_away() {
    let home = Home::quick();
    let store = home.open();
    make(&store, 1);
    // A process that has certainly ended.
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let stale = home.file(&format!("copy.db.partial-{}-0", child.id()));
    let living = home.file("copy.db.partial-1-0");
    std::fs::write(&stale, b"half").unwrap();
    std::fs::write(&living, b"half").unwrap();
    store.backup(&home.file("copy.db")).unwrap();
    assert!(!stale.exists() && living.exists());
}
