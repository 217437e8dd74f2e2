//! Many at once.

use segno_core::event::Maker;

use crate::Backend;
use crate::common::*;

on_every_backend![
    threads_share_one_handle,
    handles_share_one_session,
    a_new_store_may_be_opened_by_many_at_once,
    sessions_decide_on_the_newest_picture_of_each_other,
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

/// Many sessions, one place: whoever decides sees all that the others decided before, also in the same group.
fn sessions_decide_on_the_newest_picture_of_each_other(backend: &dyn Backend) {
    let sessions: Vec<_> = (1..=8).map(|second| make(&*backend.open(), second)).collect();
    let filter = segno_store::Filter { statuses: vec![segno_core::Status::Paused], ..Default::default() };
    let query = segno_store::OthersQuery { sessions: Some(filter), ..Default::default() };
    let pause_if_first = |session| {
        let first = move |state: &segno_core::State, paused: &segno_store::OthersView| {
            if !paused.sessions.is_empty() {
                return Err(segno_core::Refusal::Already("somebody is paused".to_owned()));
            }
            let reason = segno_core::event::PauseReason::Asked;
            let command = segno_core::Command::Pause { reason, details: None };
            decider(command)(state)
        };
        let what = segno_store::What::DecideWithOthers(query.clone(), Box::new(first));
        segno_store::Append::new(session, key(&format!("pause-{session}")), at(2), what)
    };
    // Four in one group, four from other processes at the same time.
    let (together, apart) = sessions.split_at(4);
    let barrier = std::sync::Barrier::new(5);
    let done: usize = std::thread::scope(|scope| {
        let others = apart.iter().map(|session| {
            let (barrier, append_it) = (&barrier, pause_if_first(*session));
            scope.spawn(move || {
                let store = backend.open();
                barrier.wait();
                usize::from(append(&*store, append_it).is_ok())
            })
        });
        let others: Vec<_> = others.collect();
        let batch: Vec<_> = together.iter().map(|session| pause_if_first(*session)).collect();
        let store = backend.open();
        barrier.wait();
        let own = store.append(batch).into_iter().filter(Result::is_ok).count();
        own + others.into_iter().map(|other| other.join().unwrap()).sum::<usize>()
    });
    assert_eq!(done, 1, "exactly one is the first");
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
