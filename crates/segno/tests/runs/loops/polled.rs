//! A loop whose files are read a hundred times a second by programs written from the documents: at every look each file is
//! whole, and the documents' own checks hold.

use rustix::process::Signal;

use super::Loop;
use super::mind::Act;
use super::mind::Mind;
use super::project::Project;
use crate::lab::signal;
use crate::lab::until;
use crate::readers;
use crate::readers::Poll;
use crate::readers::Seen;

const EVERY: &str = r#"["prp", "agentforge", "go-team", "ultra-create"]"#;

fn polled(mind: Mind) -> Option<(Loop, Vec<Poll>)> {
    let mut the = Loop::new("claude", Project::Python, mind)?;
    the.real.lab.env.insert("SEGNO_LAYOUT_FAMILIES".to_owned(), EVERY.to_owned());
    let lab = &the.real.lab;
    let polls = readers::families(lab).map(|(family, folder)| Poll::start(lab, family, &folder));
    Some((the, polls.into()))
}

/// A loop takes longer than so many looks, however slow the machine and the readers are.
const FEWEST: u64 = 20;

/// What each of them saw, after the last change; printed, with how often it looked and in which time. Each of them has seen
/// whole files again and again, or it would prove nothing.
fn seen(polls: Vec<Poll>) -> Vec<Seen> {
    let seen: Vec<Seen> = polls.into_iter().map(Poll::end).collect();
    println!("{seen:#?}");
    for one in &seen {
        assert!(one.found >= FEWEST, "{one:?}");
    }
    seen
}

fn last(seen: &[Seen]) -> Vec<(&str, &str)> {
    seen.iter().map(|one| (one.family, one.statuses.last().map_or("", String::as_str))).collect()
}

#[test]
fn a_loop_through_all_phases() {
    let Some((the, polls)) = polled(Project::Python.mind()) else { return };
    let said = the.run(&["--workflow", "prp"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let seen = seen(polls);
    assert_eq!(
        last(&seen),
        [
            ("prp", "completed"),
            ("agentforge", "completed"),
            ("go_team", "completed"),
            ("ultra_create", "completed")
        ]
    );
    for one in &seen {
        assert!(one.statuses.len() > 1, "it was seen before it ended: {one:?}");
    }
    // What the phases were left with is in the files, though each phase begins to count anew.
    let folder = the.real.file(".prp-session");
    let metrics: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("metrics.json")).unwrap()).unwrap();
    for (phase, passing, total) in [("RED", 1, 2), ("GREEN", 3, 3), ("REFACTOR", 3, 3)] {
        let left = &metrics["phases"][phase]["final_metrics"];
        assert_eq!(
            (&left["tests_passing"], &left["tests_total"]),
            (&passing.into(), &total.into()),
            "{metrics}"
        );
    }
    let log = std::fs::read_to_string(folder.join("phase-status.log")).unwrap();
    for phase in ["RED", "GREEN", "REFACTOR", "DOCUMENT"] {
        assert!(log.contains(&format!("PHASE: {phase}\nSTATUS: COMPLETE\n")), "{log}");
    }
    the.real.lab.assert_nothing_left();
}

#[test]
fn a_loop_whose_driver_is_killed_and_that_halts() {
    let idle = Act { command: "true", words: "There is nothing to do.", ..Act::default() };
    let hangs = "mkdir ../first 2>/dev/null && { touch ../begun; sleep 600; }; true";
    let mind = Mind::default().iteration("RED", 2, Act { command: hangs, ..idle }).phase("RED", idle);
    let Some((the, polls)) = polled(mind) else { return };
    let live = the.start(&["--workflow", "prp"]);
    let begun = the.real.lab.home.beside("begun");
    until("the call begins", || begun.exists().then_some(()));
    let pid = u32::try_from(the.real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    live.signal(Signal::KILL);
    signal(pid, Signal::KILL);
    live.finish();
    let said = the.real.lab.run(&["resume", "last", "--json"]);
    the.describe(&said);
    assert_eq!((said.code, &said.result()["outcome"]), (Some(28), &"halted".into()), "{}", said.stderr);
    let seen = seen(polls);
    assert_eq!(
        last(&seen),
        [("prp", "halted"), ("agentforge", "paused"), ("go_team", "paused"), ("ultra_create", "paused")]
    );
    let breaker = std::fs::read(the.real.file(".prp-session/circuit-breaker.json")).unwrap();
    let breaker: serde_json::Value = serde_json::from_slice(&breaker).unwrap();
    assert_eq!(breaker["state"], "OPEN", "{breaker}");
    the.real.lab.assert_nothing_left();
}
