//! Runs whose driver dies, and runs without a terminal.

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::model::Turn;
use serde_json::Value;

use super::Real;
use super::waits;
use crate::lab::PATIENCE;
use crate::lab::signal;
use crate::lab::until;

#[rstest]
fn segno_is_killed_and_the_agent_too(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some(real) = Real::with(agent, [waits(), "never said".into()]) else { return };
    let live = real.start(&[]);
    real.wait_file("begun");
    until("the call is recorded", || (!real.lab.tools().is_empty()).then_some(()));
    let pid = u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    live.signal(Signal::KILL);
    live.finish();
    signal(pid, Signal::KILL);
    // Any command finds out.
    until("the session is interrupted", || (real.lab.state()["status"] == "interrupted").then_some(()));
    let attach = real.lab.run(&["attach", "last"]);
    assert_ne!(attach.code, Some(0), "there is nothing to follow");
    real.recorded("SIGKILL of segno and of the agent", "interrupted", "interrupted");
    real.ledger(&["in_doubt"]);
}

/// Nothing is lost and nothing is doubled when an agent outlives its driver.
#[rstest]
fn segno_is_killed_and_the_agent_is_adopted(
    #[values("claude", "codex", "gemini", "opencode")] agent: &'static str,
) {
    let turns = [Turn::sh("echo before"), waits(), Turn::sh("echo after"), "the end".into()];
    let Some(real) = Real::with(agent, turns) else { return };
    let live = real.start(&[]);
    real.wait_file("begun");
    until("both calls are recorded", || (real.lab.tools().len() == 2).then_some(()));
    live.signal(Signal::KILL);
    live.finish();
    until("the session is interrupted", || (real.lab.state()["status"] == "interrupted").then_some(()));
    let refused = real.lab.run(&["run", "--agent", agent, "--prompt", "x", "--session", "last"]);
    assert_ne!(refused.code, Some(0), "its agent lives");
    let attached = real.lab.start(&["attach", "last", "--json"], None);
    until("it is driven again", || (!real.lab.json(&["show", "last"])["driver"].is_null()).then_some(()));
    std::fs::write(real.file("go"), "").unwrap();
    let said = attached.finish();
    real.describe(&said);
    let result = real.ended("SIGKILL of segno, then attach", &said, "completed", "completed");
    assert_eq!(result["text"], "the end");
    real.ledger(&["completed"; 3]);
    let texts = real.lab.journal(Some("said"));
    let said = texts.iter().filter(|event| event["body"]["text"] == "the end").count();
    assert_eq!(said, 1, "{texts:#?}");
    assert_eq!(real.lab.journal(Some("run_started")).len(), 1);
    assert_eq!(real.lab.journal(Some("run_ended")).len(), 1);
}

#[rstest]
fn detached(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some(real) = Real::with(agent, [waits(), "the end".into()]) else { return };
    let said = real.run(&["--detach"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let told: Value = serde_json::from_slice(&said.stdout).unwrap();
    real.wait_file("begun");
    let session = told["session_id"].as_str().unwrap();
    let tail = real.lab.start(&["tail", "-f", "--json", "-n", "100000", session], None);
    until("the tail has begun", || (!tail.stdout().is_empty()).then_some(()));
    std::fs::write(real.file("go"), "").unwrap();
    let followed = tail.finish_within(PATIENCE);
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    let kinds: Vec<String> =
        followed.lines().iter().map(|event| event["kind"].as_str().unwrap_or("?").to_owned()).collect();
    assert!(kinds.iter().any(|kind| kind == "run_ended"), "{kinds:?}");
    // The driver may still ask the agent for its version.
    until("the driver is gone", || real.lab.processes().is_empty().then_some(()));
    real.recorded("--detach and tail -f", "completed", "completed");
    real.ledger(&["completed"]);
}
