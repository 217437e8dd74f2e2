//! A second process: this test binary again, told by its standard input what to do.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;

use segno_core::SessionId;
use segno_core::event::Source;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::SessionManager;

use crate::common::note;
use crate::common::store_at;

/// A child that does one of the jobs below. It is killed when it is dropped.
pub(crate) struct Helper {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Helper {
    /// Starts a job on a store.
    pub(crate) fn start(job: &str, project: &Path, session: &str) -> Self {
        Self::dying(job, project, session, "")
    }

    /// The same; it is killed when it passes the moment of this name.
    pub(crate) fn dying(job: &str, project: &Path, session: &str, moment: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("SEGNO_RUN_DIE_AT", moment)
            .args(["child::job", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = format!("{job}\n{}\n{session}\n", project.display());
        child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it says next.
    pub(crate) fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.out.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, said)) = line.split_once("@@ ") {
                return Some(said.trim_end().to_owned());
            }
        }
    }

    /// Kills it as power would, and collects it.
    pub(crate) fn kill(&mut self) {
        // Killing one that has ended already is no error here.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.kill();
    }
}

fn say(text: impl std::fmt::Display) {
    println!("\n@@ {text}");
}

fn engine(store: &str) -> Engine {
    Engine::new(
        Box::new(store_at(Path::new(store), std::time::Duration::from_secs(20))),
        EngineOptions::default(),
    )
}

/// Not a test of its own: what a [`Helper`] runs.
#[test]
#[ignore = "run by other tests in a process of its own"]
fn job() {
    let mut lines = std::io::stdin().lines().map_while(Result::ok);
    let (Some(job), Some(project), Some(session)) = (lines.next(), lines.next(), lines.next()) else {
        return;
    };
    match job.as_str() {
        "save" => save_for_ever(&project, &session),
        "drive" => drive_for_ever(&project, session.parse().unwrap()),
        "write views" => write_views(&project, session.parse().unwrap()),
        "load" => load(&project, &session),
        "loop" => drive_loop(&project, session.parse().unwrap()),
        other => panic!("no job {other}"),
    }
}

/// Changes and saves until somebody kills it; says after each change that it was acknowledged.
fn save_for_ever(folder: &str, session: &str) {
    let mut manager = SessionManager::at(Path::new(folder)).unwrap();
    manager.load(session).unwrap().unwrap();
    for round in 1_u64.. {
        let details = format!("round {round} {}", "word ".repeat(400));
        manager.add_history("worked", None, Some(&details)).unwrap();
        manager.record_tokens(10).unwrap();
        manager.save().unwrap();
        say(round);
    }
}

/// Takes the lease, opens a tool call and waits to be killed.
fn drive_for_ever(store: &str, session: SessionId) {
    let engine = engine(store);
    let driver = engine.drive(session, "helper").unwrap();
    let input = serde_json::json!({ "command": "make" });
    let (call, tool) = ("call-1".to_owned(), "Bash".to_owned());
    driver
        .act(segno_core::Fact::ToolStarted { call, tool, input, write_ahead: true, source: Source::Hook })
        .unwrap();
    say("driving");
    loop {
        std::thread::park();
    }
}

/// Changes a session thirty times; every change writes its view.
fn write_views(store: &str, session: SessionId) {
    let engine = engine(store);
    say("ready");
    for round in 0..30 {
        let acted = engine.act(session, note(&format!("from {} round {round}", std::process::id()))).unwrap();
        assert_eq!(acted.notices, Vec::<String>::new());
    }
    say("done");
}

fn load(folder: &str, session: &str) {
    let mut manager = SessionManager::at(Path::new(folder)).unwrap();
    let state = manager.load(session).unwrap().unwrap();
    say(format!("{} {}", state.status, state.budget.tokens_used));
}

/// Drives a loop as far as it gets; whoever started this may have named a moment at which it is killed.
fn drive_loop(base: &str, session: SessionId) {
    let ended = crate::looping::Yard::again(Path::new(base)).drive(session).unwrap();
    say(ended.state.status);
}
