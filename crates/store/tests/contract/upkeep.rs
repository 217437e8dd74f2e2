//! Deleting, rebuilding, checking, copying.

use segno_core::Command;

use segno_core::Fact;
use segno_core::Input;
use segno_core::List;
use segno_core::SessionId;
use segno_core::event::CallEnd;
use segno_core::event::Source;
use segno_store::Error;
use segno_store::Items;
use segno_store::Page;
use segno_store::Store;
use segno_store::verify;

use crate::Backend;
use crate::common::*;

on_every_backend![
    deleting_removes_everything_and_only_that,
    a_deleted_session_can_be_made_again,
    rebuilding_gives_the_same_lists,
    a_healthy_store_verifies,
    verifying_is_not_misled_by_writers,
    what_is_set_apart_is_listed,
    a_copy_is_not_put_over_something,
];

/// A session with something in each of several lists.
fn rich(store: &dyn Store, second: u32) -> SessionId {
    let session = make(store, second);
    let inputs: [Input; 7] = [
        Command::AddTask { text: "moor".into() }.into(),
        Command::EndTask { task: 1, done: true }.into(),
        Fact::ToolStarted {
            call: "c1".into(),
            tool: "Bash".into(),
            input: serde_json::json!({}),
            write_ahead: true,
            source: Source::Hook,
        }
        .into(),
        Fact::ToolEnded {
            call: "c1".into(),
            tool: None,
            end: CallEnd::Failed,
            output: None,
            source: Source::Hook,
        }
        .into(),
        Fact::ErrorRecorded { message: "aground".into(), error_kind: None }.into(),
        Command::ReachMilestone { name: "out".into(), details: None }.into(),
        Command::SetCache { key: "k".into(), value: serde_json::json!([1, 2]) }.into(),
    ];
    for (index, asked) in inputs.into_iter().enumerate() {
        append(store, command(session, &format!("c{index}"), asked)).unwrap();
    }
    append(store, facts(session, "long", vec![note(&"word ".repeat(10_000 + second as usize))])).unwrap();
    session
}

fn lists(store: &dyn Store, session: SessionId) -> Vec<Items> {
    List::ALL.iter().map(|list| store.items(session, *list, &Page::first(1_000)).unwrap()).collect()
}

fn deleting_removes_everything_and_only_that(backend: &dyn Backend) {
    let store = backend.open();
    let [one, two, three] = [1, 2, 3].map(|second| rich(&*store, second));
    for session in [one, two, three] {
        store.acquire(session, &holder("a"), None).unwrap();
        store.quarantine(session, 2, "looked odd").unwrap();
    }
    let before: Vec<_> =
        [one, three].iter().map(|s| (assert_whole(&*store, *s), lists(&*store, *s))).collect();
    assert!(store.delete(two, Some(segno_store::Over::epoch(1))).unwrap());
    let other = backend.open();
    assert!(!other.delete(two, None).unwrap());
    assert!(matches!(other.load(two), Err(Error::NotFound(_))));
    assert!(matches!(other.items(two, List::Tools, &Page::first(1)), Err(Error::NotFound(_))));
    assert_eq!(ids(&*other), [three, one]);
    assert_eq!(other.leases().unwrap().into_iter().map(|(id, _)| id).collect::<Vec<_>>(), [one, three]);
    let apart: Vec<_> = other.quarantined().unwrap().into_iter().map(|damage| damage.session).collect();
    assert_eq!(apart, [one.to_string(), three.to_string()]);
    let after: Vec<_> =
        [one, three].iter().map(|s| (assert_whole(&*other, *s), lists(&*other, *s))).collect();
    assert_eq!(after, before);
    assert_eq!(other.collect_garbage().unwrap(), segno_store::Garbage::default());
    assert!(verify::verify(&*other, true, |_, _| {}).unwrap().is_clean());
}

fn a_deleted_session_can_be_made_again(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = rich(&*one, 1);
    // The other handle remembers the session as it was.
    jot(&*two, session, "remembered");
    assert!(one.delete(session, None).unwrap());
    assert_eq!(make(&*one, 1), session);
    assert_eq!(jot(&*two, session, "anew"), 2);
    assert_eq!(two.lease(session).unwrap(), None);
    assert_eq!(two.items(session, List::Tools, &Page::first(10)).unwrap().total, 0);
    assert_eq!(keys(&*one, session), ["create-1", "anew"]);
    assert_whole(&*one, session);
}

fn rebuilding_gives_the_same_lists(backend: &dyn Backend) {
    let store = backend.open();
    let session = rich(&*store, 1);
    let before = (store.load(session).unwrap(), lists(&*store, session), ids(&*store));
    let rebuilt = backend.open().rebuild(session).unwrap();
    assert_eq!(rebuilt, before.0);
    assert_eq!((store.load(session).unwrap(), lists(&*store, session), ids(&*store)), before);
    jot(&*store, session, "after");
    assert_whole(&*store, session);
}

fn a_healthy_store_verifies(backend: &dyn Backend) {
    let store = backend.open();
    let sessions: Vec<_> = (1..=4).map(|second| rich(&*store, second)).collect();
    let events: u64 = sessions.iter().map(|session| store.load(*session).unwrap().state.seq).sum();
    let mut heard = Vec::new();
    let report = verify::verify(&*backend.open(), true, |done, of| heard.push((done, of))).unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.sessions, report.events), (4, events));
    assert_eq!(heard, [(1, 4), (2, 4), (3, 4), (4, 4)]);
}

fn verifying_is_not_misled_by_writers(backend: &dyn Backend) {
    let writer = backend.open();
    let sessions: Vec<_> = (1..=6).map(|second| make(&*writer, second)).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..200 {
                jot(&*writer, sessions[n % 5], &format!("n{n}"));
                if n == 100 {
                    writer.delete(sessions[5], None).unwrap();
                }
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        let reader = backend.open();
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            let report = verify::verify(&*reader, false, |_, _| {}).unwrap();
            assert!(report.is_clean(), "{report:?}");
        }
    });
}

fn what_is_set_apart_is_listed(backend: &dyn Backend) {
    let store = backend.open();
    let session = rich(&*store, 1);
    assert_eq!(store.quarantined().unwrap(), []);
    store.quarantine(session, 2, "looked odd").unwrap();
    store.quarantine(session, 2, "looked odd again").unwrap();
    store.quarantine(session, 77, "never was").unwrap();
    let apart = backend.open().quarantined().unwrap();
    let short: Vec<_> = apart.iter().map(|damage| (damage.seq, damage.what.as_str())).collect();
    assert_eq!(short, [(Some(2), "looked odd"), (Some(77), "never was")]);
    assert!(apart[0].bytes > 0 && apart[1].bytes == 0, "{apart:?}");
    assert_eq!(apart[0].session, session.to_string());
}

fn a_copy_is_not_put_over_something(backend: &dyn Backend) {
    let store = backend.open();
    rich(&*store, 1);
    let to = backend.scratch().join("copy");
    assert!(store.backup(&to).unwrap() > 0);
    let before = std::fs::read(&to).unwrap();
    assert!(store.backup(&to).is_err());
    assert_eq!(std::fs::read(&to).unwrap(), before);
}
