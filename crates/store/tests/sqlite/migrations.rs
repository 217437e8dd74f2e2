//! From each form to the next, with data in it.

use rusqlite::Connection;
use rusqlite::TransactionBehavior;
use segno_core::List;
use segno_store::Error;
use segno_store::Page;
use segno_store::Store;
use segno_store::sqlite::schema;
use segno_store::verify;

use crate::common::*;
use crate::home::Home;
use crate::home::older;

fn form(home: &Home) -> u32 {
    schema::version(&home.raw()).unwrap()
}

#[test]
fn numbers_follow_each_other() {
    let numbers: Vec<u32> = schema::MIGRATIONS.iter().map(|migration| migration.version).collect();
    assert_eq!(numbers, (1..=schema::NEWEST).collect::<Vec<_>>());
}

#[test]
fn released_steps_are_never_edited() {
    let sums: Vec<String> = schema::MIGRATIONS
        .iter()
        .map(|migration| blake3::hash(migration.sql.as_bytes()).to_hex()[..16].to_owned())
        .collect();
    assert_eq!(
        sums,
        ["7b6f8494a49ecf9b", "b5ad45056ca99072", "a3ae3c7b89c7ddb1"],
        "a step that is out is followed by another, not edited"
    );
}

#[test]
fn every_older_form_is_brought_up_with_its_data() {
    for from in 1..schema::NEWEST {
        let (home, session) = older(from);
        let store = home.open();
        assert_eq!(form(&home), schema::NEWEST);
        assert_eq!(assert_whole(&store, session).state.seq, 11);
        assert_eq!(jot(&store, session, "after"), 12);
        assert_eq!(store.acquire(session, &holder("b"), None).unwrap().epoch, 2);
        // Lists that an older form did not have are folded from the journal.
        store.rebuild(session).unwrap();
        assert_eq!(store.items(session, List::History, &Page::first(100)).unwrap().total, 12);
        assert!(verify::verify(&store, true, |_, _| {}).unwrap().is_clean());

        let copy = home.file(&format!("segno.db.before-form-{}", schema::NEWEST));
        let copy = Connection::open(copy).unwrap();
        assert_eq!(schema::version(&copy).unwrap(), from, "the copy has the form from before");
        let events: u64 = copy.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
        assert_eq!(events, 11);
    }
}

#[test]
fn many_that_find_an_older_form_bring_it_up_once() {
    let (home, session) = older(1);
    let barrier = std::sync::Barrier::new(6);
    std::thread::scope(|scope| {
        for n in 0..6 {
            let (home, barrier) = (&home, &barrier);
            scope.spawn(move || {
                barrier.wait();
                jot(&home.open(), session, &format!("t{n}"));
            });
        }
    });
    assert_eq!(assert_whole(&home.open(), session).state.seq, 17);
    let copy = Connection::open(home.file(&format!("segno.db.before-form-{}", schema::NEWEST))).unwrap();
    assert_eq!(schema::version(&copy).unwrap(), 1);
    let left: Vec<_> = std::fs::read_dir(home.dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("partial"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_step_other_than_the_one_we_know_is_found_out() {
    let (home, _) = older(1);
    home.sql("UPDATE migrations SET checksum = 'another' WHERE version = 1");
    let refused = home.try_open().err();
    assert!(matches!(&refused, Some(Error::Damaged { what, .. }) if what.contains("0001")), "{refused:?}");
    assert_eq!(form(&home), 1);

    let home = Home::quick();
    make(&home.open(), 1);
    home.sql("UPDATE migrations SET checksum = 'another' WHERE version = 2");
    let report = verify::verify(&home.open(), false, |_, _| {}).unwrap();
    assert!(report.store.iter().any(|what| what.contains("0002")), "{report:?}");
}

#[test]
fn a_newer_form_is_read_and_not_written() {
    let home = Home::quick();
    let session = make(&home.open(), 1);
    home.sql("PRAGMA user_version=99; CREATE TABLE tides (at INTEGER) STRICT;");
    home.checkpoint();
    let before = home.bytes();
    let store = home.open();
    assert_whole(&store, session);
    assert_eq!(ids(&store), [session]);
    assert!(matches!(
        append(&store, facts(session, "a", vec![note("a")])),
        Err(Error::Newer { found: 99, known: schema::SEALED, .. })
    ));
    let is_newer = |error: Error| matches!(error, Error::Newer { .. });
    assert!(store.create(to_create(2, 2, PROJECT, Default::default())).is_err_and(is_newer));
    assert!(store.acquire(session, &holder("a"), None).is_err_and(is_newer));
    assert!(store.renew(session, 1).is_err_and(is_newer));
    assert!(store.delete(session, None).is_err_and(is_newer));
    assert!(store.rebuild(session).is_err_and(is_newer));
    assert!(store.collect_garbage().is_err_and(is_newer));
    assert!(store.quarantine(session, 1, "x").is_err_and(is_newer));
    drop(store);
    home.checkpoint();
    assert_eq!(home.bytes(), before);
}

#[test]
fn a_form_that_changes_under_an_open_store_is_noticed() {
    let home = Home::quick();
    let store = home.open();
    let session = make(&store, 1);
    home.sql("PRAGMA user_version=99;");
    assert!(matches!(append(&store, facts(session, "a", vec![note("a")])), Err(Error::Newer { .. })));
    assert_eq!(assert_whole(&store, session).state.seq, 1);
}

#[test]
fn a_living_driver_is_not_disturbed() {
    let (home, session) = older(1);
    let now = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";
    home.sql(&format!("UPDATE leases SET holder = '{{}}', heartbeat_us = {now}"));
    let refused = home.try_open().err();
    assert!(
        matches!(refused, Some(Error::DriversAlive { to: schema::NEWEST, drivers: 1, .. })),
        "{refused:?}"
    );
    assert_eq!(form(&home), 1);
    // Even whoever comes straight to the migration is refused.
    let straight = schema::migrate(&mut home.raw(), "here", 2);
    assert!(matches!(straight, Err(Error::DriversAlive { .. })), "{straight:?}");
    // One that has not been heard of for minutes is no longer alive.
    home.sql(&format!("UPDATE leases SET heartbeat_us = {now} - 600 * 1000000"));
    assert_eq!(assert_whole(&home.open(), session).state.seq, 11);
}

/// A machine that slept: the heartbeat is old by the calendar, and the driver lives.
#[test]
fn a_driver_is_not_disturbed_after_the_machine_slept() {
    let (home, _) = older(1);
    let steady = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let steady = steady.tv_sec * 1_000_000;
    let boot = segno_store::boot_id();
    let holder = format!(
        "{{\"boot_id\":\"{boot}\",\"steady_us\":{steady},\"host\":\"a\",\"pid\":1,\"pid_namespace\":\"\",\"process_start\":0,\"what\":\"x\"}}"
    );
    home.sql(&format!("UPDATE leases SET holder = '{holder}', heartbeat_us = 1000000"));
    let refused = home.try_open().err();
    assert!(matches!(refused, Some(Error::DriversAlive { drivers: 1, .. })), "{refused:?}");
}

#[test]
fn a_copy_of_an_earlier_time_is_not_taken_for_todays() {
    let (home, session) = older(1);
    let copy = home.file(&format!("segno.db.before-form-{}", schema::NEWEST));
    std::fs::copy(older(1).0.db(), &copy).unwrap();
    Connection::open(&copy).unwrap().execute_batch("UPDATE sessions SET head_seq = 3").unwrap();
    let earlier = std::fs::read(&copy).unwrap();
    assert_eq!(assert_whole(&home.open(), session).state.seq, 11);
    assert_eq!(std::fs::read(&copy).unwrap(), earlier);
    let today = Connection::open(home.file(&format!("segno.db.before-form-{}.2", schema::NEWEST))).unwrap();
    let head: u64 = today.query_row("SELECT head_seq FROM sessions", [], |row| row.get(0)).unwrap();
    assert_eq!((head, schema::version(&today).unwrap()), (11, 1));
}

#[test]
fn a_migration_that_is_cut_short_leaves_the_old_form() {
    let (home, session) = older(1);
    let mut raw = home.raw();
    let tx = raw.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    tx.execute_batch(schema::MIGRATIONS[1].sql).unwrap();
    tx.pragma_update(None, "user_version", 2).unwrap();
    drop(tx);
    drop(raw);
    assert_eq!(form(&home), 1);
    assert_eq!(assert_whole(&home.open(), session).state.seq, 11);
    assert_eq!(form(&home), schema::NEWEST);
}
