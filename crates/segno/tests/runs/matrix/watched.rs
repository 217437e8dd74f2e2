//! The real agents with the hooks of `segno init`, started by hand: everything is recorded, and can be taken back.

use std::process::Command;
use std::time::Duration;

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::model::When;
use segno_testkit::recipe::Patience;
use serde_json::Value;

use super::Real;
use super::waits;
use crate::lab::program;
use crate::lab::until;
use crate::table;

impl Real {
    /// With our hooks in its settings and nothing else changed.
    fn watched(agent: &'static str, script: Script) -> Option<Self> {
        let real = Self::new(agent, script, Patience::default())?;
        real.watch();
        Some(real)
    }

    /// Puts our hooks into the agent's settings.
    pub(super) fn watch(&self) {
        let said = self.lab.run(&["init", "--yes", self.agent]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }

    /// The agent as a person types it.
    fn by_hand(&self, prompt: &str, resume: Option<&str>) -> Command {
        let words: Vec<&str> = match (self.agent, resume) {
            ("claude", None) => vec!["-p", prompt],
            ("claude", Some(id)) => vec!["-p", "--resume", id, prompt],
            // A person has to look at its hooks once; here nobody can.
            ("codex", None) => {
                vec!["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", prompt]
            }
            ("codex", Some(id)) => {
                vec!["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "resume", id, prompt]
            }
            ("gemini", None) => vec!["-p", prompt],
            ("gemini", Some(id)) => vec!["--resume", id, "-p", prompt],
            ("opencode", None) => vec!["run", prompt],
            ("opencode", Some(id)) => vec!["run", "--session", id, prompt],
            (other, _) => panic!("{other}"),
        };
        let mut command = program(self.agent);
        command.args(words).env_clear().envs(&self.lab.env).current_dir(self.lab.home.work());
        command
    }

    pub(super) fn hand(&self, prompt: &str, resume: Option<&str>) {
        // opencode takes its time on a busy machine.
        let live = self.lab.start_command(&mut self.by_hand(prompt, resume), None);
        let said = live.finish_within(Duration::from_secs(180));
        self.describe(&said);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }

    pub(super) fn sessions(&self) -> Vec<Value> {
        let mut listed = self.lab.json(&["ls", "--all"]);
        listed["sessions"].as_array_mut().map(std::mem::take).unwrap_or_else(|| panic!("{listed}"))
    }

    fn texts(&self, channel: &str) -> Vec<String> {
        let said = self.lab.journal(Some("said"));
        let of_channel = said.iter().filter(|event| event["body"]["channel"] == channel);
        of_channel.map(|event| event["body"]["text"].as_str().unwrap().to_owned()).collect()
    }
}

/// So many agents work in one project at once.
const AT_ONCE: usize = 8;

/// Whatever an agent is started with, its prompt is in there.
fn says(texts: &[String], what: &str) -> bool {
    texts.iter().any(|text| text.contains(what))
}

#[rstest]
fn started_by_hand(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let turns = [
        Turn::ops([Op::write("made.txt", "written\n")]),
        Turn::sh("echo once >> shell.txt; echo from-the-shell"),
        Turn::text("all is done"),
        Turn::ops([Op::write("second.txt", "again\n")]),
        Turn::text("the second too"),
    ];
    let Some(real) = Real::watched(agent, Script::new(turns)) else { return };
    real.hand("make the first", None);
    let state = real.lab.state();
    assert_eq!(
        (&state["status"], &state["run"]["outcome"]),
        (&"paused".into(), &"completed".into()),
        "{state:#}"
    );
    assert_eq!(state["run"]["agent"], agent);
    let calls = real.lab.tools();
    assert_eq!(calls.len(), 2, "{calls:#?}");
    for call in &calls {
        assert_eq!((&call["state"], &call["write_ahead"]), (&"completed".into(), &true.into()), "{call:#}");
        assert!(call["started_at"].is_string() && call["ended_at"].is_string(), "{call:#}");
    }
    let files = real.lab.journal(Some("file_changed"));
    assert!(
        files.iter().any(|event| event["body"]["path"].as_str().unwrap().ends_with("made.txt")),
        "{files:#?}"
    );
    assert!(says(&real.texts("input"), "make the first"), "{:?}", real.texts("input"));
    table::watched(agent, "calls", "write-ahead");
    table::watched(agent, "what is said", "yes");
    table::watched(agent, "tokens", "yes");
    assert_eq!(real.texts("text"), ["all is done"]);
    assert!(state["budget"]["tokens_used"].as_u64().unwrap() > 0, "{state:#}");
    // The same conversation again is the same session, with a turn of its own.
    let id = state["run"]["native_id"].as_str().unwrap().to_owned();
    let used = state["budget"]["tokens_used"].as_u64().unwrap();
    real.hand("make the second", Some(&id));
    let state = real.lab.state();
    assert_eq!((&state["counts"]["runs"], &state["status"]), (&2.into(), &"paused".into()), "{state:#}");
    assert_eq!(real.sessions().len(), 1);
    table::watched(agent, "taken up again in the same session", "yes");
    assert_eq!(real.texts("text"), ["all is done", "the second too"]);
    assert!(state["budget"]["tokens_used"].as_u64().unwrap() > used, "{state:#}");
    // One turn back, and another.
    let undone = real.lab.json(&["undo", "--session", "last", "--yes"]);
    assert!(!real.file("second.txt").exists() && real.file("made.txt").exists(), "{undone}");
    let undone = real.lab.json(&["undo", "--session", "last", "--yes"]);
    assert!(!real.file("made.txt").exists() && !real.file("shell.txt").exists(), "{undone}");
    table::watched(agent, "undo of a turn", "yes");
    let said = real.lab.run(&["uninit", "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}

#[rstest]
fn killed_and_taken_up_by_hand(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let script = Script::new([waits(), Turn::text("I looked first"), Turn::text("and again")]);
    let Some(real) = Real::watched(agent, script) else { return };
    real.lab.config("[watch]\nbrief = \"auto\"");
    let live = real.lab.start_command(&mut real.by_hand("begin", None), None);
    real.wait_file("begun");
    let run = real.lab.running();
    let pid = u32::try_from(run["pid"].as_u64().unwrap()).unwrap();
    crate::lab::signal(pid, Signal::KILL);
    drop(live);
    let state = until("it is known to be interrupted", || {
        let state = real.lab.state();
        (state["status"] == "interrupted").then_some(state)
    });
    let states: Vec<Value> = real.lab.tools().iter().map(|call| call["state"].clone()).collect();
    assert_eq!(states, ["in_doubt"], "{state:#}");
    table::watched(agent, "killed at work", "yes: interrupted, the call in doubt");
    std::fs::write(real.file("go"), "").unwrap();
    let id = state["run"]["native_id"].as_str().unwrap().to_owned();
    real.hand("go on", Some(&id));
    let asked = real.asked();
    let last = &asked.last().unwrap().conversation;
    assert!(last.contains("IN DOUBT: these calls were started") && last.contains("touch begun"), "{last}");
    table::watched(agent, "brief in the same conversation", "yes");
    let state = real.lab.state();
    assert_eq!((real.sessions().len(), &state["counts"]["runs"]), (1, &2.into()), "{state:#}");
    assert_eq!(state["status"], "paused", "{state:#}");
}

#[rstest]
#[case::claude("claude")]
#[case::opencode("opencode")]
#[case::codex("codex")]
#[case::gemini("gemini")]
fn a_run_with_a_driver_is_recorded_once(#[case] agent: &'static str) {
    let turns = [Turn::sh("echo from-the-shell"), Turn::text("all is done")];
    let Some(real) = Real::watched(agent, Script::new(turns)) else { return };
    let said = real.run(&[]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(real.sessions().len(), 1);
    assert_eq!(real.lab.tools().len(), 1);
    // Its output tells of a call too; who comes with a hook comes once.
    let told = real.lab.journal(Some("tool_started"));
    let hooks = told.iter().filter(|event| event["body"]["source"] == "hook").count();
    assert_eq!(hooks, usize::from(super::tells_before(agent)), "{told:#?}");
    assert_eq!(real.texts("text"), ["all is done"]);
}

#[rstest]
#[case::claude("claude")]
#[case::codex("codex")]
fn eight_in_one_project_are_not_mixed_up(#[case] agent: &'static str) {
    let mut script = Script::new([Turn::text("nobody asked for this")]);
    for number in 1..=AT_ONCE {
        let write = Turn::ops([Op::write(&format!("file-{number}.txt"), "mine\n")]);
        let turns = [write, Turn::text(&format!("done with {number}"))];
        script =
            script.track(&format!("t{number}"), When::first_user(&format!("task number {number}")), turns);
    }
    let Some(real) = Real::watched(agent, script) else { return };
    let live: Vec<_> = (1..=AT_ONCE)
        .map(|number| real.lab.start_command(&mut real.by_hand(&format!("task number {number}"), None), None))
        .collect();
    for agent in live {
        let said = agent.finish_within(Duration::from_secs(180));
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }
    let sessions = real.sessions();
    assert_eq!(sessions.len(), AT_ONCE, "{sessions:#?}");
    for session in sessions {
        let id = session["session_id"].as_str().unwrap();
        let topic = session["topic"].as_str().unwrap();
        let number = topic.strip_prefix("task number ").unwrap_or_else(|| panic!("{topic}"));
        let tools = real.lab.json(&["show", id, "--tools"]);
        let calls = tools["items"].as_array().unwrap();
        assert_eq!((calls.len(), &calls[0]["state"]), (1, &"completed".into()), "{tools:#}");
        assert!(tools.to_string().contains(&format!("file-{number}.txt")), "{tools:#}");
        let log = real.lab.run(&["log", id, "--kind", "said", "--json"]).text();
        assert!(log.contains(&format!("done with {number}")), "{log}");
    }
}
