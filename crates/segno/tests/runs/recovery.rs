//! Coming back with agents that die on purpose: by itself, by two at once, past a driver that slept.
//!
//! `SEGNO_RESUMES` says how often two take a session up at once, 5 if it does not.

use std::path::Path;

use rustix::process::Signal;
use segno_testkit::lines::claude;
use segno_testkit::scripted::SignalName;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Live;
use crate::lab::Said;
use crate::lab::program;
use crate::lab::skip;
use crate::lab::until;
use crate::lab::variable;

/// What every agent here begins with: it reads its prompt and says who it is.
fn begin() -> Vec<Step> {
    vec![Step::Stdin(0), Step::Json(claude::init("${session}"))]
}

/// An agent that dies in the middle of a call.
fn dies() -> Vec<Step> {
    let call = claude::tool_use("${session}", "toolu_1", "Bash", json!({ "command": "make" }));
    begin().into_iter().chain([Step::Json(call), Step::Kill(SignalName::Kill)]).collect()
}

/// How an agent ends well.
fn ends() -> Vec<Step> {
    vec![Step::Json(claude::text("${session}", "done")), Step::Json(claude::result("${session}", "done"))]
}

/// An agent that dies unless it is told that it is resuming.
fn comes_back() -> Vec<Step> {
    let resuming = Step::IfStdin {
        matches: "You are resuming".to_owned(),
        steps: ends().into_iter().chain([Step::Exit(0)]).collect(),
    };
    let mut steps = begin();
    steps.push(resuming);
    steps.extend(dies().into_iter().skip(2));
    steps
}

fn lab_with(steps: &[Step], config: &str) -> Lab {
    let mut lab = Lab::new();
    lab.stand_in("claude", steps);
    lab.config(config);
    lab
}

const RUN: [&str; 5] = ["run", "--no-hooks", "--prompt", "go", "--json"];

fn run(lab: &Lab, more: &[&str]) -> Said {
    lab.run(&RUN.iter().chain(more).copied().collect::<Vec<_>>())
}

fn start(lab: &Lab, more: &[&str]) -> Live {
    lab.start(&RUN.iter().chain(more).copied().collect::<Vec<_>>(), None)
}

fn kinds(lab: &Lab, kind: &str) -> usize {
    lab.journal(Some(kind)).len()
}

#[test]
fn an_agent_that_dies_is_taken_up_by_itself_if_somebody_said_so() {
    let lab = lab_with(&comes_back(), "[resume]\ndelay_seconds = 0");
    let said = run(&lab, &[]);
    assert_eq!(said.result()["outcome"], "interrupted", "not without being told");
    assert_eq!((kinds(&lab, "run_started"), kinds(&lab, "resume_attempted")), (1, 0));
    let said = run(&lab, &["--auto-resume"]);
    assert_eq!((said.code, &said.result()["outcome"]), (Some(0), &json!("completed")), "{}", said.stderr);
    let state = lab.state();
    assert_eq!(
        (&state["status"], &state["recovery"]["recovery_type"]),
        (&json!("completed"), &json!("live"))
    );
    let attempts = lab.journal(Some("resume_attempted"));
    assert_eq!(attempts.len(), 1);
    assert_eq!((&attempts[0]["body"]["attempt"], &attempts[0]["body"]["of"]), (&json!(1), &json!(3)));
    let chosen = lab.journal(Some("recovery_chosen"));
    assert_eq!(chosen[0]["body"]["automatic"], true);
    assert_eq!(kinds(&lab, "run_started"), 2);
    // Every event is a line, once, also over both runs.
    let seqs: Vec<u64> = said.lines().iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let runs = lab.json(&["show", "last", "--runs"])["items"].take();
    assert_eq!(runs[0]["native_id"], runs[1]["native_id"], "the same conversation");
    lab.assert_nothing_left();
}

#[test]
fn attempts_come_to_an_end_and_the_session_has_failed() {
    let lab = lab_with(&dies(), "[resume]\nauto = true\ndelay_seconds = 0");
    let said = run(&lab, &["--auto-resume=2"]);
    assert_eq!(said.code, Some(21), "{}", said.stderr);
    assert_eq!(said.result()["session_status"], "failed");
    assert_eq!((kinds(&lab, "run_started"), kinds(&lab, "resume_attempted")), (3, 2));
    let state = lab.state();
    assert_eq!(state["status"], "failed");
    let why = state["reason"]["details"].as_str().unwrap();
    assert!(why.starts_with("2 attempts to restart it used up"), "{why}");
    let refused = lab.run(&["resume", "last"]);
    assert_eq!(refused.code, Some(5));
    assert!(refused.stderr.contains("Session failed and cannot be resumed"), "{}", refused.stderr);
    // What the configuration says, a flag can take back.
    run(&lab, &["--auto-resume=0"]);
    assert_eq!(kinds(&lab, "run_started"), 1);
    // And a plain command is nothing that can be told where it was.
    let said = lab.run(&["run", "--json", "--", "sh", "-c", "kill -9 $$"]);
    assert!(said.stderr.contains("a plain command"), "{}", said.stderr);
    assert_eq!(kinds(&lab, "run_started"), 1);
}

#[test]
fn the_wait_before_an_attempt_can_be_cut_short() {
    let lab = lab_with(&comes_back(), "[resume]\nauto = true\ndelay_seconds = 600");
    let live = start(&lab, &[]);
    until("it waits", || live.stderr().contains("attempt 1 of 3").then_some(()));
    live.signal(Signal::INT);
    let said = live.finish();
    assert_eq!(said.code, Some(21), "{}", said.stderr);
    assert_eq!((lab.state()["status"].as_str(), kinds(&lab, "run_started")), (Some("interrupted"), 1));
    // Or somebody decides otherwise from elsewhere.
    let live = start(&lab, &[]);
    until("it waits", || live.stderr().contains("attempt 1 of 3").then_some(()));
    assert_eq!(lab.run(&["abort", "last"]).code, Some(0));
    let said = live.finish();
    assert!(said.stderr.contains("the session was stopped meanwhile"), "{}", said.stderr);
    assert_eq!((lab.state()["status"].as_str(), kinds(&lab, "resume_attempted")), (Some("aborted"), 0));
}

/// The arguments that the newest run was started with.
fn last_command(lab: &Lab) -> String {
    let mut runs = lab.json(&["show", "last", "--runs"]);
    let last = runs["items"].as_array_mut().unwrap().pop().unwrap();
    last["command"].to_string()
}

#[test]
fn arguments_given_by_hand_are_not_applied_again_in_silence() {
    const BYPASS: &str = "--dangerously-skip-permissions";
    let mut lab = lab_with(&dies(), "");
    run(&lab, &["--arg", BYPASS]);
    assert!(last_command(&lab).contains(BYPASS));
    let said = lab.run(&["resume", "--json"]);
    assert!(
        said.stderr.contains("not applied again") && said.stderr.contains("--same-args"),
        "{}",
        said.stderr
    );
    assert!(!last_command(&lab).contains(BYPASS));
    run(&lab, &["--arg", BYPASS]);
    let said = lab.run(&["resume", "--json", "--same-args"]);
    assert!(!said.stderr.contains("not applied again"), "{}", said.stderr);
    assert!(last_command(&lab).contains(BYPASS));
    lab.stand_in("claude", &comes_back());
    let said = lab.run(&["resume", "--json", "--arg", "--verbose"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(!last_command(&lab).contains(BYPASS));
}

#[test]
fn of_two_at_once_exactly_one_works() {
    let rounds = variable("SEGNO_RESUMES").and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    for round in 0..rounds {
        let mut lab = lab_with(&dies(), "");
        run(&lab, &[]);
        let (ready, go) = (lab.path("ready"), lab.path("go"));
        let mut steps = begin();
        steps.push(Step::Append { path: ready.clone(), content: "x".to_owned() });
        steps.push(Step::WaitFor { path: go.clone(), seconds: 60 });
        steps.extend(ends());
        lab.stand_in("claude", &steps);
        let mut both = [0, 1].map(|_| Some(lab.start(&["resume", "--json"], None)));
        // The one that may not work is told so while the other works.
        let loser =
            until("one is refused", || both.iter_mut().position(|live| !live.as_mut().unwrap().is_running()));
        until("the other works", || Path::new(&ready).exists().then_some(()));
        let refused = both[loser].take().unwrap().finish();
        assert_ne!(refused.code, Some(0), "round {round}: {}", refused.stderr);
        std::fs::write(&go, "").unwrap();
        let worked = both[1 - loser].take().unwrap().finish();
        assert_eq!(worked.code, Some(0), "round {round}: {} / {}", worked.stderr, refused.stderr);
        assert_eq!(std::fs::read_to_string(&ready).unwrap(), "x", "one agent, not two");
        assert_eq!(kinds(&lab, "run_started"), 2, "round {round}");
        lab.assert_nothing_left();
    }
}

/// The lease of the only session, taken apart by hand.
fn lease(lab: &Lab) -> rusqlite::Connection {
    rusqlite::Connection::open(lab.home.path().join(".local/share/segno/segno.db")).unwrap()
}

/// Makes the holder of the lease one that is elsewhere, or here, and was silent for so long.
fn silent_for(lab: &Lab, elsewhere: bool, seconds: i64) {
    let namespace = if elsewhere { "json_set(holder, '$.pid_namespace', 'pid:[1]')" } else { "holder" };
    let sql = format!(
        "UPDATE leases SET heartbeat_us = heartbeat_us - ?1,
         holder = json_set({namespace}, '$.steady_us', json_extract(holder, '$.steady_us') - ?1)"
    );
    assert_eq!(lease(lab).execute(&sql, [seconds * 1_000_000]).unwrap(), 1);
}

/// An agent that asks its hook whether it may run a call when it is let go.
fn asks(lab: &Lab) -> Vec<Step> {
    let mut payload = serde_json::Map::new();
    payload.insert("tool_name".into(), json!("Bash"));
    payload.insert("tool_use_id".into(), json!("toolu_9"));
    payload.insert("tool_input".into(), json!({ "command": "rm -rf build" }));
    let write = |name: &str| vec![Step::Write { path: lab.path(name), content: String::new() }];
    let mut steps = begin();
    steps.extend(write("ready"));
    steps.push(Step::WaitFor { path: lab.path("go"), seconds: 60 });
    steps.push(Step::Hook {
        event: "PreToolUse".to_owned(),
        payload,
        command: None,
        allowed: write("allowed"),
        denied: write("denied"),
    });
    steps.push(Step::Json(claude::text("${session}", "said too late")));
    steps.push(Step::WaitFor { path: lab.path("end"), seconds: 60 });
    steps.extend(ends());
    steps
}

#[test]
fn a_driver_that_slept_through_its_replacement_has_no_say() {
    let mut lab = Lab::new();
    let steps = asks(&lab);
    lab.stand_in("claude", &steps);
    let there = |name: &str| Path::new(&lab.path(name)).exists();
    let live = lab.start(&["run", "--prompt", "go", "--json"], None);
    until("the agent is ready", || there("ready").then_some(()));
    lab.running();
    live.signal(Signal::STOP);
    // A driver here that only sleeps is not taken for dead, however long it was silent.
    silent_for(&lab, false, 100_000);
    assert_eq!(lab.state()["status"], "active", "its process is there");
    // Somebody who cannot see its process is told that it is silent, after a minute, and not before.
    silent_for(&lab, true, 30 - 100_000);
    assert!(!lab.run(&["show", "last"]).text().contains("silent"), "thirty seconds are nothing");
    silent_for(&lab, true, 40);
    assert!(lab.run(&["show", "last"]).text().contains("silent"));
    let shown = lab.json(&["show", "last"]);
    assert_eq!(shown["state"]["status"], "active", "it may live, so looking changes nothing: {shown}");
    let taken = shown["state"]["seq"].as_u64().unwrap();
    // Somebody elsewhere drives it now.
    let sql = "UPDATE leases SET epoch = epoch + 1, holder = json_set(holder, '$.what', 'another')";
    assert_eq!(lease(&lab).execute(sql, []).unwrap(), 1);
    std::fs::write(lab.path("go"), "").unwrap();
    until("its agent asks", || (there("denied") || there("allowed")).then_some(()));
    assert!(there("denied") && !there("allowed"), "a tool of a run that was taken over does not run");
    live.signal(Signal::CONT);
    let said = live.finish();
    assert_ne!(said.code, Some(0), "{}", said.stderr);
    let journal = lab.journal(None);
    let old = journal.iter().find(|event| event["kind"] == "run_started").unwrap()["epoch"].clone();
    let later: Vec<&Value> = journal.iter().filter(|event| event["seq"].as_u64().unwrap() > taken).collect();
    for event in &later {
        let own = event["epoch"] == old && event["kind"] != "late_recorded";
        assert!(!own, "this came from the driver that slept, as its own: {event}");
    }
    assert!(!later.iter().any(|event| event["kind"] == "said"), "{later:#?}");
    std::fs::write(lab.path("end"), "").unwrap();
}

#[test]
fn a_driver_in_another_namespace_lives_as_long_as_it_says_so() {
    let unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    if !program(unshare[0]).args(&unshare[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        return skip("namespaces cannot be made here");
    }
    let mut lab = Lab::new();
    let steps = asks(&lab);
    lab.stand_in("claude", &steps);
    let inside = lab.segno(&["run", "--no-hooks", "--prompt", "go", "--json"]);
    let mut command = program(unshare[0]);
    command.args(&unshare[1..]).arg(inside.get_program()).args(inside.get_args());
    command.env_clear().envs(&lab.env).current_dir(lab.home.work());
    let mut live = lab.start_command(&mut command, None);
    until("the agent is ready", || Path::new(&lab.path("ready")).exists().then_some(()));
    let run = lab.running();
    let driver = lab.json(&["show", "last"])["driver"].take();
    assert!(driver["holder"]["pid"].as_u64().unwrap() < 1_000, "a number of its own namespace: {driver}");
    assert!(live.is_running());
    assert_eq!(lab.state()["status"], "active", "that number means nothing here");
    live.signal(Signal::KILL);
    live.finish();
    assert_eq!(lab.state()["status"], "active", "nobody here can see that it died");
    silent_for(&lab, false, 61);
    assert!(lab.run(&["show", "last"]).text().contains("silent"));
    let state = lab.state();
    assert_eq!(state["status"], "active", "it may live: {state}");
    assert_eq!(state["run"]["id"], run["id"]);
    // Whoever wants to drive takes its place.
    let id = state["session_id"].as_str().unwrap();
    let next = lab.run(&["run", "--session", id, "--json", "--", "true"]);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    assert_eq!(kinds(&lab, "session_interrupted"), 1);
    assert_ne!(lab.state()["run"]["id"], run["id"]);
}

#[test]
fn a_pause_from_elsewhere_reaches_the_driver() {
    let mut lab = Lab::new();
    let steps = asks(&lab);
    lab.stand_in("claude", &steps);
    let live = start(&lab, &["--grace", "200", "--auto-resume"]);
    until("the agent is ready", || Path::new(&lab.path("ready")).exists().then_some(()));
    lab.running();
    let said = lab.run(&["pause", "last", "--reason", "lunch"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let result = live.finish().result();
    assert_eq!(
        (&result["outcome"], &result["session_status"]),
        (&json!("stopped"), &json!("paused")),
        "{result}"
    );
    assert_eq!(kinds(&lab, "resume_attempted"), 0, "somebody wished it");
    lab.assert_nothing_left();
}
