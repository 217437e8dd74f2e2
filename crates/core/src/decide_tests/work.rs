//! Tasks, decisions, breakpoints, agents, memory and errors.

use rstest::rstest;
use serde_json::json;

use crate::command::Command;

use crate::event::*;
use crate::fact::Fact;
use crate::limits;
use crate::project::List;
use crate::refusal::Refusal;
use crate::status::Status;
use crate::story::*;

fn add(text: &str) -> Command {
    Command::AddTask { text: text.into() }
}

fn decide(choice: &str, parent: Option<u64>, branch: Option<&str>) -> Command {
    Command::Decide {
        question: "which?".into(),
        choice: choice.into(),
        reason: None,
        alternatives: vec![],
        parent,
        branch: branch.map(str::to_owned),
    }
}

fn branch(name: &str, from: Option<u64>) -> Command {
    Command::SwitchBranch { branch: name.to_owned(), from }
}

fn error(message: &str) -> Fact {
    Fact::ErrorRecorded { message: message.into(), error_kind: None }
}

#[test]
fn tasks_are_numbered_and_end_once() {
    let finish = |task, done| Command::EndTask { task, done };
    let mut story = Story::told(inputs![add("a"), add("b"), add("c"), finish(1, true), finish(3, false)]);
    let tasks = &story.state.tasks;
    assert_eq!((tasks.added, tasks.done, tasks.dropped), (3, 1, 1));
    assert_eq!(tasks.open.clone().into_iter().collect::<Vec<_>>(), [(2, "b".to_owned())]);
    for task in [0, 1, 3, 4, u64::MAX] {
        let unknown = Refusal::Unknown { what: "open task", id: task.to_string() };
        assert_eq!(story.refused(finish(task, true)), unknown);
    }
    story.ok(add("d"));
    assert_eq!(story.column(List::Tasks, "state"), ["done", "open", "dropped", "open"]);
    assert_eq!(story.column(List::Tasks, "text"), ["a", "b", "c", "d"]);
}

#[test]
fn only_so_many_tasks_are_open_at_once() {
    let mut story = Story::told((0..limits::OPEN_TASKS).map(|n| add(&n.to_string())));
    let refusal = Refusal::TooMany { what: "open tasks", limit: limits::OPEN_TASKS };
    assert_eq!(story.refused(add("one more")), refusal);
    story.ok(Command::EndTask { task: 1, done: true });
    story.ok(add(&"long ".repeat(1_000)));
    assert_eq!(story.state.tasks.open[&501].chars().count(), limits::NAME);
}

#[test]
fn decisions_grow_from_the_head_of_their_branch() {
    let story = Story::told(inputs![
        decide("a", None, None),
        decide("b", None, None),
        branch("other", Some(1)),
        decide("c", None, None),
        branch("main", None),
        decide("d", None, None),
        decide("e", Some(1), None),
        // A branch that is not there yet grows from where work is.
        decide("f", None, Some("third")),
    ]);
    let parents = ["null", "1", "1", "2", "1", "5"];
    assert_eq!(story.column(List::Decisions, "parent"), parents);
    let branches = ["main", "main", "other", "main", "main", "third"];
    assert_eq!(story.column(List::Decisions, "branch"), branches);
    let decisions = &story.state.decisions;
    assert_eq!((decisions.count, decisions.branch.as_str()), (6, "third"));
    let heads = [("main", 5), ("other", 3), ("third", 6)].map(|(name, head)| (name.to_owned(), head));
    assert_eq!(decisions.heads.clone().into_iter().collect::<Vec<_>>(), heads);
}

#[test]
fn a_branch_before_the_first_decision_grows_from_nothing() {
    let story = Story::told(inputs![branch("x", None), decide("a", None, None)]);
    assert_eq!(story.column(List::Decisions, "parent"), ["null"]);
    assert_eq!(story.column(List::Decisions, "branch"), ["x"]);
}

#[rstest]
#[case(0)]
#[case(2)]
#[case(u64::MAX)]
fn a_decision_follows_from_one_that_was_made(#[case] parent: u64) {
    let story = Story::told(inputs![decide("a", None, None)]);
    let unknown = Refusal::Unknown { what: "decision", id: parent.to_string() };
    assert_eq!(story.refused(decide("b", Some(parent), None)), unknown);
    assert_eq!(story.refused(branch("x", Some(parent))), unknown);
}

#[test]
fn only_so_many_branches_and_alternatives() {
    let mut story = Story::told((0..limits::ENTRIES).map(|n| decide("a", None, Some(&format!("b{n}")))));
    let refusal = Refusal::TooMany { what: "branches", limit: limits::ENTRIES };
    assert_eq!(story.refused(decide("a", None, Some("one more"))), refusal);
    assert_eq!(story.refused(branch("one more", None)), refusal);
    let with = |count: usize| {
        let Command::Decide { question, choice, .. } = decide("x", None, None) else { unreachable!() };
        let alternatives = vec!["y".into(); count];
        Command::Decide { question, choice, reason: None, alternatives, parent: None, branch: None }
    };
    story.ok(with(limits::ENTRIES));
    let refusal = Refusal::TooMany { what: "alternatives", limit: limits::ENTRIES };
    assert_eq!(story.refused(with(limits::ENTRIES + 1)), refusal);
}

#[test]
fn a_breakpoint_waits_for_somebody() {
    let reach = |name: &str| Command::ReachBreakpoint { name: name.to_owned(), details: None };
    let go_on = || Command::ContinueBreakpoint { details: None };
    let mut story = Story::new();
    assert_eq!(story.refused(go_on()).code(), "already");
    assert_eq!(kinds(&story.ok(reach("design"))), ["breakpoint_reached", "checkpoint_created"]);
    assert_eq!(story.state.breakpoint.as_ref().unwrap().name, "design");
    let refusal = story.refused(reach("again"));
    assert_eq!(refusal.to_string(), "the session waits at breakpoint design already");
    story.ok(pause());
    let continued = BreakpointContinued { name: "design".to_owned(), details: None };
    assert_eq!(story.ok(go_on()), [continued.into()]);
    assert_eq!(story.state.breakpoint, None);
}

#[test]
fn agents_take_turns() {
    let switch = |to: &str| Command::SwitchAgent { to: to.to_owned() };
    let keep = |agent: &str, active, state| {
        let agent = agent.to_owned();
        Command::SetAgentState { agent, active, state }
    };
    let mut story = Story::told(inputs![switch("coder"), keep("coder", true, json!({ "turn": 3 }))]);
    assert_eq!(kinds(&story.ok(switch("reviewer"))), ["agent_switched", "checkpoint_created"]);
    assert_eq!(story.state.agent.as_deref(), Some("reviewer"));
    let coder = &story.state.agents["coder"];
    assert_eq!((coder.active, &coder.state), (false, &json!({ "turn": 3 })), "what it keeps stays");
    assert!(story.state.agents["reviewer"].active);
    assert_eq!(story.refused(switch("reviewer")).code(), "already");
    let half = json!("x".repeat(limits::JSON / 2));
    story.ok(keep("coder", false, half.clone()));
    let refusal = Refusal::TooMany { what: "bytes of agent states", limit: limits::JSON };
    assert_eq!(story.refused(keep("reviewer", true, half.clone())), refusal);
    story.ok(keep("coder", false, half));
}

#[test]
fn the_cache_is_bounded_as_a_whole() {
    let set = |key: &str, value| Command::SetCache { key: key.to_owned(), value };
    let drop = |key: &str| Command::RemoveCache { key: key.to_owned() };
    let half = json!("x".repeat(limits::JSON / 2));
    let mut story = Story::told(inputs![set("a", half.clone())]);
    let full = Refusal::TooMany { what: "bytes in the cache", limit: limits::JSON };
    assert_eq!(story.refused(set("b", half.clone())), full);
    story.ok(set("a", json!([1])));
    story.ok(set("b", half));
    assert_eq!(story.refused(drop("c")), Refusal::Unknown { what: "cache entry", id: "c".to_owned() });
    story.ok(drop("b"));
    assert_eq!(story.state.cache.clone().into_iter().collect::<Vec<_>>(), [("a".to_owned(), json!([1]))]);

    let mut story = Story::told((0..limits::ENTRIES).map(|n| set(&n.to_string(), json!(n))));
    let full = Refusal::TooMany { what: "cache entries", limit: limits::ENTRIES };
    assert_eq!(story.refused(set("one more", json!(1))), full);
    story.ok(set("0", json!("changed")));
    // Keys fill it too, the one that comes as much as those that are there.
    let long = |n: usize| format!("{n:03}{}", "🛒".repeat(limits::NAME - 3));
    let mut story = Story::new();
    let fit = limits::JSON / (long(0).len() + 1);
    for n in 0..fit {
        story.ok(set(&long(n), json!(1)));
    }
    assert_eq!(story.refused(set(&long(fit), json!(1))).code(), "too_many");
}

#[test]
fn metrics_and_outputs_are_bounded_and_replaced() {
    let metric = |name: &str, value| Command::SetMetric { name: name.to_owned(), value };
    let output = |name: &str, text: &str| Command::RecordOutput {
        name: name.to_owned(),
        kind: OutputKind::Document,
        content: text.into(),
    };
    let mut story = Story::new();
    for n in 0..limits::ENTRIES {
        story.ok(metric(&n.to_string(), Metric::Number(0.5)));
        story.ok(output(&n.to_string(), "first"));
    }
    story.ok(metric("7", Metric::Flag(true)));
    story.ok(output("7", "second one"));
    assert_eq!(story.state.metrics["7"], Metric::Flag(true));
    assert_eq!(story.state.outputs["7"].bytes, 10);
    assert_eq!(story.list(List::Outputs).len(), limits::ENTRIES);
    let full = |what| Refusal::TooMany { what, limit: limits::ENTRIES };
    assert_eq!(story.refused(metric("one more", Metric::Flag(true))), full("metrics"));
    assert_eq!(story.refused(output("one more", "")), full("outputs"));
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refusal = story.refused(metric("7", Metric::Number(odd)));
        assert_eq!(refusal.to_string(), "bad metric: it is no finite number");
    }
}

#[test]
fn the_same_error_in_a_row_is_counted_by_its_fingerprint() {
    let mut story = Story::told(inputs![
        phase("green"),
        Command::StartIteration,
        error("panicked at src/a.rs:12:5: index 7 out of bounds"),
        error("panicked at src/a.rs:99:1: index 8 out of bounds"),
    ]);
    assert_eq!((story.state.errors.count, story.state.errors.in_a_row), (2, 2));
    story.ok(error("no such file: b.toml"));
    assert_eq!((story.state.errors.count, story.state.errors.in_a_row), (3, 1));
    story.ok(error("panicked at src/a.rs:12:5: index 7 out of bounds"));
    assert_eq!(story.state.errors.in_a_row, 1, "in a row, not in all");
    let fingerprints = story.column(List::Errors, "fingerprint");
    assert_eq!(fingerprints[0], fingerprints[1]);
    assert_eq!(fingerprints[0], fingerprints[3]);
    assert_ne!(fingerprints[0], fingerprints[2]);
    assert_eq!(story.column(List::Errors, "phase"), ["green"; 4]);
    assert_eq!(story.column(List::Errors, "iteration"), ["1"; 4]);
}

#[test]
fn a_breaker_reset_forgets_the_row_of_errors() {
    let mut story = Story::told(inputs![error("a"), error("a"), attach(1)]).go_to(Status::Halted);
    assert_eq!(story.refused(resume()), Refusal::BreakerOpen);
    story.ok(Command::Resume { reset_breaker: true, details: None });
    assert_eq!((story.state.errors.count, story.state.errors.in_a_row), (2, 0));
    story.ok(error("a"));
    assert_eq!(story.state.errors.in_a_row, 1);
    // Without a breaker there is nothing to reset.
    let mut story = Story::told(inputs![error("a"), error("a"), pause()]);
    let resumed = SessionResumed { breaker_reset: false, details: None };
    assert_eq!(story.ok(Command::Resume { reset_breaker: true, details: None }), [resumed.into()]);
    assert_eq!(story.state.errors.in_a_row, 2);
}

#[test]
fn the_rest_is_counted_and_kept() {
    let file = |change| Fact::FileChanged { path: "a".to_owned(), change, call: None };
    let memory = |usage| Fact::MemoryUsed { usage, source: None, query: "q".into(), result: None };
    let story = Story::told(inputs![
        Fact::TopicSet { topic: "t".to_owned() },
        Command::SetIntent { intent: "i".into() },
        Command::SetPosition { file: Some("a".to_owned()), line: Some(3) },
        file(Change::Created),
        file(Change::Modified),
        file(Change::Modified),
        file(Change::Deleted),
        memory(MemoryUse::Query),
        memory(MemoryUse::Lookup),
        memory(MemoryUse::Lookup),
        Command::ReachMilestone { name: "m".to_owned(), details: None },
        Command::RecordArtifact { path: "a".to_owned(), artifact_type: Change::Created, phase: None },
    ]);
    let state = &story.state;
    assert_eq!((state.topic.as_deref(), state.intent.as_deref()), (Some("t"), Some("i")));
    assert_eq!(state.position.as_ref().unwrap().line, Some(3));
    let counts = state.counts;
    assert_eq!((counts.files_created, counts.files_modified, counts.files_deleted), (1, 2, 1));
    assert_eq!((counts.memory_queries, counts.memory_lookups), (1, 2));
    assert_eq!((counts.milestones, counts.artifacts, counts.checkpoints), (1, 1, 1));
    assert_eq!(state.milestone.as_deref(), Some("m"));
    assert_eq!(state.last_action.as_deref(), Some("created a"));
}
