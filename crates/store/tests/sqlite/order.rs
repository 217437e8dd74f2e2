//! What one failed write does to those beside it, and to those who come after.

use segno_store::Append;
use segno_store::Certainty;
use segno_store::Error;
use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;

use crate::common::*;
use crate::home::Home;

/// Makes the database fail when this word is written.
fn poison(home: &Home, word: &str) {
    home.sql(&format!(
        "CREATE TRIGGER poison BEFORE INSERT ON events WHEN instr(NEW.body, '{word}')
         BEGIN SELECT RAISE(ABORT, 'no'); END;"
    ));
}

/// When one append of a group fails, what came after it in the same session is not written before it.
#[test]
fn a_failed_append_holds_up_what_came_after_it() {
    for purpose in [Purpose::OneShot, Purpose::LongLived] {
        let home = Home::quick();
        let store = home.open_for(purpose);
        let (one, two) = (make(&store, 1), make(&store, 2));
        poison(&home, "poison");
        let batch = || -> Vec<Append> {
            (0..8)
                .flat_map(|n| {
                    let text = if n == 2 { "poison".to_owned() } else { format!("text {n}") };
                    [
                        facts(one, &format!("n{n}"), vec![note(&text)]),
                        facts(two, &format!("m{n}"), vec![note("x")]),
                    ]
                })
                .collect()
        };
        let results = store.append(batch());
        let written: Vec<bool> = results.iter().map(Result::is_ok).collect();
        let wanted: Vec<bool> = (0..8).flat_map(|n| [n < 2, true]).collect();
        assert_eq!(written, wanted);
        for failed in results.iter().filter_map(|result| result.as_ref().err()) {
            assert_eq!(failed.certainty(), Certainty::NotWritten, "{failed}");
        }
        // Once it can be written everything is, in the order in which it happened.
        home.sql("DROP TRIGGER poison");
        assert!(store.append(batch()).iter().all(Result::is_ok));
        let keys = keys(&store, one);
        assert_eq!(keys[1..], ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"]);
        assert_whole(&store, two);
    }
}

/// Whoever writes next makes sure of what another process could not: it must not acknowledge what is on no disk.
#[test]
fn a_commit_in_doubt_is_settled_by_whoever_writes_next() {
    let home = Home::quick();
    let store = home.open();
    let session = make(&store, 1);
    jot(&store, session, "a");
    std::fs::write(home.file("segno.db.in-doubt"), "").unwrap();
    let looking = || {
        let options = OpenOptions { purpose: Purpose::Inspect, ..OpenOptions::default() };
        SqliteStore::open(&home.db(), options)
    };
    assert!(
        !looking().is_ok_and(|store| keys_if_any(&store).contains(&"a".to_owned())),
        "only in the log so far"
    );
    let again = append(&home.open(), facts(session, "a", vec![note("a")])).unwrap();
    assert!(again.repeated);
    assert!(keys_if_any(&looking().unwrap()).contains(&"a".to_owned()), "in the database's own file");
    assert!(!home.file("segno.db.in-doubt").exists());
}

fn keys_if_any(store: &SqliteStore) -> Vec<String> {
    match store.list(&segno_store::Filter::default()) {
        Ok(listing) if !listing.sessions.is_empty() => keys(store, listing.sessions[0].session_id),
        Ok(_) | Err(Error::Damaged { .. } | Error::Failed { .. }) => Vec::new(),
        Err(why) => panic!("{why}"),
    }
}

/// Removing a session looks at its own texts only, however many others there are.
#[test]
fn removing_looks_at_the_sessions_own_texts() {
    let home = Home::quick();
    let store = home.open();
    let (one, two) = (make(&store, 1), make(&store, 2));
    let long = "word ".repeat(4_000);
    for session in [one, two] {
        append(&store, facts(session, "shared", vec![note(&long)])).unwrap();
        append(&store, facts(session, "own", vec![note(&format!("{session} {long}"))])).unwrap();
    }
    home.sql("INSERT INTO blobs (hash, bytes, content) VALUES (zeroblob(32), 1, x'00')");
    let count =
        || home.raw().query_row("SELECT count(*) FROM blobs", [], |row| row.get::<_, u64>(0)).unwrap();
    assert_eq!(count(), 4);
    assert!(store.delete(one, None).unwrap());
    assert_eq!(count(), 3, "its own text went, the shared one and the stray one stay");
    // What is not what its hash says is not cleared away: the hash may be what is damaged.
    assert_eq!(store.collect_garbage().unwrap().blobs, 0);
    assert_eq!(count(), 3);
}

/// A copy is of one moment, whatever is written beside it.
#[test]
fn a_copy_ends_beside_a_writer_that_never_rests() {
    let home = Home::quick();
    let store = home.open();
    let session = make(&store, 1);
    home.sql(
        "INSERT INTO damage (session, found_us, what, content)
              WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
              SELECT 'x', 0, 'x', zeroblob(1000000) FROM n",
    );
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let beside = home.open();
        let done = &done;
        scope.spawn(move || {
            for n in 0.. {
                if done.load(std::sync::atomic::Ordering::Acquire) {
                    return;
                }
                jot(&beside, session, &format!("n{n}"));
            }
        });
        let copied = store.backup(&home.file("copy.db"));
        done.store(true, std::sync::atomic::Ordering::Release);
        assert!(copied.unwrap() > 30_000_000);
    });
    let copy = SqliteStore::open(&home.file("copy.db"), OpenOptions::default()).unwrap();
    assert_whole(&copy, session);
}
