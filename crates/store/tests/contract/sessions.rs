//! Lists of sessions, and finding one by the end of its name.

use segno_core::Command;

use segno_core::Fact;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::event::Maker;
use segno_store::Filter;
use segno_store::Store;

use crate::Backend;
use crate::common::*;

on_every_backend![
    the_most_recently_changed_come_first,
    filters_narrow_and_the_total_counts_all_that_match,
    a_summary_is_that_of_the_state,
    a_name_is_found_by_its_end,
    hostile_ends_find_nothing,
];

fn listed(store: &dyn Store, filter: &Filter) -> (Vec<SessionId>, u64) {
    let listing = store.list(filter).unwrap();
    (listing.sessions.iter().map(|summary| summary.session_id).collect(), listing.total)
}

fn the_most_recently_changed_come_first(backend: &dyn Backend) {
    let store = backend.open();
    let [one, two, three] = [1, 2, 3].map(|second| make(&*store, second));
    let any = Filter::default();
    assert_eq!(listed(&*backend.open(), &any), (vec![three, two, one], 3));
    let mut later = facts(one, "a", vec![note("a")]);
    later.at = at(50);
    append(&*store, later).unwrap();
    assert_eq!(listed(&*backend.open(), &any), (vec![one, three, two], 3));
    let few = Filter { limit: Some(2), ..Filter::default() };
    assert_eq!(listed(&*backend.open(), &few), (vec![one, three], 3));
    let none = Filter { limit: Some(0), ..Filter::default() };
    assert_eq!(listed(&*store, &none), (vec![], 3));
    let all = Filter { limit: Some(usize::MAX), ..Filter::default() };
    assert_eq!(listed(&*store, &all), (vec![one, three, two], 3));
}

fn filters_narrow_and_the_total_counts_all_that_match(backend: &dyn Backend) {
    let store = backend.open();
    let odd_project = "/it's \"odd\" %_?";
    let a = make_in(&*store, 1, "/a", Maker::New);
    let b = make_in(&*store, 2, odd_project, Maker::Run);
    let c = make_in(&*store, 3, "/a", Maker::Run);
    let d = make_in(&*store, 4, "/a/b", Maker::New);
    let mut ending = command(c, "end", Command::Abort { reason: None });
    ending.at = at(5);
    append(&*store, ending).unwrap();
    let filter = Filter::default;
    let reader = backend.open();
    let cases = [
        (Filter { project: Some("/a".into()), ..filter() }, vec![c, a]),
        (Filter { project: Some(odd_project.into()), ..filter() }, vec![b]),
        (Filter { project: Some("/none".into()), ..filter() }, vec![]),
        (Filter { statuses: vec![Status::Aborted], ..filter() }, vec![c]),
        (Filter { statuses: vec![Status::Aborted, Status::Active], ..filter() }, vec![c, d, b, a]),
        (Filter { statuses: vec![Status::Halted], ..filter() }, vec![]),
        (Filter { made_by: Some(Maker::New), ..filter() }, vec![d, a]),
        (Filter { made_by: Some(Maker::Import), ..filter() }, vec![]),
        (Filter { since: Some(at(4)), ..filter() }, vec![c, d]),
        (Filter { until: Some(at(4)), ..filter() }, vec![b, a]),
        (Filter { since: Some(at(2)), until: Some(at(5)), ..filter() }, vec![d, b]),
        (Filter { project: Some("/a".into()), statuses: vec![Status::Active], ..filter() }, vec![a]),
    ];
    for (filter, wanted) in cases {
        let total = wanted.len() as u64;
        assert_eq!(listed(&*reader, &filter), (wanted.clone(), total), "{filter:?}");
        let one = Filter { limit: Some(1), ..filter };
        assert_eq!(listed(&*reader, &one), (wanted.into_iter().take(1).collect(), total), "{one:?}");
    }
}

fn a_summary_is_that_of_the_state(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    append(&*store, command(session, "t", Fact::TopicSet { topic: "it's \"new\"".into() })).unwrap();
    append(&*store, command(session, "p", Command::SetProgress { percent: 40 })).unwrap();
    let state = store.load(session).unwrap().state;
    let listing = backend.open().list(&Filter::default()).unwrap();
    assert_eq!(listing.sessions, [segno_core::Summary::from(&state)]);
    assert_eq!(listing.unreadable, []);
}

fn a_name_is_found_by_its_end(backend: &dyn Backend) {
    let store = backend.open();
    let ids = [10, 20, 120].map(|second| make(&*store, second));
    let reader = backend.open();
    let find = |suffix: &str| reader.find(suffix, 10).unwrap();
    assert_eq!(find(&ids[0].to_string()), [ids[0]]);
    assert_eq!(find("000010_000000"), [ids[0]]);
    assert_eq!(find("20_000000"), [ids[1]]);
    assert_eq!(find("000000"), [ids[2], ids[1], ids[0]]);
    assert_eq!(reader.find("000000", 2).unwrap(), [ids[2], ids[1]]);
    assert_eq!(reader.find("000000", 0).unwrap(), []);
    assert_eq!(reader.find("000000", usize::MAX).unwrap().len(), 3);
    assert_eq!(find("000001"), []);
    assert_eq!(find("SESSION_20260101_000010_000000"), []);
}

fn hostile_ends_find_nothing(backend: &dyn Backend) {
    let store = backend.open();
    make(&*store, 1);
    let long = "0".repeat(10_000);
    let odd =
        ["", "%", "_", "..", "../..", "%000000", "*", "'", "\"", "0' OR '1'='1", "\u{0}", "é", " ", &long];
    for suffix in odd {
        assert_eq!(store.find(suffix, 10).unwrap(), [], "{suffix:?}");
    }
}
