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

/// What an agent reports of its windows.
fn report(body: serde_json::Value) -> Fact {
    Fact::Reported { what: LimitSeen::REPORT.to_owned(), body }
}

#[test]
fn windows_are_known_while_a_run_goes_on() {
    let mut story = Story::told(inputs![attach(1), start_run("r1")]);
    story.ok(report(json!({
        "status": "warning", "window": "five_hour", "utilization": 0.93, "resets_at": 1_794_815_184,
        "windows": [
            { "name": "five_hour", "utilization": 0.93, "resets_at": 1_794_815_184 },
            { "name": "seven_day", "utilization": 0.4 },
        ],
    })));
    let mark = |story: &Story, key: &str| {
        let mark = story.state.limits[key].clone();
        (mark.status, mark.utilization, mark.resets_at.map(|at| at.as_micros() / 1_000_000))
    };
    let resets = Some(1_794_815_184);
    assert_eq!(mark(&story, "claude:five_hour"), (Some("warning".to_owned()), Some(0.93), resets));
    assert_eq!(mark(&story, "claude:seven_day"), (None, Some(0.4), None));
    // What is said again without a number leaves the number.
    story.ok(report(json!({ "status": "rejected", "class": "plan", "window": "five_hour" })));
    assert_eq!(mark(&story, "claude:five_hour"), (Some("rejected".to_owned()), Some(0.93), resets));
    // Money is no window, and what cannot be read is no news.
    story.ok(report(json!({ "status": "rejected", "class": "pay", "window": "credits" })));
    story.ok(report(json!({ "status": 3, "window": "odd" })));
    story.ok(report(json!("odd")));
    assert_eq!(story.state.limits.len(), 2);
}

#[test]
fn the_limit_that_a_run_ended_for_stays_with_it() {
    let limit = LimitSeen {
        class: Some("plan".to_owned()),
        status: Some("rejected".to_owned()),
        window: Some("weekly".to_owned()),
        resets_at: Some(1_795_207_984),
        ..LimitSeen::default()
    };
    let mut story = Story::told(inputs![attach(1), start_run("r1")]);
    let (run, outcome) = ("r1".to_owned(), "limit".to_owned());
    story.ok(Command::EndRun(Box::new(RunEnded {
        run,
        outcome,
        limit: Some(Box::new(limit)),
        ..RunEnded::default()
    })));
    let told = story.state.run.as_ref().unwrap().limit.as_ref().unwrap();
    assert_eq!((told.agent.as_deref(), told.resets_at), (Some("claude"), Some(1_795_207_984)));
    assert_eq!(told.limit_class(), Some(crate::looping::LimitClass::Plan));
    let mark = &story.state.limits["claude:weekly"];
    assert_eq!(mark.status.as_deref(), Some("rejected"));
    story.ok(start_run("r2"));
    assert_eq!(story.state.run.as_ref().unwrap().limit, None);
}

#[test]
fn only_so_many_windows_are_remembered() {
    let mut story = Story::told(inputs![attach(1), start_run("r1")]);
    for number in 0..100 {
        story.ok(report(json!({ "status": "allowed", "window": format!("w{number:03}") })));
    }
    assert_eq!(story.state.limits.len(), crate::limits::WINDOWS);
    assert!(
        story.state.limits.contains_key("claude:w099") && !story.state.limits.contains_key("claude:w000")
    );
}
