//! A halted loop is no dead end.

use segno_core::Command;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::looping::BreakerCause;
use segno_core::looping::BreakerState;
use segno_core::looping::LoopCommand;

use super::yard::Yard;

/// A loop whose agent did nothing three times; the fourth time it does the work.
fn halted() -> (Yard, SessionId) {
    let yard = Yard::new();
    yard.always("finish done");
    yard.step(4, "echo sail > sail; finish done");
    let session = yard.begin("test -f sail", |_| {});
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Halted, 3), "{}", ended.why);
    assert_eq!(yard.drive(session).unwrap_err().code(), "halted", "nobody did anything about it");
    (yard, session)
}

fn say(yard: &Yard, session: SessionId, command: LoopCommand) {
    yard.engine().act(session, Command::Loop(Box::new(command))).unwrap();
}

#[test]
fn a_note_lets_one_iteration_be_tried() {
    let (yard, session) = halted();
    say(&yard, session, LoopCommand::Say { text: "the sail is in the shed".into() });
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 4), "{}", ended.why);
    assert!(yard.prompt(4).contains("the sail is in the shed"));
}

#[test]
fn files_that_somebody_changed_let_one_be_tried_and_only_one() {
    let (yard, session) = halted();
    yard.step(4, "finish done");
    yard.write("shed", "sail");
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Halted, 4), "{}", ended.why);
    assert_eq!(ended.state.looping.unwrap().breaker.opens, 2);
    assert_eq!(yard.drive(session).unwrap_err().code(), "halted");
}

#[test]
fn a_breaker_that_was_reset_lets_it_go_on() {
    let (yard, session) = halted();
    say(&yard, session, LoopCommand::ResetBreaker { reason: "it can now".to_owned() });
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 4), "{}", ended.why);
}

#[test]
fn who_waits_beside_it_sees_it_tried_after_the_cool_down() {
    let mut yard = Yard::new();
    yard.stays = true;
    yard.always("finish done");
    yard.step(5, "echo sail > sail; finish done");
    let began = yard.seconds(0);
    let ended = yard.until("test -f sail");
    // The first try brings nothing, the second does.
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 5), "{}", ended.why);
    assert!(yard.seconds(0) >= began + 2 * 1_800);
}

#[test]
fn three_tries_are_enough() {
    let mut yard = Yard::new();
    yard.stays = true;
    yard.always("finish done");
    let ended = yard.until("test -f sail");
    assert_eq!((ended.state.status, yard.starts()), (Status::Halted, 6), "{}", ended.why);
    assert!(ended.why.ends_with("only a person can close its breaker"), "{}", ended.why);
}

/// An agent that ends at once with an error did not start: no iteration, and three in a row are enough.
#[test]
fn an_agent_that_exits_at_once_did_not_start() {
    let yard = Yard::new();
    yard.program("echo 'error: unknown option --verbose' >&2; exit 2");
    let session = yard.begin("test -f sail", |_| {});
    let ended = yard.drive(session).unwrap();
    assert_eq!(ended.state.status, Status::Halted, "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    assert_eq!((looping.total, looping.breaker.start_failures), (0, 3));
    assert_eq!(looping.breaker.cause, Some(BreakerCause::StartFailures));
    let reason = looping.breaker.reason.unwrap();
    assert!(reason.contains("3 starts in a row failed: error: unknown option --verbose"), "{reason}");
    // A note does not help a program that does not start; another program does.
    say(&yard, session, LoopCommand::Say { text: "please".into() });
    assert_eq!(yard.drive(session).unwrap_err().code(), "halted");
    yard.restore_agent();
    yard.always("echo sail > sail; finish done");
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 1), "{}", ended.why);
    assert_eq!(ended.state.looping.unwrap().breaker.state, BreakerState::Closed);
}
