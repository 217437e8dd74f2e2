//! Writers take turns, and whatever becomes of the turn, what they write is written.

use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;
use std::process::Stdio;
use std::time::Duration;

use segno_store::Purpose;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;

use crate::common::*;
use crate::home::Home;
use crate::home::again;
use crate::home::role;

/// Long enough that only a mistake takes it.
const AGES: Duration = Duration::from_secs(120);

/// The files at which writers stand.
const QUEUES: [&str; 2] = ["segno.db.turn", "segno.db.turn-patient"];

/// Takes the place at the head of a queue, as another process would.
fn hold(path: &Path) -> File {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    file.lock().unwrap();
    file
}

fn both(home: &Home) -> [SqliteStore; 2] {
    [Purpose::OneShot, Purpose::LongLived].map(|purpose| home.open_patient(purpose, AGES))
}

/// A process that has the turn.
fn holder_process(home: &Home) -> Child {
    let mut child = again("turns::hold_until_killed", home.dir().to_str().unwrap());
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("it holds")));
    child
}

#[test]
fn hold_until_killed() {
    let Some(role) = role() else { return };
    let _held = QUEUES.map(|name| hold(&Path::new(&role).join(name)));
    println!("it holds");
    std::thread::sleep(AGES * 10);
}

#[test]
fn a_holder_that_is_killed_holds_nobody_up() {
    let home = Home::new();
    let stores = both(&home);
    let session = make(&stores[0], 1);
    let mut child = holder_process(&home);
    std::thread::scope(|scope| {
        let writers: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(index, store)| scope.spawn(move || jot(store, session, &format!("n{index}"))))
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        let mut seqs: Vec<u64> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        seqs.sort_unstable();
        assert_eq!(seqs, [2, 3]);
    });
    assert_whole(&stores[0], session);
}

/// Nobody can tell a stopped holder from a slow one, so it is gone past. SQLite's lock is free.
#[test]
fn a_holder_that_is_stopped_is_gone_past() {
    let home = Home::new();
    let stores = both(&home);
    let session = make(&stores[0], 1);
    let held = QUEUES.map(|name| hold(&home.file(name)));
    for (index, store) in stores.iter().enumerate() {
        // The second time nobody waits for it any more.
        jot(store, session, &format!("n{index}"));
        jot(store, session, &format!("m{index}"));
        let soon = store.append_soon(vec![facts(session, &format!("s{index}"), vec![note("soon")])]);
        assert!(soon.wait().remove(0).is_ok());
    }
    drop(held);
    assert_eq!(jot(&stores[0], session, "last"), 8);
    assert_eq!(jot(&stores[1], session, "more"), 9);
    assert_whole(&stores[0], session);
}

#[test]
fn patience_ends_at_the_turn_too() {
    let home = Home::new();
    let store = home.open_patient(Purpose::OneShot, Duration::from_millis(1));
    let session = make(&store, 1);
    let _held = hold(&home.file(QUEUES[0]));
    // Nobody writes: the one that is not waited for any longer holds nothing but the turn.
    assert_eq!(jot(&store, session, "a"), 2);
}

#[test]
fn the_turn_is_made_private_and_again_if_it_is_gone() {
    let home = Home::new();
    let stores = both(&home);
    let session = make(&stores[0], 1);
    for (index, store) in stores.iter().enumerate() {
        let soon = store.append_soon(vec![facts(session, &format!("s{index}"), vec![note("soon")])]);
        assert!(soon.wait().remove(0).is_ok());
        jot(store, session, &format!("n{index}"));
    }
    for name in QUEUES {
        let mode = std::fs::metadata(home.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        std::fs::remove_file(home.file(name)).unwrap();
    }
    for (index, store) in stores.iter().enumerate() {
        jot(store, session, &format!("m{index}"));
    }
    assert!(home.file(QUEUES[0]).exists());
    assert_whole(&stores[0], session);
}

/// Whatever else lies there is left alone, and writing goes on without turns.
#[test]
fn what_is_no_turn_is_left_alone() {
    let make_others: [fn(&Path); 4] = [
        |place| std::fs::create_dir(place).unwrap(),
        |place| std::os::unix::fs::symlink(place.with_file_name("other"), place).unwrap(),
        |place| rustix::fs::mkfifoat(rustix::fs::CWD, place, rustix::fs::Mode::RWXU).unwrap(),
        |place| {
            std::fs::write(place, "kept").unwrap();
            std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o000)).unwrap();
        },
    ];
    for make_other in make_others {
        let home = Home::new();
        std::fs::write(home.file("other"), "kept").unwrap();
        let session = make(&home.open(), 1);
        for name in QUEUES {
            let _ = std::fs::remove_file(home.file(name));
            make_other(&home.file(name));
        }
        let stores = both(&home);
        for (index, store) in stores.iter().enumerate() {
            jot(store, session, &format!("n{index}"));
            let soon = store.append_soon(vec![facts(session, &format!("s{index}"), vec![note("soon")])]);
            assert!(soon.wait().remove(0).is_ok());
        }
        assert_whole(&stores[0], session);
        assert_eq!(std::fs::read(home.file("other")).unwrap(), b"kept");
    }
}

/// A program from before there were turns asks SQLite alone.
#[test]
fn who_knows_no_turns_writes_beside_those_who_do() {
    let home = Home::new();
    let session = make(&home.open(), 1);
    home.sql("CREATE TABLE IF NOT EXISTS older (id INTEGER PRIMARY KEY)");
    std::thread::scope(|scope| {
        for number in 0..4 {
            let store =
                home.open_patient(if number % 2 == 0 { Purpose::OneShot } else { Purpose::LongLived }, AGES);
            scope.spawn(move || {
                for n in 0..25 {
                    jot(&store, session, &format!("w{number}-{n}"));
                }
            });
        }
        let raw = home.raw();
        raw.busy_timeout(AGES).unwrap();
        scope.spawn(move || {
            for _ in 0..50 {
                raw.execute_batch("BEGIN IMMEDIATE; INSERT INTO older DEFAULT VALUES; COMMIT").unwrap();
            }
        });
    });
    assert_eq!(assert_whole(&home.open(), session).state.seq, 101);
    let older: u64 = home.raw().query_row("SELECT count(*) FROM older", [], |row| row.get(0)).unwrap();
    assert_eq!(older, 50);
}

/// Whoever is waited for does not stand behind those who are not, and takes along what was given before.
#[test]
fn who_is_waited_for_goes_first() {
    let home = Home::new();
    let store = home.open_patient(Purpose::LongLived, AGES);
    let session = make(&store, 1);
    let held = hold(&home.file(QUEUES[1]));
    let soon = store.append_soon(vec![facts(session, "a", vec![note("a")])]);
    assert_eq!(jot(&store, session, "b"), 3);
    drop(held);
    assert_eq!(soon.wait().remove(0).unwrap().last, 2);
    assert_eq!(keys(&store, session), ["create-1", "a", "b"]);
}

/// What is given is written, however long the others stand there, also when the store is let go of.
#[test]
fn who_leaves_has_written_what_was_given() {
    let home = Home::new();
    let store = home.open_patient(Purpose::LongLived, AGES);
    let session = make(&store, 1);
    let held = hold(&home.file(QUEUES[1]));
    let answers: Vec<_> =
        (0..5).map(|n| store.append_soon(vec![facts(session, &format!("n{n}"), vec![note("x")])])).collect();
    drop(store);
    drop(held);
    let seqs: Vec<u64> = answers.into_iter().map(|answer| answer.wait().remove(0).unwrap().last).collect();
    assert_eq!(seqs, [2, 3, 4, 5, 6]);
    assert_whole(&home.open(), session);
}

fn heartbeat(store: &dyn Store, session: segno_core::SessionId) -> u64 {
    store.lease(session).unwrap().unwrap().steady.unwrap().heartbeat
}

/// An append of a holder says that it lives; anybody else's says nothing of it.
#[test]
fn an_append_of_the_holder_is_a_heartbeat() {
    let home = Home::new();
    for purpose in [Purpose::OneShot, Purpose::LongLived] {
        let (store, other) = (home.open_for(purpose), home.open());
        let session = make(&store, if purpose == Purpose::OneShot { 1 } else { 2 });
        let epoch = store.acquire(session, &holder("a"), None).unwrap().epoch;
        let begun = heartbeat(&store, session);
        assert!(begun > 5);
        let under = |name: &str, given| segno_store::Append {
            epoch: Some(given),
            ..facts(session, name, vec![note(name)])
        };
        append(&store, under("known", epoch)).unwrap();
        let long_ago = "UPDATE leases SET heartbeat_us = 5, holder = json_set(holder, '$.steady_us', 5) WHERE holder IS NOT NULL";
        home.sql(long_ago);
        append(&other, under("other", epoch)).unwrap();
        append(&store, facts(session, "of-nobody", vec![note("x")])).unwrap();
        append(&store, under("known", epoch)).unwrap();
        assert_eq!(heartbeat(&store, session), 5, "nothing was written by its holder");
        append(&store, under("own", epoch)).unwrap();
        assert!(heartbeat(&store, session) >= begun);
        let at = store.lease(session).unwrap().unwrap().heartbeat_at;
        assert!(at.as_micros() > 5);
        // It need not be said again, and is true all the same.
        store.renew(session, epoch).unwrap();
        assert!(store.lease(session).unwrap().unwrap().heartbeat_at >= at);
        // Whoever was replaced hears so, however lately it wrote.
        home.sql("UPDATE leases SET epoch = epoch + 1 WHERE holder IS NOT NULL");
        let stale = store.renew(session, epoch).unwrap_err();
        assert_eq!(
            stale.to_string(),
            segno_store::Error::StaleEpoch { given: epoch, current: epoch + 1 }.to_string()
        );
        home.sql("UPDATE leases SET epoch = epoch - 1 WHERE holder IS NOT NULL");
        store.release(session, epoch).unwrap();
        assert!(store.renew(session, epoch).is_err(), "it was let go of");
        home.sql("DELETE FROM leases");
    }
}

/// A log that somebody kept from being cut is cut as soon as that one has gone.
#[test]
fn a_long_log_is_cut_by_whoever_writes_next() {
    let home = Home::quick();
    let store = home.open_patient(Purpose::LongLived, AGES);
    let session = make(&store, 1);
    let raw = home.raw();
    raw.execute_batch("BEGIN; SELECT count(*) FROM sessions").unwrap();
    let log = || std::fs::metadata(home.file("segno.db-wal")).unwrap().len();
    let most = 32 * 1024 * 1024;
    home.sql(
        "PRAGMA wal_autocheckpoint = 0; CREATE TABLE filler (content BLOB);
         INSERT INTO filler WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
         SELECT randomblob(1000000) FROM n",
    );
    jot(&store, session, "kept");
    assert!(log() > most);
    raw.execute_batch("COMMIT").unwrap();
    jot(&store, session, "next");
    assert!(log() < most, "{}", log());
    assert_whole(&store, session);
}
