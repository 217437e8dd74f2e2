//! A retry is answered as the first time, and nothing is written.

use segno_core::Event;
use segno_core::Fact;
use segno_core::TokenUse;
use segno_core::event::Source;

use crate::Backend;
use crate::common::*;

on_every_backend![
    a_retry_is_answered_again,
    a_retry_of_many_events_is_answered_again,
    retries_at_once_write_once,
    keys_belong_to_their_session,
    a_key_that_looks_like_a_part_is_its_own,
    the_longest_keys_have_parts_too,
];

fn a_retry_is_answered_again(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    let first = append(&*one, facts(session, "a", vec![note("a")])).unwrap();
    jot(&*two, session, "b");
    for store in [&one, &two, &backend.open()] {
        // What comes with a known key does not matter: it is written already.
        let again = append(&**store, facts(session, "a", vec![note("something else")])).unwrap();
        assert_eq!((again.first, again.last, again.repeated), (first.first, first.last, true));
    }
    assert_eq!(keys(&*two, session), ["create-1", "a", "b"]);
    assert_whole(&*two, session);
}

fn a_retry_of_many_events_is_answered_again(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    // Passing the budget follows from recording the tokens, so one command makes several events.
    let tokens = TokenUse { input: 200_000, ..TokenUse::default() };
    let record = || {
        let record = Fact::TokensRecorded { tokens, estimated: false, source: Source::Hand };
        let mut append = command(session, "tokens", record);
        append.want_state = true;
        append
    };
    let first = append(&*one, record()).unwrap();
    assert!(first.last > first.first, "{first:?}");
    assert!(matches!(first.events[0], Event::TokensRecorded(_)));
    let again = append(&*two, record()).unwrap();
    assert_eq!((again.first, again.last, again.repeated), (first.first, first.last, true));
    assert_eq!(again.events, first.events, "whoever missed the answer needs all of it");
    assert_eq!(again.state, first.state);
    assert_eq!(assert_whole(&*two, session).state.budget.tokens_used, 200_000);
}

fn retries_at_once_write_once(backend: &dyn Backend) {
    let session = make(&*backend.open(), 1);
    for round in 0..20 {
        let name = format!("round-{round}");
        let barrier = std::sync::Barrier::new(4);
        let answers: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let store = backend.open();
                        barrier.wait();
                        append(&*store, facts(session, &name, vec![note("x"), note("y")])).unwrap()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(answers.iter().filter(|answer| !answer.repeated).count(), 1, "{answers:?}");
        let wanted = (2 + round * 2, 3 + round * 2);
        assert!(answers.iter().all(|answer| (answer.first, answer.last) == wanted), "{answers:?}");
    }
    assert_eq!(assert_whole(&*backend.open(), session).state.seq, 41);
}

fn keys_belong_to_their_session(backend: &dyn Backend) {
    let store = backend.open();
    let (one, two) = (make(&*store, 1), make(&*store, 2));
    assert!(!append(&*store, facts(one, "same", vec![note("a")])).unwrap().repeated);
    assert!(!append(&*store, facts(two, "same", vec![note("b")])).unwrap().repeated);
    assert_eq!(keys(&*store, two), ["create-2", "same"]);
}

fn a_key_that_looks_like_a_part_is_its_own(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    assert_eq!(jot(&*store, session, "a"), 2);
    assert_eq!(jot(&*store, session, "b"), 3);
    assert_eq!(jot(&*store, session, "a/1"), 4);
    let again = append(&*store, facts(session, "a", vec![note("a")])).unwrap();
    assert_eq!((again.first, again.last), (2, 2));
}

fn the_longest_keys_have_parts_too(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let long = "k".repeat(segno_core::EventKey::MAX_LEN);
    let events = || (0..12).map(|n| note(&n.to_string())).collect();
    let first = append(&*store, facts(session, &long, events())).unwrap();
    assert_eq!((first.first, first.last), (2, 13));
    let again = append(&*backend.open(), facts(session, &long, events())).unwrap();
    assert_eq!((again.first, again.last, again.repeated), (2, 13, true));
    assert_whole(&*store, session);
}
