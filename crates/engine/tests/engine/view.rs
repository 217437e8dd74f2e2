//! What a view shows.

use segno_core::Command;

use segno_core::Fact;
use segno_core::event::CallEnd;
use segno_core::event::Change;
use segno_core::event::MemoryUse;
use segno_core::event::Metric;
use segno_core::event::OutputKind;
use segno_core::event::Source;
use segno_core::event::Unit;
use segno_core::event::Verdict;
use segno_core::event::Workflow;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::NewSession;
use segno_engine::SessionManager;
use segno_engine::view;
use serde_json::json;

use crate::common::Room;
use crate::common::note;
use crate::common::parse;

/// A session in which everything happened once.
pub(crate) fn full_session(room: &Room) -> SessionManager {
    let mut manager = room.manager();
    let phases = ["RED", "GREEN", "REFACTOR"].map(ToOwned::to_owned).to_vec();
    manager
        .create_from(NewSession {
            topic: Some("Count the boats: all of them".to_owned()),
            intent: Some("Every morning the harbour master wants a list.\nIt must be right.".into()),
            workflow: Some(Workflow { name: "tdflow".to_owned(), phases }),
            ..NewSession::default()
        })
        .unwrap();
    let call = |manager: &mut SessionManager, call: &str, tool: &str| {
        let (call, tool) = (call.to_owned(), tool.to_owned());
        let input = json!({ "command": "cargo test", "timeout": 60, "env": {}, "list": [1, "two", null] });
        manager
            .act(Fact::ToolStarted { call, tool, input, write_ahead: true, source: Source::Hook })
            .unwrap();
    };
    room.clock.advance(1);
    manager.switch_agent("claude").unwrap();
    manager.start_iteration().unwrap();
    manager.start_attempt().unwrap();
    call(&mut manager, "toolu_01", "Bash");
    let (end, output) = (CallEnd::Completed, Some("test result: ok. 3 passed\n".into()));
    manager
        .act(Fact::ToolEnded { call: "toolu_01".to_owned(), tool: None, end, output, source: Source::Hook })
        .unwrap();
    call(&mut manager, "toolu_02", "Bash");
    room.clock.advance(1);
    let (path, change) = ("src/boats.rs".to_owned(), Change::Created);
    manager.act(Fact::FileChanged { path, change, call: Some("toolu_01".to_owned()) }).unwrap();
    manager.add_artifact("src/boats.rs", "created", None).unwrap();
    manager.verify_phase("tests", Verdict::Pass, Some("3 of 3")).unwrap();
    manager.advance_phase("GREEN").unwrap();
    manager.verify_phase("lint", Verdict::Fail, None).unwrap();
    manager.record_tokens(84_200).unwrap();
    manager.act(Fact::CostRecorded { micros: 1_250_000, source: Source::Hand }).unwrap();
    let (unit, total) = (Unit::Cost, Some(5_000_000));
    manager
        .act(Command::SetBudget { unit, total, hard: Some(true), warn_percent: None, count: None })
        .unwrap();
    manager.set_metric("test_coverage", Metric::Number(87.5)).unwrap();
    manager.set_metric("build_passes", Metric::Flag(true)).unwrap();
    let long =
        "The master counts, the keeper writes, and whoever comes later reads what they left. ".repeat(3);
    manager.record_output("report", OutputKind::Document, long.trim()).unwrap();
    manager.record_output("code", OutputKind::Code, "fn main() {\n    count();\n}\n").unwrap();
    manager.add_task("weigh the anchors").unwrap();
    let done = manager.add_task("paint the pier").unwrap();
    manager.complete_task(done).unwrap();
    manager.record_decision("Which list?", "a sorted one", Some("it is quicker to read")).unwrap();
    manager.set_position("src/boats.rs", Some(42)).unwrap();
    manager.reach_milestone("first list").unwrap();
    manager.record_memory(MemoryUse::Query, "how many piers?", Some("four")).unwrap();
    manager.act(Command::SetCache { key: "piers".to_owned(), value: json!({ "count": 4 }) }).unwrap();
    manager.record_error("error[E0425]: cannot find value `boat`").unwrap();
    manager.set_workflow_state(json!({ "retries": 0, "last": "1e3" })).unwrap();
    manager.wait_at_breakpoint("look at the list").unwrap();
    manager.pause().unwrap();
    manager
}

#[test]
fn a_full_view() {
    let room = Room::new();
    let manager = full_session(&room);
    let text = std::fs::read_to_string(manager.save().unwrap()).unwrap();
    let (header, body) = text.split_once('\n').unwrap();
    assert!(header.starts_with("# segno view 1 ") && header.len() == 47, "{header}");
    let state = manager.current().unwrap();
    let body =
        body.replace(&state.uid.to_string(), "UID").replace(&room.project().display().to_string(), "PROJECT");
    insta::assert_snapshot!("full_view", body);
}

#[test]
fn a_view_says_what_the_state_says() {
    let room = Room::new();
    let manager = full_session(&room);
    let state = manager.current().unwrap();
    let view = parse(&std::fs::read_to_string(manager.save().unwrap()).unwrap());
    assert_eq!(view["journal_seq"], state.seq);
    assert_eq!(view["topic"], json!(state.topic));
    assert_eq!(view["intent"], json!(state.intent));
    assert_eq!(view["metrics"], json!(state.metrics));
    assert_eq!(view["workflow_state"], json!(state.workflow_state));
    assert_eq!(view["pending_calls"]["toolu_02"]["tool"], "Bash");
    assert_eq!(view["totals"]["history"], manager.history().unwrap().len());
    for list in segno_core::List::ALL {
        let items = manager.engine().items(state.session_id, list).unwrap();
        let shown = view[list.as_str()].as_array().map_or(0, Vec::len);
        assert_eq!(shown, items.len(), "{}", list.as_str());
    }
}

#[test]
fn the_newest_of_long_lists_are_shown_with_their_total() {
    let room = Room::new();
    let view = view::Options { most_items: 3, ..view::Options::default() };
    let engine = Engine::new(Box::new(room.store()), EngineOptions { view, ..room.options() });
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let notes = (0..10).map(|number| note(&format!("note {number}")));
    engine.act_all(id, notes, None).unwrap();
    let view = parse(&std::fs::read_to_string(room.view_path(id)).unwrap());
    let shown: Vec<_> =
        view["history"].as_array().unwrap().iter().map(|row| row["details"].clone()).collect();
    assert_eq!(shown, ["note 7", "note 8", "note 9"]);
    assert_eq!(view["totals"]["history"], 11);
}

#[test]
fn a_long_text_is_shown_by_its_beginning() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    let long = "x y ".repeat(50_000);
    manager.add_history("noted", None, Some(&long)).unwrap();
    let view = parse(&std::fs::read_to_string(manager.save().unwrap()).unwrap());
    let details = &view["history"][1]["details"];
    assert_eq!(details["bytes"], long.len());
    assert!(long.starts_with(details["excerpt"].as_str().unwrap()));
}

#[test]
fn mere_use_of_tokens_does_not_rewrite_the_view_but_the_next_change_shows_it() {
    let room = Room::new();
    let mut manager = room.manager();
    let id = manager.create(None, None, None).unwrap().session_id;
    let before = std::fs::read(room.view_path(id)).unwrap();
    manager.record_tokens(10).unwrap();
    assert_eq!(std::fs::read(room.view_path(id)).unwrap(), before);
    manager.add_history("noted", None, None).unwrap();
    let view = parse(&std::fs::read_to_string(room.view_path(id)).unwrap());
    assert_eq!(view["token_budget"]["tokens_used"], 10);
    manager.record_tokens(80_000).unwrap();
    let view = parse(&std::fs::read_to_string(room.view_path(id)).unwrap());
    assert_eq!(view["token_budget"]["tokens_used"], 80_010, "a warning is a change");
}
