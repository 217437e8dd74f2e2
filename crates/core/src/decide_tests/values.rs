//! Values that cannot be kept, the beginning of a session, and one that comes from elsewhere.

use rstest::rstest;
use serde_json::Value;
use serde_json::json;

use crate::budget::CostBudget;
use crate::budget::TokenBudget;
use crate::command::Command;
use crate::decide::create;
use crate::event::samples::at;
use crate::event::samples::full_state;
use crate::event::samples::id;
use crate::event::samples::uid;
use crate::event::*;
use crate::fact::Fact;
use crate::input::Input;
use crate::limits;
use crate::state::Mark;
use crate::state::State;
use crate::status::Status;
use crate::story::*;

fn creation() -> SessionCreated {
    SessionCreated::new(id(), uid(), Maker::New)
}

fn begin(creation: SessionCreated) -> State {
    State::begin(&Mark { seq: 1, at: at(0), run: None }, &create(creation).unwrap()).unwrap()
}

/// What is wrong, and the command or fact with it.
macro_rules! cases {
    ($(($what:expr, $input:expr $(,)?)),* $(,)?) => { vec![$(($what, Input::from($input))),*] };
}

/// Every command with a name in it, made of that name, and what its refusal calls it.
fn named(name: &str) -> Vec<(&'static str, Input)> {
    let n = || name.to_owned();
    let some = || Some(name.to_owned());
    let x = || "x".to_owned();
    let workflow = |name, phases| Command::SetWorkflow { workflow: Workflow { name, phases } };
    let decided = |branch| Command::Decide {
        question: "x".into(),
        choice: "x".into(),
        reason: None,
        alternatives: vec![],
        parent: None,
        branch,
    };
    let began = |call, tool| Fact::ToolStarted {
        call,
        tool,
        input: json!(null),
        write_ahead: true,
        source: Source::Hook,
    };
    let ended = |call, tool| Fact::ToolEnded {
        call,
        tool,
        end: CallEnd::Completed,
        output: None,
        source: Source::Hook,
    };
    let verified =
        |phase, check| Command::VerifyPhase { phase, check, verdict: Verdict::Pass, details: None };
    cases![
        ("workflow", workflow(n(), vec![])),
        ("phase", workflow(x(), vec![x(), n()])),
        ("phase", phase(name)),
        ("check", verified(None, n())),
        ("phase", verified(some(), x())),
        ("phase", Command::RecordArtifact { path: x(), artifact_type: Change::Created, phase: some() }),
        ("phase", Fact::HistoryNoted { action: x(), phase: some(), details: None }),
        ("call id", Fact::FileChanged { path: x(), change: Change::Created, call: some() }),
        ("output", Command::RecordOutput { name: n(), kind: OutputKind::Code, content: "x".into() }),
        ("metric", Command::SetMetric { name: n(), value: Metric::Flag(true) }),
        ("agent", Command::SwitchAgent { to: n() }),
        ("agent", Command::SetAgentState { agent: n(), active: true, state: json!(1) }),
        ("milestone", Command::ReachMilestone { name: n(), details: None }),
        ("breakpoint", Command::ReachBreakpoint { name: n(), details: None }),
        ("branch", decided(some())),
        ("branch", Command::SwitchBranch { branch: n(), from: None }),
        ("call id", began(n(), x())),
        ("tool", began(x(), n())),
        ("call id", ended(n(), None)),
        ("tool", ended(x(), some())),
        (
            "memory",
            Fact::MemoryUsed { usage: MemoryUse::Query, source: some(), query: "x".into(), result: None },
        ),
        ("cache key", Command::SetCache { key: n(), value: json!(1) }),
        ("error kind", Fact::ErrorRecorded { message: "x".into(), error_kind: some() }),
        ("checkpoint name", Command::CreateCheckpoint { name: some(), reason: CheckpointReason::Asked }),
    ]
}

/// The same for lines of text.
fn lined(line: &str) -> Vec<(&'static str, Input)> {
    let l = || line.to_owned();
    let project = Project { path: l(), ..Project::default() };
    cases![
        ("topic", Fact::TopicSet { topic: l() }),
        ("project path", Command::SetProject { project }),
        ("path", Command::RecordArtifact { path: l(), artifact_type: Change::Created, phase: None }),
        ("path", Fact::FileChanged { path: l(), change: Change::Created, call: None }),
        ("action", Fact::HistoryNoted { action: l(), phase: None, details: None }),
        ("file", Command::SetPosition { file: Some(l()), line: None }),
    ]
}

#[rstest]
#[case::empty("", "it is empty")]
#[case::blank(" \u{a0} ", "it is empty")]
#[case::two_lines("a\nb", "it holds control characters")]
#[case::escape("a\u{1b}[31m", "it holds control characters")]
#[case::nul("a\0", "it holds control characters")]
#[case::c1("a\u{9b}m", "it holds control characters")]
fn odd_names_and_lines_are_refused(#[case] text: &str, #[case] why: &str) {
    let story = Story::new();
    for (field, command) in named(text).into_iter().chain(lined(text)) {
        let words = format!("{command:?}");
        assert_eq!(story.refused(command).to_string(), format!("bad {field}: {why}"), "{words}");
    }
}

#[test]
fn long_names_and_lines_are_refused_and_counted_in_characters() {
    for (limit, make) in [(limits::NAME, named as fn(&str) -> _), (limits::LINE, lined)] {
        for (field, command) in make(&"ä".repeat(limit + 1)) {
            let words = Story::new().refused(command).to_string();
            assert_eq!(words, format!("bad {field}: it is longer than {limit} characters"));
        }
        for (_, command) in make(&"ä".repeat(limit)) {
            Story::new().ok(command);
        }
    }
}

#[test]
fn empty_texts_and_impossible_values_are_refused() {
    let cases = cases![
        ("bad intent: it is empty", Command::SetIntent { intent: " \n".into() }),
        ("bad task: it is empty", Command::AddTask { text: "".into() }),
        ("bad message: it is empty", Fact::ErrorRecorded { message: "\t".into(), error_kind: None }),
        (
            "bad query: it is empty",
            Fact::MemoryUsed { usage: MemoryUse::Query, source: None, query: "".into(), result: None }
        ),
        (
            "bad artifact type: an artifact is created or modified",
            Command::RecordArtifact { path: "a".to_owned(), artifact_type: Change::Deleted, phase: None }
        ),
        ("bad line: lines count from 1", Command::SetPosition { file: Some("a".to_owned()), line: Some(0) }),
        (
            "bad project name: it is empty",
            Command::SetProject {
                project: Project { path: "a".to_owned(), name: "\n".to_owned(), kind: None },
            }
        ),
        (
            "bad driver: it holds control characters",
            Command::AttachDriver {
                epoch: 1,
                holder: Holder { what: "\u{7}".to_owned(), ..Holder::default() },
            }
        ),
    ];
    for (why, command) in cases {
        assert_eq!(Story::new().refused(command).to_string(), why);
    }
}

fn nested(levels: usize) -> Value {
    (0..levels)
        .fold(json!(1), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) })
}

/// What is too deep to be read back would make the whole journal unreadable.
#[test]
fn json_that_could_not_be_read_back_is_not_stored() {
    let deep = nested(limits::DEPTH + 1);
    let set = [
        Command::SetWorkflowState { state: deep.clone() },
        Command::SetCache { key: "a".to_owned(), value: deep.clone() },
        Command::SetAgentState { agent: "a".to_owned(), active: true, state: deep.clone() },
    ];
    for command in set {
        assert!(Story::new().refused(command).to_string().ends_with("nested more than 100 levels deep"));
    }
    // Readers take 127 levels, so this may come from an agent; the call is recorded all the same.
    let deep = nested(127);
    assert!(serde_json::from_str::<Value>(&deep.to_string()).is_ok());
    let begin = |input: &Value| Fact::ToolStarted {
        call: "a".to_owned(),
        tool: "t".to_owned(),
        input: input.clone(),
        write_ahead: true,
        source: Source::Hook,
    };
    let events = Story::new().ok(begin(&deep));
    let stored = events[0].encode();
    let Event::ToolStarted(read) = Event::decode(&stored.kind, stored.version, &stored.body).unwrap() else {
        panic!("{stored:?}")
    };
    assert_eq!(read.input, Value::String(deep.to_string()));
    // The deepest that is kept as it is survives every way of wrapping.
    let deep = nested(limits::DEPTH);
    let mut story = Story::told(inputs![
        begin(&deep),
        Command::SetCache { key: "a".to_owned(), value: deep.clone() },
        Command::SetAgentState { agent: "a".to_owned(), active: true, state: deep.clone() },
        Command::SetWorkflowState { state: deep },
    ]);
    let row = story.rows.pop_last().unwrap().1;
    let items = vec![ImportedItem { key: "a".to_owned(), body: row.into() }];
    let items: Event = ItemsImported { list: crate::project::List::Tools, items }.into();
    let state = Box::new(story.state);
    let state: Event = SessionImported { state, renamed_from: None, source: "x".to_owned() }.into();
    for event in [items, state] {
        let kind = event.kind().to_owned();
        let late: Event = LateRecorded { epoch: 1, kind, version: 1, body: event.to_value() }.into();
        for event in [event, late] {
            let stored = event.encode();
            assert_eq!(Event::decode(&stored.kind, stored.version, &stored.body).unwrap(), event);
        }
    }
}

#[test]
fn a_new_session_is_active_with_the_default_budget() {
    let state = begin(creation());
    assert_eq!(state.status, Status::Active);
    assert_eq!(
        state.budget,
        TokenBudget {
            total_budget: 100_000,
            tokens_used: 0,
            warn_percent: 80,
            hard: false,
            ..TokenBudget::default()
        }
    );
    assert_eq!(state.session_id.to_string(), "session_20261115_143512_804211");
    assert_eq!((state.created_at, state.updated_at, state.completed_at), (at(0), at(0), None));
    assert_eq!((state.counts.history, state.attempt, state.iteration), (1, 1, 0));
}

#[test]
fn a_new_session_starts_in_the_first_phase_unless_told_otherwise() {
    let phases = ["red", "green"].map(str::to_owned).to_vec();
    let workflow = Some(Workflow { name: "tdflow".to_owned(), phases });
    let state = begin(SessionCreated { workflow: workflow.clone(), ..creation() });
    assert_eq!(state.phase_label().as_deref(), Some("red 1/2"));
    let state = begin(SessionCreated { workflow, phase: Some("green".to_owned()), ..creation() });
    assert_eq!(state.phase_label().as_deref(), Some("green 2/2"));
    let state = begin(SessionCreated { phase: Some("analyze".to_owned()), ..creation() });
    assert_eq!(state.phase_label().as_deref(), Some("analyze"));
}

#[test]
fn a_session_that_could_not_be_kept_does_not_begin() {
    let budget =
        |total_budget, warn_percent| TokenBudget { total_budget, warn_percent, ..TokenBudget::default() };
    let cost = |limit_micros| CostBudget { limit_micros, ..CostBudget::default() };
    let long = "x".repeat(limits::LINE + 1);
    let bad = [
        SessionCreated { topic: Some("a\nb".to_owned()), ..creation() },
        SessionCreated { phase: Some(" ".to_owned()), ..creation() },
        SessionCreated { workflow: Some(Workflow::default()), ..creation() },
        SessionCreated { budget: budget(0, 80), ..creation() },
        SessionCreated { budget: budget(1, 101), ..creation() },
        SessionCreated { cost: cost(Some(0)), ..creation() },
        SessionCreated { cost: CostBudget { warn_percent: 101, ..cost(None) }, ..creation() },
        SessionCreated { project: Project { path: long, ..Project::default() }, ..creation() },
        SessionCreated {
            project: Project { kind: Some("a\u{1b}".to_owned()), ..Project::default() },
            ..creation()
        },
    ];
    for creation in bad {
        let words = format!("{creation:?}");
        assert_eq!(create(creation).expect_err(&words).code(), "bad_value");
    }
}

#[test]
fn an_imported_session_goes_on_here() {
    let there = full_state();
    let state = Box::new(there.clone());
    let imported: Event = SessionImported { state, renamed_from: None, source: "view".to_owned() }.into();
    let here = State::begin(&Mark { seq: 1, at: at(500), run: None }, &imported).unwrap();
    assert_eq!((here.seq, here.created_at, here.updated_at), (1, at(0), at(500)));
    assert_eq!((&here.driver, here.requests.len()), (&None, 0), "a driver there has no say here");
    assert_eq!(here.checkpoint, None, "its seq names an event of the other journal");
    assert_eq!((here.late, here.unknown), (0, 0));
    assert_eq!(here.counts.history, there.counts.history + 1);
    assert_eq!(here.counts.checkpoints, there.counts.checkpoints, "numbers go on");
    assert_eq!(here.calls.open.len(), 0);
    assert_eq!(here.calls.in_doubt.keys().collect::<Vec<_>>(), ["toolu_03", "toolu_07"]);
    assert_eq!((here.status, &here.reason, here.budget), (there.status, &there.reason, there.budget));
    let mut story = Story::of(here);
    story.ok(resume());
    story.ok(Command::ContinueBreakpoint { details: None });
    story.ok(phase("refactor"));
    assert_eq!(story.state.checkpoint.as_ref().unwrap().id.as_str(), "cp-03-green");
}

#[test]
fn what_must_hold_of_every_session_holds_of_an_imported_one() {
    let begin = |state: State| {
        let state = Box::new(state);
        let imported: Event = SessionImported { state, renamed_from: None, source: "x".to_owned() }.into();
        State::begin(&Mark { seq: 1, at: at(-900), run: None }, &imported).unwrap()
    };
    let mut odd = full_state();
    odd.updated_at = at(-10);
    odd.completed_at = Some(at(3));
    odd.budget.total_budget = 0;
    odd.counts.history = u64::MAX;
    odd.counts.checkpoints = u64::MAX;
    odd.calls.total = 0;
    odd.calls.open_beyond = u64::MAX;
    let mut here = begin(odd.clone());
    assert_eq!((here.updated_at, here.completed_at), (at(0), None));
    assert_eq!(here.budget.total_budget, 1);
    assert_eq!(here.calls.total, u64::MAX);
    assert_eq!(crate::summary::Summary::from(&here).open_calls, u64::MAX);
    // The highest checkpoint number there can be is still one that reads back.
    here.status = Status::Active;
    let events =
        Story::of(here).ok(Command::CreateCheckpoint { name: None, reason: CheckpointReason::Asked });
    let stored = events[0].encode();
    assert_eq!(Event::decode(&stored.kind, stored.version, &stored.body).unwrap(), events[0]);

    for (said, is) in [(None, at(0)), (Some(at(-5)), at(0)), (Some(at(99)), at(0))] {
        let ended = State { status: Status::Failed, completed_at: said, ..odd.clone() };
        assert_eq!(begin(ended).completed_at, Some(is));
    }
}
