use std::collections::BTreeSet;

use serde_json::json;

use super::ledger::OUTPUT;
use super::*;
use crate::command::Command;
use crate::event::samples::at;
use crate::event::samples::full_state;
use crate::event::samples::samples;
use crate::event::*;
use crate::fact::Fact;
use crate::story::*;

/// A session whose beginning has its row too.
fn begun(event: &Event) -> Story {
    let mark = Mark { seq: 1, at: at(1), run: None };
    let mut story = Story::of(State::begin(&mark, event).unwrap());
    for change in project(&story.state, &mark, event, Applied::Counted) {
        story.rows.insert((change.list, change.key), change.fields);
    }
    story
}

/// The history as lines of action, phase and details.
fn history(story: &Story) -> Vec<String> {
    let columns = ["action", "phase", "details"].map(|name| story.column(List::History, name));
    (0..columns[0].len()).map(|n| columns.each_ref().map(|column| column[n].as_str()).join(" | ")).collect()
}

#[test]
fn the_history_of_a_session_that_is_completed() {
    let mut story = begun(&samples()[0]);
    story.ok(pause());
    story.ok(resume());
    story.ok(Command::Pause { reason: PauseReason::Limit, details: Some("resets 3pm".into()) });
    story.ok(resume());
    story.ok(phase("green"));
    story.ok(extend(Unit::Tokens, 50_000));
    story.ok(Command::CreateCheckpoint { name: Some("mid".to_owned()), reason: CheckpointReason::Asked });
    story.ok(Fact::HistoryNoted {
        action: "reviewed".to_owned(),
        phase: Some("red".to_owned()),
        details: Some("by Ann".into()),
    });
    story.ok(Command::Complete { summary: Some("all tests pass".into()) });
    let lines = [
        "session_created | red | checkout: die Kasse 🛒",
        "session_paused | red | asked",
        "session_resumed | red | null",
        "session_paused | red | resets 3pm",
        "session_resumed | red | null",
        "phase_advanced | green | from red to green",
        "checkpoint | green | cp-01-red",
        "budget_extended | green | added 50000 tokens",
        "checkpoint | green | cp-02-mid",
        "reviewed | red | by Ann",
        "checkpoint | green | cp-03-final",
        "session_completed | green | all tests pass",
    ];
    assert_eq!(history(&story), lines);
    assert_eq!(story.state.counts.history, lines.len() as u64);
    assert_eq!(story.list(List::History)[0]["timestamp"], json!(at(1)));
    let times = story.column(List::History, "timestamp");
    assert!(times.is_sorted());
}

#[test]
fn the_other_lines_of_a_history() {
    let mut story = begun(&samples()[1]);
    story.ok(phase("analyze"));
    story.ok(Command::SetWorkflow { workflow: Workflow { name: "spec".to_owned(), phases: vec![] } });
    story.ok(Command::StartAttempt);
    story.ok(Command::VerifyPhase {
        phase: None,
        check: "Unit Tests".to_owned(),
        verdict: Verdict::Fail,
        details: None,
    });
    story.ok(Command::SetBudget {
        unit: Unit::Tokens,
        total: Some(10),
        hard: Some(true),
        warn_percent: None,
        count: None,
    });
    story.ok(tokens(11, Source::Hand));
    story.ok(Command::SetBudget {
        unit: Unit::Cost,
        total: Some(500),
        hard: None,
        warn_percent: None,
        count: None,
    });
    story.ok(extend(Unit::Cost, 5));
    story.ok(Command::SwitchAgent { to: "coder".to_owned() });
    story.ok(Command::ReachMilestone { name: "first green".to_owned(), details: None });
    story.ok(Command::ReachBreakpoint { name: "look".to_owned(), details: None });
    story.ok(Command::ContinueBreakpoint { details: None });
    story.ok(attach(1));
    story.ok(Command::Interrupt { reason: InterruptReason::PowerLoss, details: None, at: None });
    story.ok(resume());
    story.ok(Command::Halt { reason: "no progress".into() });
    story.ok(Command::Resume { reset_breaker: true, details: None });
    story.ok(Command::Abort { reason: None });
    insta::assert_snapshot!(history(&story).join("\n"), @r"
    session_created | null | null
    phase_advanced | analyze | to analyze
    checkpoint | analyze | cp-01-start
    workflow_set | analyze | spec
    attempt_started | analyze | attempt 2
    phase_verified | analyze | Unit Tests: fail
    budget_set | analyze | 10 tokens, hard
    budget_warning | analyze | 11 of 10 tokens
    budget_exceeded | analyze | 11 of 10 tokens
    budget_set | analyze | 500 micro-dollars
    budget_extended | analyze | added 5 micro-dollars
    agent_switched | analyze | coder
    checkpoint | analyze | cp-02-to-coder
    milestone_reached | analyze | first green
    checkpoint | analyze | cp-03-first-green
    breakpoint_reached | analyze | look
    checkpoint | analyze | cp-04-look
    breakpoint_continued | analyze | look
    session_interrupted | analyze | power loss
    session_resumed | analyze | null
    session_halted | analyze | no progress
    session_resumed | analyze | breaker reset
    session_aborted | analyze | null
    ");
    assert_eq!(story.state.counts.history, history(&story).len() as u64);
}

#[test]
fn artifacts_are_rows_with_path_type_time_and_phase() {
    let artifact = |path: &str, artifact_type, phase: Option<&str>| Command::RecordArtifact {
        path: path.to_owned(),
        artifact_type,
        phase: phase.map(str::to_owned),
    };
    let story = Story::told(inputs![
        phase("analyze"),
        artifact("a.md", Change::Created, None),
        phase("implement"),
        artifact("src/foo.py", Change::Created, Some("implement")),
        artifact("a.md", Change::Modified, Some("analyze")),
        artifact("a.md", Change::Modified, None),
    ]);
    let row = |n: usize| Value::from(story.list(List::Artifacts)[n].clone());
    let first = json!({ "path": "a.md", "artifact_type": "created", "timestamp": at(4), "phase": "analyze" });
    assert_eq!(row(0), first);
    assert_eq!(story.column(List::Artifacts, "phase"), ["analyze", "implement", "analyze", "implement"]);
    assert_eq!(
        story.column(List::Artifacts, "artifact_type"),
        ["created", "created", "modified", "modified"]
    );
    assert_eq!(story.state.counts.artifacts, 4);
}

#[test]
fn the_end_of_a_tool_call_completes_its_row() {
    let mut story = Story::told(inputs![phase("green")]);
    story.run = Some("run-1".to_owned());
    story.ok(start("a", Source::Stream));
    let open = json!({
        "call": "a", "tool": "Bash", "input": { "command": "ls" }, "state": "open", "started_at": at(4),
        "write_ahead": false, "run": "run-1", "phase": "green",
    });
    assert_eq!(Value::from(story.list(List::Tools)[0].clone()), open);
    // The hook's word adds that it was said before; nothing else changes.
    story.run = None;
    story.ok(start("a", Source::Hook));
    story.ok(end("a", CallEnd::Completed));
    story.ok(end("a", CallEnd::Failed));
    let mut done = open;
    done["write_ahead"] = json!(true);
    done["state"] = json!("completed");
    done["ended_at"] = json!(at(6));
    done["output"] = json!("a.txt");
    done["output_bytes"] = json!(5);
    assert_eq!(Value::from(story.list(List::Tools)[0].clone()), done);
    // Of a long output the row has the beginning, and the journal has it whole.
    let long = Fact::ToolEnded {
        call: "long".to_owned(),
        tool: Some("Bash".to_owned()),
        end: CallEnd::Completed,
        output: Some("é".repeat(800).into()),
        source: Source::Hook,
    };
    let mut other = Story::told(inputs![phase("green")]);
    other.ok(start("long", Source::Hook));
    other.ok(long);
    let row = other.list(List::Tools)[0].clone();
    assert_eq!(row["output"], json!(format!("{}…", "é".repeat(OUTPUT - 1))));
    assert_eq!(row["output_bytes"], json!(1_600));
    // An end alone makes a row of what it knows.
    story.ok(Fact::ToolEnded {
        call: "b".to_owned(),
        tool: Some("Read".to_owned()),
        end: CallEnd::Denied,
        output: None,
        source: Source::Hook,
    });
    let alone = json!({ "call": "b", "tool": "Read", "state": "denied", "ended_at": at(8) });
    assert_eq!(Value::from(story.list(List::Tools)[1].clone()), alone);
}

#[test]
fn files_and_outputs_have_one_row_per_name() {
    let file = |change| Fact::FileChanged { path: "a.rs".to_owned(), change, call: Some("c".to_owned()) };
    let output = |text: &str| Command::RecordOutput {
        name: "spec".to_owned(),
        kind: OutputKind::Document,
        content: text.into(),
    };
    let story =
        Story::told(inputs![file(Change::Created), file(Change::Deleted), output("one"), output("two")]);
    assert_eq!(story.column(List::Files, "change"), ["deleted"]);
    assert_eq!(story.column(List::Files, "call"), ["c"]);
    assert_eq!(story.column(List::Outputs, "content"), ["two"]);
}

#[test]
fn a_task_that_is_unknown_gets_no_row() {
    let mut story = Story::new();
    assert_eq!(story.record(&TaskEnded { task: 9, done: true }.into()), Applied::Repeated);
    assert_eq!(story.list(List::Tasks), Vec::<&Map<String, Value>>::new());
}

/// Imported rows keep their order before our own, and none of ours is laid over one of theirs.
#[test]
fn imported_rows_do_not_meet_our_own() {
    let state = Box::new(full_state());
    let mut story = begun(&SessionImported { state, renamed_from: None, source: "view".to_owned() }.into());
    let line = |action: &str| json!({ "action": action, "phase": "red", "details": null });
    let item = |key: &str, body| ImportedItem { key: key.to_owned(), body };
    let items = vec![
        item("00000000000000000001", line("session_created")),
        item("00000000000000000002", line("session_paused")),
    ];
    story.record(&ItemsImported { list: List::History, items }.into());
    story.ok(resume());
    let actions = ["session_created", "session_paused", "session_imported", "session_resumed"];
    assert_eq!(story.column(List::History, "action"), actions);
    // Rows with names of their own are laid over as ever; calls that were open there are in doubt here.
    let items = vec![
        item("toolu_07", json!({ "call": "toolu_07", "tool": "Bash", "state": "open" })),
        item("toolu_08", json!({ "call": "toolu_08", "tool": "Bash", "state": "failed" })),
        item("odd", json!("no object")),
    ];
    story.record(&ItemsImported { list: List::Tools, items }.into());
    assert_eq!(story.column(List::Tools, "state"), ["in_doubt", "failed"]);
    story.ok(end("toolu_07", CallEnd::Completed));
    assert_eq!(story.column(List::Tools, "state"), ["completed", "failed"]);
    assert_eq!(story.column(List::Tools, "tool"), ["Bash", "Bash"]);
}

#[test]
fn every_list_is_filled_by_some_event() {
    let mut story = begun(&samples()[0]);
    for event in samples() {
        story.record(&event);
    }
    let filled: BTreeSet<List> = story.rows.keys().map(|(list, _)| *list).collect();
    assert_eq!(filled, List::ALL.into_iter().collect());
    for list in List::ALL {
        assert_eq!(serde_json::to_value(list).unwrap(), json!(list.as_str()));
    }
}

#[test]
fn a_summary_tells_the_state_in_a_line() {
    let state = full_state();
    let summary = crate::summary::Summary::from(&state);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(serde_json::from_value::<crate::summary::Summary>(json.clone()).unwrap(), summary);
    let parts =
        ["workflow", "phase", "progress", "project", "tokens_used", "open_calls", "in_doubt", "checkpoint"];
    let told: Vec<String> = parts.iter().map(|part| json[part].to_string()).collect();
    let expected =
        [r#""tdflow""#, r#""green""#, "40", r#""/home/ann/shop""#, "41000", "2", "1", r#""cp-02-red""#];
    assert_eq!(told, expected);
}
