//! A face inside the process: it runs, stops, resumes and undoes a scripted agent, and no command line is near.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use segno_agents::OutcomeKind;
use segno_core::SessionId;
use segno_core::Status;
use segno_engine::Actor;
use segno_engine::Engine;
use segno_engine::Error;
use segno_engine::StoreLocation;
use segno_engine::frontend::Frontend;
use segno_engine::frontend::Question;
use segno_engine::launch::Intent;
use segno_engine::launch::LaunchSettings;
use segno_engine::launch::RunIn;
use segno_engine::launch::Who;
use segno_engine::redaction::Redaction;
use segno_engine::resume::ResumeWish;
use segno_engine::run::Ask;
use segno_engine::run::EndedRun;
use segno_engine::run::Ending;
use segno_engine::run::Feed;
use segno_engine::run::Report;
use segno_engine::run::Stop;
use segno_engine::setup::CatchUp;
use segno_engine::setup::Opening;
use segno_engine::setup::Purpose;
use segno_engine::setup::Setup;
use segno_engine::setup::TellWaiting;
use segno_engine::tree::RestoreRequest;
use segno_engine::tree::RestoreTarget;
use segno_engine::tree::TreeOptions;
use segno_engine::view;
use segno_testkit::lines::claude;
use serde_json::Value;
use serde_json::json;

use crate::common::PATH;
use crate::common::Room;
use crate::common::launch_settings;

const PATIENCE: Duration = Duration::from_secs(120);

/// Says yes to everything, and writes down what it was asked and told.
#[derive(Default)]
struct Person {
    asked: Mutex<Vec<String>>,
    told: Mutex<Vec<String>>,
}

impl Frontend for Person {
    fn ask(&self, question: &Question) -> Option<usize> {
        self.asked.lock().unwrap().push(question.text.clone());
        Some(1)
    }

    fn notice(&self, text: &str) {
        self.told.lock().unwrap().push(text.to_owned());
    }

    fn progress(&self, _text: &str) {}
}

/// Everything that a face knows: plain values.
struct Face {
    room: Room,
    setup: Setup,
    settings: LaunchSettings,
    person: Person,
}

impl Face {
    fn new() -> Self {
        let room = Room::new();
        let (data, state) = (room.path().join("data"), room.path().join("state"));
        let git = segno_workspace::git::find(std::ffi::OsStr::new(PATH));
        let setup = Setup {
            store: room.store_path().into(),
            busy: Duration::from_secs(20),
            data: data.clone(),
            state: state.clone(),
            redaction: Redaction::default(),
            view: view::Options { enabled: false, ..view::Options::default() },
            layout: Default::default(),
            tree: Some(TreeOptions::new(data.join("snapshots"), git)),
            variables: BTreeMap::new(),
            line_limit: 1 << 20,
            prices: None,
            day: Default::default(),
            keep_transcripts: false,
            memory: Default::default(),
            zone: jiff::tz::TimeZone::UTC.into(),
        };
        let settings = launch_settings(&script(&room), room.path(), room.project(), state);
        Self { room, setup, settings, person: Person::default() }
    }

    fn open(&self) -> Engine {
        self.open_with(None)
    }

    fn open_with(&self, waits: Option<TellWaiting>) -> Engine {
        let opening = Opening {
            purpose: Purpose::LongLived,
            create: true,
            actor: Actor::default(),
            waits,
            at_most: None,
        };
        let engine = self.setup.open(opening).unwrap();
        assert!(engine.catch_up(CatchUp::Whole).interrupted.unwrap().is_empty());
        engine
    }

    /// Plans a run and drives it to its end; `meanwhile` is called beside it.
    fn run(&self, engine: &Engine, intent: Intent, meanwhile: impl FnOnce(SessionId)) -> (SessionId, Report) {
        let chosen = self.settings.choose(&Who::Usual).unwrap();
        let streams = (&Feed::default(), &Stop::default());
        let launch = engine.plan(chosen, intent, &self.settings, &self.person, streams).unwrap();
        let session = launch.state.session_id;
        let report = std::thread::scope(|scope| {
            let run = scope.spawn(|| engine.start(launch.request).unwrap());
            meanwhile(session);
            run.join().unwrap()
        });
        (session, report)
    }

    /// Lets the agent write its file when its call is known: what is written long before a slow driver hears of the call could
    /// be a person's, too, and nobody is asked about it here.
    fn until_it_has_written(&self, other: &Engine, session: SessionId) {
        let calls = || other.load(session).unwrap().state.calls;
        until("the call is known", || calls().total == 1);
        std::fs::write(self.room.path().join("known"), "").unwrap();
        until("the agent has written its file", || calls().open.is_empty());
    }

    fn undo(&self, engine: &Engine, session: SessionId) {
        let request = RestoreRequest { target: RestoreTarget::Undo(1), ..RestoreRequest::files_of(0) };
        engine.go_back(session, &request, false, &self.person).unwrap();
    }

    fn has(&self, name: &str) -> bool {
        self.room.project().join(name).exists()
    }
}

/// An agent that speaks like Claude Code: it writes one file in a new conversation and waits to be stopped; resumed,
/// it writes another and is done.
fn script(room: &Room) -> PathBuf {
    let write = |file: &str| {
        let (call, path) = (format!("call-{file}"), room.project().join(file));
        let input = json!({ "file_path": path, "content": "wood\n" });
        (claude::tool_use("ID", &call, "Write", input), claude::tool_result("ID", &call, "written", false))
    };
    let lines = |name: &str, lines: &[Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(room.path().join(name), text).unwrap();
    };
    let (boat, boat_done) = write("boat");
    let (sail, sail_done) = write("sail");
    lines("new-1", &[claude::init("ID"), boat]);
    lines("new-2", &[boat_done]);
    lines("again-1", &[claude::init("ID"), sail]);
    lines("again-2", &[sail_done, claude::text("ID", "done"), claude::result("ID", "done")]);
    let dir = room.path().display();
    let text = format!(
        "#!/bin/sh\n\
         kind=new\n\
         while [ $# -gt 0 ]; do\n\
         case \"$1\" in --session-id) id=$2;; --resume) id=$2; kind=again;; esac; shift; done\n\
         sed \"s/ID/$id/\" {dir}/$kind-1\n\
         while [ ! -e {dir}/known ]; do sleep 0.02; done\n\
         case $kind in new) echo wood > boat;; *) echo cloth > sail;; esac\n\
         sed \"s/ID/$id/\" {dir}/$kind-2\n\
         while [ $kind = new ]; do sleep 0.02; done\n"
    );
    let path = room.path().join("claude");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn until(what: &str, look: impl Fn() -> bool) {
    let begun = Instant::now();
    while !look() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_face_runs_stops_resumes_and_undoes_an_agent_without_a_command_line() {
    let face = Face::new();
    let engine = face.open();
    let intent = Intent { prompt: "build a boat".to_owned(), ..Intent::default() };
    let (session, report) = face.run(&engine, intent, |session| {
        let other = face.open();
        face.until_it_has_written(&other, session);
        let EndedRun::Asked(asked) = other.end_running(session, Ending::Stop, None).unwrap() else {
            panic!()
        };
        assert_eq!(asked.state.topic.as_deref(), Some("build a boat"));
        assert!(other.wait_until_undriven(session, PATIENCE).unwrap());
    });
    assert_eq!(report.outcome.outcome, OutcomeKind::Stopped, "{}", report.outcome.reason);
    assert_eq!(engine.load(session).unwrap().state.status, Status::Paused);
    assert!(matches!(engine.end_running(session, Ending::Stop, None).unwrap(), EndedRun::Nothing));
    assert!(face.has("boat") && !face.has("sail"));

    let resumption =
        engine.prepare_resume(session, &ResumeWish::default(), &face.person, &|_| Ok(())).unwrap();
    let agent = resumption.agent.unwrap();
    assert_eq!(agent.name, "claude");
    let intent =
        Intent { run_in: RunIn::Again { session, agent, reset_breaker: false }, ..Intent::default() };
    let (again, report) = face.run(&engine, intent, |_| {});
    assert_eq!((again, report.outcome.outcome), (session, OutcomeKind::Completed));
    let state = engine.load(session).unwrap().state;
    assert_eq!((state.status, state.counts.runs), (Status::Completed, 2));
    assert!(face.has("boat") && face.has("sail"));

    face.undo(&engine, session);
    assert!(face.has("boat") && !face.has("sail"), "the second turn is taken back");
    face.undo(&engine, session);
    assert!(!face.has("boat") && !face.has("sail"), "and the first");
    assert!(face.person.asked.lock().unwrap().len() >= 2, "nothing is taken back unasked");
}

#[test]
fn a_start_waits_for_a_busy_store_until_it_is_asked_to_stop() {
    let mut face = Face::new();
    face.setup.busy = Duration::from_millis(50);
    let told = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tells = std::sync::Arc::clone(&told);
    // Longer than anybody waits for a store otherwise.
    let tell = TellWaiting::new(move |waited| {
        if waited > Duration::from_millis(200) {
            tells.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let engine = face.open_with(Some(tell));
    let chosen = face.settings.choose(&Who::Usual).unwrap();
    let intent = Intent { prompt: "build a boat".to_owned(), ..Intent::default() };
    let stop = Stop::default();
    let streams = (&Feed::default(), &stop);
    let launch = engine.plan(chosen, intent, &face.settings, &face.person, streams).unwrap();
    let StoreLocation::File(file) = &face.setup.store;
    let mut store = rusqlite::Connection::open(file).unwrap();
    let held = store.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let started = std::thread::scope(|scope| {
        let run = scope.spawn(|| engine.start(launch.request));
        until("it waits", || told.load(std::sync::atomic::Ordering::SeqCst));
        assert!(!run.is_finished());
        stop.ask(Ask::Interrupt);
        run.join().unwrap()
    });
    assert!(matches!(started, Err(Error::NotStarted(_))), "{started:?}");
    drop(held);
    assert!(!face.has("boat"));
}

#[test]
fn what_was_looked_at_before_somebody_else_went_back_is_not_done() {
    let face = Face::new();
    let engine = face.open();
    let intent = Intent { prompt: "build a boat".to_owned(), ..Intent::default() };
    let (session, _) = face.run(&engine, intent, |session| {
        let other = face.open();
        face.until_it_has_written(&other, session);
        assert!(matches!(other.end_running(session, Ending::Stop, None).unwrap(), EndedRun::Asked(_)));
    });
    let request = RestoreRequest { target: RestoreTarget::Undo(1), ..RestoreRequest::files_of(0) };
    let first = engine.preview(session, request.clone()).unwrap();
    let second = face.open().preview(session, request).unwrap();
    engine.go(first).unwrap();
    assert!(!face.has("boat"));
    let tree = engine.load(session).unwrap().state.tree;
    assert_eq!((tree.restores, tree.redo.len()), (1, 1));
    assert!(matches!(engine.go(second), Err(Error::TreeMoved)));
    assert_eq!(engine.load(session).unwrap().state.tree, tree, "the second one did nothing");
    let redo = RestoreRequest { target: RestoreTarget::Redo(1), ..RestoreRequest::files_of(0) };
    engine.go_back(session, &redo, true, &face.person).unwrap();
    assert!(face.has("boat"));
}
