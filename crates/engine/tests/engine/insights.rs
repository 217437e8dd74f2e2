//! What sessions have in common, read from a store on a disk.

use segno_core::Command;
use segno_core::Fact;
use segno_core::SessionId;
use segno_core::event::CallEnd;
use segno_core::event::Change;
use segno_core::event::Channel;
use segno_core::event::Source;
use segno_core::insights::Finding;
use segno_core::insights::FindingKind;
use segno_engine::Engine;
use segno_engine::EventRow;
use segno_engine::insights::Found;
use segno_engine::insights::InsightsWish;
use serde_json::json;

use crate::common::Room;

struct Work<'a> {
    room: &'a Room,
    engine: Engine,
    session: SessionId,
    calls: usize,
}

impl<'a> Work<'a> {
    fn new(room: &'a Room) -> Self {
        let engine = room.quiet();
        let session = engine.create(room.new_session()).unwrap().state.session_id;
        Self { room, engine, session, calls: 0 }
    }

    fn next_session(&mut self, project: &str) -> SessionId {
        self.room.clock.advance(60);
        let mut new = self.room.new_session();
        new.project.path = project.to_owned();
        self.session = self.engine.create(new).unwrap().state.session_id;
        self.session
    }

    fn fact(&self, fact: Fact) {
        self.room.clock.advance(1);
        self.engine.act(self.session, fact).unwrap();
    }

    fn call(&mut self, command: &str, end: CallEnd, output: &str) {
        self.calls += 1;
        let call = format!("c{}", self.calls);
        let (tool, input) = ("Bash".to_owned(), json!({ "command": command }));
        let source = Source::Stream;
        self.fact(Fact::ToolStarted { call: call.clone(), tool, input, write_ahead: false, source });
        self.fact(Fact::ToolEnded { call, tool: None, end, output: Some(output.into()), source });
    }

    fn error(&self, message: &str) {
        self.fact(Fact::ErrorRecorded { message: message.into(), error_kind: Some("unknown".to_owned()) });
    }

    fn asks(&self, text: &str) {
        self.fact(Fact::Said { channel: Channel::Input, text: text.into(), message: None, parent: None });
    }

    fn changes(&self, path: &str) {
        self.fact(Fact::FileChanged { path: path.to_owned(), change: Change::Modified, call: None });
    }

    fn found(&self, wish: &InsightsWish) -> Found {
        self.engine.insights(wish).unwrap()
    }
}

fn of(found: &Found, kind: FindingKind) -> Vec<&Finding> {
    found.insights.findings.iter().filter(|one| one.kind == kind).collect()
}

#[test]
fn findings_point_at_the_events_that_show_them() {
    let room = Room::new();
    let mut work = Work::new(&room);
    let first = work.session;
    for round in 0..3 {
        work.asks("go on");
        work.call("cargo test auth", CallEnd::Failed, "2 tests failed");
        work.call("npm publish", CallEnd::Denied, "not allowed");
        work.changes("src/a.rs");
        work.changes("src/a.rs");
        work.error(&format!("cannot open /tmp/x{round}/a.rs:{round}"));
    }
    // More than one page of events and of calls.
    for number in 0..520 {
        work.call(&format!("ls d{number}"), CallEnd::Completed, "a");
    }
    let project = room.project().display().to_string();
    let second = work.next_session(&project);
    work.error("cannot open /home/ann/a.rs:7");
    work.call("cargo test auth", CallEnd::Failed, "1 test failed");

    let found = work.found(&InsightsWish::default());
    let numbers = &found.insights.numbers;
    let calls = numbers.calls;
    assert_eq!((numbers.sessions, numbers.errors), (2, 4));
    assert_eq!((calls.total, calls.completed, calls.failed, calls.denied), (527, 520, 4, 3));
    assert_eq!(numbers.time.calls_ms, 527_000);
    assert!(found.notices.is_empty());

    let look = |session: SessionId, seq: u64| match work.engine.events(session, seq - 1, 1).unwrap().remove(0)
    {
        EventRow::Whole(stored) => (stored.kind, stored.body),
        EventRow::Damaged { .. } => unreachable!("nothing is damaged"),
    };
    let shown = |kind: FindingKind, event: &str, word: &str| {
        let all = of(&found, kind);
        assert!(!all.is_empty(), "{kind:?}");
        for evidence in all.iter().flat_map(|one| &one.evidence) {
            let (found, body) = look(evidence.session_id, evidence.seq);
            assert_eq!(found, event, "{kind:?}");
            assert!(body.contains(word), "{body}");
        }
    };
    shown(FindingKind::Error, "error_recorded", "cannot open");
    shown(FindingKind::FailingCall, "tool_started", "cargo test auth");
    shown(FindingKind::Denial, "tool_started", "npm publish");
    shown(FindingKind::File, "file_changed", "src/a.rs");
    let error = of(&found, FindingKind::Error)[0];
    assert_eq!((error.count, error.sessions), (4, 2));
    let sessions: Vec<SessionId> = error.evidence.iter().map(|one| one.session_id).collect();
    assert!(sessions.contains(&first) && sessions.contains(&second), "{sessions:?}");
    let file = of(&found, FindingKind::File)[0];
    assert_eq!(file.words, "edited 6 times in 3 turns of 1 session");

    // The same record gives the same answer, to the byte.
    let again = serde_json::to_string(&work.found(&InsightsWish::default())).unwrap();
    assert_eq!(again, serde_json::to_string(&found).unwrap());
}

#[test]
fn only_some_sessions_and_only_lately() {
    let room = Room::new();
    let mut work = Work::new(&room);
    let first = work.session;
    work.error("early");
    work.error("early");
    work.next_session("/srv/other");
    let since = segno_engine::Clock::now(&*room.clock);
    work.error("late");
    work.error("late");
    let errors = |wish: InsightsWish| {
        let found = work.found(&wish);
        let mut all: Vec<String> =
            of(&found, FindingKind::Error).iter().map(|one| one.what.clone()).collect();
        all.sort();
        (found.insights.numbers.sessions, all.join(" "))
    };
    let all = InsightsWish::default();
    assert_eq!(errors(all.clone()), (2, "early late".to_owned()));
    assert_eq!(
        errors(InsightsWish { project: Some("/srv/other".to_owned()), ..all.clone() }),
        (1, "late".to_owned())
    );
    assert_eq!(errors(InsightsWish { sessions: vec![first], ..all.clone() }), (1, "early".to_owned()));
    assert_eq!(errors(InsightsWish { since: Some(since), ..all.clone() }), (1, "late".to_owned()));
    assert_eq!(errors(InsightsWish { since: Some(since.plus_seconds(900)), ..all }), (0, String::new()));
    let missing = SessionId::at(since.plus_seconds(5_000));
    assert!(
        work.engine.insights(&InsightsWish { sessions: vec![missing], ..InsightsWish::default() }).is_err()
    );
}

#[test]
fn a_session_that_was_interrupted_and_resumed_and_has_no_checkpoint() {
    let room = Room::new();
    let work = Work::new(&room);
    let act = |command: Command| {
        room.clock.advance(1);
        work.engine.act(work.session, command).unwrap();
    };
    work.changes("src/a.rs");
    act(Command::Pause { reason: Default::default(), details: None });
    act(Command::Resume { reset_breaker: false, details: None });
    work.changes("src/b.rs");
    let found = work.found(&InsightsWish::default());
    let resumes = found.insights.numbers.resumes;
    assert_eq!((resumes.total, resumes.worked, resumes.percent), (1, 1, Some(100)));
    let [bare] = of(&found, FindingKind::Checkpoint)[..] else { panic!("{:?}", found.insights.findings) };
    assert_eq!(bare.evidence[0].text, "src/a.rs");
}
