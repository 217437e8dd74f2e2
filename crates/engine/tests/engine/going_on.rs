//! Going on without a command line: a frontend inside the process is told what matters, and what is prepared is true.

use std::sync::Mutex;

use segno_agents::Conversation;
use segno_core::Command;
use segno_core::Fact;
use segno_core::Input;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::TokenBudget;
use segno_core::TokenUse;
use segno_core::event::Maker;
use segno_core::event::Recovery;
use segno_core::event::RunEnded;
use segno_core::event::RunStarted;
use segno_core::event::Source;
use segno_core::event::Workflow;
use segno_engine::Actor;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::Error;
use segno_engine::NewSession;
use segno_engine::frontend::Frontend;
use segno_engine::frontend::Question;
use segno_engine::lease::here;
use segno_engine::resume::ResumeWish;
use segno_store::Store as _;
use serde_json::json;

use crate::common::Room;

/// Writes down what it is told.
#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

impl Frontend for Listener {
    fn ask(&self, _question: &Question) -> Option<usize> {
        None
    }

    fn notice(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }

    fn progress(&self, _text: &str) {}
}

fn start(call: &str, command: &str) -> Fact {
    let (call, tool) = (call.to_owned(), "Bash".to_owned());
    Fact::ToolStarted {
        call,
        tool,
        input: json!({ "command": command }),
        write_ahead: true,
        source: Source::Hook,
    }
}

/// A session with a driver that is gone, whose agent was asked to do something.
fn abandoned(room: &Room, engine: &Engine, outcome: Option<&str>) -> SessionId {
    let new = NewSession { made_by: Maker::Run, ..room.new_session() };
    let id = engine.create(new).unwrap().state.session_id;
    let mut holder = here("gone");
    holder.process_start += 1;
    let lease = room.store().acquire(id, &holder, None).unwrap();
    let run = RunStarted {
        run: "run-1".into(),
        agent: "claude".into(),
        native_id: Some("conv-1".into()),
        prompt: Some("paint the boats\nall of them".into()),
        pid: u32::MAX,
        ..RunStarted::default()
    };
    let mut inputs: Vec<Input> = vec![
        Command::AttachDriver { epoch: lease.epoch, holder }.into(),
        Command::StartRun(Box::new(run)).into(),
        start("c1", "mix").into(),
    ];
    if let Some(outcome) = outcome {
        let ended = RunEnded { run: "run-1".into(), outcome: outcome.into(), ..RunEnded::default() };
        inputs.push(Command::EndRun(Box::new(ended)).into());
    }
    room.engine_as(lease.epoch).act_all(id, inputs, None).unwrap();
    id
}

#[test]
fn a_library_user_meets_an_interrupted_session_after_a_crash() {
    let room = Room::new();
    let engine = room.quiet();
    let id = abandoned(&room, &engine, None);
    let mut manager = room.manager();
    let state = manager.load(&id.to_string()).unwrap().unwrap();
    assert_eq!(state.status, Status::Interrupted);
    assert!(
        manager.notices().iter().any(|notice| notice.contains("its driver died")),
        "{:?}",
        manager.notices()
    );
    assert_eq!(manager.resume().unwrap().status, Status::Active);
}

#[test]
fn a_library_user_is_told_that_a_driver_was_only_asked() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let _driver = engine.drive(id, "elsewhere").unwrap();
    let mut manager = room.manager();
    manager.load(&id.to_string()).unwrap();
    assert_eq!(manager.pause().unwrap().status, Status::Active);
    let notices = manager.notices();
    assert!(notices.iter().any(|notice| notice.contains("was asked to pause")), "{notices:?}");
}

#[test]
fn whoever_acts_below_a_driver_asks_it_too() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let driver = engine.drive(id, "elsewhere").unwrap();
    let actor = Actor { run: Some("run-1".into()), epoch: Some(driver.epoch()), session: Some(id) };
    let below = Engine::new(Box::new(room.store()), EngineOptions { actor, ..room.options() });
    let pause = Command::Pause { reason: segno_core::event::PauseReason::Asked, details: None };
    let acted = below.act(id, pause.clone()).unwrap();
    assert_eq!(acted.requested, Some(segno_core::event::Request::Pause));
    assert_eq!(driver.act(pause).unwrap().state.status, Status::Paused, "the driver itself does it");
}

#[test]
fn what_is_prepared_tells_the_task_and_what_is_in_doubt() {
    let room = Room::new();
    let engine = room.quiet();
    let id = abandoned(&room, &engine, Some("interrupted"));
    let listener = Listener::default();
    let resumption = engine.prepare_resume(id, &ResumeWish::default(), &listener, &|_| Ok(())).unwrap();
    assert_eq!((resumption.recovery, resumption.finished), (Recovery::Live, false));
    let agent = resumption.agent.unwrap();
    assert_eq!(
        (agent.name.as_str(), &agent.conversation),
        ("claude", &Conversation::Resume("conv-1".into()))
    );
    assert!(agent.prompt.contains("paint the boats\nall of them"), "{}", agent.prompt);
    assert!(agent.prompt.contains("Bash: `mix`"), "{}", agent.prompt);
    // Another agent has no part in that conversation.
    let wish = ResumeWish { agent: Some("codex".into()), ..ResumeWish::default() };
    let agent = engine.prepare_resume(id, &wish, &listener, &|_| Ok(())).unwrap().agent.unwrap();
    assert_eq!((agent.name.as_str(), &agent.conversation), ("codex", &Conversation::New));
}

#[test]
fn an_agent_that_has_finished_is_not_prepared_again() {
    let room = Room::new();
    let engine = room.quiet();
    let id = abandoned(&room, &engine, Some("completed"));
    let listener = Listener::default();
    let resumption = engine.prepare_resume(id, &ResumeWish::default(), &listener, &|_| Ok(())).unwrap();
    assert!(resumption.finished && resumption.agent.is_none());
    assert_eq!(resumption.state.status, Status::Completed);
}

#[test]
fn a_fresh_start_has_the_task_and_the_caps_and_nothing_that_was_done() {
    let room = Room::new();
    let engine = room.quiet();
    let id = abandoned(&room, &engine, Some("interrupted"));
    engine.settle().unwrap();
    let workflow = Workflow { name: "tdflow".into(), phases: vec!["red".into(), "green".into()] };
    let set = Command::SetBudget {
        unit: segno_core::event::Unit::Tokens,
        total: Some(500),
        hard: Some(true),
        warn_percent: None,
        count: None,
    };
    let used = Fact::TokensRecorded { tokens: TokenUse::of(70), estimated: false, source: Source::Hand };
    engine
        .act_all(id, vec![Input::from(Command::SetWorkflow { workflow }), set.into(), used.into()], None)
        .unwrap();
    let wish = ResumeWish { from: Some(Recovery::Fresh), ..ResumeWish::default() };
    let resumption = engine.prepare_resume(id, &wish, &Listener::default(), &|_| Ok(())).unwrap();
    let state = &resumption.state;
    assert_eq!((state.continues, state.phase.as_deref(), state.step), (Some(id), Some("red"), Some(1)));
    assert_eq!((state.budget.total_budget, state.budget.tokens_used, state.budget.hard), (500, 70, true));
    assert_eq!(engine.load(id).unwrap().state.status, Status::Aborted);
    let agent = resumption.agent.unwrap();
    assert_eq!(agent.conversation, Conversation::New);
    assert!(agent.prompt.contains("paint the boats") && !agent.prompt.contains("mix"), "{}", agent.prompt);
}

#[test]
fn what_is_used_below_counts_above_once() {
    let room = Room::new();
    let above = room.quiet();
    let budget = TokenBudget { total_budget: 100, hard: true, ..TokenBudget::default() };
    let id = above.create(NewSession { budget, ..room.new_session() }).unwrap().state.session_id;
    let count =
        |tokens: u64| Command::CountBelow { run: "run-9".into(), tokens: TokenUse::of(tokens), micros: 1 };
    above.act(id, count(40)).unwrap();
    let again = above.act(id, count(40)).unwrap_err();
    assert!(again.to_string().contains("counted already"), "{again}");
    let state = above.act(id, count(100)).unwrap().state;
    assert_eq!((state.budget.tokens_used, state.cost.used_micros), (100, 1));
    // Nothing is started below a cap that is used up.
    let actor = Actor { session: Some(id), ..Actor::default() };
    let below = Engine::new(Box::new(room.store()), EngineOptions { actor, ..room.options() });
    assert!(matches!(below.check_start_below(), Err(Error::CapReached { .. })));
}
