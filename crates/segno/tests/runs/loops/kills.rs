//! Killed anywhere and taken up again: the same end, and nothing is asked twice that was answered.

use rstest::rstest;
use rustix::process::Signal;

use super::Loop;
use super::phases::straight;
use super::project::Project;
use super::table::Scenario;
use crate::lab::signal;
use crate::lab::until;

/// The driver and its agent die in the middle of a call of this phase, which leaves nothing done.
#[rstest]
fn in_every_phase(
    #[values("claude", "codex")] agent: &'static str,
    #[values("RED", "GREEN", "REFACTOR", "DOCUMENT")] phase: &str,
) {
    let mind = Project::Python.mind_with(|name, command| {
        // Only the first time.
        let hangs = format!("mkdir ../first 2>/dev/null && {{ touch ../begun; sleep 600; }}\n{command}");
        if name == phase { hangs } else { command.to_owned() }
    });
    let Some(the) = Loop::new(agent, Project::Python, mind) else { return };
    let live = the.start(&["--workflow", "prp"]);
    let begun = the.real.lab.home.beside("begun");
    until("the call begins", || begun.exists().then_some(()));
    until("the call is recorded", || {
        the.real.lab.tools().iter().any(|call| call["state"] == "open").then_some(())
    });
    let pid = u32::try_from(the.real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    live.signal(Signal::KILL);
    signal(pid, Signal::KILL);
    live.finish();
    resumed(&the, Scenario::Killed, 1);
    // It is told what is in doubt, with the prompt of the iteration that was cut short.
    let asked = the.real.model.requests();
    let told = asked.iter().find(|request| request.last_user.contains("IN DOUBT"));
    let told = &told.unwrap().last_user;
    assert!(told.contains(&format!("## Phase {phase}, iteration 1")) && told.contains("../begun"), "{told}");
}

/// The driver dies while the gate is measured: what the agent had answered counts.
#[rstest]
fn at_the_gate(#[values("claude", "codex")] agent: &'static str) {
    let Some(mut the) = Loop::new(agent, Project::Python, Project::Python.mind()) else { return };
    let hold = the.real.lab.path("hold");
    std::fs::write(&hold, "").unwrap();
    let hangs = "if [ -e test_slug.py ] && mkdir ../first 2>/dev/null; then touch ../begun; \
                 while [ -e ../hold ]; do sleep 0.05; done; fi";
    the.until = format!("{hangs}; {}", the.until);
    let live = the.start(&["--workflow", "prp"]);
    let begun = the.real.lab.home.beside("begun");
    until("it measures", || begun.exists().then_some(()));
    live.signal(Signal::KILL);
    live.finish();
    std::fs::remove_file(&hold).unwrap();
    resumed(&the, Scenario::KilledAtGate, 0);
}

/// It goes on to the same end as if nothing had happened, with so many runs more.
fn resumed(the: &Loop, scenario: Scenario, more: usize) {
    let said = the.real.lab.run(&["resume", "last", "--json"]);
    the.describe(&said);
    the.ended(scenario, &said, "completed", "completed");
    assert_eq!(the.phases(), straight());
    assert_eq!(the.verdicts(), ["next_phase", "next_phase", "next_phase", "complete"]);
    assert_eq!(the.real.lab.journal(Some("run_started")).len(), 4 + more);
    let words = std::fs::read_to_string(the.real.file("words.py")).unwrap();
    assert!(words.contains("\"-\".join"), "{words}");
}
