//! Beside which agents files may go back.

use segno_core::Command;

use segno_core::Fact;
use segno_core::SessionId;
use segno_core::event::CallEnd;
use segno_core::event::Channel;
use segno_core::event::Ledger;
use segno_core::event::RunStarted;
use segno_core::event::Source;
use segno_core::event::TurnCompleted;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::lease::Driver;
use segno_engine::tree::RestoreRequest;
use segno_engine::tree::TreeOptions;
use segno_engine::workspace::git;
use serde_json::json;

use crate::common::Room;

#[expect(clippy::disallowed_methods, reason = "where git is, is told by the environment of the tests")]
fn engine(room: &Room) -> Engine {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tree = TreeOptions::new(room.path().join("snapshots"), git::find(&path));
    Engine::new(Box::new(room.store()), EngineOptions { tree: Some(tree), ..room.options() })
}

/// A session with a checkpoint, and a run in it that this process drives.
fn driven<'a>(room: &Room, engine: &'a Engine, ledger: Ledger, interactive: bool) -> (SessionId, Driver<'a>) {
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let create = Command::CreateCheckpoint { name: None, reason: Default::default() };
    engine.act(id, create).unwrap();
    let driver = engine.drive(id, "segno run").unwrap();
    let run = RunStarted {
        run: "0".repeat(32),
        agent: "claude".into(),
        pid: std::process::id(),
        ledger,
        interactive,
        ..RunStarted::default()
    };
    driver.act(Command::StartRun(Box::new(run))).unwrap();
    (id, driver)
}

/// Whether files may go back now.
fn may(engine: &Engine, id: SessionId) -> bool {
    match engine.preview(id, RestoreRequest::files_of(1)) {
        Ok(preview) => {
            engine.forget(preview);
            true
        }
        Err(why) => {
            assert!(why.to_string().contains("segno run"), "{why}");
            false
        }
    }
}

fn turn() -> Fact {
    Fact::TurnCompleted(TurnCompleted::default())
}

fn said(channel: Channel) -> Fact {
    Fact::Said { channel, text: "x".into(), message: None, parent: None }
}

fn begun() -> Fact {
    let (call, tool, input) = ("c1".to_owned(), "Bash".to_owned(), json!({ "command": "make" }));
    Fact::ToolStarted { call, tool, input, write_ahead: true, source: Source::Hook }
}

fn ended() -> Fact {
    Fact::ToolEnded {
        call: "c1".to_owned(),
        tool: None,
        end: CallEnd::Completed,
        output: None,
        source: Source::Hook,
    }
}

#[test]
fn an_agent_that_is_only_observed_is_busy_while_its_turn_runs() {
    let room = Room::new();
    let engine = engine(&room);
    let (id, driver) = driven(&room, &engine, Ledger::Observed, true);
    assert!(!may(&engine, id), "nobody knows whether it was asked something");
    for (command, wanted) in
        [(turn(), true), (said(Channel::Input), false), (said(Channel::Text), false), (turn(), true)]
    {
        let what = format!("{command:?}");
        driver.act(command).unwrap();
        assert_eq!(may(&engine, id), wanted, "{what}");
    }
    let back = RestoreRequest { state: true, ..RestoreRequest::files_of(1) };
    assert!(engine.preview(id, back).is_err(), "the session itself does not go back under its agent");
}

#[test]
fn an_agent_without_a_person_is_busy_unless_it_tells_before_it_acts() {
    let room = Room::new();
    let engine = engine(&room);
    let (id, driver) = driven(&room, &engine, Ledger::Observed, false);
    driver.act(turn()).unwrap();
    assert!(!may(&engine, id));
    drop(driver);
    let room = Room::new();
    let engine = self::engine(&room);
    let (id, driver) = driven(&room, &engine, Ledger::WriteAhead, false);
    for (command, wanted) in [(said(Channel::Text), true), (begun(), false), (ended(), true)] {
        let what = format!("{command:?}");
        driver.act(command).unwrap();
        assert_eq!(may(&engine, id), wanted, "{what}");
    }
}

#[test]
fn a_session_that_is_only_kept_for_an_agent_keeps_no_person_from_its_files() {
    let room = Room::new();
    let engine = engine(&room);
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let create = Command::CreateCheckpoint { name: None, reason: Default::default() };
    engine.act(id, create).unwrap();
    let keeper = engine.drive(id, "segno mcp").unwrap();
    let back = RestoreRequest { state: true, ..RestoreRequest::files_of(1) };
    for request in [RestoreRequest::files_of(1), back] {
        let preview = engine.preview(id, request).unwrap();
        engine.go(preview).unwrap();
    }
    keeper.heartbeat().unwrap();
    drop(keeper);
    let _driver = engine.drive(id, "segno run").unwrap();
    assert!(!may(&engine, id), "one that drives is in the way");
}
