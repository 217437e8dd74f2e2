//! Coming back: killed in the middle of a call, and taken up again in the same conversation.

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::model::Turn;

use super::Real;
use super::waits;
use crate::lab::signal;
use crate::lab::until;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Killed {
    Agent,
    Driver,
    Both,
}

#[rstest]
#[case::claude("claude", Killed::Agent)]
#[case::claude("claude", Killed::Driver)]
#[case::claude("claude", Killed::Both)]
#[case::codex("codex", Killed::Agent)]
#[case::codex("codex", Killed::Driver)]
#[case::codex("codex", Killed::Both)]
#[case::gemini("gemini", Killed::Both)]
#[case::opencode("opencode", Killed::Both)]
fn taken_up_again(#[case] agent: &'static str, #[case] killed: Killed) {
    let turns =
        [Turn::sh("echo one >> done.txt"), waits(), Turn::sh("echo two >> done.txt"), "the end".into()];
    let Some(real) = Real::with(agent, turns) else { return };
    let live = real.start(&[]);
    real.wait_file("begun");
    until("both calls are recorded", || (real.lab.tools().len() == 2).then_some(()));
    let pid = u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    if killed != Killed::Agent {
        live.signal(Signal::KILL);
    }
    if killed != Killed::Driver {
        signal(pid, Signal::KILL);
    }
    live.finish();
    until("the session is interrupted", || (real.lab.state()["status"] == "interrupted").then_some(()));
    let brief = real.lab.run(&["resume", "--show-brief"]);
    let brief = String::from_utf8(brief.stdout).unwrap();
    assert!(brief.contains("IN DOUBT") && brief.contains("begun"), "{brief}");
    let before = real.lab.state();
    let said = real.lab.run(&["resume", "--json"]);
    real.describe(&said);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let after = real.lab.state();
    assert_eq!(after["status"], "completed");
    assert_eq!(after["run"]["native_id"], before["run"]["native_id"], "the same conversation");
    // The model was told, in words that it can act on.
    let told = |words: &str| real.model.requests().iter().any(|request| request.conversation.contains(words));
    assert!(told("You are resuming work"), "the brief did not reach the model");
    // Its call was cut off in each case: by the kill, or by the resume.
    assert!(told("IN DOUBT"), "{:#?}", real.lab.tools());
    // What was done before was not done again.
    let done = std::fs::read_to_string(real.file("done.txt")).unwrap();
    assert_eq!(done.matches("one").count(), 1, "{done}");
    real.lab.assert_nothing_left();
}

/// Of two at once exactly one works.
#[test]
fn taken_up_by_two_at_once() {
    let Some(real) = Real::with("claude", [waits(), "the end".into()]) else { return };
    let live = real.start(&[]);
    real.wait_file("begun");
    let pid = u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    live.signal(Signal::KILL);
    live.finish();
    signal(pid, Signal::KILL);
    until("the session is interrupted", || (real.lab.state()["status"] == "interrupted").then_some(()));
    let both = [0, 1].map(|_| real.lab.start(&["resume", "--json"], None)).map(|live| live.finish().code);
    let worked = both.iter().filter(|code| **code == Some(0)).count();
    assert_eq!(worked, 1, "{both:?}");
    assert_eq!(real.lab.journal(Some("run_started")).len(), 2, "the first one, and one more");
}
