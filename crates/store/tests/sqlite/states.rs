//! What is folded from the journal is only a help: if it is wrong, the journal mends it.

use segno_core::FOLD_VERSION;
use segno_core::List;
use segno_store::Page;
use segno_store::Store;
use segno_store::state_at;
use segno_store::verify;

use crate::common::*;
use crate::home::Home;

#[test]
fn a_damaged_state_is_folded_anew_and_said_so() {
    for damage in [
        "UPDATE states SET body = '{'",
        "UPDATE states SET body = replace(body, 'harbour', 'harbor')",
        "UPDATE states SET seq = 1",
        "UPDATE states SET seq = 77",
        "UPDATE states SET digest = zeroblob(16)",
        "UPDATE states SET body = CAST(x'ff7b' AS TEXT)",
    ] {
        let home = Home::quick();
        let session = {
            let store = home.open();
            let session = make(&store, 1);
            jot(&store, session, "a");
            session
        };
        home.sql(damage);
        let store = home.open();
        let loaded = store.load(session).unwrap();
        assert_eq!(loaded.notices.len(), 1, "{damage}: {:?}", loaded.notices);
        assert_eq!(loaded.state, state_at(&store, session, 2).unwrap().0);
        let report = verify::verify(&store, true, |_, _| {}).unwrap();
        assert!(!report.problems.is_empty() && report.problems.iter().all(|p| p.derived), "{report:?}");
        assert_eq!(jot(&store, session, "b"), 3);
        assert_whole(&home.open(), session);
    }
}

#[test]
fn a_missing_or_older_state_is_folded_without_a_word() {
    for change in ["DELETE FROM states", "UPDATE states SET fold = 0"] {
        let home = Home::quick();
        let session = make(&home.open(), 1);
        home.sql(change);
        assert_eq!(assert_whole(&home.open(), session).state.seq, 1);
        jot(&home.open(), session, "a");
        let fold: u32 = home.raw().query_row("SELECT fold FROM states", [], |row| row.get(0)).unwrap();
        assert_eq!(fold, FOLD_VERSION);
    }
}

#[test]
fn a_newer_fold_is_kept_and_the_tail_folded_on() {
    let home = Home::quick();
    let session = {
        let store = home.open();
        let session = make(&store, 1);
        jot(&store, session, "a");
        session
    };
    home.sql("UPDATE states SET fold = 99");
    let row = || -> (u64, u32, String) {
        home.raw()
            .query_row("SELECT seq, fold, body FROM states", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap()
    };
    let before = row();
    for n in 0..5 {
        assert_eq!(jot(&home.open(), session, &format!("n{n}")), 3 + n);
        assert_eq!(assert_whole(&home.open(), session).state.seq, 3 + n);
    }
    let store = home.open();
    assert_eq!((jot(&store, session, "x"), jot(&store, session, "y")), (8, 9));
    assert_eq!(row(), before, "an older program wrote over a newer fold");
    // Even one that cannot be read here is not ours to replace.
    home.sql("UPDATE states SET body = '{\"new\": true}'");
    let before = row();
    assert_eq!(jot(&home.open(), session, "z"), 10);
    assert_eq!(assert_whole(&home.open(), session).state.seq, 10);
    assert_eq!(row(), before);
}

#[test]
fn a_damaged_summary_or_list_is_mended_by_rebuilding() {
    let home = Home::quick();
    let store = home.open();
    let session = make(&store, 1);
    jot(&store, session, "a");
    home.sql(
        "UPDATE sessions SET summary = replace(summary, '\"seq\":2', '\"seq\":2,'), status = 'failed', made_by = 'new';
         UPDATE items SET body = 'no json' WHERE seq = 2;",
    );
    let report = verify::verify(&store, true, |_, _| {}).unwrap();
    assert!(!report.problems.is_empty() && report.problems.iter().all(|p| p.derived), "{report:?}");
    assert_eq!(report.problems[0].session, session.to_string());
    let items = store.items(session, List::History, &Page::first(10)).unwrap();
    assert!(items.items[1].body["damaged"].is_string(), "{items:?}");
    store.rebuild(session).unwrap();
    assert!(verify::verify(&store, true, |_, _| {}).unwrap().is_clean());
    let runs = segno_store::Filter { made_by: Some(segno_core::event::Maker::Run), ..Default::default() };
    assert_eq!(store.list(&runs).unwrap().total, 1);
    let items = store.items(session, List::History, &Page::first(10)).unwrap();
    assert_eq!(items.items[1].body["action"], "noted");
}

#[test]
fn a_damaged_list_row_does_not_stop_an_append() {
    let home = Home::quick();
    let store = home.open();
    let session = make(&store, 1);
    let file = |change| segno_core::Fact::FileChanged { path: "a.rs".into(), change, call: None };
    append(&store, command(session, "a", file(segno_core::event::Change::Created))).unwrap();
    home.sql("UPDATE items SET body = CAST(x'ff00' AS TEXT) WHERE list = 'files'");
    append(&store, command(session, "b", file(segno_core::event::Change::Modified))).unwrap();
    let files = store.items(session, List::Files, &Page::first(10)).unwrap();
    assert_eq!(files.items[0].body["change"], "modified");
}

#[test]
fn a_text_that_is_not_what_was_stored_is_not_given_out() {
    let home = Home::quick();
    let store = home.open();
    let session = make(&store, 1);
    append(&store, facts(session, "long", vec![note(&"word ".repeat(10_000))])).unwrap();
    let hash: [u8; 32] = home.raw().query_row("SELECT hash FROM blobs", [], |row| row.get(0)).unwrap();
    for damage in [
        "UPDATE blobs SET content = zeroblob(100)",
        "UPDATE blobs SET bytes = 5",
        "UPDATE blobs SET bytes = 4611686018427387904, content = x'28b52ffd'",
    ] {
        home.sql(damage);
        let refused = store.blob(&hash);
        assert!(matches!(refused, Err(segno_store::Error::Damaged { .. })), "{damage}: {refused:?}");
    }
    assert_whole(&store, session);
}
