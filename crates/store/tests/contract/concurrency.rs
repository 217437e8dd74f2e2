//! Many at once.

use segno_core::event::Maker;

use crate::Backend;
use crate::common::*;

on_every_backend![
    threads_share_one_handle,
    handles_share_one_session,
    a_new_store_may_be_opened_by_many_at_once,
    a_panicking_decider_harms_nobody_else,
];

fn threads_share_one_handle(backend: &dyn Backend) {
    let store = backend.open();
    let sessions: Vec<_> = (1..=3).map(|second| make(&*store, second)).collect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (store, sessions) = (&*store, &sessions);
            scope.spawn(move || {
                for n in 0..25 {
                    let name = format!("t{thread}-{n}");
                    let batch = sessions.iter().map(|s| facts(*s, &name, vec![note(&name)])).collect();
                    for result in store.append(batch) {
                        assert!(!result.unwrap().repeated);
                    }
                    store.load(sessions[n % 3]).unwrap();
                }
            });
        }
    });
    for session in sessions {
        assert_eq!(assert_whole(&*backend.open(), session).state.seq, 201);
    }
}

fn handles_share_one_session(backend: &dyn Backend) {
    let session = make(&*backend.open(), 1);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || {
                let store = backend.open();
                let mut last = 0;
                for n in 0..20 {
                    let seq = jot(&*store, session, &format!("t{thread}-{n}"));
                    assert!(seq > last);
                    last = seq;
                }
            });
        }
    });
    assert_eq!(assert_whole(&*backend.open(), session).state.seq, 121);
}

fn a_new_store_may_be_opened_by_many_at_once(backend: &dyn Backend) {
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let create = to_create(1, thread, PROJECT, Maker::Run);
                backend.open().create(create).unwrap();
            });
        }
    });
    assert_eq!(ids(&*backend.open()).len(), 8);
}

fn a_panicking_decider_harms_nobody_else(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let panicking = segno_store::Append::new(
        session,
        key("bad"),
        at(1),
        segno_store::What::Decide(Box::new(|_| panic!("a decider with a mistake"))),
    );
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| append(&*store, panicking)));
    assert!(!matches!(caught, Ok(Ok(_))), "{caught:?}");
    assert_eq!(jot(&*store, session, "good"), 2);
    assert_whole(&*backend.open(), session);
}
