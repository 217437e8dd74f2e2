//! Runs: one at a time, named when the agent says who it is, and nothing left open at their end.

use serde_json::json;

use crate::command::Command;

use crate::event::*;
use crate::fact::Fact;
use crate::refusal::Refusal;
use crate::story::*;

#[test]
fn one_run_at_a_time() {
    let mut story = Story::told(inputs![attach(1), start_run("r1")]);
    assert_eq!(story.state.agent.as_deref(), Some("claude"));
    assert!(matches!(story.refused(start_run("r2")), Refusal::Already(_)));
    story.ok(end_run("r1", "completed"));
    assert_eq!(story.state.run.as_ref().unwrap().outcome.as_deref(), Some("completed"));
    story.ok(start_run("r2"));
    assert_eq!(story.state.counts.runs, 2);
    // The end of an older run says nothing about the present one.
    story.ok(end_run("r1", "failed"));
    assert!(story.state.run.as_ref().unwrap().is_running());
}

#[test]
fn calls_without_an_end_are_in_doubt() {
    let mut story = Story::told(inputs![
        attach(1),
        start_run("r1"),
        start("c1", Source::Hook),
        start("c2", Source::Hook)
    ]);
    story.ok(end("c1", CallEnd::Completed));
    let events = story.ok(end_run("r1", "interrupted"));
    assert_eq!(kinds(&events), ["tool_ended", "run_ended"]);
    assert_eq!(story.state.calls.in_doubt.keys().collect::<Vec<_>>(), ["c2"]);
}

#[test]
fn a_name_that_says_less_takes_nothing_away() {
    let named = |model: Option<&str>| {
        let model = model.map(str::to_owned);
        Fact::RunNamed(RunNamed { run: "r1".into(), native_id: "n".into(), model, version: None })
    };
    let mut story = Story::told(inputs![attach(1), start_run("r1"), named(None)]);
    assert!(story.state.run.as_ref().unwrap().is_named("n", None, None));
    assert!(!story.state.run.as_ref().unwrap().is_named("n", Some("opus"), None));
    story.ok(named(Some("opus")));
    story.ok(named(None));
    assert!(story.state.run.as_ref().unwrap().is_named("n", None, None));
    let run = story.state.run.as_ref().unwrap();
    assert_eq!((run.native_id.as_deref(), run.model.as_deref()), (Some("n"), Some("opus")));
}

#[test]
fn another_agent_is_a_switch() {
    let mut story = Story::told(inputs![attach(1), Command::SwitchAgent { to: "codex".to_owned() }]);
    let events = story.ok(start_run("r1"));
    assert_eq!(kinds(&events), ["run_started", "agent_switched"]);
    assert_eq!(story.state.agent.as_deref(), Some("claude"));
}

#[test]
fn only_a_run_without_an_end_is_adopted() {
    let adopt = || Command::AdoptRun { run: "r1".to_owned(), epoch: 5 };
    let mut story = Story::told(inputs![attach(1), start_run("r1")]);
    story.ok(adopt());
    assert_eq!(story.state.run.as_ref().unwrap().adopted, Some(5));
    story.ok(end_run("r1", "completed"));
    assert!(matches!(story.refused(adopt()), Refusal::Unknown { .. }));
}

#[test]
fn reports_too_deep_to_read_back_are_kept_as_text() {
    let mut deep = json!(1);
    for _ in 0..150 {
        deep = json!([deep]);
    }
    let mut story = Story::new();
    let events = story.ok(Fact::Reported { what: "unknown".into(), body: deep });
    let Event::Reported(reported) = &events[0] else { panic!("{events:?}") };
    assert!(reported.body["text"].as_str().unwrap().starts_with("[[["));
}
