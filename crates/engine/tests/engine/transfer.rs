//! Sessions out of one store and into another.

use segno_core::Command;
use segno_core::List;
use segno_core::State;
use segno_core::Status;
use segno_core::TokenBudget;
use segno_core::event::Maker;
use segno_core::event::Unit;
use segno_engine::Engine;
use segno_engine::Error;
use segno_engine::transfer::Format;
use segno_engine::transfer::Options;
use segno_engine::transfer::export;
use segno_engine::transfer::import;
use serde_json::Value;

use crate::common::Room;
use crate::common::note;
use crate::common::notes;
use crate::view::full_session;

pub(crate) fn options() -> Options {
    Options { source: "harbour.json".to_owned(), ..Options::default() }
}

fn exported(engine: &Engine, state: &State, format: Format) -> String {
    let mut out = Vec::new();
    export(engine, state.session_id, format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Every row of every list, without those that only tell of the import.
fn rows(engine: &Engine, state: &State) -> Vec<(List, Vec<Value>)> {
    let mut all = Vec::new();
    for list in List::ALL {
        let items = engine.items(state.session_id, list).unwrap().into_iter().map(|item| item.body);
        all.push((list, items.filter(|row| row["action"] != "session_imported").collect()));
    }
    all
}

/// What an import changes on purpose: where it came from, budgets, calls that nobody here will hear the end of,
/// and signs of the other journal.
fn as_imported(there: &State, here: &State) -> State {
    let mut state = there.clone();
    state.seq = here.seq;
    state.made_by = Maker::Import;
    state.budget = TokenBudget { tokens_used: there.budget.tokens_used, ..TokenBudget::default() };
    state.warned = Default::default();
    state.calls.in_doubt.append(&mut state.calls.open);
    state.counts.history += 1;
    state.updated_at = here.updated_at;
    state
}

/// Member by member, so that a failure can be read.
fn assert_same(found: &State, expected: &State) {
    let (found, expected) = (serde_json::to_value(found).unwrap(), serde_json::to_value(expected).unwrap());
    for name in found.as_object().unwrap().keys().chain(expected.as_object().unwrap().keys()) {
        assert_eq!(found.get(name), expected.get(name), "{name}");
    }
}

#[test]
fn an_export_imported_elsewhere_is_the_same_session() {
    let room = Room::new();
    let manager = full_session(&room);
    let there = manager.current().unwrap();
    let text = exported(manager.engine(), there, Format::Json);
    let another = Room::new();
    another.clock.advance(3_600);
    let engine = another.quiet();
    let imported = import(&engine, &text, &options()).unwrap();
    let here = engine.load(there.session_id).unwrap().state;
    assert_eq!(here, imported.state);
    assert_same(&here, &as_imported(there, &here));
    assert!(here.updated_at > there.updated_at);
    let mut expected = rows(manager.engine(), there);
    for (list, rows) in &mut expected {
        for row in rows.iter_mut().filter(|row| *list == List::Tools && row["state"] == "open") {
            row["state"] = "in_doubt".into();
        }
    }
    assert_eq!(rows(&engine, &here), expected);
    assert!(segno_store::verify::verify(&another.store(), true, |_, _| {}).unwrap().is_clean());
    // And work goes on.
    let id = here.session_id;
    engine.act(id, Command::Resume { reset_breaker: false, details: None }).unwrap();
    let task = engine.act(id, Command::AddTask { text: "next".into() }).unwrap();
    assert_eq!(task.state.tasks.added, 3, "numbers go on where they were");
    let decide = Command::Decide {
        question: "And now?".into(),
        choice: "on".into(),
        reason: None,
        alternatives: Vec::new(),
        parent: None,
        branch: None,
    };
    engine.act(id, decide).unwrap();
    let last = engine.items(id, List::Decisions).unwrap().pop().unwrap();
    assert_eq!((&last.body["decision"], &last.body["parent"]), (&2.into(), &1.into()));
}

#[test]
fn a_view_imported_elsewhere_is_the_same_session() {
    let room = Room::new();
    let manager = full_session(&room);
    let there = manager.current().unwrap();
    let view = std::fs::read_to_string(manager.save().unwrap()).unwrap();
    assert!(view.ends_with(&exported(manager.engine(), there, Format::Yaml)), "an export is the view");
    let another = Room::new();
    let engine = another.quiet();
    let here = import(&engine, &view, &options()).unwrap().state;
    // A view does not tell these.
    let mut expected = as_imported(there, &here);
    expected.checkpoint = None;
    expected.phase_since = here.phase_since;
    expected.token_source = None;
    expected.lately = Default::default();
    expected.calls.closed = Default::default();
    expected.calls.seen = Default::default();
    expected.calls.newest = None;
    expected.calls.done_by_hook = Default::default();
    expected.counts.files_created = 0;
    expected.counts.memory_queries = 0;
    expected.errors.last = None;
    expected.errors.message = None;
    expected.errors.in_a_row = 0;
    assert_same(&here, &expected);
    let mut lists = rows(manager.engine(), there);
    let mut found = rows(&engine, &here);
    for (list, rows) in lists.iter_mut().chain(&mut found) {
        for row in rows {
            // Nor members that are null, nor the calls' end.
            row.as_object_mut().unwrap().retain(|_, member| !member.is_null());
            if *list == List::Tools && row["state"] == "open" {
                row["state"] = "in_doubt".into();
            }
        }
    }
    assert_eq!(found, lists);
}

#[test]
fn long_texts_come_along_whole() {
    let room = Room::new();
    let engine = room.quiet();
    let state = engine.create(room.new_session()).unwrap().state;
    let long = "lots of words, ".repeat(70_000);
    engine.act(state.session_id, note(&long)).unwrap();
    let text = exported(&engine, &state, Format::Json);
    let another = Room::new();
    let elsewhere = another.quiet();
    import(&elsewhere, &text, &options()).unwrap();
    assert_eq!(notes(&elsewhere, state.session_id), std::slice::from_ref(&long));
    // A view has only the beginning, and says so.
    let view = exported(&engine, &state, Format::Yaml);
    let third = Room::new();
    let elsewhere = third.quiet();
    import(&elsewhere, &view, &options()).unwrap();
    let found = notes(&elsewhere, state.session_id).remove(0);
    assert!(found.starts_with("lots of words, "), "{found}");
    assert!(
        found.ends_with(&format!("… [{} bytes, of which the import had only the beginning]", long.len()))
    );
}

#[test]
fn many_rows_come_along_in_order() {
    let room = Room::new();
    let engine = room.quiet();
    let state = engine.create(room.new_session()).unwrap().state;
    let texts: Vec<String> = (0..350).map(|number| format!("note {number}")).collect();
    engine.act_all(state.session_id, texts.iter().map(|text| note(text)), None).unwrap();
    for format in [Format::Json, Format::Yaml] {
        let text = exported(&engine, &state, format);
        let another = Room::new();
        let elsewhere = another.quiet();
        import(&elsewhere, &text, &options()).unwrap();
        elsewhere.act(state.session_id, note("after")).unwrap();
        let found = notes(&elsewhere, state.session_id);
        assert_eq!(found[..350], texts);
        assert_eq!(found[350], "after");
    }
}

#[test]
fn a_name_that_is_taken_is_changed_and_said() {
    let room = Room::new();
    let engine = room.quiet();
    let state = engine.create(room.new_session()).unwrap().state;
    let text = exported(&engine, &state, Format::Json);
    let another = Room::new();
    let elsewhere = another.quiet();
    let taken = elsewhere.create(another.new_session()).unwrap().state;
    assert_eq!(taken.session_id, state.session_id, "the clock stands in both rooms");
    let imported = import(&elsewhere, &text, &options()).unwrap();
    assert_eq!(imported.state.session_id, state.session_id.next());
    assert_eq!(imported.state.uid, state.uid);
    let wanted =
        format!("the name {} was taken, so it is {} here", state.session_id, state.session_id.next());
    assert!(imported.notices.contains(&wanted), "{:?}", imported.notices);
    let last = elsewhere.events(imported.state.session_id, 0, 10).unwrap().pop().unwrap();
    let segno_store::EventRow::Whole(last) = last else { panic!() };
    assert_eq!(last.kind, "journal_imported");
    assert!(last.body.contains(&format!("\"renamed_from\":\"{}\"", state.session_id)), "{}", last.body);
}

#[test]
fn the_same_session_twice_is_refused() {
    let room = Room::new();
    let manager = full_session(&room);
    let state = manager.current().unwrap();
    let another = Room::new();
    let engine = another.quiet();
    for format in [Format::Json, Format::Yaml] {
        let text = exported(manager.engine(), state, format);
        let again = import(manager.engine(), &text, &options()).unwrap_err();
        assert!(matches!(again, Error::NotImportable(_)), "{again:?}");
        assert!(again.to_string().contains(&state.session_id.to_string()), "{again}");
        assert_eq!(import(&engine, &text, &options()).is_ok(), format == Format::Json, "the second time");
    }
    assert_eq!(engine.list(&Default::default()).unwrap().len(), 1);
}

/// The view as the tool of the specification writes it: no uid, no more than its own fields.
const FOREIGN: &str = "\
session_id: session_20251230_101500_123456
state: paused
workflow_type: spec
current_phase: analyze
attempt_number: 2
created_at: '2025-12-30T10:15:00.123456'
updated_at: '2025-12-30T11:00:00+01:00'
completed_at: null
token_budget:
  total_budget: 50000
  tokens_used: 12000
artifacts:
- path: src/foo.py
  artifact_type: created
  timestamp: '2025-12-30T10:20:00'
  phase: analyze
history:
- timestamp: '2025-12-30T10:15:00.123456'
  action: session_created
  phase: null
  details: null
";

#[test]
fn a_view_of_another_tool_can_be_imported() {
    let room = Room::new();
    let engine = room.quiet();
    // Eleven o'clock there is before its creation here.
    let error = import(&engine, FOREIGN, &options()).unwrap_err();
    assert!(error.to_string().contains("line 7: updated_at is before created_at"), "{error}");
    let text = FOREIGN.replace("11:00:00+01:00", "12:00:00+01:00");
    let imported = import(&engine, &text, &options()).unwrap();
    let state = &imported.state;
    assert_eq!(state.session_id.to_string(), "session_20251230_101500_123456");
    assert_eq!((state.status, state.attempt, state.phase.as_deref()), (Status::Paused, 2, Some("analyze")));
    assert_eq!(state.created_at.to_string(), "2025-12-30T10:15:00.123456Z");
    assert_eq!((state.budget.tokens_used, state.budget.total_budget), (12_000, 100_000));
    assert!(imported.notices[0].contains("no uid"), "{:?}", imported.notices);
    let mut manager = room.manager();
    manager.load(&state.session_id.to_string()).unwrap().unwrap();
    let artifact = manager.get_artifacts(None).unwrap().remove(0);
    assert_eq!(
        (artifact.path.as_str(), artifact.timestamp.to_string().as_str()),
        ("src/foo.py", "2025-12-30T10:20:00.000000Z")
    );
    assert_eq!(crate::common::actions(&manager), ["session_created", "session_imported"]);
}

#[test]
fn what_a_file_claims_grants_nothing() {
    let room = Room::new();
    let engine = room.engine();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let set = |unit, total| Command::SetBudget {
        unit,
        total: Some(total),
        hard: Some(true),
        warn_percent: Some(1),
        count: None,
    };
    engine.act(id, set(Unit::Tokens, 900_000_000)).unwrap();
    engine.act(id, set(Unit::Cost, 900_000_000)).unwrap();
    let driver = engine.drive(id, "elsewhere").unwrap();
    engine.act(id, Command::Pause { reason: Default::default(), details: None }).unwrap();
    let state = engine.load(id).unwrap().state;
    assert!(state.driver.is_some() && state.requests.len() == 1);
    for format in [Format::Json, Format::Yaml] {
        let text = exported(&engine, &state, format);
        let another = Room::new();
        let elsewhere = another.quiet();
        let imported = import(&elsewhere, &text, &options()).unwrap();
        let here = &imported.state;
        // A cap that stops is one here too, however large it is; without it there would be none.
        assert_eq!((here.budget.total_budget, here.budget.hard), (900_000_000, true));
        assert_eq!((here.cost.limit_micros, here.cost.hard), (Some(900_000_000), true));
        assert!(here.driver.is_none() && here.requests.is_empty());
        assert!(elsewhere.lease(here.session_id).unwrap().is_none());

        // Where work is capped anyway, a file makes the cap no wider, unless that is asked for.
        let own = TokenBudget { total_budget: 7_000, hard: true, ..TokenBudget::default() };
        let third = Room::new();
        let capped = Options { budget: own, ..options() };
        let imported = import(&third.quiet(), &text, &capped).unwrap();
        assert_eq!(imported.state.budget, own);
        assert!(imported.notices.iter().any(|notice| notice.contains("900000000 tokens was not taken over")));
        let fourth = Room::new();
        let kept = import(&fourth.quiet(), &text, &Options { keep_budget: true, ..capped }).unwrap().state;
        assert_eq!((kept.budget.total_budget, kept.budget.hard), (900_000_000, true));
    }
    drop(driver);
}

#[test]
fn a_hostile_export_is_refused_before_it_costs_anything() {
    let room = Room::new();
    let engine = room.quiet();
    let state = engine.create(room.new_session()).unwrap().state;
    let good: Value = serde_json::from_str(&exported(&engine, &state, Format::Json)).unwrap();
    let many: Value = (0..1_000).map(|number| (format!("m{number}"), Value::from(1))).collect();
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let changes: [(&str, Value, &str); 9] = [
        ("topic", "x".repeat(1_000_000).into(), "bad topic"),
        ("topic", "a\u{1b}[2Jb".into(), "bad topic"),
        ("phase", "p".repeat(10_000).into(), "bad phase"),
        ("metrics", many.clone(), "too many metrics"),
        ("cache", many, "too many cache entries"),
        ("workflow_state", "x".repeat(100_000).into(), "workflow state"),
        ("created_at", "9999-01-01T00:00:00Z".into(), "created_at lies in the future"),
        ("updated_at", "2031-01-01T00:00:00Z".into(), "updated_at lies in the future"),
        ("status", "expired".into(), "expired"),
    ];
    for (field, value, wanted) in changes {
        let mut bad = good.clone();
        bad["session"][field] = value;
        bad["session"]["uid"] = "0190f5a0-c0de-7000-8000-00000000beef".into();
        let error = import(&engine, &bad.to_string(), &options()).unwrap_err();
        assert_eq!(error.code(), "session_corrupted", "{field}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let nested = good.to_string().replacen("\"lists\":{", &format!("\"lists\":{{\"x\":{deep},"), 1);
    for (list, row) in
        [("history", "{\"action\":\"x\"}"), ("artifacts", "{\"path\":\"x\"}"), ("history", "7")]
    {
        let mut bad = good.clone();
        bad["lists"][list] = serde_json::from_str(&format!("[{{\"key\":\"1\",\"body\":{row}}}]")).unwrap();
        let error = import(&engine, &bad.to_string(), &options()).unwrap_err();
        assert!(error.to_string().contains(&format!("row 1 of its {list}")), "{error}");
    }
    for text in [&nested, "{", "{\"segno_export\":1}", &good.to_string()[..500]] {
        assert_eq!(import(&engine, text, &options()).unwrap_err().code(), "session_corrupted");
    }
    // What is no export is no damaged one.
    assert_eq!(import(&engine, "{}", &options()).unwrap_err().code(), "not_importable");
    let mut newer = good;
    newer["segno_export"] = 2.into();
    assert_eq!(import(&engine, &newer.to_string(), &options()).unwrap_err().code(), "not_importable");
    assert_eq!(engine.list(&Default::default()).unwrap().len(), 1);
}
