//! Others hold the lock.

use std::time::Duration;
use std::time::Instant;

use segno_store::Certainty;
use segno_store::Error;
use segno_store::Purpose;
use segno_store::Store;

use crate::common::*;
use crate::home::Home;

/// Long enough that only a mistake takes it.
const AGES: Duration = Duration::from_secs(120);

#[test]
fn patience_ends_and_nothing_is_written() {
    for purpose in [Purpose::OneShot, Purpose::LongLived] {
        let home = Home::new();
        let store = home.open_patient(purpose, Duration::from_millis(150));
        let (session, other) = (make(&store, 1), make(&store, 2));
        let raw = home.raw();
        raw.execute_batch("BEGIN IMMEDIATE").unwrap();
        let begin = Instant::now();
        let batch = vec![facts(session, "a", vec![note("a")]), facts(other, "b", vec![note("b")])];
        for result in store.append(batch) {
            let why = result.unwrap_err();
            assert!(matches!(why, Error::Busy { .. }), "{why:?}");
            assert_eq!(why.certainty(), Certainty::NotWritten);
        }
        assert!(begin.elapsed() >= Duration::from_millis(150));
        assert!(matches!(
            store.create(to_create(9, 9, PROJECT, Default::default())),
            Err(Error::Busy { .. })
        ));
        assert!(matches!(store.acquire(session, &holder("a"), None), Err(Error::Busy { .. })));
        assert!(matches!(store.delete(session, None), Err(Error::Busy { .. })));
        // Reading goes on meanwhile.
        assert_eq!(assert_whole(&store, session).state.seq, 1);
        raw.execute_batch("ROLLBACK").unwrap();
        assert_eq!(jot(&store, session, "a"), 2);
        assert_eq!(ids(&store).len(), 2);
    }
}

#[test]
fn a_short_wait_is_waited_out() {
    for purpose in [Purpose::OneShot, Purpose::LongLived] {
        let home = Home::new();
        let store = home.open_patient(purpose, AGES);
        let session = make(&store, 1);
        let raw = home.raw();
        raw.execute_batch("BEGIN IMMEDIATE").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                raw.execute_batch("ROLLBACK").unwrap();
            });
            assert_eq!(jot(&store, session, "a"), 2);
        });
    }
}

#[test]
fn each_store_has_its_own_patience() {
    let home = Home::new();
    let hasty = home.open_patient(Purpose::OneShot, Duration::from_millis(50));
    let session = make(&hasty, 1);
    let patient = home.open_patient(Purpose::OneShot, AGES);
    assert_eq!(jot(&patient, session, "a"), 2);
    let raw = home.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begin = Instant::now();
    assert!(matches!(append(&hasty, facts(session, "b", vec![note("b")])), Err(Error::Busy { .. })));
    assert!(begin.elapsed() < AGES / 2, "it waited as long as the other would");
}

#[test]
fn a_store_that_is_being_made_is_waited_for() {
    let home = Home::new();
    std::fs::write(home.db(), b"").unwrap();
    let raw = home.raw();
    raw.execute_batch("BEGIN EXCLUSIVE").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            raw.execute_batch("ROLLBACK").unwrap();
        });
        make(&home.open_patient(Purpose::OneShot, AGES), 1);
    });
}
