//! A driver that is killed while it starts an agent: nothing runs that nobody knows.

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::scripted::Step;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Said;
use crate::lab::signal;
use crate::lab::until;

/// Starts a run whose driver dies at a moment of its start. The agent goes on until the file `go` is there.
fn dies(lab: &Lab, at: &str) -> Said {
    dies_with(lab, at, &[])
}

fn dies_with(lab: &Lab, at: &str, flags: &[&str]) -> Said {
    let (begun, go) = (lab.path("begun"), lab.path("go"));
    let steps = [
        Step::Print("before".to_owned()),
        Step::Write { path: begun, content: String::new() },
        Step::WaitFor { path: go, seconds: 60 },
        Step::Print("after".to_owned()),
    ];
    let agent = lab.scripted("agent", &steps);
    let mut args = vec!["run", "--json"];
    args.extend(flags);
    args.push("--");
    args.extend(agent.iter().map(String::as_str));
    let mut command = lab.segno(&args);
    command.env("SEGNO_RUN_DIE_AT", at);
    let said = lab.start_command(&mut command, None).finish();
    assert_eq!(said.signal, Some(9), "{} {}", said.text(), said.stderr);
    said
}

fn is_there(lab: &Lab, name: &str) -> bool {
    lab.home.beside(name).exists()
}

/// The agent goes on, any command finds it, and `attach` takes it over with all that it printed.
#[rstest]
fn the_agent_is_found_and_followed(#[values("spawned", "noted", "recorded")] at: &str) {
    let lab = Lab::new();
    dies(&lab, at);
    until("the agent works", || is_there(&lab, "begun").then_some(()));
    let state = lab.state();
    assert_eq!(state["status"], "interrupted", "{state}");
    let pid = state["run"]["pid"].as_u64().unwrap();
    let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(command.contains("agent.json"), "that is the agent: {command}");
    let reason = state["reason"].to_string();
    assert!(reason.contains(&format!("its agent (pid {pid}) lives on")), "{reason}");
    let refused = lab.run(&["run", "--session", "last", "--", "true"]);
    assert_ne!(refused.code, Some(0), "nobody starts another one beside it");
    let attached = lab.start(&["attach", "last", "--json"], None);
    until("it is adopted", || (!lab.journal(Some("run_adopted")).is_empty()).then_some(()));
    std::fs::write(lab.home.beside("go"), "").unwrap();
    let said = attached.finish();
    assert_eq!(said.result()["outcome"], "interrupted", "nobody saw its exit code: {}", said.text());
    let texts: Vec<_> = lab.journal(Some("said")).iter().map(|event| event["body"]["text"].clone()).collect();
    assert_eq!(texts, [json!("before"), json!("after")]);
    assert_eq!((lab.journal(Some("run_started")).len(), lab.journal(Some("run_ended")).len()), (1, 1));
    lab.assert_nothing_left();
}

/// Whoever follows the agent holds it to the limits that it was started with, from its start on.
#[test]
fn its_limits_outlive_its_driver() {
    let lab = Lab::new();
    dies_with(&lab, "recorded", &["--timeout", "1s"]);
    until("the agent works", || is_there(&lab, "begun").then_some(()));
    let said = lab.run(&["attach", "last", "--json"]);
    assert_eq!(said.result()["outcome"], "timed_out", "{} {}", said.text(), said.stderr);
    lab.assert_nothing_left();
}

/// The agent has ended meanwhile: its run is on record with what it printed.
#[rstest]
fn a_dead_agent_is_on_record(#[values("spawned", "noted", "recorded")] at: &str) {
    let lab = Lab::new();
    dies(&lab, at);
    until("the agent works", || is_there(&lab, "begun").then_some(()));
    if at != "recorded" {
        assert!(lab.processes().iter().any(|line| line.contains("agent.json")));
    }
    for line in lab.processes().iter().filter(|line| line.contains("agent.json")) {
        signal(line.split(' ').next().unwrap().parse().unwrap(), Signal::KILL);
    }
    lab.assert_no_process_left();
    let state = lab.state();
    assert_eq!(state["status"], "interrupted", "{state}");
    assert_eq!(state["run"]["outcome"], "interrupted", "{state}");
    assert_eq!(lab.journal(Some("said")).len(), 1);
    lab.assert_nothing_left();
}

/// The driver died before it started anything.
#[test]
fn nothing_was_started() {
    let lab = Lab::new();
    dies(&lab, "made");
    let state = lab.state();
    assert_eq!((&state["status"], &state["run"]), (&"interrupted".into(), &json!(null)), "{state}");
    assert!(!is_there(&lab, "begun"));
    lab.assert_nothing_left();
    assert_eq!(lab.run(&["run", "--", "true"]).code, Some(0), "the next one runs");
}

/// `kill` ends it like any other.
#[rstest]
fn the_agent_is_killed(#[values("spawned", "noted")] at: &str) {
    let lab = Lab::new();
    dies(&lab, at);
    until("the agent works", || is_there(&lab, "begun").then_some(()));
    let kill = lab.run(&["kill", "last"]);
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
    lab.assert_nothing_left();
    assert_eq!(lab.state()["run"]["outcome"], "interrupted");
}

/// A copy of the store knows an older run of the session as running. Whoever looks into the copy must not touch the
/// newer one, which only the store itself knows.
#[test]
fn a_copy_of_the_store_ends_nothing() {
    let lab = Lab::new();
    let waits = |number: u32| {
        let steps = [
            Step::Write { path: lab.path(&format!("begun{number}")), content: String::new() },
            Step::WaitFor { path: lab.path(&format!("go{number}")), seconds: 60 },
            Step::Print(format!("end {number}")),
        ];
        lab.scripted(&format!("agent{number}"), &steps)
    };
    let start = |number: u32, more: &[&str]| {
        let agent = waits(number);
        let mut args = vec!["run", "--json"];
        args.extend(more);
        args.push("--");
        args.extend(agent.iter().map(String::as_str));
        let live = lab.start(&args, None);
        until("the agent works", || is_there(&lab, &format!("begun{number}")).then_some(()));
        live
    };
    assert_eq!(lab.run(&["new", "work"]).code, Some(0));
    let first = start(1, &["--session", "last"]);
    let copy = lab.path("copy.db");
    let said = lab.run(&["backup", &copy]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    std::fs::write(lab.home.beside("go1"), "").unwrap();
    assert_eq!(first.finish().result()["outcome"], "completed");
    let mut second = start(2, &["--session", "last"]);
    let store = format!("sqlite:{copy}");
    let looked = lab.run(&["--store", &store, "ls", "--all"]);
    assert_eq!(looked.code, Some(0), "{}", looked.stderr);
    assert!(looked.stderr.contains("is a copy of"), "{}", looked.stderr);
    assert!(second.is_running());
    assert!(lab.processes().iter().any(|line| line.contains("agent2.json")), "the agent lives");
    std::fs::write(lab.home.beside("go2"), "").unwrap();
    assert_eq!(second.finish().result()["outcome"], "completed");
    lab.assert_nothing_left();
}
