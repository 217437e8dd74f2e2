//! A person at the agent's own terminal, behind which segno keeps its record.

use std::time::Duration;
use std::time::Instant;

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::model::When;
use segno_testkit::recipe::Patience;
use serde_json::Value;

use super::Real;
use super::record::escalated;
use super::waits;
use crate::lab::PATIENCE;
use crate::lab::signal;
use crate::lab::until;
use crate::terminal::CTRL_C;
use crate::terminal::CTRL_Z;
use crate::terminal::ENTER;
use crate::terminal::ESCAPE;
use crate::terminal::Terminal;

/// How long a pressed key may take to have an effect before it is pressed again.
const AGAIN: Duration = Duration::from_millis(700);

/// An agent whose person has the terminal.
pub(super) struct Attended {
    pub(super) real: Real,
    pub(super) terminal: Terminal,
}

impl Attended {
    pub(super) fn new(agent: &'static str, turns: impl IntoIterator<Item = Turn>) -> Option<Self> {
        // Codex asks for a title beside the work, with all its tools.
        let title = When::first_user("single-line task title");
        let script = Script::new(turns).track("title", title, ["A title".into(), "A title".into()]);
        let real = Real::prepared(agent, script, Patience::default(), |recipe| recipe.at_terminal())?;
        let terminal = Terminal::open(&real.lab);
        Some(Self { real, terminal })
    }

    /// Starts segno at the shell's prompt, and waits until the agent shows where to type.
    fn begin(&self, command: &str) {
        let place = self.terminal.place();
        let manner = if self.real.agent == "claude" { "--arg=--permission-mode --arg=default" } else { "" };
        let manner = if command.starts_with("run") { manner } else { "" };
        self.terminal.type_keys(&format!("$SEGNO {command} {manner}{ENTER}"));
        self.real.lab.running();
        self.is_ready(place);
    }

    /// Waits until the agent has drawn, after a place, where to type: keys before that are lost.
    pub(super) fn is_ready(&self, place: usize) {
        self.terminal.wait_for(place, if self.real.agent == "claude" { "\u{276f}" } else { "\u{203a}" });
    }

    /// Types a line and presses Enter until it has an effect: how soon a key counts is the interface's own affair.
    pub(super) fn say(&self, line: &str, what: &str, mut is_done: impl FnMut() -> bool) {
        self.terminal.type_keys(line);
        self.press(ENTER, what, &mut is_done);
    }

    fn press(&self, key: &str, what: &str, is_done: impl FnMut() -> bool) {
        assert!(self.has_effect(key, PATIENCE, is_done), "waited in vain: {what}");
    }

    /// Presses a key again and again for so long, until it has an effect.
    fn has_effect(&self, key: &str, patience: Duration, mut is_done: impl FnMut() -> bool) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < patience {
            self.terminal.type_keys(key);
            let pressed = Instant::now();
            while pressed.elapsed() < AGAIN {
                if is_done() {
                    return true;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        false
    }

    /// Asks the model. A line that is typed while another conversation begins may be lost: then it is typed again.
    pub(super) fn ask(&self, line: &str) {
        let (before, begin) = (self.asked(), Instant::now());
        while begin.elapsed() < PATIENCE {
            self.terminal.type_keys(line);
            if self.has_effect(ENTER, PATIENCE / 4, || self.asked() > before) {
                return;
            }
        }
        panic!("waited in vain: the model is asked");
    }

    /// How often the model was asked for the work itself.
    fn asked(&self) -> usize {
        self.real.model.requests().iter().filter(|request| request.track == "main").count()
    }

    /// Leaves the agent; answers with segno's exit code.
    fn leave(&self) -> i32 {
        let line = if self.real.agent == "claude" { "/exit" } else { "/quit" };
        self.say(line, "the run ends", || !self.real.lab.state()["run"]["outcome"].is_null());
        self.back_at_shell()
    }

    /// The keys that were pressed too often are the shell's, then; the answer comes after them.
    fn back_at_shell(&self) -> i32 {
        until("segno has let go", || self.real.lab.state()["driver"].is_null().then_some(()));
        let place = self.terminal.place();
        self.terminal.wait_for(place.saturating_sub(4_000), "shell> ");
        self.terminal.exit_code()
    }

    pub(super) fn pid(&self) -> u32 {
        u32::try_from(self.real.lab.running()["pid"].as_u64().unwrap()).unwrap()
    }

    fn driver(&self) -> u32 {
        let state = self.real.lab.state();
        u32::try_from(state["driver"]["holder"]["pid"].as_u64().unwrap()).unwrap()
    }

    /// The state of a process, as the system has it: `T` is stopped.
    fn is_stopped(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// Every call once, with its start and its end, and these ends.
    fn ledger(&self, expected: &[&str]) {
        let tools = self.real.lab.tools();
        let states: Vec<&str> = tools.iter().map(|call| call["state"].as_str().unwrap()).collect();
        assert_eq!(states, expected, "{tools:#?}");
        for call in &tools {
            assert!(call["started_at"].is_string() && call["ended_at"].is_string(), "{call:#?}");
            assert_eq!(call["write_ahead"], self.real.agent == "claude", "{call:#?}");
        }
        assert_eq!(self.real.lab.state()["calls"]["total"], expected.len());
    }

    /// The tokens of all runs are those of the session, and they are what the model says it gave.
    fn tokens(&self, at_least: u64) {
        let state = self.real.lab.state();
        let runs = self.real.lab.json(&["show", "last", "--runs"]);
        let sum = |tokens: &Value| {
            ["input", "output", "cache_read", "cache_write"]
                .iter()
                .filter_map(|name| tokens[name].as_u64())
                .sum::<u64>()
        };
        let told: u64 = runs["items"].as_array().unwrap().iter().map(|run| sum(&run["tokens"])).sum();
        assert_eq!(state["budget"]["tokens_used"].as_u64(), Some(told), "{state:#}");
        assert!(told >= at_least, "{told} of {at_least}");
    }

    pub(super) fn said(&self, channel: &str) -> Vec<String> {
        let said = self.real.lab.journal(Some("said"));
        let of = said.iter().filter(|event| event["body"]["channel"] == channel);
        of.map(|event| event["body"]["text"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[rstest]
#[case("claude")]
#[case("codex")]
fn a_person_works_stops_and_leaves(#[case] agent: &'static str) {
    let turns = [Turn::sh("echo one > one.txt"), "One is done.".into(), waits(), "never said".into()];
    let Some(at) = Attended::new(agent, turns) else { return };
    let modes = at.terminal.modes();
    at.begin(&format!("run --agent {agent}"));
    let shown = at.real.lab.state();
    assert_eq!((&shown["status"], &shown["run"]["interactive"]), (&"active".into(), &true.into()));

    at.ask("make the file");
    at.real.wait_file("one.txt");
    until("the turn is recorded", || at.said("text").iter().any(|text| text == "One is done.").then_some(()));
    assert!(at.said("input").iter().any(|text| text == "make the file"), "{:?}", at.said("input"));

    // The agent hears of another size, and draws for it.
    let place = at.terminal.place();
    at.terminal.resize(140, 40);
    match agent {
        "claude" => at.terminal.wait_for(place, &"\u{2500}".repeat(120)),
        _ => until("it is drawn again", || (at.terminal.place() > place).then_some(())),
    }

    // Ctrl-C is the agent's: it ends what it is doing, and segno stays.
    at.ask("wait a while");
    at.real.wait_file("begun");
    until("the call is recorded", || (at.real.lab.tools().len() == 2).then_some(()));
    at.press(CTRL_C, "the call is over", || {
        at.real.lab.tools().last().is_some_and(|call| call["state"] != "open")
    });
    let running = at.real.lab.running();
    assert!(running["outcome"].is_null());

    // Ctrl-Z gives the terminal back to the shell, and fg gives it to the agent again.
    let (pid, driver) = (at.pid(), at.driver());
    let place = at.terminal.place();
    at.press(CTRL_Z, "both are stopped", || Attended::is_stopped(pid) && Attended::is_stopped(driver));
    at.terminal.wait_for(place, "Stopped");
    let place = at.terminal.place();
    at.terminal.type_keys(&format!("fg{ENTER}"));
    until("both go on", || (!Attended::is_stopped(pid) && !Attended::is_stopped(driver)).then_some(()));
    at.is_ready(place);

    assert_eq!(at.leave(), 0, "a person who leaves is no error");
    assert_eq!(at.terminal.modes(), modes, "the terminal is as it was");
    let state = at.real.lab.state();
    assert_eq!(
        (&state["status"], &state["run"]["outcome"]),
        (&"paused".into(), &"completed".into()),
        "{state:#}"
    );
    at.ledger(&["completed", "failed"]);
    at.tokens(300);
    assert_eq!(
        state["cost"]["used_micros"].as_u64().is_some_and(|cost| cost > 0),
        agent == "claude",
        "{state:#}"
    );
    let checkpoints = at.real.lab.journal(Some("checkpoint_created"));
    let reasons: Vec<&str> =
        checkpoints.iter().filter_map(|event| event["body"]["reason"].as_str()).collect();
    assert_eq!(reasons, ["run_start", "run_end"]);
    assert!(at.terminal.since(0).contains("goes on in this conversation"));
    drop(at.terminal);
    at.real.lab.assert_nothing_left();
}

#[rstest]
#[case("claude")]
#[case("codex")]
fn killed_and_taken_up_again(#[case] agent: &'static str) {
    let turns = [waits(), "All is well now.".into(), Turn::sh("echo two > two.txt"), "The end.".into()];
    let Some(at) = Attended::new(agent, turns) else { return };
    let modes = at.terminal.modes();
    at.begin(&format!("run --agent {agent}"));
    at.ask("wait a while");
    at.real.wait_file("begun");
    until("the call is recorded", || (at.real.lab.tools().len() == 1).then_some(()));
    let before = at.real.lab.running();
    signal(at.pid(), Signal::KILL);
    until("the run has ended", || (!at.real.lab.state()["run"]["outcome"].is_null()).then_some(()));
    assert_eq!(at.back_at_shell(), 21, "interrupted");
    assert_eq!(at.terminal.modes(), modes, "whatever the agent left the terminal like");
    let state = at.real.lab.state();
    assert_eq!(state["status"], "interrupted");
    at.ledger(&["in_doubt"]);
    assert!(!at.real.file("released.txt").exists(), "the command did not go on");
    at.real.lab.assert_no_agent_left();

    // It comes back on the same terminal, in the same conversation, and is told what is in doubt.
    let asked = at.asked();
    at.begin("resume last --from live");
    until("the brief reaches the model", || {
        at.real.model.requests().iter().any(|request| request.conversation.contains("IN DOUBT")).then_some(())
    });
    until("it is answered", || (at.asked() > asked).then_some(()));
    at.ask("and now two");
    at.real.wait_file("two.txt");
    until("the turn is recorded", || at.said("text").iter().any(|text| text == "The end.").then_some(()));
    assert_eq!(at.leave(), 0);
    let after = at.real.lab.state();
    assert_eq!(after["run"]["native_id"], before["native_id"], "the same conversation");
    assert_eq!(after["status"], "paused");
    at.ledger(&["in_doubt", "completed"]);
    at.tokens(300);
    assert_eq!(at.real.lab.journal(Some("run_started")).len(), 2);
    drop(at.terminal);
    at.real.lab.assert_nothing_left();
}

/// The driver dies: the next command says so, and what the agent did until then is known.
#[rstest]
#[case("claude")]
#[case("codex")]
fn segno_is_killed(#[case] agent: &'static str) {
    let Some(at) = Attended::new(agent, [waits(), "never said".into()]) else { return };
    at.begin(&format!("run --agent {agent}"));
    at.ask("wait a while");
    at.real.wait_file("begun");
    until("the call is recorded", || (at.real.lab.tools().len() == 1).then_some(()));
    signal(at.driver(), Signal::KILL);
    until("it is known", || (at.real.lab.state()["status"] == "interrupted").then_some(()));
    // The agent may live on without its terminal, or not.
    at.real.lab.run(&["kill", "last"]);
    let state = at.real.lab.state();
    assert_eq!(state["status"], "interrupted", "{state:#}");
    assert_eq!(state["run"]["outcome"], "interrupted", "{state:#}");
    at.ledger(&["in_doubt"]);
    drop(at.terminal);
    at.real.lab.assert_nothing_left();
}

/// SIGTERM to segno ends the agent politely, and the terminal is as it was.
#[rstest]
#[case("claude")]
#[case("codex")]
fn segno_is_asked_to_end(#[case] agent: &'static str) {
    let Some(at) = Attended::new(agent, ["Hello.".into()]) else { return };
    let modes = at.terminal.modes();
    at.begin(&format!("run --agent {agent}"));
    at.ask("hello");
    until("the turn is recorded", || at.said("text").iter().any(|text| text == "Hello.").then_some(()));
    signal(at.driver(), Signal::TERM);
    until("the run has ended", || (!at.real.lab.state()["run"]["outcome"].is_null()).then_some(()));
    assert_eq!(at.back_at_shell(), 23);
    assert_eq!(at.terminal.modes(), modes);
    let state = at.real.lab.state();
    assert_eq!(
        (&state["status"], &state["run"]["outcome"]),
        (&"paused".into(), &"stopped".into()),
        "{state:#}"
    );
    drop(at.terminal);
    at.real.lab.assert_nothing_left();
}

/// A new conversation inside the same process is followed too.
#[rstest]
#[case("claude", "/clear")]
#[case("codex", "/new")]
fn a_new_conversation_in_between(#[case] agent: &'static str, #[case] command: &str) {
    let turns = [Turn::text("First."), Turn::sh("echo two > two.txt"), "Second.".into()];
    let Some(at) = Attended::new(agent, turns) else { return };
    at.begin(&format!("run --agent {agent}"));
    at.ask("one");
    until("the turn is recorded", || at.said("text").iter().any(|text| text == "First.").then_some(()));
    let before = at.real.lab.running()["native_id"].as_str().unwrap().to_owned();
    let place = at.terminal.place();
    at.say(command, "another conversation begins", || at.terminal.place() > place + 200);
    at.ask("two");
    until("the turn is recorded", || at.said("text").iter().any(|text| text == "Second.").then_some(()));
    let after = at.real.lab.running()["native_id"].as_str().unwrap().to_owned();
    assert_ne!(before, after, "resuming goes on with the newest");
    assert_eq!(at.leave(), 0);
    at.ledger(&["completed"]);
    at.tokens(300);
    drop(at.terminal);
    at.real.lab.assert_nothing_left();
}

/// A cap stops here too.
#[rstest]
#[case("claude")]
#[case("codex")]
fn a_hard_budget(#[case] agent: &'static str) {
    let Some(at) = Attended::new(agent, [Turn::sh("echo one > one.txt"), "One is done.".into()]) else {
        return;
    };
    let modes = at.terminal.modes();
    at.begin(&format!("run --agent {agent} --budget 150"));
    at.ask("make the file");
    until("the run has ended", || (!at.real.lab.state()["run"]["outcome"].is_null()).then_some(()));
    assert_eq!(at.back_at_shell(), 8);
    assert_eq!(at.terminal.modes(), modes);
    let state = at.real.lab.state();
    let reason = state["reason"].to_string();
    assert_eq!(
        (&state["status"], &state["run"]["outcome"]),
        (&"paused".into(), &"budget".into()),
        "{reason}"
    );
    drop(at.terminal);
    at.real.lab.assert_nothing_left();
}

/// A run that began without a person is taken up by one.
#[rstest]
#[case("claude")]
#[case("codex")]
fn a_person_takes_over(#[case] agent: &'static str) {
    let turns = [waits(), Turn::sh("echo two > two.txt"), "The end.".into()];
    let Some(at) = Attended::new(agent, turns) else { return };
    let live = at.real.start(&[]);
    at.real.wait_file("begun");
    until("the call is recorded", || (at.real.lab.tools().len() == 1).then_some(()));
    let before = at.real.lab.running();
    signal(at.pid(), Signal::KILL);
    live.finish();
    at.begin("resume last --from live -i");
    at.real.wait_file("two.txt");
    until("the turn is recorded", || at.said("text").iter().any(|text| text == "The end.").then_some(()));
    assert_eq!(at.leave(), 0);
    let state = at.real.lab.state();
    assert_eq!(state["run"]["native_id"], before["native_id"]);
    assert_eq!(at.real.lab.tools().len(), 2, "{:#?}", at.real.lab.tools());
    drop(at.terminal);
    at.real.lab.assert_nothing_left();
}

/// A person who leaves the question about a patch with Esc has refused it, as without a person. A command that was left
/// so reads in Codex's log like one that ran and was interrupted.
#[rstest]
#[case::patch(Turn::ops([Op::write("never.txt", "x\n")]), "edits?", "denied")]
#[case::command(escalated(), "command?", "failed")]
fn a_question_is_left_with_escape(#[case] turn: Turn, #[case] question: &str, #[case] end: &str) {
    let Some(at) = Attended::new("codex", [turn, "I see.".into()]) else { return };
    at.real.reconfigure(".codex/config.toml", "danger-full-access", "read-only");
    at.real.reconfigure(
        ".codex/config.toml",
        "approval_policy = \"never\"",
        "approval_policy = \"on-request\"",
    );
    at.begin("run --agent codex");
    let place = at.terminal.place();
    at.ask("do it");
    at.terminal.wait_for(place, question);
    at.press(ESCAPE, "the call is over", || {
        at.real.lab.tools().last().is_some_and(|call| call["state"] != "open")
    });
    assert_eq!(at.leave(), 0);
    at.ledger(&[end]);
    assert!(!at.real.file("never.txt").exists());
    assert_eq!(at.real.lab.json(&["show", "last", "--files"])["items"].as_array().map(Vec::len), Some(0));
}

/// Where there is no terminal, the agent cannot have it.
#[test]
fn there_is_no_terminal() {
    let Some(at) = Attended::new("claude", ["never said".into()]) else { return };
    let said = at.real.lab.run(&["run", "--agent", "claude", "-i"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("needs a terminal"), "{}", said.stderr);
    assert_eq!(at.real.lab.json(&["ls", "--all"])["sessions"].as_array().map(Vec::len), Some(0));
}

/// A conversation in which nothing was said is not kept by the agent; a new one takes its place.
#[test]
fn left_before_anything_was_said() {
    let Some(at) = Attended::new("claude", ["Hello.".into()]) else { return };
    at.begin("run --agent claude");
    assert_eq!(at.leave(), 0);
    let before = at.real.lab.state();
    assert_eq!(before["status"], "paused");
    let place = at.terminal.place();
    at.terminal.type_keys(&format!("$SEGNO resume last --from live{ENTER}"));
    at.terminal.wait_for(place, "a new one is begun");
    let place = at.terminal.place();
    at.is_ready(place);
    at.ask("hello");
    until("the turn is recorded", || at.said("text").iter().any(|text| text == "Hello.").then_some(()));
    assert_eq!(at.leave(), 0);
    let after = at.real.lab.state();
    assert_ne!(after["run"]["native_id"], before["run"]["native_id"]);
    assert_eq!(after["status"], "paused");
    drop(at.terminal);
    at.real.lab.assert_nothing_left();
}
