//! Whose word counts: appends that come with a driver's epoch.

use segno_core::Event;
use segno_core::SessionId;
use segno_core::event::LateRecorded;
use segno_redact::Redacted;
use segno_store::Append;
use segno_store::Error;
use segno_store::Store;

use crate::Backend;
use crate::common::*;

on_every_backend![
    without_an_epoch_anybody_is_heard,
    the_present_driver_is_heard,
    a_replaced_driver_is_refused,
    a_replaced_driver_is_recorded_as_late,
    a_late_word_is_recorded_once,
    an_epoch_that_never_was_is_stale,
];

fn under(session: SessionId, name: &str, epoch: u64) -> Append {
    let mut append = facts(session, name, vec![note(name)]);
    append.epoch = Some(epoch);
    append
}

fn late(epoch: u64) -> Vec<Redacted> {
    let sent = note("too late");
    let body = serde_json::from_str(sent.body()).unwrap();
    vec![fit(LateRecorded { epoch, kind: "history_noted".into(), version: 1, body })]
}

/// A session whose driver was replaced: epoch 1 is over, 2 drives.
fn driven_twice(store: &dyn Store) -> SessionId {
    let session = make(store, 1);
    let first = store.acquire(session, &holder("one"), None).unwrap();
    let second = store.acquire(session, &holder("two"), Some(segno_store::Over::epoch(first.epoch))).unwrap();
    assert_eq!((first.epoch, second.epoch), (1, 2));
    session
}

fn without_an_epoch_anybody_is_heard(backend: &dyn Backend) {
    let store = backend.open();
    let session = driven_twice(&*store);
    assert_eq!(jot(&*backend.open(), session, "a"), 2);
    assert_eq!(journal(&*store, session)[1].epoch, None);
}

fn the_present_driver_is_heard(backend: &dyn Backend) {
    let store = backend.open();
    let session = driven_twice(&*store);
    let done = append(&*backend.open(), under(session, "a", 2)).unwrap();
    assert_eq!((done.last, done.late), (2, false));
    assert_eq!(journal(&*store, session)[1].epoch, Some(2));
    // What its children have to say after it let go is still its own word.
    store.release(session, 2).unwrap();
    assert!(!append(&*store, under(session, "b", 2)).unwrap().late);
    assert_whole(&*store, session);
}

fn a_replaced_driver_is_refused(backend: &dyn Backend) {
    let store = backend.open();
    let session = driven_twice(&*store);
    let stale = append(&*store, under(session, "a", 1));
    assert!(matches!(stale, Err(Error::StaleEpoch { given: 1, current: 2 })), "{stale:?}");
    assert_eq!(assert_whole(&*backend.open(), session).state.seq, 1);
}

fn a_replaced_driver_is_recorded_as_late(backend: &dyn Backend) {
    let store = backend.open();
    let session = driven_twice(&*store);
    let mut append_late = under(session, "a", 1);
    append_late.if_late = Some(late(1));
    // What it expected of the session is over together with its epoch.
    append_late.expected_seq = Some(77);
    let done = append(&*store, append_late).unwrap();
    assert_eq!((done.last, done.late, done.repeated), (2, true, false));
    let stored = journal(&*backend.open(), session).pop().unwrap();
    assert!(matches!(stored.event().unwrap(), Event::LateRecorded(_)));
    assert_eq!((stored.epoch, assert_whole(&*store, session).state.late), (Some(1), 1));
    // Who drives now is not late, whatever it would have said otherwise.
    let mut append_now = under(session, "b", 2);
    append_now.if_late = Some(late(2));
    assert!(!append(&*store, append_now).unwrap().late);
    assert_eq!(journal(&*store, session).pop().unwrap().kind, "history_noted");
}

fn a_late_word_is_recorded_once(backend: &dyn Backend) {
    let store = backend.open();
    let session = driven_twice(&*store);
    for (round, store) in [backend.open(), backend.open()].into_iter().enumerate() {
        let mut again = under(session, "a", 1);
        again.if_late = Some(late(1));
        let done = append(&*store, again).unwrap();
        assert_eq!((done.last, done.late, done.repeated), (2, true, round > 0));
    }
    // What was in time stays in time, even if the retry is not.
    append(&*store, under(session, "b", 2)).unwrap();
    store.acquire(session, &holder("three"), Some(segno_store::Over::epoch(2))).unwrap();
    let mut again = under(session, "b", 2);
    again.if_late = Some(late(2));
    let done = append(&*store, again).unwrap();
    assert_eq!((done.last, done.late, done.repeated), (3, false, true));
    assert_eq!(assert_whole(&*store, session).state.seq, 3);
}

fn an_epoch_that_never_was_is_stale(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    for epoch in [1, 9, u64::MAX] {
        let odd = append(&*store, under(session, "a", epoch));
        assert!(matches!(odd, Err(Error::StaleEpoch { current: 0, .. })), "{odd:?}");
        assert!(matches!(store.renew(session, epoch), Err(Error::StaleEpoch { current: 0, .. })));
        store.release(session, epoch).unwrap();
    }
    assert_eq!(assert_whole(&*store, session).state.seq, 1);
}
