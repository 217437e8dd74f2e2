//! Reading the journal back, in pages, at any point, and as it grows.

use std::time::Duration;
use std::time::Instant;

use segno_core::Command;
use segno_core::Status;
use segno_core::event::PauseReason;
use segno_store::EventRow;
use segno_store::state_at;

use crate::Backend;
use crate::common::*;

on_every_backend![
    pages_join_without_a_gap,
    odd_pages_are_empty,
    a_state_of_the_past_is_the_state_there_was,
    waiting_ends_when_another_appends,
    whoever_looks_again_sees_that_others_wrote,
    waiting_ends_with_its_time,
    waiting_for_ever_is_allowed,
    a_reader_never_sees_half_an_append,
];

fn numbers(rows: &[EventRow]) -> Vec<u64> {
    let number = |row: &EventRow| match row {
        EventRow::Whole(stored) => stored.seq,
        EventRow::Damaged { seq, what } => panic!("event {seq}: {what}"),
    };
    rows.iter().map(number).collect()
}

fn pages_join_without_a_gap(backend: &dyn Backend) {
    let store = backend.open();
    let (session, other) = (make(&*store, 1), make(&*store, 2));
    for n in 2..=50 {
        jot(&*store, session, &format!("n{n}"));
        jot(&*store, other, &format!("o{n}"));
    }
    let reader = backend.open();
    for size in [1, 7, 50, 51, 1_000] {
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let page = numbers(&reader.events(session, after, size).unwrap());
            assert!(page.len() <= size);
            let Some(last) = page.last() else { break };
            after = *last;
            all.extend(page);
        }
        assert_eq!(all, (1..=50).collect::<Vec<_>>(), "in pages of {size}");
    }
}

fn odd_pages_are_empty(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    make(&*store, 2);
    assert_eq!(store.events(session, 0, 0).unwrap(), []);
    for after in [1, 2, 1 << 36, (1 << 36) + 1, i64::MAX as u64, u64::MAX] {
        assert_eq!(store.events(session, after, 10).unwrap(), [], "after {after}");
    }
    assert_eq!(store.events(session, 0, usize::MAX).unwrap().len(), 1);
}

fn a_state_of_the_past_is_the_state_there_was(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let mut states = vec![store.load(session).unwrap().state];
    let pause = Command::Pause { reason: PauseReason::Asked, details: None };
    let resume = Command::Resume { reset_breaker: false, details: None };
    let commands = [pause.clone(), resume, Command::StartIteration, pause, Command::Abort { reason: None }];
    for (index, asked) in commands.into_iter().enumerate() {
        append(&*store, command(session, &format!("c{index}"), asked)).unwrap();
        states.push(store.load(session).unwrap().state);
    }
    let reader = backend.open();
    for state in &states {
        assert_eq!(state_at(&*reader, session, state.seq).unwrap(), (state.clone(), Vec::new()));
    }
    let last = states.pop().unwrap();
    assert_eq!(last.status, Status::Aborted);
    assert_eq!(state_at(&*reader, session, u64::MAX).unwrap().0, last);
    assert_eq!(assert_whole(&*reader, session).state, last);
}

fn waiting_ends_when_another_appends(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    // What is there already is not waited for.
    assert_eq!(one.wait_after(session, 0, Duration::from_secs(600)).unwrap(), 1);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| one.wait_after(session, 1, Duration::from_secs(600)).unwrap());
        std::thread::sleep(Duration::from_millis(60));
        jot(&*two, session, "a");
        assert_eq!(waiter.join().unwrap(), 2);
    });
}

fn whoever_looks_again_sees_that_others_wrote(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    let before = one.change_mark().unwrap();
    assert_eq!(one.change_mark().unwrap(), before);
    jot(&*two, session, "a");
    let after = one.change_mark().unwrap();
    assert_ne!(after, before);
    assert_eq!(one.change_mark().unwrap(), after);
}

fn waiting_ends_with_its_time(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let begin = Instant::now();
    assert_eq!(store.wait_after(session, 1, Duration::from_millis(120)).unwrap(), 1);
    assert!(begin.elapsed() >= Duration::from_millis(120));
    assert_eq!(store.wait_after(session, u64::MAX, Duration::ZERO).unwrap(), 1);
}

fn waiting_for_ever_is_allowed(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    assert_eq!(store.wait_after(session, 0, Duration::MAX).unwrap(), 1);
}

fn a_reader_never_sees_half_an_append(backend: &dyn Backend) {
    let writer = backend.open();
    let session = make(&*writer, 1);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..150 {
                // Always two at once, so that an even number is never the newest.
                append(&*writer, facts(session, &format!("n{n}"), vec![note("x"), note("y")])).unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        let reader = backend.open();
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            let loaded = reader.load(session).unwrap();
            assert_eq!(loaded.state.seq % 2, 1, "half of an append was seen");
            assert_eq!(loaded.state.counts.history, loaded.state.seq, "the state is not that of its number");
            let rows = reader.events(session, 0, usize::MAX).unwrap();
            assert_eq!(rows.len() % 2, 1, "half of an append was seen");
            let page = segno_store::Page::first(10_000);
            let items = reader.items(session, segno_core::List::History, &page).unwrap();
            assert_eq!(items.items.len() as u64, items.total);
        }
    });
    assert_eq!(assert_whole(&*backend.open(), session).state.seq, 301);
}
