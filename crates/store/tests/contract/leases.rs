//! The right to drive: one holder, and an epoch that only grows.

use segno_store::Error;
use segno_store::Over;

use crate::Backend;
use crate::common::*;

on_every_backend![
    a_second_driver_is_told_who_drives,
    taking_over_names_the_epoch_that_ends,
    letting_go_twice_is_no_error,
    epochs_grow_for_ever,
    every_driven_session_is_listed,
    of_two_that_race_one_wins,
    of_two_that_take_over_one_wins,
    who_was_heard_of_since_is_not_replaced,
    a_driven_session_is_not_removed,
];

fn who_was_heard_of_since_is_not_replaced(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    one.acquire(session, &holder("first"), None).unwrap();
    let seen = two.lease(session).unwrap().unwrap();
    while one.lease(session).unwrap().unwrap().heartbeat_at == seen.heartbeat_at {
        one.renew(session, 1).unwrap();
    }
    let refused = two.acquire(session, &holder("second"), Some(Over::from(&seen)));
    assert!(matches!(&refused, Err(Error::Held(held)) if held.epoch == 1), "{refused:?}");
    let now = two.lease(session).unwrap().unwrap();
    assert_eq!(two.acquire(session, &holder("second"), Some(Over::from(&now))).unwrap().epoch, 2);
}

fn a_driven_session_is_not_removed(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    let free = two.lease(session).unwrap();
    assert_eq!(free, None);
    // Somebody takes it between the look and the act.
    one.acquire(session, &holder("first"), None).unwrap();
    let refused = two.delete(session, None);
    assert!(matches!(&refused, Err(Error::Held(held)) if held.epoch == 1), "{refused:?}");
    assert!(matches!(two.delete_at(session, 1, None), Err(Error::Held(_))));
    let lease = two.lease(session).unwrap().unwrap();
    assert!(two.delete(session, Some(Over::from(&lease))).unwrap());
}

fn a_second_driver_is_told_who_drives(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    assert_eq!(one.lease(session).unwrap(), None);
    let lease = one.acquire(session, &holder("segno run"), None).unwrap();
    assert_eq!((lease.epoch, lease.holder.clone()), (1, holder("segno run")));
    assert!(lease.acquired_at <= lease.now && lease.heartbeat_at <= lease.now);
    match two.acquire(session, &holder("segno loop"), None) {
        Err(Error::Held(held)) => assert_eq!((held.epoch, held.holder), (1, holder("segno run"))),
        other => panic!("{other:?}"),
    }
    let seen = two.lease(session).unwrap().unwrap();
    assert_eq!((seen.epoch, seen.acquired_at), (1, lease.acquired_at));
    two.renew(session, 1).unwrap();
    assert!(one.lease(session).unwrap().unwrap().heartbeat_at >= lease.heartbeat_at);
}

fn taking_over_names_the_epoch_that_ends(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    let first = one.acquire(session, &holder("first"), None).unwrap().epoch;
    for wrong in [0, 2, 99, u64::MAX] {
        let refused = two.acquire(session, &holder("second"), Some(segno_store::Over::epoch(wrong)));
        assert!(matches!(&refused, Err(Error::Held(held)) if held.epoch == first), "{refused:?}");
    }
    let second = two.acquire(session, &holder("second"), Some(segno_store::Over::epoch(first))).unwrap();
    assert_eq!(second.epoch, first + 1);
    let stale = one.renew(session, first);
    assert!(matches!(stale, Err(Error::StaleEpoch { given: 1, current: 2 })), "{stale:?}");
    // The one that was replaced lets go of nothing.
    one.release(session, first).unwrap();
    assert_eq!(two.lease(session).unwrap().unwrap().holder, holder("second"));
    two.renew(session, second.epoch).unwrap();
}

fn letting_go_twice_is_no_error(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let lease = store.acquire(session, &holder("a"), None).unwrap();
    store.release(session, lease.epoch).unwrap();
    backend.open().release(session, lease.epoch).unwrap();
    assert_eq!(backend.open().lease(session).unwrap(), None);
    // Who has let go does not live on.
    assert!(matches!(store.renew(session, lease.epoch), Err(Error::StaleEpoch { .. })));
}

fn epochs_grow_for_ever(backend: &dyn Backend) {
    let session = make(&*backend.open(), 1);
    for epoch in 1..=20 {
        let store = backend.open();
        assert_eq!(store.acquire(session, &holder("a"), None).unwrap().epoch, epoch);
        jot(&*store, session, &format!("n{epoch}"));
        store.rebuild(session).unwrap();
        store.release(session, epoch).unwrap();
    }
}

fn every_driven_session_is_listed(backend: &dyn Backend) {
    let store = backend.open();
    let [one, two, three] = [1, 2, 3].map(|second| make(&*store, second));
    for session in [one, two, three] {
        store.acquire(session, &holder("a"), None).unwrap();
    }
    store.release(two, 1).unwrap();
    let driven: Vec<_> = backend.open().leases().unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(driven, [one, three]);
}

/// Two handles do the same at the same moment; how many are let in?
fn race(backend: &dyn Backend, rounds: u64, over: impl Fn(u64) -> Option<u64> + Sync, release: bool) {
    let session = make(&*backend.open(), 1);
    let (one, two) = (backend.open(), backend.open());
    if !release {
        one.acquire(session, &holder("zero"), None).unwrap();
    }
    for round in 1..=rounds {
        let barrier = std::sync::Barrier::new(2);
        let results = std::thread::scope(|scope| {
            let threads = [("one", &one), ("two", &two)].map(|(name, store)| {
                let (barrier, over) = (&barrier, &over);
                scope.spawn(move || {
                    barrier.wait();
                    store.acquire(session, &holder(name), over(round).map(segno_store::Over::epoch))
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        let won: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "round {round}: {results:?}");
        let lost = results.iter().find_map(|result| result.as_ref().err()).unwrap();
        assert!(matches!(lost, Error::Held(held) if held.holder == won[0].holder), "{lost:?}");
        if release {
            assert_eq!(won[0].epoch, round);
            one.release(session, round).unwrap();
        } else {
            assert_eq!(won[0].epoch, round + 1);
        }
    }
}

fn of_two_that_race_one_wins(backend: &dyn Backend) {
    race(backend, 100, |_| None, true);
}

fn of_two_that_take_over_one_wins(backend: &dyn Backend) {
    race(backend, 30, Some, false);
}
