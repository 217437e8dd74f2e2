//! The real agents with the hooks of `segno init`, at a terminal, as a person starts them.

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::model::Turn;

use super::interactive::Attended;
use super::waits;
use crate::lab::signal;
use crate::lab::until;
use crate::table;
use crate::terminal::ENTER;

impl Attended {
    /// Starts the agent itself at the shell's prompt, and waits until it shows where to type.
    fn by_hand(&self, more: &str) {
        let place = self.terminal.place();
        let line = match self.real.agent {
            "claude" => "claude --permission-mode default",
            // A person has to look at its hooks once; here nobody can.
            "codex" => "codex --dangerously-bypass-hook-trust",
            other => panic!("{other}"),
        };
        self.terminal.type_keys(&format!("{line} {more}{ENTER}"));
        self.is_ready(place);
    }

    /// Leaves the agent; its session waits for somebody then.
    fn leave_by_hand(&self) {
        let line = if self.real.agent == "claude" { "/exit" } else { "/quit" };
        self.say(line, "the session is paused", || self.real.lab.state()["status"] == "paused");
    }
}

#[rstest]
#[case("claude")]
#[case("codex")]
fn killed_at_the_terminal_and_taken_up_by_hand(#[case] agent: &'static str) {
    let Some(at) = Attended::new(agent, [waits(), Turn::text("I looked first."), Turn::text("And again.")])
    else {
        return;
    };
    at.real.watch();
    at.real.lab.config("[watch]\nbrief = \"auto\"");
    at.by_hand("");
    at.ask("begin");
    at.real.wait_file("begun");
    let run = at.real.lab.running();
    signal(at.pid(), Signal::KILL);
    until("it is known to be interrupted", || (at.real.lab.state()["status"] == "interrupted").then_some(()));
    assert_eq!(at.real.lab.tools()[0]["state"], "in_doubt");
    std::fs::write(at.real.file("go"), "").unwrap();
    let id = run["native_id"].as_str().unwrap();
    // What the dead agent did to the terminal is undone as a person would.
    at.terminal.type_keys(&format!("stty sane; clear{ENTER}"));
    at.by_hand(&match agent {
        "claude" => format!("--resume {id}"),
        _ => format!("resume {id}"),
    });
    at.ask("go on");
    until("the brief reaches the model", || {
        at.real.model.requests().iter().any(|request| request.conversation.contains("IN DOUBT")).then_some(())
    });
    at.leave_by_hand();
    let state = at.real.lab.state();
    assert_eq!(
        (&state["counts"]["runs"], &state["run"]["interactive"]),
        (&2.into(), &true.into()),
        "{state:#}"
    );
    table::watched(agent, "at a terminal", "yes");
}
