//! The long lists of a session, page by page.

use segno_core::Fact;
use segno_core::List;
use segno_core::SessionId;
use segno_core::event::CallEnd;
use segno_core::event::Change;
use segno_core::event::Source;
use segno_store::ItemPosition;
use segno_store::Page;
use segno_store::Store;

use crate::Backend;
use crate::common::*;

on_every_backend![
    pages_go_both_ways_with_the_total,
    rows_are_found_by_their_keys_and_pages_need_no_total,
    a_tool_call_is_one_row_from_start_to_end,
    a_file_is_one_row_however_often_it_changes,
    lists_of_sessions_do_not_mix,
    a_page_past_the_end_is_empty,
];

fn start(call: &str) -> Fact {
    Fact::ToolStarted {
        call: call.into(),
        tool: "Bash".into(),
        input: serde_json::json!({ "command": "make" }),
        write_ahead: true,
        source: Source::Hook,
    }
}

fn end(call: &str) -> Fact {
    Fact::ToolEnded {
        call: call.into(),
        tool: None,
        end: CallEnd::Completed,
        output: Some("built".into()),
        source: Source::Hook,
    }
}

/// The keys of a whole list, read in pages of a size.
fn walk(store: &dyn Store, session: SessionId, list: List, size: usize, newest_first: bool) -> Vec<String> {
    let mut page = Page { after: None, limit: size, newest_first };
    let mut found = Vec::new();
    loop {
        let items = store.items(session, list, &page).unwrap();
        assert!(items.items.len() <= size);
        let Some(last) = items.items.last() else {
            assert_eq!(items.total, found.len() as u64);
            return found;
        };
        page.after = Some(ItemPosition { seq: last.seq, key: last.key.clone() });
        found.extend(items.items.into_iter().map(|item| item.key));
    }
}

fn rows_are_found_by_their_keys_and_pages_need_no_total(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    for n in 0..30 {
        append(&*store, command(session, &format!("k{n}"), start(&format!("call-{n}")))).unwrap();
    }
    append(&*store, command(session, "end", end("call-7"))).unwrap();
    let keys: Vec<String> = ["call-29", "call-7", "nothing", "call-0"].map(ToOwned::to_owned).into();
    let rows = store.rows(session, List::Tools, &keys).unwrap();
    let found: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(found, ["call-29", "call-7", "call-0"], "in the order they were asked for");
    assert_eq!((&rows[0].body["state"], &rows[1].body["state"]), (&"open".into(), &"completed".into()));
    assert!(store.rows(session, List::Files, &keys).unwrap().is_empty(), "another list has other rows");
    for newest_first in [false, true] {
        let page = Page { after: None, limit: 7, newest_first };
        let items = store.items(session, List::Tools, &page).unwrap();
        assert_eq!((store.page(session, List::Tools, &page).unwrap(), items.total), (items.items, 30));
    }
}

fn pages_go_both_ways_with_the_total(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    // Calls whose ids do not sort by time, and two files in one event's wake.
    let calls: Vec<String> = (0..23).map(|n| format!("call-{}", (n * 7) % 23)).collect();
    for call in &calls {
        append(&*store, command(session, call, start(call))).unwrap();
    }
    let reader = backend.open();
    let backwards: Vec<String> = calls.iter().rev().cloned().collect();
    let history: Vec<String> = {
        for n in 0..12 {
            jot(&*store, session, &format!("n{n}"));
        }
        let first = reader.items(session, List::History, &Page::first(1_000)).unwrap();
        assert_eq!(first.total, 13);
        first.items.into_iter().map(|item| item.key).collect()
    };
    let history_back: Vec<String> = history.iter().rev().cloned().collect();
    for size in [1, 5, 23, 100] {
        assert_eq!(walk(&*reader, session, List::Tools, size, false), calls, "in pages of {size}");
        assert_eq!(walk(&*reader, session, List::Tools, size, true), backwards, "in pages of {size}");
        assert_eq!(walk(&*reader, session, List::History, size, false), history, "in pages of {size}");
        assert_eq!(walk(&*reader, session, List::History, size, true), history_back, "in pages of {size}");
    }
    assert!(history.is_sorted());
    // Whoever wants the newest few in the order they happened begins behind the row before them.
    for (list, keys) in [(List::Tools, &calls), (List::History, &history)] {
        let after = reader.position(session, list, 5).unwrap().unwrap();
        assert_eq!(after.key, keys[keys.len() - 6], "five are newer");
        let page = Page { after: Some(after), limit: 100, newest_first: false };
        let found: Vec<String> =
            reader.page(session, list, &page).unwrap().into_iter().map(|item| item.key).collect();
        assert_eq!(found, keys[keys.len() - 5..]);
        assert_eq!(reader.position(session, list, keys.len()).unwrap(), None, "there are not that many");
    }
}

fn a_tool_call_is_one_row_from_start_to_end(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let session = make(&*one, 1);
    append(&*one, command(session, "s", start("c1"))).unwrap();
    let page = Page::newest(10);
    let open = one.items(session, List::Tools, &page).unwrap();
    assert_eq!((open.total, &open.items[0].body["state"]), (1, &serde_json::json!("open")));
    append(&*two, command(session, "e", end("c1"))).unwrap();
    let ended = one.items(session, List::Tools, &page).unwrap();
    assert_eq!(ended.total, 1);
    let [item] = &ended.items[..] else { panic!() };
    assert_eq!((item.key.as_str(), item.seq), ("c1", 2));
    for (field, wanted) in [("state", "completed"), ("tool", "Bash"), ("output", "built"), ("call", "c1")] {
        assert_eq!(item.body[field], wanted, "{field}");
    }
    assert_eq!(item.body["input"]["command"], "make");
}

fn a_file_is_one_row_however_often_it_changes(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    for (n, path) in ["b.rs", "a.rs", "b.rs"].into_iter().enumerate() {
        let change = if n == 2 { Change::Modified } else { Change::Created };
        let record = Fact::FileChanged { path: path.into(), change, call: None };
        append(&*store, command(session, &format!("f{n}"), record)).unwrap();
    }
    let files = backend.open().items(session, List::Files, &Page::first(10)).unwrap();
    let rows: Vec<_> = files.items.iter().map(|item| (item.key.as_str(), item.seq)).collect();
    assert_eq!((rows, files.total), (vec![("b.rs", 2), ("a.rs", 3)], 2));
    assert_eq!(files.items[0].body["change"], "modified");
}

fn lists_of_sessions_do_not_mix(backend: &dyn Backend) {
    let store = backend.open();
    let (one, two) = (make(&*store, 1), make(&*store, 2));
    append(&*store, command(one, "s", start("same"))).unwrap();
    append(&*store, command(two, "s", start("same"))).unwrap();
    append(&*store, command(two, "e", end("same"))).unwrap();
    let state = |session| {
        let items = store.items(session, List::Tools, &Page::first(5)).unwrap();
        (items.total, items.items[0].body["state"].clone())
    };
    assert_eq!(state(one), (1, "open".into()));
    assert_eq!(state(two), (1, "completed".into()));
}

fn a_page_past_the_end_is_empty(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    append(&*store, command(session, "s", start("c"))).unwrap();
    for list in List::ALL {
        for newest_first in [false, true] {
            let total = store.items(session, list, &Page::first(0)).unwrap().total;
            let all =
                store.items(session, list, &Page { after: None, limit: usize::MAX, newest_first }).unwrap();
            assert_eq!(all.items.len() as u64, total, "{list:?}");
            let edge = if newest_first { (0, String::new()) } else { (u64::MAX, "~".repeat(300)) };
            let after = Some(ItemPosition { seq: edge.0, key: edge.1 });
            let past = store.items(session, list, &Page { after, limit: 10, newest_first }).unwrap();
            assert_eq!((past.items.len(), past.total), (0, total), "{list:?}");
        }
    }
}
