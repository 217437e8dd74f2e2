//! A session goes to another machine: with its conversation, if somebody asked for that, else with its brief.

use std::os::unix::fs::PermissionsExt as _;

use rstest::rstest;
use segno_testkit::model::Turn;

use super::Real;
use super::waits;

/// What was said on the first machine.
const SAID: &str = "marzipan potato";

/// A session that was stopped, exported from one machine and imported on another.
fn moved(agent: &'static str, flags: &[&str]) -> Option<(Real, Real, crate::lab::Said)> {
    let first = [Turn::sh(&format!("echo {SAID}")), waits(), "never said".into()];
    let here = Real::with(agent, first)?;
    let there = Real::with(agent, ["the end".into()])?;
    let live = here.start(&[]);
    here.wait_file("begun");
    assert_eq!(here.lab.run(&["stop"]).code, Some(0));
    live.finish();
    let file = there.file("moved.json").display().to_string();
    let said = here.lab.run(&[&["export", "last", "-o", &file][..], flags].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let said = there.lab.run(&["import", &file]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    Some((here, there, said))
}

/// Whether the model of the second machine was told what was said on the first one by the agent, not by the brief.
fn was_told(there: &Real) -> bool {
    let last = there.asked().pop().unwrap();
    // The result of the call stands in no brief.
    last.conversation.contains(&format!("{SAID}\\n")) || last.conversation.contains(&format!("{SAID}\n"))
}

#[rstest]
#[case::claude("claude")]
#[case::codex("codex")]
#[case::gemini("gemini")]
fn a_conversation_goes_along(#[case] agent: &'static str) {
    let Some((here, there, imported)) = moved(agent, &["--with-conversation"]) else { return };
    let beside = there.file("moved.json.conversation");
    assert_eq!(std::fs::metadata(beside).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(imported.stderr.contains("is in "), "{}", imported.stderr);
    let before = here.lab.state();
    let said = there.lab.run(&["resume", "--json"]);
    there.describe(&said);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(there.lab.state()["run"]["native_id"], before["run"]["native_id"], "the same conversation");
    assert!(was_told(&there), "the model was not told what was said before");
    there.lab.assert_nothing_left();
}

#[rstest]
fn without_it_a_new_one_begins(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some((here, there, _)) = moved(agent, &[]) else { return };
    let said = there.lab.run(&["resume"]);
    there.describe(&said);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let native = here.lab.state()["run"]["native_id"].as_str().unwrap().to_owned();
    let words = format!("a new conversation: {native} of {agent} is not on this machine");
    assert!(said.stderr.contains(&words), "{}", said.stderr);
    assert_ne!(there.lab.state()["run"]["native_id"], native);
    assert!(there.asked()[0].conversation.contains("You are resuming work"));
}

/// opencode has no file of a conversation that could go along, and says so.
#[test]
fn a_database_stays_behind() {
    let Some(here) = Real::with("opencode", ["the end".into()]) else { return };
    here.run(&[]);
    let said = here.lab.run(&["export", "last", "-o", "moved.json", "--with-conversation"]);
    assert_eq!(said.code, Some(5), "{}", said.stderr);
    assert!(said.stderr.contains("opencode keeps its conversations in a database"), "{}", said.stderr);
    assert!(here.file("moved.json").exists() && !here.file("moved.json.conversation").exists());
}
