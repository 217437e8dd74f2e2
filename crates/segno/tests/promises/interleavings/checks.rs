//! What must hold after every step.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;

use super::World;
use crate::lab::program;
use crate::lab::signal;
use crate::lab::until;

impl World {
    pub(super) fn check(&mut self) {
        for run in &mut self.running {
            assert!(run.live.is_running(), "a driver left that nobody had asked to: {}", run.live.stderr());
        }
        self.check_journal();
        self.check_files();
        self.check_agents();
    }

    /// What was acknowledged is there, once and in order.
    fn check_journal(&self) {
        let args = ["log", &self.session, "--json", "--kind", "history_noted"];
        let said = self.lab.run(&args);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let noted: Vec<String> = said
            .lines()
            .iter()
            .filter_map(|event| event["body"]["details"].as_str().map(ToOwned::to_owned))
            .filter(|text| text.starts_with("note "))
            .collect();
        assert_eq!(noted, self.acknowledged, "acknowledged, and in the journal");
    }

    /// What a person wrote is in the tree or in a snapshot that is still referred to, from then on.
    fn check_files(&mut self) {
        let is_there = |(name, content): &(&String, &String)| {
            std::fs::read_to_string(self.file(name)).ok().as_ref() == Some(*content)
        };
        let missing: Vec<String> =
            self.own.iter().filter(|own| !is_there(own)).map(|(name, _)| name.clone()).collect();
        for name in missing {
            // It went because somebody asked to go back, or because a command wrote there.
            self.displaced.extend(self.own.remove(&name).map(|content| (blob(&content), content)));
        }
        let files: BTreeSet<String> = self.tree().into_values().collect();
        let mut elsewhere = self.displaced.iter().filter(|(_, content)| !files.contains(*content)).peekable();
        if elsewhere.peek().is_none() {
            return;
        }
        let kept = self.kept();
        for (blob, content) in elsewhere {
            assert!(kept.contains(blob), "{content:?} is in neither tree nor snapshots");
        }
    }

    /// The files of the project and what is in them, without what belongs to git and to segno.
    pub(super) fn tree(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(self.lab.home.work()).unwrap().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                found.insert(name, std::fs::read_to_string(entry.path()).unwrap_or_default());
            }
        }
        found
    }

    /// Every object that a snapshot of any project refers to.
    fn kept(&self) -> BTreeSet<String> {
        let mut kept = BTreeSet::new();
        for entry in std::fs::read_dir(self.data().join("snapshots")).into_iter().flatten().flatten() {
            let output = program("git")
                .arg("--git-dir")
                .arg(entry.path().join("git"))
                .args(["rev-list", "--objects", "--all"])
                .output()
                .unwrap();
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "snapshots can no longer be read: {why}");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            kept.extend(text.lines().filter_map(|line| line.split(' ').next().map(ToOwned::to_owned)));
        }
        kept
    }

    /// The pids of the agents that live.
    pub(super) fn agents(&self) -> Vec<u32> {
        let processes = self.lab.processes();
        let lines = processes.iter().filter_map(|line| line.split_once(' '));
        let is_shell = |line: &str| line.split(' ').next().is_some_and(|word| word.ends_with("sh"));
        let agents = lines.filter(|(_, line)| is_shell(line) && line.contains("while :; do "));
        let agents: Vec<u32> = agents.map(|(pid, _)| pid.parse().unwrap()).collect();
        // A child that is about to become another program still looks like its parent.
        let parent = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
        };
        agents
            .iter()
            .copied()
            .filter(|pid| parent(pid).is_some_and(|above| !agents.contains(&above)))
            .collect()
    }

    /// An agent that lives has a driver that lives, or its session says that it lives on without.
    fn check_agents(&mut self) {
        let driven = self.running.iter_mut().filter_map(|run| run.live.is_running().then_some(())).count();
        let agents = self.agents();
        if agents.len() <= driven {
            return;
        }
        let listed = self.lab.json(&["ls", "--all", "--limit", "1000"]);
        let sessions: Vec<String> = listed["items"]
            .as_array()
            .or(listed["sessions"].as_array())
            .unwrap_or_else(|| panic!("{listed}"))
            .iter()
            .filter_map(|session| session["session_id"].as_str().map(ToOwned::to_owned))
            .collect();
        let known: BTreeSet<u32> = sessions
            .iter()
            .filter(|id| self.counted.iter().any(|(counted, _)| counted == *id))
            .filter_map(|id| {
                let state = self.lab.json(&["show", id])["state"].take();
                let pid = u32::try_from(state["run"]["pid"].as_u64()?).ok()?;
                let told = state["reason"].to_string().contains("lives on") || state["driver"].is_object();
                told.then_some(pid)
            })
            .collect();
        for agent in agents {
            assert!(known.contains(&agent), "nobody accounts for agent {agent}: {known:?}; {listed}");
        }
    }

    /// Nobody calls a driver dead that lives.
    pub(super) fn check_drivers(&mut self) {
        let alive: Vec<String> = self
            .running
            .iter_mut()
            .filter_map(|run| run.live.is_running().then(|| run.session.clone()))
            .collect();
        for session in alive {
            let state = self.lab.json(&["show", &session])["state"].take();
            assert_eq!(state["status"], "active", "its driver lives: {}", state["reason"]);
        }
    }

    /// When all agents have ended, whatever they said is in the journal: each line once, in order, to the last.
    pub(super) fn end(&mut self) {
        for agent in self.agents() {
            signal(agent, Signal::KILL);
        }
        until("the agents are gone", || self.agents().is_empty().then_some(()));
        for (session, counter) in &self.counted {
            let shown = || self.lab.json(&["show", session])["state"]["run"].take();
            let mut run = shown();
            if !run["outcome"].is_string() {
                // A plain command is not run again: what it said last is taken in, and that is all.
                let said = self.lab.run(&["resume", session]);
                run = shown();
                assert!(run["outcome"].is_string(), "{session} is not settled: {run} {}", said.stderr);
            }
            let said = self.lab.run(&["log", session, "--json", "--kind", "said"]);
            let lines: Vec<Value> = said.lines();
            let lines: Vec<String> = lines
                .iter()
                .filter_map(|event| event["body"]["text"].as_str())
                .flat_map(|text| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>())
                .collect();
            let wanted: Vec<String> = (1..=lines.len()).map(|n| format!("line {n}")).collect();
            assert_eq!(lines, wanted, "each line once and in order: {session} {run}");
            let told: usize = std::fs::read_to_string(counter).unwrap().trim().parse().unwrap();
            // It may have been ended between saying a line and counting it.
            assert!(
                lines.len() == told || lines.len() == told + 1,
                "{told} lines said, {} in the journal of {session}: {run}",
                lines.len()
            );
        }
    }
}

/// The name that the snapshots, which are SHA-256 repositories, give a file's content.
fn blob(content: &str) -> String {
    let mut child = program("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let object = format!("blob {}\0{content}", content.len());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), object.as_bytes()).unwrap();
    let sum = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    sum.split(' ').next().unwrap().to_owned()
}
