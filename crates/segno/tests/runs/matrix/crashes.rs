//! Killed at any moment while tools run, and taken up again: the brief says what is true, the whole task is there,
//! nothing that was done is done again.
//!
//! `SEGNO_CRASHES` says how many moments there are for each agent and each kind of crash (1), `SEGNO_SEED` which.
//! Some of these worlds have a model that uses the same call id again and again, a command in the background, or a
//! helper that goes on by itself, where the agent has such a thing.

use std::collections::BTreeSet;
use std::time::Duration;

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::model::Op;
use segno_testkit::model::Request;
use segno_testkit::model::Script;
use segno_testkit::model::Sh;
use segno_testkit::model::Then;
use segno_testkit::model::Track;
use segno_testkit::model::Turn;
use segno_testkit::model::When;
use segno_testkit::recipe::Patience;

use super::Real;
use super::resume::Killed;
use crate::lab::Live;
use crate::lab::variable;

/// How many steps there are.
const STEPS: u32 = 7;

/// A step takes a while, leaves a trace of when it begins and ends in which run, and says that it ended in words that
/// are not in the command itself. In a run that is held back each step takes longer, and the last one never ends.
fn step(number: u32) -> String {
    let held = "hold-$SEGNO_RUN";
    format!(
        "K={number}; echo B $K $SEGNO_RUN >> log.txt; touch begun-$K; sleep 0.4; test -e {held} && sleep 1; \
         while [ $K = {STEPS} -a -e {held} ]; do sleep 0.1; done; \
         echo E $K $SEGNO_RUN >> log.txt; echo fini''shed {}",
        number * 1111
    )
}

/// What else there is in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Also {
    Nothing,
    /// All calls have the same id.
    SameIds,
    /// A command in the background that does not end in time.
    Background,
    /// A helper that was only launched.
    Helper,
}

impl Also {
    fn pick(agent: &str, roll: u64) -> Self {
        match (agent, roll % 4) {
            // Claude Code sends the model only one of several results with the same id, and no model can go by that.
            ("codex" | "gemini" | "opencode", 1) => Self::SameIds,
            ("claude" | "gemini", 2) => Self::Background,
            ("claude", 3) => Self::Helper,
            _ => Self::Nothing,
        }
    }
}

fn turn(agent: &str, number: u32, also: Also) -> Turn {
    let command = step(number);
    if also != Also::SameIds {
        return Turn::sh(&command);
    }
    let name = match agent {
        "codex" => "exec_command",
        "gemini" => "run_shell_command",
        _ => "bash",
    };
    let member = if agent == "codex" { "cmd" } else { "command" };
    let mut input = serde_json::json!({ member: command });
    if agent != "codex" {
        input["description"] = "a step".into();
    }
    Turn::ops([Op::Tool { name: name.to_owned(), input, namespace: None, id: Some("call_again".to_owned()) }])
}

/// A model with some sense: it takes the first step that neither the conversation nor the brief calls done.
fn script(agent: &str, also: Also) -> Script {
    let mut tracks = Vec::new();
    let once = |name: &str, lacks: &str, turn: Turn| Track {
        name: name.to_owned(),
        when: When { lacks: Some(lacks.to_owned()), tools: Some(true), ..When::default() },
        turns: vec![turn],
        then: Then::Repeat,
        ..Track::default()
    };
    let late = "B=1; sleep 25; echo late > late.txt".to_owned();
    match also {
        Also::Background => {
            let sh = Sh { command: late, timeout_ms: None, background: true };
            tracks.push(once("background", "B=1;", Turn::ops([Op::Sh(sh)])));
        }
        Also::Helper => {
            let extra = serde_json::json!({ "run_in_background": true }).as_object().unwrap().clone();
            let prompt = "helper: B=1; take your time".to_owned();
            let helper = Op::Task { prompt, description: None, agent: None, extra };
            tracks.push(Track {
                name: "helper".to_owned(),
                when: When::first_user("helper: B=1;"),
                turns: vec![Turn::sh(&late)],
                then: Then::Repeat,
                ..Track::default()
            });
            tracks.push(once("launch", "B=1;", Turn::ops([helper])));
        }
        Also::Nothing | Also::SameIds => {}
    }
    tracks.extend((1..=STEPS).map(|number| {
        let lacks = format!(r"finished {}|K={number};[^\n]*\(completed", number * 1111);
        once(&format!("step-{number}"), &lacks, turn(agent, number, also))
    }));
    Script { tracks, ..Script::new([Turn::text("the end")]) }.then(Then::Repeat)
}

/// A task that does not fit on a line, from its first word to its last.
fn task() -> String {
    let lines = (1..=40).map(|n| format!("line {n} of what is wanted: take each step once, and say so.\n"));
    format!("TASK-BEGINS\n{}TASK-ENDS", lines.collect::<String>())
}

/// How often each step began and ended in a run, or in all of them.
fn times(real: &Real, what: &str, number: u32, run: Option<&str>) -> usize {
    let log = std::fs::read_to_string(real.file("log.txt")).unwrap_or_default();
    let fits = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let in_run = run.is_none_or(|run| words.get(2) == Some(&run));
        words.first() == Some(&what) && words.get(1) == Some(&number.to_string().as_str()) && in_run
    };
    log.lines().filter(fits).count()
}

/// Small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// In a world that is held back, an agent does not come to its end before it is taken up.
fn each(
    agent: &'static str,
    kind: &str,
    is_held: impl Fn(u64) -> bool,
    crash: impl Fn(&Real, Live, &mut Dice),
) {
    let number = |name: &str| variable(name).and_then(|value| value.parse::<u64>().ok());
    let (crashes, seed) = (number("SEGNO_CRASHES").unwrap_or(1), number("SEGNO_SEED").unwrap_or(20_260_101));
    let mixed =
        agent.bytes().chain(kind.bytes()).fold(seed, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let mut resumed = 0;
    for number in 0..crashes {
        let mut dice = Dice(mixed + number);
        let also = Also::pick(agent, number);
        println!("SEGNO_SEED={seed}: {agent}, {kind} {number}, {also:?}");
        let Some(real) = Real::new(agent, script(agent, also), Patience::default()) else { return };
        let task = task();
        let live = real.lab.start(&["run", "--json", "--agent", agent, "--prompt", &task], None);
        if is_held(number) {
            let run = real.lab.running();
            std::fs::write(real.file(&format!("hold-{}", run["id"].as_str().unwrap())), "").unwrap();
        }
        let after = 1 + dice.below(u64::from(STEPS));
        real.wait_file(&format!("begun-{after}"));
        std::thread::sleep(Duration::from_millis(dice.below(700)));
        crash(&real, live, &mut dice);
        let taken_up = resume_and_compare(&real);
        assert!(taken_up || !is_held(number), "there was something left to do");
        resumed += u64::from(taken_up);
    }
    println!("{agent}, {kind}: {crashes} of {crashes} right, {resumed} of them taken up again");
}

/// The agent, its driver or both are killed.
#[rstest]
fn at_any_moment(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    each(
        agent,
        "killed",
        |_| false,
        |real, mut live, dice| {
            let killed = [Killed::Agent, Killed::Driver, Killed::Both][dice.below(3) as usize];
            let pid = i32::try_from(real.lab.state()["run"]["pid"].as_u64().unwrap()).unwrap();
            println!("{killed:?} is killed");
            if live.is_running() && killed != Killed::Agent {
                live.signal(Signal::KILL);
            }
            if killed != Killed::Driver {
                // It may have come to its end this very moment.
                let pid = rustix::process::Pid::from_raw(pid).unwrap();
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            live.finish();
        },
    );
}

/// Only the driver dies; the agent goes on for a while, and somebody looks or not. One in five may come to its end
/// meanwhile, and is not to be started again then.
#[rstest]
fn without_a_driver_for_a_while(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    each(
        agent,
        "driver killed",
        |number| number % 5 != 4,
        |real, mut live, dice| {
            if live.is_running() {
                live.signal(Signal::KILL);
            }
            live.finish();
            let (begin, rest) = (dice.below(2), Duration::from_millis(300 + dice.below(7_700)));
            if begin == 0 {
                std::thread::sleep(rest / 2);
                assert_eq!(real.lab.run(&["ls"]).code, Some(0));
                std::thread::sleep(rest / 2);
            } else {
                std::thread::sleep(rest);
            }
            println!("{rest:?} without a driver, looked: {}", begin == 0);
        },
    );
}

/// The lines of one part of a brief.
fn part<'a>(brief: &'a str, title: &str) -> Vec<&'a str> {
    let Some((_, rest)) = brief.split_once(title) else { return Vec::new() };
    rest.lines().skip(1).take_while(|line| line.starts_with("- ")).collect()
}

/// Takes the session up and holds what the model was told against what happened. False if nothing was left to do.
fn resume_and_compare(real: &Real) -> bool {
    let before = real.lab.state();
    if before["status"] == "completed" {
        return false;
    }
    let first = before["run"]["id"].as_str().unwrap().to_owned();
    let earlier = real.model.requests();
    let said = real.lab.run(&["resume", "last", "--json"]);
    real.describe(&said);
    for event in real.lab.journal(None) {
        println!("journal {event}");
    }
    println!("{}", std::fs::read_to_string(real.file("log.txt")).unwrap_or_default());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let state = real.lab.state();
    assert_eq!(state["status"], "completed", "{state}");
    real.lab.assert_nothing_left();
    for number in 1..=STEPS {
        assert!(times(real, "E", number, None) >= 1, "step {number} was never taken");
    }
    // What its agent asked after we looked, before it was stopped, belongs to the first run too.
    let all = real.model.requests();
    let is_brief = |request: &&Request| request.conversation.contains("You are resuming work");
    let Some(told) = all.iter().find(is_brief) else {
        // It had come to its end by itself.
        for number in 1..=STEPS {
            assert_eq!(times(real, "E", number, None), 1, "step {number} was taken again");
        }
        return false;
    };
    let conversation = &told.conversation;
    assert!(
        conversation.contains("TASK-BEGINS") && conversation.contains("TASK-ENDS"),
        "the whole task: {conversation}"
    );
    let brief = conversation.rsplit_once("You are resuming work").unwrap().1;
    let (doubt, done) = (part(brief, "IN DOUBT:"), part(brief, "Done already;"));
    let says = |lines: &[&str], number: u32| lines.iter().any(|line| line.contains(&format!("K={number};")));
    let known: BTreeSet<u32> = (1..=STEPS)
        .filter(|number| {
            let words = format!("finished {}", number * 1111);
            let first = all.iter().take_while(|request| !is_brief(request));
            earlier.iter().chain(first).any(|request| request.conversation.contains(&words))
        })
        .collect();
    for number in 1..=STEPS {
        let (begun, ended) = (times(real, "B", number, Some(&first)), times(real, "E", number, Some(&first)));
        let (is_done, is_in_doubt) = (says(&done, number), says(&doubt, number));
        let what = format!("step {number}: begun {begun}, ended {ended}; {brief}");
        assert!(!is_done || ended >= 1, "it is called done and is not: {what}");
        assert!(begun == 0 || is_done || is_in_doubt, "it is missing: {what}");
        assert!(
            !known.contains(&number) || is_done,
            "the model knew its result, and it is not called done: {what}"
        );
        assert!(!(is_done && is_in_doubt), "it is done and in doubt: {what}");
        if is_done {
            assert_eq!(times(real, "E", number, None), ended, "it was done and was done again: {what}");
        }
    }
    let late = done.iter().any(|line| line.contains("B=1;"));
    assert!(!late || real.file("late.txt").exists(), "what was only launched is called done: {brief}");
    true
}
