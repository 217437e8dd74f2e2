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
    let redactor = engine.redactor();
    let call = HookCall::read(agent.as_ref(), Some("run-1"), payload.as_bytes(), fresh_key(), &redactor);
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

/// A payload that no agent sends is kept, as far as there is room; a secret that the end of the room goes through is not.
#[test]
fn a_broken_payload_is_cut_after_its_secrets_are_out() {
    let room = Room::new();
    let engine = room.quiet();
    let session = engine.create(room.new_session()).unwrap().state.session_id;
    let secret = format!("ghp_{}", "Ab1".repeat(12));
    let broken = format!("{{ {}{secret} no JSON", "x ".repeat(32 * 1024 - 12));
    let (agent, redactor) = (by_name("opencode").unwrap(), engine.redactor());
    let call = HookCall::read(agent.as_ref(), Some("run-1"), broken.as_bytes(), fresh_key(), &redactor);
    engine.hear_hook(session, call).unwrap();
    let kept = std::fs::read(room.store_path()).unwrap();
    let log = std::fs::read(room.store_path().with_extension("db-wal")).unwrap_or_default();
    let holds = |bytes: &[u8]| bytes.windows(12).any(|window| window == &secret.as_bytes()[..12]);
    assert!(!holds(&kept) && !holds(&log), "half of the secret is in the store");
}

#[test]
fn a_watched_session_that_gets_nowhere_starts_no_call() {
    let room = Room::new();
    let engine = room.quiet();
    let session = engine.create(room.new_session()).unwrap().state.session_id;
    engine.act(session, segno_core::Command::Halt { reason: "nothing moves".into() }).unwrap();
    assert_eq!(
        visit(&engine, session, &before()),
        HookAnswer::default(),
        "a driver would stop the run itself"
    );
    let options = segno_engine::EngineOptions { watching: true, ..room.options() };
    let watching = Engine::new(Box::new(room.store()), options);
    let mut other = before();
    other["call_id"] = "another".into();
    let answer = visit(&watching, session, &other).print.unwrap();
    assert!(answer.contains("the breaker of this session is open"), "{answer}");
    assert_eq!(ledger(&engine, session), rows(&[("again", "open"), ("another", "denied")]));
}
