//! Appending facts and decisions.

use segno_core::Command;

use segno_core::Event;
use segno_core::Fact;
use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::TokenUse;
use segno_core::event::HistoryNoted;
use segno_core::event::PauseReason;
use segno_core::event::Source;
use segno_core::event::UnknownEvent;
use segno_store::Appended;
use segno_store::Error;

use crate::Backend;
use crate::common::*;

on_every_backend![
    facts_are_numbered_in_order,
    a_decider_sees_the_newest_state,
    a_shared_decider_sees_what_others_used,
    a_refused_decider_writes_nothing,
    nothing_to_write_is_no_error,
    an_expected_number_must_be_the_newest,
    a_batch_has_a_result_for_each,
    a_batch_sees_its_own_earlier_items,
    what_is_not_waited_for_is_written_in_order,
    nobody_appends_to_what_is_not_there,
    events_of_a_newer_segno_are_kept_and_skipped,
    every_field_comes_back,
];

fn pause() -> Command {
    Command::Pause { reason: PauseReason::Asked, details: None }
}

fn facts_are_numbered_in_order(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let one = append(&*store, facts(session, "a", vec![note("a")])).unwrap();
    let wanted =
        Appended { first: 2, last: 2, repeated: false, late: false, state: None, events: Vec::new() };
    assert_eq!(one, wanted);
    let many = append(&*store, facts(session, "b", vec![note("b"), note("c"), note("d")])).unwrap();
    assert_eq!((many.first, many.last), (3, 5));
    assert_eq!(keys(&*backend.open(), session), ["create-1", "a", "b", "b/1", "b/2"]);
    assert_whole(&*backend.open(), session);
}

fn a_decider_sees_the_newest_state(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    for round in 1..=5 {
        for store in [&one, &two] {
            let tokens = TokenUse { input: 100, ..TokenUse::default() };
            let record = Fact::TokensRecorded { tokens, estimated: false, source: Source::Hand };
            let name = format!("{round}-{}", std::ptr::from_ref(store).addr());
            append(&**store, command(session, &name, record)).unwrap();
        }
    }
    let mut last = command(session, "pause", pause());
    last.want_state = true;
    let done = append(&*two, last).unwrap();
    let state = done.state.unwrap();
    assert_eq!((state.status, state.seq, state.budget.tokens_used), (Status::Paused, done.last, 1_000));
    assert!(matches!(&done.events[..], [Event::SessionPaused(_)]), "{:?}", done.events);
    assert_eq!(*state, assert_whole(&*one, session).state);
}

/// What others used counts also if it is written in the same breath, each session once, and only what is of the project and
/// of the time that is asked for.
fn a_shared_decider_sees_what_others_used(backend: &dyn Backend) {
    let store = backend.open();
    let (one, two) = (make(&*store, 1), make(&*store, 2));
    let elsewhere = make_in(&*store, 3, "/elsewhere", segno_core::event::Maker::Run);
    let used = |session: SessionId, name: &str, input: u64| {
        let tokens = TokenUse { input, cache_read: 7, ..TokenUse::default() };
        command(session, name, Fact::TokensRecorded { tokens, estimated: false, source: Source::Hand })
    };
    for (session, name) in [(one, "a"), (two, "b"), (elsewhere, "c")] {
        append(&*store, used(session, name, 100)).unwrap();
    }
    let ask = |since: i64| segno_store::OthersQuery {
        sessions: None,
        project: Some((PROJECT.to_owned(), segno_core::Timestamp::from_micros(since))),
        cap_from: Some(two),
    };
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = seen.clone();
    let decide = move |_: &segno_core::State, shared: &segno_store::OthersView| {
        let first = shared.cap_from.as_ref().map(|state| state.tokens.input);
        noted.lock().unwrap().push((shared.project.uncached, shared.project.cache_read, first));
        Err(Refusal::Already("seen".to_owned()))
    };
    let what = segno_store::What::DecideWithOthers(ask(0), Box::new(decide));
    let look = segno_store::Append::new(one, key("look"), at(1_000), what);
    let results = store.append(vec![used(two, "d", 20), used(one, "e", 3), look]);
    assert!(matches!(results[2], Err(Error::Refused(Refusal::Already(_)))));
    assert_eq!(*seen.lock().unwrap(), [(223, 28, Some(120))]);
    let now = backend.open().others(&ask(0)).unwrap();
    assert_eq!((now.project.uncached, now.cap_from.unwrap().tokens.input), (223, 120));
    let tomorrow = at(1_000).plus_seconds(86_400).as_micros();
    assert_eq!(backend.open().others(&ask(tomorrow)).unwrap().project.uncached, 0);
}

fn a_refused_decider_writes_nothing(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    append(&*store, command(session, "end", Command::Complete { summary: None })).unwrap();
    let before = store.load(session).unwrap();
    let refused = append(&*store, command(session, "pause", pause()));
    assert!(matches!(refused, Err(Error::Refused(Refusal::InvalidTransition { .. }))), "{refused:?}");
    assert_eq!(store.load(session).unwrap(), before);
    // Its key is not used up.
    assert!(!append(&*store, facts(session, "pause", vec![note("free")])).unwrap().repeated);
    assert_whole(&*backend.open(), session);
}

fn nothing_to_write_is_no_error(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    jot(&*store, session, "a");
    let none = append(&*store, facts(session, "b", Vec::new())).unwrap();
    assert_eq!((none.first, none.last, none.repeated), (2, 2, false));
    assert!(store.append(Vec::new()).is_empty());
    assert_eq!(assert_whole(&*store, session).state.seq, 2);
}

fn an_expected_number_must_be_the_newest(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    let expecting = |name: &str, seq| {
        let mut append = facts(session, name, vec![note(name)]);
        append.expected_seq = Some(seq);
        append
    };
    append(&*one, expecting("a", 1)).unwrap();
    let late = append(&*two, expecting("b", 1));
    assert!(matches!(late, Err(Error::Conflict { expected: 1, actual: 2 })), "{late:?}");
    append(&*two, expecting("b", 2)).unwrap();
    // A retry is answered although the number is another by now.
    assert!(append(&*one, expecting("a", 1)).unwrap().repeated);
    assert_eq!(keys(&*one, session), ["create-1", "a", "b"]);
}

fn a_batch_has_a_result_for_each(backend: &dyn Backend) {
    let store = backend.open();
    let (one, two) = (make(&*store, 1), make(&*store, 2));
    let mut conflicting = facts(two, "never", vec![note("never")]);
    conflicting.expected_seq = Some(77);
    let results = store.append(vec![
        facts(one, "a", vec![note("a")]),
        command(two, "b", Command::ContinueBreakpoint { details: None }),
        facts(SessionId::at(at(99)), "c", vec![note("c")]),
        conflicting,
        facts(two, "d", vec![note("d"), note("e")]),
        facts(one, "a", vec![note("a")]),
    ]);
    assert!(matches!(&results[0], Ok(done) if (done.last, done.repeated) == (2, false)));
    assert!(matches!(&results[1], Err(Error::Refused(_))), "{:?}", results[1]);
    assert!(matches!(&results[2], Err(Error::NotFound(_))));
    assert!(matches!(&results[3], Err(Error::Conflict { .. })));
    assert!(matches!(&results[4], Ok(done) if (done.first, done.last) == (2, 3)));
    assert!(matches!(&results[5], Ok(done) if (done.last, done.repeated) == (2, true)));
    assert_eq!(results.len(), 6);
    let other = backend.open();
    assert_eq!(keys(&*other, one), ["create-1", "a"]);
    assert_eq!(keys(&*other, two), ["create-2", "d", "d/1"]);
    assert_whole(&*other, one);
    assert_whole(&*other, two);
}

fn a_batch_sees_its_own_earlier_items(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let resume = || Command::Resume { reset_breaker: false, details: None };
    let results = store.append(vec![
        command(session, "a", pause()),
        command(session, "b", pause()),
        command(session, "c", resume()),
    ]);
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert!(matches!(&results[1], Err(Error::Refused(_))), "{:?}", results[1]);
    assert_eq!(assert_whole(&*store, session).state.status, Status::Active);
}

fn what_is_not_waited_for_is_written_in_order(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let names = ["a", "b", "c"];
    let answers = names.map(|name| store.append_soon(vec![facts(session, name, vec![note(name)])]));
    let elsewhere = store.append_soon(vec![facts(SessionId::at(at(9)), "d", vec![note("d")])]);
    assert!(store.append_soon(Vec::new()).wait().is_empty());
    let seqs = answers.map(|answer| answer.wait().remove(0).unwrap().last);
    assert_eq!(seqs, [2, 3, 4]);
    assert!(matches!(elsewhere.wait()[..], [Err(Error::NotFound(_))]));
    assert_eq!(keys(&*backend.open(), session), ["create-1", "a", "b", "c"]);
    assert_whole(&*backend.open(), session);
}

fn nobody_appends_to_what_is_not_there(backend: &dyn Backend) {
    let store = backend.open();
    let nobody = SessionId::at(at(7));
    let is_missing = |error: &Error| matches!(error, Error::NotFound(who) if *who == nobody);
    assert!(append(&*store, facts(nobody, "a", vec![note("a")])).is_err_and(|e| is_missing(&e)));
    assert!(store.load(nobody).is_err_and(|e| is_missing(&e)));
    assert!(store.events(nobody, 0, 10).is_err_and(|e| is_missing(&e)));
    assert!(store.acquire(nobody, &holder("x"), None).is_err_and(|e| is_missing(&e)));
    assert!(store.rebuild(nobody).is_err_and(|e| is_missing(&e)));
    assert!(!store.delete(nobody, None).unwrap());
}

fn events_of_a_newer_segno_are_kept_and_skipped(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let strange = UnknownEvent {
        kind: "tide_turned".into(),
        version: 3,
        body: serde_json::json!({ "metres": -1.25, "boats": ["Ann", "Bo"] }),
    };
    append(&*store, facts(session, "a", vec![fit(Event::Unknown(strange.clone())), note("b")])).unwrap();
    let state = assert_whole(&*backend.open(), session).state;
    assert_eq!((state.seq, state.unknown), (3, 1));
    let kept = &journal(&*backend.open(), session)[1];
    assert_eq!((kept.kind.as_str(), kept.version), ("tide_turned", 3));
    assert_eq!(kept.event().unwrap(), Event::Unknown(strange));
}

fn every_field_comes_back(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    let odd = "quotes ' \" and \\ and \u{0} and \u{1f980} and \u{202e}";
    let event = HistoryNoted { action: "noted".into(), phase: Some("p".into()), details: Some(odd.into()) };
    let mut one = facts(session, "run-1:77", vec![fit(event.clone())]);
    one.run = Some("run-1".into());
    one.at = at(-5_000_000_000);
    append(&*store, one).unwrap();
    let stored = journal(&*backend.open(), session).pop().unwrap();
    assert_eq!(stored.event().unwrap(), Event::HistoryNoted(event));
    assert_eq!((stored.run.as_deref(), stored.epoch, stored.at), (Some("run-1"), None, at(-5_000_000_000)));
    assert_eq!(stored.key, "run-1:77");
    assert_whole(&*store, session);
}
