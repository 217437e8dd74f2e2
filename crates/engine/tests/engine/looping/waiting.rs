//! Loops that wait for a limit, by a clock that moves only when somebody waits.

use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::WokenHow;
use segno_core::looping::DueLoops;
use segno_core::looping::LoopCommand;
use segno_core::looping::ParkReason;
use segno_core::looping::Parked;
use segno_engine::Clock as _;
use segno_engine::Error;
use segno_engine::looping::Sleeper;
use segno_engine::run::Ask;
use segno_engine::run::Stop;

use super::yard::Yard;

const SAIL: &str = "test -f sail";

fn parked(state: &State) -> Parked {
    state.looping.as_ref().unwrap().parked.clone().unwrap()
}

/// A loop that ran into the limit of its plan, which ends in two hours, and is not waited for here.
fn limited(yard: &Yard) -> (SessionId, Timestamp) {
    yard.step(yard.starts() + 1, &format!("limit {}", yard.seconds(7_200)));
    let session = yard.begin(SAIL, |_| {});
    let ended = yard.drive_how(session, WokenHow::Foreground, false).unwrap();
    let parked = parked(&ended.state);
    assert_eq!((ended.state.status, parked.class), (Status::Paused, ParkReason::Plan), "{}", ended.why);
    (session, parked.until.unwrap())
}

fn moved_to(yard: &Yard, at: Timestamp) {
    let seconds = at.micros_since(yard.clock().now()).div_ceil(1_000_000);
    yard.clock().advance(i64::try_from(seconds).unwrap());
}

/// Nobody drives it, and the time is kept; in another process too.
#[test]
fn parked_is_no_process_and_keeps_its_time() {
    let yard = Yard::new();
    yard.always("echo sail > sail; finish done");
    let (session, until) = limited(&yard);
    let state = Yard::again(yard.base()).engine().load(session).unwrap().state;
    assert_eq!((state.driver, state.status), (None, Status::Paused));
    let end = yard.clock().now().plus_seconds(7_200);
    let late = until.micros_since(end) / 1_000_000;
    assert!((30..=90).contains(&late), "it wakes {late} s after the end");
    // Too early is refused, and leaves no trace in the record.
    let before = state.seq;
    assert!(matches!(yard.drive_how(session, WokenHow::Timer, false), Err(Error::Refused(_))));
    assert_eq!(yard.engine().load(session).unwrap().state.seq, before);
    // Hours late it wakes once, asks once, and is done.
    moved_to(&yard, until.plus_seconds(8 * 3_600));
    let ended = yard.drive_how(session, WokenHow::Timer, false).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 2), "{}", ended.why);
    assert_eq!(ended.state.looping.unwrap().total, 1, "the refused one is no iteration");
}

/// Somebody who stops it the first time it naps.
struct Stops<'a>(&'a Stop, Ask);

impl Sleeper for Stops<'_> {
    fn sleep(&self, _most: std::time::Duration) {
        self.0.ask(self.1);
    }
}

/// Ctrl-C while it waits: it stays parked until told, and no timer wakes it. A process that is ended leaves it its time.
#[test]
fn who_stops_a_waiting_loop_is_heard() {
    for (ask, keeps) in [(Ask::Interrupt, false), (Ask::Terminate, true), (Ask::Hangup, true)] {
        let yard = Yard::new();
        yard.always("echo sail > sail; finish done");
        let until = yard.seconds(7_200);
        yard.step(1, &format!("limit {until}"));
        let session = yard.begin(SAIL, |_| {});
        let stop = Stop::default();
        let ended = yard.drive_with(session, WokenHow::Foreground, true, &stop, &Stops(&stop, ask)).unwrap();
        assert_eq!((ended.state.status, ended.verdict), (Status::Paused, None), "{ask:?}");
        assert_eq!(parked(&ended.state).until.is_some(), keeps, "{ask:?}: {}", ended.why);
        yard.clock().advance(10_000);
        let woken = yard.drive_how(session, WokenHow::Timer, false);
        assert_eq!(woken.is_ok(), keeps, "{ask:?}");
        if !keeps {
            assert_eq!(yard.drive(session).unwrap().state.status, Status::Completed, "a person goes on");
        }
    }
}

/// Somebody elsewhere who does something to the session the first time it naps.
struct Elsewhere<'a>(&'a Yard, SessionId, Command);

impl Sleeper for Elsewhere<'_> {
    fn sleep(&self, _most: std::time::Duration) {
        let engine = self.0.engine();
        engine.act(self.1, self.2.clone()).unwrap();
    }
}

#[test]
fn who_holds_or_ends_it_elsewhere_ends_the_wait() {
    let hold = Command::Loop(Box::new(LoopCommand::Hold));
    let abort = Command::Abort { reason: Some("tea".into()) };
    for (command, status, words) in
        [(hold, Status::Paused, "stay parked"), (abort, Status::Aborted, "somebody else ended it")]
    {
        let yard = Yard::new();
        yard.step(1, &format!("limit {}", yard.seconds(7_200)));
        let session = yard.begin(SAIL, |_| {});
        let elsewhere = Elsewhere(&yard, session, command);
        let ended =
            yard.drive_with(session, WokenHow::Foreground, true, &Stop::default(), &elsewhere).unwrap();
        assert_eq!((ended.state.status, yard.starts()), (status, 1));
        assert!(ended.why.contains(words), "{}", ended.why);
    }
}

/// One account, two loops: the second does not have to run into the limit, and they wake one after the other.
#[test]
fn an_account_is_waited_for_once() {
    let yard = Yard::new();
    yard.always("echo sail > sail; finish done");
    let (first, until) = limited(&yard);
    let second = yard.begin(SAIL, |_| {});
    let ended = yard.drive_how(second, WokenHow::Foreground, false).unwrap();
    let waits = parked(&ended.state);
    assert_eq!((yard.starts(), waits.account.as_deref()), (1, Some("claude")), "it asked nobody");
    assert!(waits.until.unwrap() > until && waits.words.contains(&first.to_string()), "{waits:?}");
    assert_eq!(ended.state.looping.as_ref().unwrap().windows_waited, 0);
    // A loop with another home of the agent is another account's.
    let mut other = Yard::again(yard.base());
    let elsewhere = other.base().join("other-home");
    other.settings.environment.push(("CLAUDE_CONFIG_DIR".into(), elsewhere.into()));
    let free = other.begin(SAIL, |_| {});
    assert_eq!(other.drive(free).unwrap().state.status, Status::Completed);
    std::fs::remove_file(yard.base().join("harbour/sail")).unwrap();

    // Both are due. The first one tries and is refused again, until later: the second does not ask.
    moved_to(&yard, waits.until.unwrap());
    assert_eq!(
        yard.engine().due_loops().unwrap(),
        [DueLoops { account: Some("claude".to_owned()), sessions: vec![first, second] }],
        "in the order in which they were due"
    );
    let later = yard.seconds(3_600);
    yard.step(yard.starts() + 1, &format!("limit {later}"));
    let starts = yard.starts();
    drop(yard.drive_how(first, WokenHow::Timer, false).unwrap());
    let ended = yard.drive_how(second, WokenHow::Timer, false).unwrap();
    assert_eq!((yard.starts(), ended.state.status), (starts + 1, Status::Paused), "{}", ended.why);
    let waits = parked(&ended.state).until.unwrap();
    assert!(waits >= Timestamp::EPOCH.plus_seconds(later), "it waits as long as the first one");

    // The first one gets through; then the second may go.
    moved_to(&yard, waits);
    assert_eq!(yard.drive_how(first, WokenHow::Timer, false).unwrap().state.status, Status::Completed);
    std::fs::remove_file(yard.base().join("harbour/sail")).unwrap();
    assert_eq!(yard.drive_how(second, WokenHow::Timer, false).unwrap().state.status, Status::Completed);
}

/// While the first one has not been answered, the others of its account stay where they are; when it was, they go.
#[test]
fn the_others_go_when_the_first_got_through() {
    let yard = Yard::new();
    let (first, _) = limited(&yard);
    // In a tree of its own, as two loops at once have to be.
    let mut there = Yard::again(yard.base());
    there.settings.project = yard.base().join("quay");
    std::fs::create_dir(&there.settings.project).unwrap();
    let second = there.begin(SAIL, |_| {});
    let until = parked(&yard.drive_how(second, WokenHow::Timer, false).unwrap().state).until.unwrap();
    moved_to(&yard, until);
    // It is silent until it is told to speak, then says something, and works on until it is told to end.
    yard.step(
        2,
        "touch tries; while [ ! -f speak ]; do sleep 0.02; done; say hello\n\
         while [ ! -f end ]; do sleep 0.02; done; echo sail > sail; finish done",
    );
    yard.always("touch second; echo sail > sail; finish done");
    std::thread::scope(|scope| {
        let drives = scope.spawn(|| yard.drive_how(first, WokenHow::Timer, false).unwrap());
        wait_for(|| yard.has("tries"));
        let behind = yard.drive_how(second, WokenHow::Timer, false).unwrap();
        assert_eq!(behind.state.status, Status::Paused);
        assert!(behind.why.contains("tries first"), "{}", behind.why);
        let worked = || yard.base().join("quay/second").exists();
        assert!(!worked());
        yard.write("speak", "");
        let state = || yard.engine().load(first).unwrap().state;
        wait_for(|| state().looping.unwrap().tries.is_none());
        assert_eq!(state().status, Status::Active, "it is still at work");
        let ended = yard.drive_how(second, WokenHow::Timer, false).unwrap();
        assert!(worked(), "{}", ended.why);
        yard.write("end", "");
        assert_eq!(drives.join().unwrap().state.status, Status::Completed);
    });
}

fn wait_for(holds: impl Fn() -> bool) {
    while !holds() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// What Claude Code answers when it is asked about its plan.
fn usage(yard: &Yard, percent: u32, resets: i64) {
    let at = Timestamp::EPOCH.plus_seconds(resets);
    let answer = format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"segno-usage","response":{{"rate_limits":{{"five_hour":{{"utilization":{percent},"resets_at":"{at}"}}}}}}}}}}"#
    );
    std::fs::write(yard.base().join("usage"), answer + "\n").unwrap();
}

fn questions(yard: &Yard) -> usize {
    std::fs::read_to_string(yard.base().join("questions")).unwrap_or_default().lines().count()
}

/// Woken, it asks once without spending anything. Used up until later: it waits on, and counts the window; open: it works.
#[test]
fn the_agent_is_asked_before_anything_is_spent() {
    let yard = Yard::new();
    yard.always("echo sail > sail; finish done");
    let (session, until) = limited(&yard);
    moved_to(&yard, until);
    let later = yard.seconds(3_600);
    usage(&yard, 100, later);
    let ended = yard.drive_how(session, WokenHow::Timer, false).unwrap();
    let again = parked(&ended.state);
    assert_eq!((yard.starts(), questions(&yard), again.class), (1, 1, ParkReason::Plan), "{}", ended.why);
    assert!(again.until.unwrap() >= Timestamp::EPOCH.plus_seconds(later + 30));
    assert_eq!(ended.state.looping.unwrap().windows_waited, 2);
    moved_to(&yard, again.until.unwrap());
    usage(&yard, 3, later);
    let ended = yard.drive_how(session, WokenHow::Timer, false).unwrap();
    assert_eq!((ended.state.status, yard.starts(), questions(&yard)), (Status::Completed, 2, 2));
}

/// An agent that cannot tell is simply tried, and nobody is asked who did not wait.
#[test]
fn who_cannot_tell_is_tried() {
    let yard = Yard::new();
    yard.always("echo sail > sail; finish done");
    let (session, until) = limited(&yard);
    assert_eq!(questions(&yard), 0);
    moved_to(&yard, until);
    let ended = yard.drive_how(session, WokenHow::Timer, false).unwrap();
    assert_eq!((ended.state.status, yard.starts(), questions(&yard)), (Status::Completed, 2, 1));
}

/// Handed over at a limit, and back when the window is open again.
#[test]
fn the_first_agent_takes_over_again() {
    let yard = Yard::new();
    yard.step(1, &format!("echo wood > hull; limit {}", yard.seconds(600)));
    yard.always("echo sail > sail; finish done");
    let yard = yard.with_codex("echo plank >> planks");
    let session = yard.begin(SAIL, |new| {
        new.plan.limits.agents = vec!["claude".to_owned(), "codex".to_owned()];
        new.plan.limits.back = true;
        new.plan.caps.iterations = Some(1);
    });
    let ended = yard.drive_how(session, WokenHow::Foreground, false).unwrap();
    assert_eq!((yard.read("planks").lines().count(), yard.starts()), (1, 1), "{}", ended.why);
    yard.clock().advance(600);
    let mut plan = ended.state.looping.unwrap().plan;
    plan.caps.iterations = Some(5);
    yard.engine().loop_replan(session, plan).unwrap();
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 2), "{}", ended.why);
    assert_eq!(ended.state.looping.unwrap().agent.as_deref(), Some("claude"));
    assert_eq!(yard.read("planks").lines().count(), 1);
}

/// Outside its hours nothing begins; inside them it works. So many iterations in an hour, and then it waits.
#[test]
fn hours_and_own_windows() {
    let yard = Yard::new();
    yard.always("echo wood >> boat; finish done");
    let now = yard.clock().now().parts();
    let minute = now.3 as u16 * 60 + now.4 as u16;
    let session = yard.begin(SAIL, |new| {
        new.plan.limits.hours = Some(((minute + 30) % 1_440, (minute + 90) % 1_440));
        new.plan.own.calls_per_hour = Some(2);
    });
    let ended = yard.drive_how(session, WokenHow::Foreground, false).unwrap();
    assert_eq!((parked(&ended.state).class, yard.starts()), (ParkReason::Hours, 0));
    moved_to(&yard, parked(&ended.state).until.unwrap());
    let ended = yard.drive_how(session, WokenHow::Timer, false).unwrap();
    assert_eq!((parked(&ended.state).class, yard.starts()), (ParkReason::Own, 2), "{}", ended.why);
}

/// An agent that would wait for its limit itself is not told to: the loop waits, and two must not.
#[test]
fn nobody_waits_twice() {
    let mut yard = Yard::new();
    yard.settings.environment.push(("CLAUDE_CODE_RETRY_WATCHDOG".into(), "1".into()));
    let common = &mut yard.settings.agents.get_mut("claude").unwrap().common;
    common.env.insert("CLAUDE_CODE_RETRY_WATCHDOG".to_owned(), "1".to_owned());
    yard.always("echo ${CLAUDE_CODE_RETRY_WATCHDOG-none} > dog; echo sail > sail; finish done");
    assert_eq!(yard.until(SAIL).state.status, Status::Completed);
    assert_eq!(yard.read("dog").trim(), "none");
}

/// Who says "now" for one of two loops of an account gets one iteration, also if that one was told to stay parked.
#[test]
fn now_is_now_whatever_other_loops_of_the_account_wait_for() {
    let yard = Yard::new();
    yard.always("echo sail > sail; finish done");
    let (_first, _) = limited(&yard);
    let second = yard.begin(SAIL, |_| {});
    assert_eq!(yard.drive_how(second, WokenHow::Foreground, false).unwrap().state.status, Status::Paused);
    let hold = Command::Loop(Box::new(LoopCommand::Hold));
    yard.engine().act(second, hold).unwrap();
    let starts = yard.starts();
    let ended = yard.drive_how(second, WokenHow::Person, false).unwrap();
    assert_eq!((yard.starts(), ended.state.status), (starts + 1, Status::Completed), "{}", ended.why);
}

/// The same where a window of its own is used up: one iteration, and then it waits as before.
#[test]
fn now_is_one_iteration_beyond_its_own_window() {
    let yard = Yard::new();
    yard.always("echo $n > part-$n; finish done");
    let session = yard.begin(SAIL, |new| new.plan.own.calls_per_hour = Some(1));
    assert_eq!(yard.drive_how(session, WokenHow::Foreground, false).unwrap().state.status, Status::Paused);
    assert_eq!(yard.starts(), 1);
    let ended = yard.drive_how(session, WokenHow::Person, false).unwrap();
    assert_eq!((yard.starts(), ended.state.status), (2, Status::Paused), "{}", ended.why);
    assert_eq!(parked(&ended.state).class, ParkReason::Own);
}
