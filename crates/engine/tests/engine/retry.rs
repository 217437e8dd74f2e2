//! Doing the same thing twice, and several things at once.

use segno_core::Command;
use segno_core::Input;

use segno_core::Fact;
use segno_core::Status;
use segno_core::TokenUse;
use segno_core::UserKey;
use segno_core::event::PauseReason;
use segno_core::event::Source;

use crate::common::Room;
use crate::common::note;
use crate::common::notes;

fn tokens(count: u64) -> Fact {
    Fact::TokensRecorded { tokens: TokenUse::of(count), estimated: false, source: Source::Hand }
}

fn pause() -> Command {
    Command::Pause { reason: PauseReason::Asked, details: None }
}

#[test]
fn the_same_key_twice_is_once() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let key: UserKey = "hook-42".parse().unwrap();
    let commands = || vec![Input::from(tokens(100)), note("worked").into(), pause().into()];
    let first = engine.act_all(id, commands(), Some(key.clone())).unwrap();
    assert!(!first.repeated);
    // Pausing is not allowed any more, but this is the same request as before, not a new one.
    for _ in 0..2 {
        let again = room.quiet().act_all(id, commands(), Some(key.clone())).unwrap();
        assert!(again.repeated);
        assert_eq!(again.seq, first.seq);
        assert_eq!(again.state, first.state);
    }
    assert_eq!(engine.load(id).unwrap().state.budget.tokens_used, 100);
    assert_eq!(notes(&engine, id), ["worked"]);
    let other = engine.act_all(id, vec![tokens(1)], Some("hook-43".parse().unwrap())).unwrap();
    assert!(!other.repeated);
}

#[test]
fn a_key_belongs_to_one_session() {
    let room = Room::new();
    let engine = room.quiet();
    let one = engine.create(room.new_session()).unwrap().state.session_id;
    let two = engine.create(room.new_session()).unwrap().state.session_id;
    let key: UserKey = "k".parse().unwrap();
    assert!(!engine.act_all(one, vec![tokens(1)], Some(key.clone())).unwrap().repeated);
    assert!(!engine.act_all(two, vec![tokens(1)], Some(key)).unwrap().repeated);
}

#[test]
fn many_threads_with_one_key_do_it_once() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let key: UserKey = "once".parse().unwrap();
    let repeated: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| {
                let (engine, key) = (room.quiet(), key.clone());
                scope.spawn(move || engine.act_all(id, vec![tokens(5)], Some(key)).unwrap().repeated)
            })
            .collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!(repeated, 5);
    assert_eq!(engine.load(id).unwrap().state.budget.tokens_used, 5);
}

#[test]
fn several_commands_are_all_or_nothing() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let before = engine.load(id).unwrap().state;
    let resume = Command::Resume { reset_breaker: false, details: None };
    let error =
        engine.act_all(id, [Input::from(tokens(7)), note("lost").into(), resume.into()], None).unwrap_err();
    assert_eq!(error.code(), "invalid_state_transition");
    assert_eq!(engine.load(id).unwrap().state, before);
    assert_eq!(notes(&engine, id), Vec::<String>::new());
}

#[test]
fn each_command_is_decided_on_what_the_one_before_brought_about() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let resume = || Command::Resume { reset_breaker: false, details: None };
    let add = |text: &str| Command::AddTask { text: text.into() };
    let advance = Command::AdvancePhase { to: "next".to_owned(), step: None, of: None };
    let end = Command::EndTask { task: 2, done: true };
    let acted = engine
        .act_all(id, vec![pause(), resume(), add("one"), add("two"), end, advance, pause()], None)
        .unwrap();
    assert_eq!(acted.state.status, Status::Paused);
    assert_eq!(acted.state.phase.as_deref(), Some("next"));
    assert_eq!(acted.state.tasks.open.len(), 1);
    assert_eq!((acted.state.tasks.added, acted.state.tasks.done), (2, 1));
    assert_eq!(engine.load(id).unwrap().state, acted.state);
    let error = engine.act_all(id, vec![resume(), resume()], None).unwrap_err();
    assert_eq!(error.code(), "invalid_state_transition");
    assert_eq!(engine.load(id).unwrap().state.status, Status::Paused);
}

#[test]
fn a_failed_retry_with_the_same_key_may_succeed_later() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let key: UserKey = "later".parse().unwrap();
    let resume = || vec![Command::Resume { reset_breaker: false, details: None }];
    assert!(engine.act_all(id, resume(), Some(key.clone())).is_err());
    engine.act(id, pause()).unwrap();
    let acted = engine.act_all(id, resume(), Some(key)).unwrap();
    assert!(!acted.repeated, "a refusal leaves nothing behind, not even the key");
    assert_eq!(acted.state.status, Status::Active);
}
