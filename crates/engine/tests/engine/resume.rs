//! Coming back: what is read for it, what is found out, what is kept of it.

use std::path::Path;
use std::sync::Arc;

use rstest::rstest;
use segno_core::Command;
use segno_core::Fact;
use segno_core::Input;
use segno_core::List;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::detect::Action;
use segno_core::detect::Expired;
use segno_core::event::CallEnd;
use segno_core::event::CheckpointReady;
use segno_core::event::CheckpointReason;
use segno_core::event::InterruptReason;
use segno_core::event::Ledger;
use segno_core::event::PauseReason;
use segno_core::event::Recovery;
use segno_core::event::RunEnded;
use segno_core::event::RunStarted;
use segno_core::event::Source;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::lease::here;
use segno_engine::resume::BriefLimits;
use segno_engine::view;
use segno_store::Store as _;
use serde_json::Value;
use serde_json::json;

use crate::common::Room;
use crate::counting::Counting;
use crate::counting::Counts;

fn start(call: &str, tool: &str, input: Value) -> Fact {
    let (call, tool) = (call.to_owned(), tool.to_owned());
    Fact::ToolStarted { call, tool, input, write_ahead: true, source: Source::Hook }
}

fn end(call: &str) -> Fact {
    let output = Some("done".into());
    Fact::ToolEnded {
        call: call.to_owned(),
        tool: None,
        end: CallEnd::Completed,
        output,
        source: Source::Hook,
    }
}

fn interrupt() -> Vec<Command> {
    vec![
        Command::AttachDriver { epoch: 1, holder: here("test") },
        Command::Interrupt { reason: InterruptReason::Crash, details: None, at: None },
    ]
}

/// A session that was interrupted after so many calls, with checkpoints in between and two calls in doubt.
fn long_session(room: &Room, engine: &Engine, calls: usize) -> SessionId {
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let mut inputs: Vec<Input> = Vec::new();
    for n in 0..calls {
        let call = format!("call-{:05}", (n * 7_919) % calls.max(1));
        inputs.push(start(&call, "Bash", json!({ "command": format!("echo {n}") })).into());
        inputs.push(end(&call).into());
        if n % 10 == 0 {
            let ordinal = n as u64 / 10 + 1;
            let ready = CheckpointReady { ordinal, ..CheckpointReady::default() };
            let create = Command::CreateCheckpoint { name: None, reason: CheckpointReason::ToolCount };
            inputs.push(create.into());
            inputs.push(Command::ReadyCheckpoint(Box::new(ready)).into());
        }
    }
    inputs.push(start("doubt-1", "Bash", json!({ "command": "deploy" })).into());
    inputs.push(start("doubt-2", "Write", json!({ "file_path": "a.txt", "content": "x" })).into());
    inputs.extend(interrupt().into_iter().map(Input::from));
    for part in inputs.chunks(200) {
        engine.act_all(id, part.to_vec(), None).unwrap();
    }
    id
}

#[test]
fn what_is_read_does_not_grow_with_the_session() {
    let room = Room::new();
    let counts = Arc::new(Counts::default());
    let view = view::Options { enabled: false, ..view::Options::default() };
    let store = Counting { store: room.store(), counts: Arc::clone(&counts) };
    let engine = Engine::new(Box::new(store), EngineOptions { view, ..room.options() });
    let limits = BriefLimits::default();
    let read = |calls: usize| {
        let id = long_session(&room, &engine, calls);
        counts.take();
        let (state, options) = engine.recovery_options(id).unwrap();
        let for_options = counts.take();
        let brief = engine.brief(id, limits).unwrap().text(limits);
        let for_brief = counts.take();
        engine.recovery_report(&state).unwrap();
        let for_report = counts.take();
        assert_eq!(options.in_doubt.len(), 2);
        assert!(brief.contains("Bash: `deploy`") && brief.contains("Write: `a.txt`"), "{brief}");
        assert!(brief.contains(&format!("echo {}", calls - 1)), "the newest is told: {brief}");
        (for_options, for_brief, for_report)
    };
    let small = read(300);
    let large = read(1_500);
    assert_eq!(small, large, "(rows, lists counted) for options, brief and report");
    let ((options, _), (brief, counted), _) = large;
    assert!(options <= 20 && brief <= 100 && counted == 0, "{large:?}");
}

#[test]
fn the_checkpoint_to_go_on_from() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    assert!(engine.checkpoint_to_resume(id).unwrap().is_none());
    let make = |reason: CheckpointReason| {
        let acted = engine.act(id, Command::CreateCheckpoint { name: None, reason }).unwrap();
        acted.state.counts.checkpoints
    };
    let ready = |ordinal: u64, aside: bool| {
        let ready = CheckpointReady { ordinal, safety_only: aside, ..CheckpointReady::default() };
        engine.act(id, Command::ReadyCheckpoint(Box::new(ready))).unwrap();
    };
    let good = make(CheckpointReason::Asked);
    ready(good, false);
    let later = make(CheckpointReason::Milestone);
    ready(later, false);
    ready(make(CheckpointReason::Interrupt), false);
    ready(make(CheckpointReason::BeforeRestore), true);
    make(CheckpointReason::Asked);
    let found = |engine: &Engine| engine.checkpoint_to_resume(id).unwrap().unwrap().ordinal;
    assert_eq!(found(&engine), later, "not one that is aside, of a dead run, or not ready");
    engine.act(id, Command::InvalidateCheckpoints { after: good }).unwrap();
    assert_eq!(found(&engine), good, "nor one that was rolled back behind");
    let (_, options) = engine.recovery_options(id).unwrap();
    assert_eq!(options.offered[0].target.as_deref(), Some("cp-01-asked"));
}

/// A session whose run was interrupted with these calls open; the agent's home is `home`.
fn died(
    room: &Room,
    engine: &Engine,
    agent: &str,
    native: &str,
    home: &Path,
    calls: &[(&str, Value)],
) -> SessionId {
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let run = RunStarted {
        run: "run-1".to_owned(),
        agent: agent.to_owned(),
        native_id: Some(native.to_owned()),
        pid: u32::MAX,
        ledger: Ledger::Observed,
        environment: json!({ "HOME": home }),
        ..RunStarted::default()
    };
    let under = room.engine_as(1);
    let holder = here("test");
    let lease = room.store().acquire(id, &holder, None).unwrap();
    let mut inputs: Vec<Input> = vec![
        Command::AttachDriver { epoch: lease.epoch, holder }.into(),
        Command::StartRun(Box::new(run)).into(),
    ];
    inputs.extend(calls.iter().map(|(call, input)| start(call, "Bash", input.clone()).into()));
    let interrupt = Command::Interrupt { reason: InterruptReason::Crash, details: None, at: None };
    let ended = RunEnded { run: "run-1".into(), outcome: "interrupted".into(), ..RunEnded::default() };
    inputs.extend([interrupt.into(), Command::EndRun(Box::new(ended)).into()]);
    under.act_all(id, inputs, None).unwrap();
    room.store().release(id, lease.epoch).unwrap();
    id
}

fn write(path: &Path, lines: &[Value]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(path, text).unwrap();
}

fn claude_call(id: &str, command: &str) -> Value {
    let block = json!({ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": command } });
    json!({ "type": "assistant", "sessionId": "s", "message": { "id": "m", "content": [block] } })
}

fn claude_result(id: &str, output: &str, failed: bool) -> Value {
    let block = json!({ "type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed });
    json!({ "type": "user", "sessionId": "s", "message": { "content": [block] } })
}

fn state_of(engine: &Engine, id: SessionId, call: &str) -> Value {
    let calls = engine.items(id, List::Tools).unwrap();
    calls.into_iter().find(|row| row.key == call).unwrap().body
}

#[test]
fn the_agents_own_record_settles_calls_in_doubt() {
    let room = Room::new();
    let engine = room.quiet();
    let home = room.path().join("home");
    let input = |command: &str| json!({ "command": command });
    let calls = [
        ("toolu_1", input("make it")),
        ("toolu_2", input("break it")),
        ("toolu_3", input("sleep")),
        ("toolu_4", input("unknown")),
        ("toolu_5", input("by a sub-agent")),
    ];
    let id = died(&room, &engine, "claude", "conv-1", &home, &calls);
    assert_eq!(engine.gather_evidence(id).unwrap(), [], "no record, no evidence, no error");
    let file = home.join(".claude/projects/-some-where/conv-1.jsonl");
    let lost = "[Tool call interrupted: the session ended before this call's result was recorded]";
    write(
        &file,
        &[
            claude_call("toolu_1", "make it"),
            claude_result("toolu_1", "made, token=hunter2", false),
            claude_call("toolu_2", "break it"),
            claude_result("toolu_2", "Exit code 1", true),
            claude_call("toolu_3", "sleep"),
            claude_call("toolu_4", "unknown"),
            claude_result("toolu_4", lost, true),
        ],
    );
    write(
        &home.join(".claude/projects/-some-where/conv-1/subagents/agent-7.jsonl"),
        &[claude_call("toolu_5", "by a sub-agent"), claude_result("toolu_5", "fine", false)],
    );
    // A record of somebody else is none of ours, and a broken line is no reason to give up.
    write(&home.join(".claude/projects/-else/conv-2.jsonl"), &[claude_result("toolu_3", "no", false)]);
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + "{\"type\":\"assist").unwrap();
    let settled = engine.gather_evidence(id).unwrap();
    let ends: Vec<(&str, CallEnd)> = settled.iter().map(|one| (one.call.as_str(), one.end)).collect();
    assert_eq!(
        ends,
        [("toolu_1", CallEnd::Completed), ("toolu_2", CallEnd::Failed), ("toolu_5", CallEnd::Completed)]
    );
    let state = engine.load(id).unwrap().state;
    assert_eq!(state.calls.in_doubt.keys().collect::<Vec<_>>(), ["toolu_3", "toolu_4"]);
    assert_eq!((state.calls.completed, state.calls.failed, state.calls.total), (2, 1, 5));
    assert_eq!((state.recovery.as_ref().unwrap().in_doubt, state.recovery.unwrap().settled), (5, 3));
    let row = state_of(&engine, id, "toolu_1");
    assert_eq!(
        (&row["state"], &row["evidence"]),
        (&json!("completed"), &json!("claude's own record of conversation conv-1"))
    );
    assert!(row["output"].as_str().unwrap().starts_with("made, "), "{row}");
    let brief = engine.brief(id, BriefLimits::default()).unwrap().text(BriefLimits::default());
    assert!(brief.contains("Bash `make it` (completed, says claude's own record"), "{brief}");
    assert!(brief.contains("Bash: `sleep`") && !brief.contains("Bash: `make it`"), "{brief}");
    assert_eq!(engine.gather_evidence(id).unwrap(), [], "found out once");
}

#[rstest]
#[case::once(&["echo hi"], "completed")]
#[case::done_twice(&["echo hi", "echo hi"], "in_doubt")]
#[case::something_else(&["echo ho"], "in_doubt")]
fn a_record_with_other_ids_settles_what_was_done_once(#[case] recorded: &[&str], #[case] state: &str) {
    let room = Room::new();
    let engine = room.quiet();
    let home = room.path().join("home");
    let calls = [("item_3", json!({ "command": "/bin/bash -lc 'echo hi'" }))];
    let id = died(&room, &engine, "codex", "thread-1", &home, &calls);
    let mut lines = Vec::new();
    for (n, command) in recorded.iter().enumerate() {
        let call_id = format!("call_{n}");
        let arguments = json!({ "cmd": command }).to_string();
        let call = json!({ "type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call_id });
        let output = "Process exited with code 0\nOutput:\nhi";
        let answer = json!({ "type": "function_call_output", "call_id": call_id, "output": output });
        lines.extend([call, answer].map(|payload| json!({ "type": "response_item", "payload": payload })));
    }
    write(&home.join(".codex/sessions/2026/01/16/rollout-2026-01-16T10-00-00-thread-1.jsonl"), &lines);
    engine.gather_evidence(id).unwrap();
    assert_eq!(state_of(&engine, id, "item_3")["state"], state);
}

#[test]
fn a_run_without_recorded_variables_is_looked_for_with_ours() {
    let room = Room::new();
    let home = room.path().join("elsewhere");
    let variables = [("CLAUDE_CONFIG_DIR".to_owned(), home.to_str().unwrap().to_owned())].into();
    let view = view::Options { enabled: false, ..view::Options::default() };
    let engine = Engine::new(Box::new(room.store()), EngineOptions { view, variables, ..room.options() });
    let calls = [("toolu_1", json!({ "command": "x" }))];
    let id = died(&room, &engine, "claude", "conv-1", Path::new(""), &calls);
    write(
        &home.join("projects/p/conv-1.jsonl"),
        &[claude_call("toolu_1", "x"), claude_result("toolu_1", "y", false)],
    );
    assert_eq!(engine.gather_evidence(id).unwrap(), [], "it said where its home was, and that is nowhere");
    let run = RunStarted {
        run: "run-2".into(),
        agent: "claude".into(),
        native_id: Some("conv-1".into()),
        pid: u32::MAX,
        ..RunStarted::default()
    };
    let again = Command::Resume { reset_breaker: false, details: None };
    engine.act_all(id, vec![again, Command::StartRun(Box::new(run))], None).unwrap();
    let ended = RunEnded { run: "run-2".into(), outcome: "interrupted".into(), ..RunEnded::default() };
    let late = room.engine_as(1);
    let under = Engine::new(
        Box::new(room.store()),
        EngineOptions {
            actor: segno_engine::Actor { run: Some("run-2".into()), ..Default::default() },
            ..room.options()
        },
    );
    drop(late);
    under
        .act_all(
            id,
            vec![
                Input::from(start("toolu_2", "Bash", json!({ "command": "z" }))),
                Command::EndRun(Box::new(ended)).into(),
            ],
            None,
        )
        .unwrap();
    write(
        &home.join("projects/p/conv-1.jsonl"),
        &[claude_call("toolu_2", "z"), claude_result("toolu_2", "y", false)],
    );
    assert_eq!(engine.gather_evidence(id).unwrap().len(), 1);
}

#[test]
fn what_is_kept_of_a_stop_and_of_coming_back() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let state = engine.load(id).unwrap().state;
    assert!(engine.recovery_report(&state).unwrap().is_none(), "it never stopped");
    let green = Command::AdvancePhase { to: "green".into(), step: Some(2), of: Some(4) };
    let deploy = start("call-1", "Bash", json!({ "command": "deploy" }));
    let mut inputs: Vec<Input> = vec![green.into(), deploy.into()];
    inputs.extend(interrupt().into_iter().map(Input::from));
    let at = engine.now();
    engine.act_all(id, inputs, None).unwrap();
    let (state, options) = engine.recovery_options(id).unwrap();
    let report = engine.recovery_report(&state).unwrap().unwrap();
    assert_eq!((report.interrupted_at, report.interrupt_reason.as_str(), report.in_doubt), (at, "crash", 1));
    let last = &report.last_known_state;
    assert_eq!((last.phase.as_deref(), last.step), (Some("green"), Some(2)));
    assert!(last.action.as_ref().unwrap().contains("deploy"), "{last:?}");
    assert_eq!(report.recommended, Some(Recovery::Live), "there is no checkpoint");
    assert_eq!(
        report.recovery_options.iter().map(|option| option.recovery).collect::<Vec<_>>(),
        [Recovery::Live, Recovery::Fresh]
    );
    assert_eq!(report.recovery_options[0].loses, "loses nothing; 1 call in doubt");
    assert_eq!((report.recovery_type, report.recovered_at), (None, None));
    let resume = Command::Resume { reset_breaker: false, details: None };
    engine
        .act_all(id, [Input::from(engine.chosen(&options, Recovery::Live, None, false)), resume.into()], None)
        .unwrap();
    let state = engine.load(id).unwrap().state;
    let after = engine.recovery_report(&state).unwrap().unwrap();
    assert_eq!((after.recovery_type, after.recovered_at), (Some(Recovery::Live), Some(engine.now())));
    assert_eq!(after.recovery_options, report.recovery_options, "as they were when one was chosen");
    let history = engine.items(id, List::History).unwrap();
    assert!(history.iter().any(|row| row.body["action"] == "recovery_chosen"), "{history:?}");
}

#[test]
fn what_to_do_about_the_session_of_a_project() {
    let room = Room::new();
    let engine = room.quiet();
    let at = |wanted: Option<&str>| engine.detect(&room.project(), wanted).unwrap();
    let none = at(Some("a.md"));
    assert_eq!((none.found, none.action, none.session), (false, Action::CreateNew, None));
    let new = |file: Option<&str>| {
        let id = engine.create(room.new_session()).unwrap().state.session_id;
        let file = file.map(ToOwned::to_owned);
        let run =
            RunStarted { run: format!("run-{id}"), agent: "claude".into(), file, ..RunStarted::default() };
        engine.act(id, Command::StartRun(Box::new(run))).unwrap();
        room.clock.advance(1);
        id
    };
    let first = new(Some("a.md"));
    engine.act(first, Command::Pause { reason: PauseReason::Signal, details: None }).unwrap();
    let second = new(Some("b.md"));
    engine.act(second, Command::Halt { reason: "no progress in 3 loops".into() }).unwrap();
    let about_a = at(Some("a.md"));
    assert_eq!((about_a.action, about_a.session, about_a.reason), (Action::OfferResume, Some(first), None));
    let about_b = at(Some("b.md"));
    assert_eq!((about_b.action, about_b.expired), (Action::OfferReset, Some(Expired::BreakerOpen)));
    assert_eq!(about_b.reason.as_deref(), Some("Circuit Breaker OPEN: no progress in 3 loops"));
    engine.act(second, Command::Abort { reason: None }).unwrap();
    let about_c = at(Some("c.md"));
    assert_eq!((about_c.action, about_c.expired), (Action::CreateNew, Some(Expired::OtherWork)));
    assert_eq!(about_c.reason.as_deref(), Some("PRP mismatch: session=a.md, requested=c.md"));
    assert_eq!(at(None).action, Action::OfferResume, "nothing is asked for, so nothing is other work");
    engine.act(first, Command::Resume { reset_breaker: false, details: None }).unwrap();
    let driver = engine.drive(first, "somebody").unwrap();
    assert_eq!(at(None).action, Action::Attach);
    drop(driver);
    room.clock.advance(1);
    engine.act(first, Command::Complete { summary: None }).unwrap();
    let ended = at(None);
    assert_eq!((ended.action, ended.expired), (Action::CreateNew, Some(Expired::Ended)));
    assert_eq!(ended.reason.as_deref(), Some("Session completed successfully"));
    assert_eq!(engine.load(first).unwrap().state.status, Status::Completed);
}
