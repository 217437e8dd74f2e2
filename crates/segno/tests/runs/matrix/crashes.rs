//! Killed at any moment while tools run, and taken up again: the same conversation, the right files, nothing that was
//! done is done again.
//!
//! `SEGNO_CRASHES` says how many moments there are for each agent and each kind of crash (1), `SEGNO_SEED` which.

use std::collections::BTreeMap;
use std::time::Duration;

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::model::{Script, Then, Track, Turn, When};
use segno_testkit::recipe::Patience;

use super::Real;
use super::resume::Killed;
use crate::lab::{until, variable};

/// How many steps there are.
const STEPS: u32 = 5;

/// A step takes a while, leaves a trace of every time it is run, and says that it ended in words that are not in the
/// command itself.
fn step(number: u32) -> String {
    format!(
        "K={number}; touch begun-$K; sleep 0.3; echo $K >> log.txt; echo $K > out-$K.txt; echo finished $((K * 1111))"
    )
}

/// A model with some sense: it takes the first step that neither the conversation nor the brief calls done.
fn script() -> Script {
    let tracks = (1..=STEPS).map(|number| Track {
        name: format!("step-{number}"),
        when: When {
            lacks: Some(format!(r"finished {}|K={number};[^\n]*\(completed\)", number * 1111)),
            tools: Some(true),
            ..When::default()
        },
        turns: vec![Turn::sh(&step(number))],
        then: Then::Repeat,
        ..Track::default()
    });
    Script { tracks: tracks.collect(), ..Script::new([Turn::text("the end")]) }.then(Then::Repeat)
}

fn times_run(real: &Real) -> BTreeMap<u32, usize> {
    let log = std::fs::read_to_string(real.file("log.txt")).unwrap_or_default();
    let mut times = BTreeMap::new();
    for number in log.lines().filter_map(|line| line.trim().parse().ok()) {
        *times.entry(number).or_default() += 1;
    }
    times
}

#[rstest]
fn at_any_moment(
    #[values("claude", "codex")] agent: &'static str,
    #[values(Killed::Agent, Killed::Driver, Killed::Both)] killed: Killed,
) {
    let number = |name: &str| variable(name).and_then(|value| value.parse::<u64>().ok());
    let (crashes, seed) = (number("SEGNO_CRASHES").unwrap_or(1), number("SEGNO_SEED").unwrap_or(20_260_101));
    let mut dice = seed ^ (killed as u64) << 8 ^ u64::from(agent == "codex") << 16;
    let mut roll = |most: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % most
    };
    let mut same = 0;
    for crash in 0..crashes {
        let (after, delay) = (1 + roll(u64::from(STEPS)), Duration::from_millis(roll(600)));
        println!("SEGNO_SEED={seed}: crash {crash}, {delay:?} after step {after} began");
        let Some(real) = Real::new(agent, script(), Patience::default()) else { return };
        same += u64::from(crash_and_resume(&real, killed, after, delay));
    }
    println!("{agent}, {killed:?} killed: {crashes} of {crashes}, {same} in the same conversation");
}

/// Whether it went on in the same conversation.
fn crash_and_resume(real: &Real, killed: Killed, after: u64, delay: Duration) -> bool {
    let mut live = real.start(&[]);
    real.wait_file(&format!("begun-{after}"));
    let pid = u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    std::thread::sleep(delay);
    // The last step may have ended, and all with it.
    if !live.is_running() {
        assert_eq!(real.lab.state()["status"], "completed");
        return true;
    }
    if killed != Killed::Agent {
        live.signal(Signal::KILL);
    }
    if killed != Killed::Driver {
        // It may have come to its end this very moment.
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    live.finish();
    let before = until("the session is settled", || {
        let state = real.lab.state();
        (state["status"] != "active").then_some(state)
    });
    if before["status"] == "completed" {
        return true;
    }
    assert_eq!(before["status"], "interrupted", "{before}");
    let ledger = real.lab.tools();
    let is =
        |call: &serde_json::Value, number: u32| call["input"].to_string().contains(&format!("K={number};"));
    let done: Vec<u32> = (1..=STEPS)
        .filter(|number| ledger.iter().any(|call| call["state"] == "completed" && is(call, *number)))
        .collect();
    let requests = real.model.requests().len();
    let said = real.lab.run(&["resume", "--json"]);
    real.describe(&said);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let state = real.lab.state();
    assert_eq!(state["status"], "completed", "{state}");
    // The request that came first holds the brief, with the call in doubt.
    let told = real.model.requests().split_off(requests);
    let brief = told.iter().any(|request| request.conversation.contains("You are resuming work"));
    assert!(brief, "the brief did not reach the model");
    // An agent that outlived its driver is heard out first: a call in doubt is one no longer if it told how it ended.
    // What nobody told, and what the resume cut off, the model hears of.
    let after = real.lab.tools();
    let settled = |call: &serde_json::Value| {
        let ended = |now: &&serde_json::Value| now["state"] == "completed" || now["state"] == "failed";
        after.iter().filter(ended).any(|now| now["call"] == call["call"])
    };
    if ledger.iter().any(|call| call["state"] == "in_doubt" && !settled(call)) {
        assert!(told.iter().any(|request| request.conversation.contains("IN DOUBT")), "{ledger:#?}");
    }
    // What was recorded as done was not done again; what was in doubt was done again at most once.
    let times = times_run(real);
    for number in 1..=STEPS {
        let most = if done.contains(&number) { 1 } else { 2 };
        let ran = times.get(&number).copied().unwrap_or(0);
        assert!(
            (1..=most).contains(&ran),
            "step {number} ran {ran} times; done before: {done:?}; {ledger:#?}"
        );
        let out = std::fs::read_to_string(real.file(&format!("out-{number}.txt"))).unwrap();
        assert_eq!(out, format!("{number}\n"));
    }
    real.lab.assert_nothing_left();
    state["run"]["native_id"] == before["run"]["native_id"]
}
