//! Several loops, one account: its window is waited for once, and they go on one after the other.

use rstest::rstest;

use super::*;
use crate::Refusal;
use crate::SessionId;
use crate::Summary;
use crate::event::LoopParked;
use crate::event::WokenHow;
use crate::status::Status;

fn session(n: i64) -> SessionId {
    SessionId::at(at(n))
}

fn waits(n: i64, account: &str, until: i64) -> AccountLoop {
    AccountLoop { session: session(n), account: account.into(), until: Some(at(until)), tries: false }
}

fn tries(n: i64, account: &str) -> AccountLoop {
    AccountLoop { session: session(n), account: account.into(), until: None, tries: true }
}

#[rstest]
#[case::nobody(vec![], AccountTurn::Go)]
#[case::itself(vec![waits(1, "claude", 900), tries(1, "claude")], AccountTurn::Go)]
#[case::another_account(vec![waits(2, "codex", 900), tries(3, "codex")], AccountTurn::Go)]
#[case::over(vec![waits(2, "claude", 100)], AccountTurn::Go)]
#[case::known(vec![waits(2, "claude", 101)], AccountTurn::Later { until: at(101), session: session(2) })]
#[case::the_later_end(
    vec![waits(2, "claude", 300), waits(3, "claude", 900), waits(4, "claude", 50)],
    AccountTurn::Later { until: at(900), session: session(3) }
)]
#[case::tried(vec![waits(2, "claude", 50), tries(3, "claude")], AccountTurn::Behind { session: session(3) })]
#[case::known_counts_more(
    vec![tries(3, "claude"), waits(2, "claude", 900)],
    AccountTurn::Later { until: at(900), session: session(2) }
)]
fn turns(#[case] others: Vec<AccountLoop>, #[case] wanted: AccountTurn) {
    assert_eq!(account_turn(session(1), "claude", &others, at(100)), wanted);
}

/// A loop that ran into a limit of the plan.
fn parked() -> (Story, Timestamp) {
    let mut story = begun(simple());
    let LoopVerdict::Park { until, .. } = iterate(&mut story, limited(LimitClass::Plan, Some(at(7_200))))
    else {
        panic!()
    };
    (story, until)
}

#[test]
fn what_others_see_of_a_loop() {
    let (mut story, until) = parked();
    let seen = |story: &Story| AccountLoop::of(&Summary::from(&story.state));
    let own = story.state.session_id;
    let waiting = AccountLoop { session: own, account: "claude".into(), until: Some(until), tries: false };
    assert_eq!(seen(&story), Some(waiting));
    story.ok(say(LoopCommand::Wake { how: WokenHow::Foreground, at: until, others: vec![] }));
    let trying = AccountLoop { session: own, account: "claude".into(), until: None, tries: true };
    assert_eq!(seen(&story), Some(trying.clone()));
    story.ok(Command::StartIteration);
    assert_eq!(seen(&story), Some(trying), "nobody has answered yet");
    end(&mut story, moved(1), until);
    assert_eq!(seen(&story), None, "it got through");
    // One that is held says nothing of the account.
    let (mut story, _) = parked();
    story.ok(say(LoopCommand::Hold));
    assert_eq!(seen(&story), None);
}

/// The first one tries; the others go when it got through, or wait with it.
#[test]
fn they_wake_in_turn() {
    let (mut story, until) = parked();
    let wake = |others: &[AccountLoop]| {
        say(LoopCommand::Wake { how: WokenHow::Timer, at: until, others: others.to_vec() })
    };
    assert_eq!(story.refused(wake(&[tries(1, "claude")])), Refusal::AnotherFirst { session: session(1) });
    // The first one was refused again, until a later time: so is this one, without asking.
    let events = story.ok(wake(&[waits(1, "claude", 20_000)]));
    let [Event::LoopParked(LoopParked { until: Some(later), windows_waited, words, .. })] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*later, *windows_waited, story.state.status), (at(20_000), 1, Status::Paused));
    assert!(words.contains(&session(1).to_string()), "{words}");
    let wake =
        |how, others: &[AccountLoop]| say(LoopCommand::Wake { how, at: at(20_000), others: others.to_vec() });
    // A person who says "now" has decided.
    let mut now = Story::of(story.state.clone());
    now.ok(wake(WokenHow::Person, &[tries(1, "claude")]));
    assert_eq!(now.state.status, Status::Active);
    // And is not sent back to wait with the others when the iteration is to begin.
    let events = now.ok(turn("claude", "claude", vec![waits(1, "claude", 30_000)], at(20_000)));
    assert!(matches!(&events[..], [Event::IterationStarted(_)]), "{events:?}");
    story.ok(wake(WokenHow::Timer, &[]));
    assert_eq!((story.state.status, looping(&story).tries.as_deref()), (Status::Active, Some("claude")));
}

fn turn(account: &str, agent: &str, others: Vec<AccountLoop>, at: Timestamp) -> Command {
    say(LoopCommand::TakeTurn {
        account: account.into(),
        agent: agent.into(),
        others,
        at,
        jitter: 0,
        now: false,
    })
}

/// Who would start now knows already, and does not have to run into the limit.
#[test]
fn a_known_limit_is_not_run_into() {
    let mut story = begun(simple());
    let others = vec![waits(1, "claude", 7_200)];
    let events = story.ok(turn("claude", "claude", others.clone(), at(100)));
    assert!(matches!(&events[..], [Event::LoopParked(_), Event::SessionPaused(_)]), "{events:?}");
    let stands = looping(&story).parked.clone().unwrap();
    assert_eq!((stands.until, stands.class), (Some(at(7_230)), ParkReason::Plan));
    assert_eq!((looping(&story).windows_waited, looping(&story).total), (0, 0));
    // Another account is none of its business.
    let mut other = begun(simple());
    let events = other.ok(turn("codex", "codex", others.clone(), at(100)));
    assert!(matches!(&events[..], [Event::IterationStarted(_)]), "{events:?}");
    // With another agent that may work, that one goes on; and it does not come back before the time.
    let mut plan = simple();
    plan.limits.agents = vec!["claude".into(), "codex".into()];
    let mut both = begun(plan);
    let events = both.ok(turn("claude", "claude", others.clone(), at(100)));
    assert!(matches!(&events[..], [Event::HandedOver(over)] if over.to_agent == "codex"), "{events:?}");
    let known = [others, vec![waits(2, "codex", 9_000)]].concat();
    let events = both.ok(turn("codex", "codex", known, at(100)));
    assert!(matches!(&events[..], [Event::LoopParked(_), ..]), "no ping-pong: {events:?}");
}

#[test]
fn who_is_due_goes_in_order() {
    let (story, _) = parked();
    let one = |n: i64, account: Option<&str>, until: Option<i64>, status: Status| Summary {
        session_id: session(n),
        waiting_account: account.map(Into::into),
        waiting_until: until.map(at),
        status,
        ..Summary::from(&story.state)
    };
    let all = [
        one(1, Some("claude"), Some(50), Status::Paused),
        one(2, Some("claude"), Some(40), Status::Paused),
        one(3, None, Some(45), Status::Paused),
        one(4, None, Some(46), Status::Paused),
        one(5, Some("codex"), Some(101), Status::Paused),
        one(6, Some("codex"), Some(20), Status::Aborted),
        one(7, Some("codex"), None, Status::Paused),
    ];
    let group = |account: Option<&str>, sessions: Vec<SessionId>| DueLoops {
        account: account.map(Into::into),
        sessions,
    };
    let claude = group(Some("claude"), vec![session(2), session(1)]);
    let alone = [group(None, vec![session(3)]), group(None, vec![session(4)])];
    assert_eq!(due_in_order(&all, at(100)), [vec![claude], alone.to_vec()].concat());
}
