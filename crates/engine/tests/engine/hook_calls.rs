//! Calls that hooks tell of: which are the same, which are others, and which may run.

use segno_agents::by_name;
use segno_core::List;
use segno_core::SessionId;
use segno_engine::Engine;
use segno_engine::fresh_key;
use segno_engine::hook::HookAnswer;
use segno_engine::hook::HookCall;
use serde_json::Value;
use serde_json::json;

use crate::common::Room;

/// One visit of a hook, by a process of its own.
fn visit(engine: &Engine, session: SessionId, payload: &Value) -> HookAnswer {
    let agent = by_name("opencode").unwrap();
    let payload = payload.to_string();
    let call = HookCall::read(agent.as_ref(), Some("run-1"), payload.as_bytes(), fresh_key());
    engine.hear_hook(session, call).unwrap()
}

fn before() -> Value {
    json!({
        "hook_event_name": "tool.execute.before", "session_id": "s", "tool_name": "bash", "call_id": "again",
        "tool_input": { "command": "make" },
    })
}

fn after() -> Value {
    json!({
        "hook_event_name": "tool.execute.after", "session_id": "s", "tool_name": "bash", "call_id": "again",
        "tool_output": "made", "metadata": { "exit": 0 },
    })
}

/// The ledger: names of calls and how they stand.
fn ledger(engine: &Engine, session: SessionId) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let items = engine.items(session, List::Tools).unwrap();
    items.iter().map(|item| (word(&item.body["call"]), word(&item.body["state"]))).collect()
}

fn rows(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    wanted.iter().map(|(call, state)| ((*call).to_owned(), (*state).to_owned())).collect()
}

#[test]
fn the_same_call_once_more_is_another_call() {
    let room = Room::new();
    let engine = room.quiet();
    let session = engine.create(room.new_session()).unwrap().state.session_id;
    for payload in [before(), before(), after(), after(), before()] {
        assert_eq!(visit(&engine, session, &payload), HookAnswer::default());
    }
    assert_eq!(ledger(&engine, session), rows(&[("again", "completed"), ("again#2", "open")]));
    for payload in [before(), after(), after()] {
        visit(&engine, session, &payload);
    }
    assert_eq!(ledger(&engine, session), rows(&[("again", "completed"), ("again#2", "completed")]));
}

#[test]
fn a_replaced_driver_is_denied_however_often_it_asks() {
    let room = Room::new();
    let engine = room.quiet();
    let session = engine.create(room.new_session()).unwrap().state.session_id;
    let epoch = engine.drive(session, "first").unwrap().epoch();
    let old = room.engine_as(epoch);
    // Recorded in time, and asked about once more when somebody else drives.
    assert_eq!(visit(&old, session, &before()), HookAnswer::default());
    let _second = engine.drive(session, "second").unwrap();
    let mut other = before();
    other["tool_input"]["command"] = json!("make all");
    for payload in [&before(), &other, &other, &other] {
        let print = visit(&old, session, payload).print.unwrap_or_default();
        assert!(print.contains("replaced by another driver"), "{payload}: {print:?}");
    }
    assert_eq!(ledger(&engine, session), rows(&[("again", "open")]));
}
