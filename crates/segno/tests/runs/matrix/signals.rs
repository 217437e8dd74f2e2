//! Ends that come from outside, in the middle of a tool call.

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::model::Turn;

use super::Real;
use super::waits;
use crate::lab::Live;
use crate::lab::signal;
use crate::lab::until;

/// A run that is in the middle of a call.
fn in_a_call(agent: &'static str, more: &[&str]) -> Option<(Real, Live)> {
    let real = Real::with(agent, [waits(), "never said".into()])?;
    let live = real.start(more);
    real.wait_file("begun");
    // The call is in the record before anything happens to it.
    until("the call is recorded", || (!real.lab.tools().is_empty()).then_some(()));
    Some((real, live))
}

/// The one call of [`in_a_call`]: Claude Code and Codex say that it was ended, unless they are killed.
fn one_call(real: &Real, told: bool) {
    let calls = real.lab.tools();
    assert_eq!(calls.len(), 1, "{calls:#?}");
    let state = calls[0]["state"].as_str().unwrap();
    match told {
        true => assert!(["failed", "denied"].contains(&state), "{calls:#?}"),
        false => assert_eq!(state, "in_doubt", "{calls:#?}"),
    }
    assert!(!real.file("released.txt").exists(), "the command did not go on");
}

#[rstest]
fn ctrl_c(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some((real, live)) = in_a_call(agent, &[]) else { return };
    live.signal(Signal::INT);
    real.settled("SIGINT to segno", live, "stopped", "paused");
    one_call(&real, matches!(agent, "claude" | "codex"));
    assert_eq!(real.lab.state()["reason"]["what"], "user interrupt", "{}", real.lab.state()["reason"]);
}

#[rstest]
fn ctrl_c_twice(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some((real, live)) = in_a_call(agent, &["--grace", "50000"]) else { return };
    // An agent that does not listen is not waited for: with this grace the test would not end.
    let agent_pid = u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    signal(agent_pid, Signal::STOP);
    live.signal(Signal::INT);
    until("the first is obeyed", || {
        let reports = real.lab.journal(Some("reported"));
        reports.iter().any(|event| event["body"]["what"] == "signal").then_some(())
    });
    live.signal(Signal::INT);
    real.settled("SIGINT twice", live, "stopped", "paused");
    one_call(&real, false);
}

#[rstest]
fn sigterm(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some((real, live)) = in_a_call(agent, &[]) else { return };
    live.signal(Signal::TERM);
    real.settled("SIGTERM to segno", live, "stopped", "paused");
    one_call(&real, matches!(agent, "claude" | "codex"));
}

#[rstest]
fn the_agent_is_killed(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some((real, live)) = in_a_call(agent, &[]) else { return };
    signal(u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap(), Signal::KILL);
    let result = real.settled("SIGKILL of the agent", live, "interrupted", "interrupted");
    assert_eq!(result["agent_exit_signal"], 9);
    assert!(result["native_id"].is_string(), "known although the agent never finished");
    one_call(&real, false);
}

#[rstest]
fn stopped_from_elsewhere(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some((real, live)) = in_a_call(agent, &[]) else { return };
    let stop = real.lab.run(&["stop", "last"]);
    assert_eq!(stop.code, Some(0), "{}", stop.stderr);
    real.settled("segno stop", live, "stopped", "paused");
    one_call(&real, matches!(agent, "claude" | "codex"));
    let again = real.lab.run(&["stop", "last"]);
    assert_eq!(again.code, Some(5), "nothing runs any more: {}", again.stderr);
}

#[rstest]
fn killed_from_elsewhere(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some((real, live)) = in_a_call(agent, &[]) else { return };
    let kill = real.lab.run(&["kill", "last"]);
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
    real.settled("segno kill", live, "stopped", "paused");
    one_call(&real, false);
}

#[rstest]
fn the_wall_clock(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some(real) = Real::with(agent, [waits(), Turn::text("never said")]) else { return };
    let live = real.start(&["--timeout", "6s"]);
    real.settled("--timeout", live, "timed_out", "paused");
}
