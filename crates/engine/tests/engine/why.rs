//! Who wrote each line: histories on a disk, of which it is known.

use std::path::PathBuf;

use segno_core::Command;
use segno_core::Fact;
use segno_core::SessionId;
use segno_core::Text;
use segno_core::event::CallEnd;
use segno_core::event::Channel;
use segno_core::event::RunNamed;
use segno_core::event::RunStarted;
use segno_core::event::Source;
use segno_engine::Actor;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::tree::TreeOptions;
use segno_engine::why::FileOrigins;
use segno_engine::workspace::git;
use serde_json::Value;
use serde_json::json;

use crate::common::Room;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Author {
    Person,
    Agent,
}

/// A project in which a person and two sessions work on one file.
struct Work<'a> {
    room: &'a Room,
    engine: Engine,
    sessions: Vec<SessionId>,
    file: PathBuf,
    lines: Vec<(String, Author)>,
    kept: Vec<Vec<(String, Author)>>,
    calls: usize,
    words: usize,
    random: u64,
}

#[expect(clippy::disallowed_methods, reason = "where git is, is told by the environment of the tests")]
fn engine(room: &Room, actor: Actor) -> Engine {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tree =
        TreeOptions { most: 1000, ..TreeOptions::new(room.path().join("snapshots"), git::find(&path)) };
    Engine::new(Box::new(room.store()), EngineOptions { tree: Some(tree), actor, ..room.options() })
}

fn person_s_git(room: &Room, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=p", "-c", "user.email=p@localhost", "-c", "commit.gpgsign=false"];
    let mut command = std::process::Command::new("git");
    let time = format!("{} +0000", segno_engine::Clock::now(&*room.clock).as_micros() / 1_000_000);
    command.current_dir(room.project()).args(who).args(arguments);
    command
        .env("GIT_COMMITTER_DATE", &time)
        .env("GIT_AUTHOR_DATE", &time)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    let said = command.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap()
}

impl<'a> Work<'a> {
    fn new(room: &'a Room) -> Self {
        let engine = engine(room, Actor::default());
        let first = engine.create(room.new_session()).unwrap().state.session_id;
        let file = room.project().join("boat.rs");
        let (lines, kept) = (Vec::new(), Vec::new());
        let (calls, words, random) = (0, 0, 0x9e37_79b9_7f4a_7c15);
        let mut work = Self { room, engine, sessions: vec![first], file, lines, kept, calls, words, random };
        room.clock.advance(1);
        work.sessions.push(work.engine.create(room.new_session()).unwrap().state.session_id);
        for _ in 0..40 {
            let line = work.fresh(Author::Person);
            work.lines.push(line);
        }
        work.save();
        work
    }

    fn next(&mut self, below: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).unwrap() % below.max(1)
    }

    fn fresh(&mut self, author: Author) -> (String, Author) {
        self.words += 1;
        (format!("    let knot_{0} = tie(\"{0}\");", self.words), author)
    }

    fn content(lines: &[(String, Author)]) -> String {
        lines.iter().map(|(text, _)| format!("{text}\n")).collect()
    }

    fn save(&self) {
        std::fs::write(&self.file, Self::content(&self.lines)).unwrap();
    }

    fn act(&self, session: usize, fact: Fact) {
        self.room.clock.advance(1);
        self.engine.act(self.sessions[session], fact).unwrap();
    }

    fn checkpoint(&mut self, session: usize) {
        self.room.clock.advance(1);
        let create = Command::CreateCheckpoint { name: None, reason: Default::default() };
        self.engine.act(self.sessions[session], create).unwrap();
        self.kept.push(self.lines.clone());
        self.room.clock.advance(1);
    }

    fn told(&self, session: usize, text: &str) {
        self.act(
            session,
            Fact::Said { channel: Channel::Input, text: text.into(), message: None, parent: None },
        );
    }

    fn call(
        &mut self,
        session: usize,
        tool: &str,
        input: Value,
        output: Option<Text>,
        does: impl FnOnce(&mut Self),
    ) {
        self.calls += 1;
        let (call, tool) = (format!("call-{}", self.calls), tool.to_owned());
        let source = Source::Stream;
        let name = call.clone();
        self.act(session, Fact::ToolStarted { call: name, tool, input, write_ahead: true, source });
        does(self);
        self.save();
        self.act(session, Fact::ToolEnded { call, tool: None, end: CallEnd::Completed, output, source });
    }

    fn path(&self) -> String {
        self.file.display().to_string()
    }

    /// Changes some lines in a way that an edit can tell of; answers with what stood there and what stands there now.
    fn changed(&mut self) -> (String, String, Vec<(String, Author)>) {
        let at = self.next(self.lines.len().saturating_sub(3));
        let mut lines = self.lines.clone();
        let old = lines[at..at + 2].to_vec();
        let how_many = 1 + self.next(8);
        let mut new: Vec<(String, Author)> = (0..how_many).map(|_| self.fresh(Author::Agent)).collect();
        match self.next(4) {
            // One goes, and the other stays around what is new.
            0 => new.push(old[1].clone()),
            // Both change places.
            1 => {
                new.insert(0, old[1].clone());
                new.push(old[0].clone());
            }
            _ => {
                new.insert(0, old[0].clone());
                new.push(old[1].clone());
            }
        }
        lines.splice(at..at + 2, new.clone());
        (Self::content(&old), Self::content(&new), lines)
    }

    fn agent(&mut self, session: usize, how: usize) {
        let (old, new, lines) = self.changed();
        let path = self.path();
        let read: String =
            self.lines.iter().enumerate().map(|(at, (text, _))| format!("{:>6}→{text}\n", at + 1)).collect();
        let set = move |work: &mut Self| work.lines = lines;
        match how {
            0..=3 => {
                let input = json!({ "file_path": path, "old_string": old, "new_string": new });
                self.call(session, "Edit", input, Some("ok".into()), set);
            }
            4 | 5 => {
                let hunk: String = old.lines().map(|line| format!("-{line}\n")).collect();
                let hunk: String = hunk + &new.lines().map(|line| format!("+{line}\n")).collect::<String>();
                let name = self.file.file_name().unwrap().to_string_lossy().into_owned();
                let patch = format!("*** Begin Patch\n*** Update File: {name}\n@@\n{hunk}*** End Patch\n");
                self.call(session, "apply_patch", json!({ "patch": patch }), Some("ok".into()), set);
            }
            // It reads the file and writes all of it again; what it read was not always recorded.
            6 | 7 => {
                let output = (how == 6).then(|| read.into());
                self.call(session, "Read", json!({ "file_path": path }), output, |_| {});
                let mut lines = self.lines.clone();
                let fresh = self.fresh(Author::Agent);
                lines.insert(self.lines.len() / 2, fresh);
                let input = json!({ "file_path": path, "content": Self::content(&lines) });
                self.call(session, "Write", input, Some("ok".into()), |work| work.lines = lines);
            }
            // A person pastes a line into the prompt.
            8 => {
                let line = self.fresh(Author::Person);
                self.told(session, &format!("please add\n```\n{}\n```\nwhere it fits", line.0));
                let input =
                    json!({ "filePath": path, "oldString": old, "newString": format!("{old}{}\n", line.0) });
                self.call(session, "edit", input, Some("ok".into()), |work| {
                    let at = work.lines.windows(2).position(|two| Self::content(two) == old).unwrap();
                    work.lines.insert(at + 2, line);
                });
            }
            // A person writes while a shell command speaks of the file and of the line.
            _ => {
                let line = self.fresh(Author::Person);
                let name = self.file.file_name().unwrap().to_string_lossy().into_owned();
                let command = format!("grep -n '{}' {name} || echo none", line.0.trim());
                self.call(session, "Bash", json!({ "command": command }), Some("none".into()), |work| {
                    work.lines.push(line)
                });
            }
        }
    }

    fn person(&mut self) {
        let at = self.next(self.lines.len());
        match self.next(5) {
            0 => {
                self.lines.remove(at);
            }
            1 => self.lines[at] = self.fresh(Author::Person),
            _ => {
                let line = self.fresh(Author::Person);
                self.lines.insert(at, line);
            }
        }
        self.save();
    }

    fn judge(&self) -> (usize, usize, usize) {
        let found = self.engine.why(&self.room.project(), &self.file).unwrap();
        assert_eq!(found.lines.len(), self.lines.len());
        let (mut credited, mut agents) = (0, 0);
        for (line, (text, author)) in found.lines.iter().zip(&self.lines) {
            assert_eq!(&line.text, text);
            agents += usize::from(*author != Author::Person);
            let Some(writer) = line.writer.map(|writer| &found.writers[writer]) else { continue };
            credited += 1;
            assert_ne!(*author, Author::Person, "a person's line {text:?} is credited to {writer:?}");
        }
        (credited, agents, self.lines.len())
    }
}

#[test]
fn no_line_of_a_person_is_credited_through_edits_names_commits_and_reverts() {
    let room = Room::new();
    person_s_git(&room, &["init", "-q"]);
    let mut work = Work::new(&room);
    work.checkpoint(0);
    for step in 0..420 {
        let session = work.next(2);
        match work.next(20) {
            0..=3 => work.person(),
            4..=6 => work.checkpoint(session),
            7 if step % 3 == 0 => {
                work.checkpoint(session);
                let name = format!("boat_{step}.rs");
                let to = room.project().join(name);
                std::fs::rename(&work.file, &to).unwrap();
                work.file = to;
                work.person();
                work.checkpoint(session);
            }
            8 => {
                person_s_git(&room, &["add", "-A"]);
                person_s_git(&room, &["commit", "-q", "--allow-empty", "-m", "as it is"]);
            }
            // Back to what was, as `git checkout` does it.
            9 if step % 4 == 0 && !work.kept.is_empty() => {
                let newest = work.kept.len() - 1;
                work.lines = work.kept[newest.saturating_sub(1)].clone();
                work.save();
            }
            _ => {
                let how = work.next(11);
                work.agent(session, how);
            }
        }
    }
    let (credited, agents, all) = work.judge();
    println!("{credited} of {agents} lines of agents credited, {all} lines");
    assert!(all >= 500, "{all} lines");
    assert!(credited * 100 >= agents * 55, "{credited} of {agents}");
}

fn doubt<'a>(found: &'a FileOrigins, text: &str) -> Option<&'a str> {
    found.lines.iter().find(|line| line.text == text).unwrap().doubt
}

/// The four cases in which an earlier draft credited a person's line.
#[test]
fn four_ways_to_take_a_person_s_line_for_an_agent_s() {
    let room = Room::new();
    let mut work = Work::new(&room);
    work.lines.truncate(3);
    work.save();
    work.checkpoint(0);
    let path = work.path();
    let write = |work: &mut Work<'_>, more: &str| {
        let mut lines = work.lines.clone();
        lines.push((more.to_owned(), Author::Agent));
        let input = json!({ "file_path": path, "content": Work::content(&lines) });
        work.call(0, "Write", input, Some("ok".into()), |work| work.lines = lines);
    };
    // It read what a person had typed, and nobody recorded what it read.
    work.lines.push(("typed, seen, not recorded".to_owned(), Author::Person));
    work.save();
    work.call(0, "Bash", json!({ "command": "cat *" }), None, |_| {});
    write(&mut work, "after it");
    // A person pasted the line into the prompt.
    work.checkpoint(0);
    work.told(0, "add `pasted line of mine` at the end");
    write(&mut work, "pasted line of mine");
    // It read a line and wrote it again.
    work.checkpoint(0);
    work.lines.push(("typed and read".to_owned(), Author::Person));
    work.save();
    let read: String =
        work.lines.iter().enumerate().map(|(at, (text, _))| format!("{:>6}→{text}\n", at + 1)).collect();
    work.call(0, "Read", json!({ "file_path": path }), Some(read.into()), |_| {});
    write(&mut work, "the agent's own");
    // A command quotes the line and names the file.
    work.checkpoint(0);
    work.lines.push(("quoted in a command".to_owned(), Author::Person));
    work.save();
    let command = "git commit -m 'quoted in a command' boat.rs";
    work.call(0, "Bash", json!({ "command": command }), Some("done".into()), |_| {});
    work.checkpoint(0);
    let found = work.engine.why(&room.project(), &work.file).unwrap();
    assert_eq!(doubt(&found, "typed, seen, not recorded"), Some("blind"));
    assert_eq!(doubt(&found, "pasted line of mine"), Some("prompt"));
    assert_eq!(doubt(&found, "typed and read"), Some("stood"));
    assert_eq!(doubt(&found, "quoted in a command"), Some("perhaps"));
    assert_eq!(doubt(&found, "the agent's own"), None);
    work.lines
        .iter_mut()
        .filter(|(text, _)| text.starts_with("pasted"))
        .for_each(|line| line.1 = Author::Person);
    work.judge();
}

#[test]
fn a_line_names_its_prompt_call_and_checkpoints_and_long_inputs_are_whole() {
    let room = Room::new();
    let mut work = Work::new(&room);
    work.checkpoint(0);
    work.told(0, "tie the boat up\nand be quick");
    // Longer than what an event holds: it is set aside.
    let more: String = (0..600).map(|at| format!("    rope {at} is laid out\n")).collect();
    let old = Work::content(&work.lines[..1]);
    let input = json!({ "file_path": work.path(), "old_string": old, "new_string": format!("{old}{more}") });
    work.call(0, "Edit", input, Some("ok".into()), |work| {
        let lines: Vec<_> = more.lines().map(|line| (line.to_owned(), Author::Agent)).collect();
        work.lines.splice(1..1, lines);
    });
    work.checkpoint(0);
    let (credited, agents, _) = work.judge();
    assert_eq!((credited, agents), (600, 600));
    let found = work.engine.why(&room.project(), &work.file).unwrap();
    let line = found.lines.iter().find(|line| line.text.ends_with("rope 7 is laid out")).unwrap();
    let writer = &found.writers[line.writer.unwrap()];
    assert_eq!(writer.prompt.as_deref(), Some("tie the boat up"));
    assert_eq!((writer.tool.as_str(), writer.call.as_str()), ("Edit", "call-1"));
    assert_eq!((writer.checkpoint_before, writer.checkpoint_after), (Some(1), Some(2)));
}

#[test]
fn a_commit_says_which_sessions_went_into_it() {
    let room = Room::new();
    person_s_git(&room, &["init", "-q"]);
    let mut work = Work::new(&room);
    person_s_git(&room, &["add", "-A"]);
    person_s_git(&room, &["commit", "-q", "-m", "before"]);
    work.checkpoint(0);
    for session in [0, 1] {
        let old = Work::content(&work.lines[session..session + 1]);
        let line = work.fresh(Author::Agent);
        let input = json!({ "file_path": work.path(), "old_string": old, "new_string": format!("{old}{}\n", line.0) });
        work.call(session, "Edit", input, Some("ok".into()), |work| work.lines.insert(session + 1, line));
    }
    let line = work.fresh(Author::Person);
    work.lines.push(line);
    work.save();
    work.room.clock.advance(2);
    person_s_git(&room, &["add", "-A"]);
    person_s_git(&room, &["commit", "-q", "-m", "knots"]);
    let found = work.engine.why_commit(&room.project(), "HEAD").unwrap().unwrap();
    assert_eq!(found.subject, "knots");
    assert_eq!(found.by_session.values().copied().collect::<Vec<_>>(), [1, 1]);
    assert_eq!((found.not_recorded, found.files.len()), (1, 1));
    assert!(work.engine.why_commit(&room.project(), "--output=x").unwrap().is_none());
    assert!(work.engine.why_commit(&room.project(), "nothing").unwrap().is_none());
}

#[test]
fn a_trace_record_has_the_lines_of_agents_with_their_models_and_nothing_that_was_said() {
    let room = Room::new();
    person_s_git(&room, &["init", "-q"]);
    let mut work = Work::new(&room);
    person_s_git(&room, &["add", "-A"]);
    person_s_git(&room, &["commit", "-q", "-m", "before"]);
    let run = "0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00".to_owned();
    let started = RunStarted { run: run.clone(), agent: "claude".to_owned(), ..RunStarted::default() };
    let actor = Actor { run: Some(run.clone()), ..Actor::default() };
    let id = work.sessions[0];
    work.engine.act(id, Command::StartRun(Box::new(started))).unwrap();
    let named = RunNamed { run, native_id: "n".to_owned(), model: Some("opus".to_owned()), version: None };
    work.engine.act(id, Fact::RunNamed(named)).unwrap();
    work.checkpoint(0);
    work.told(0, "tie the boat up, my dear");
    let plain = std::mem::replace(&mut work.engine, engine(&room, actor));
    let old = Work::content(&work.lines[..1]);
    let new = ["knot one", "", "}", "knot two"];
    let text = format!("{old}{}\n", new.join("\n"));
    let input = json!({ "file_path": work.path(), "old_string": old, "new_string": text });
    work.call(0, "Edit", input, Some("ok".into()), |work| {
        work.lines.splice(1..1, new.map(|line| (line.to_owned(), Author::Agent)));
    });
    work.engine = plain;
    let line = work.fresh(Author::Person);
    work.lines.insert(5, line);
    work.save();
    let now = work.engine.trace(&room.project(), &work.file).unwrap();
    let value = serde_json::to_value(&now).unwrap();
    assert_eq!(value["version"], "0.1");
    assert!(value.get("vcs").is_none(), "{value:#}");
    let conversations = json!([{
        "url": format!("segno:{id}"),
        "contributor": { "type": "ai", "model_id": "anthropic/opus" },
        "ranges": [{ "start_line": 2, "end_line": 5 }],
    }]);
    assert_eq!(value["files"], json!([{ "path": "boat.rs", "conversations": conversations }]));
    assert_eq!(value["metadata"], json!({ "segno": { "lines": 45, "not_recorded": 41 } }));
    assert!(!value.to_string().contains("my dear") && !value.to_string().contains("knot"), "{value:#}");
    assert_eq!(work.engine.trace(&room.project(), &work.file).unwrap().id, now.id);

    work.room.clock.advance(2);
    person_s_git(&room, &["add", "-A"]);
    person_s_git(&room, &["commit", "-q", "-m", "knots"]);
    let of_commit = work.engine.trace_commit(&room.project(), "HEAD").unwrap().unwrap();
    let head = person_s_git(&room, &["rev-parse", "HEAD"]);
    let value = serde_json::to_value(&of_commit).unwrap();
    assert_eq!(value["vcs"], json!({ "type": "git", "revision": head.trim() }));
    assert_eq!(value["files"][0]["conversations"], conversations);
    assert_eq!(value["metadata"], json!({ "segno": { "lines": 5, "not_recorded": 1 } }));
    assert_ne!(of_commit.id, now.id);
    assert!(work.engine.trace_commit(&room.project(), "nothing").unwrap().is_none());
}
