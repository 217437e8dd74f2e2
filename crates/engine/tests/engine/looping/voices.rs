//! Who may say something to a loop, and what comes of it.

use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::event::WokenHow;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopVerdict;
use segno_core::looping::PersonNeed;
use segno_engine::looping::FakeSleeper;
use segno_engine::looping::LoopListener;
use segno_engine::looping::LoopNews;
use segno_engine::looping::NewLoop;
use segno_engine::run::Ask;
use segno_engine::run::Stop;

use super::yard::Yard;

fn say(yard: &Yard, session: SessionId, command: LoopCommand) {
    yard.engine().act(session, Command::Loop(Box::new(command))).unwrap();
}

#[test]
fn a_note_is_in_the_next_prompt_and_in_no_later_one() {
    let yard = Yard::new();
    yard.always("echo wood >> boat; finish done");
    yard.step(3, "echo sail > sail; finish done");
    let session = yard.begin("test -f sail", |_| {});
    say(&yard, session, LoopCommand::Say { text: "use oak, not pine".into() });
    assert_eq!(yard.drive(session).unwrap().state.status, Status::Completed);
    let told = [1, 2, 3].map(|n| yard.prompt(n).contains("use oak, not pine"));
    assert_eq!(told, [true, false, false]);
}

#[test]
fn who_stops_it_between_iterations_pauses_it_and_it_goes_on_later() {
    let yard = Yard::new();
    yard.always("echo sail > sail; finish done");
    let session = yard.begin("test -f sail", |_| {});
    let stop = Stop::default();
    stop.ask(Ask::Interrupt);
    let ended = yard.drive_until(session, &stop).unwrap();
    assert_eq!((ended.state.status, ended.verdict), (Status::Paused, None));
    assert_eq!(yard.starts(), 0, "nothing is started for somebody who wants it to stop");
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 1));
}

#[test]
fn who_pauses_it_from_elsewhere_while_the_agent_works_is_obeyed() {
    let yard = Yard::new();
    // The agent itself waits until somebody has asked.
    yard.step(1, "touch at-work; while :; do sleep 0.02; done");
    yard.always("echo sail > sail; finish done");
    let session = yard.begin("test -f sail", |_| {});
    let ended = std::thread::scope(|scope| {
        let drives = scope.spawn(|| yard.drive(session).unwrap());
        while !yard.has("at-work") {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let reason = segno_core::event::PauseReason::Asked;
        yard.engine().act(session, Command::Pause { reason, details: Some("tea".into()) }).unwrap();
        drives.join().unwrap()
    });
    assert_eq!(ended.state.status, Status::Paused, "{}", ended.why);
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 2), "{}", ended.why);
    assert_eq!(ended.state.looping.unwrap().total, 1, "what was stopped is no iteration");
}

#[test]
fn a_second_driver_is_refused_while_one_drives() {
    let yard = Yard::new();
    yard.step(1, "touch at-work; while [ ! -f go ]; do sleep 0.02; done; echo sail > sail; finish done");
    let session = yard.begin("test -f sail", |_| {});
    std::thread::scope(|scope| {
        let drives = scope.spawn(|| yard.drive(session).unwrap());
        while !yard.has("at-work") {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let why = yard.drive(session).unwrap_err();
        yard.write("go", "");
        assert!(why.to_string().contains("segno loop"), "it is told who drives: {why}");
        assert_eq!(drives.join().unwrap().state.status, Status::Completed);
    });
}

#[test]
fn a_breakpoint_really_waits() {
    let yard = Yard::new();
    yard.always("echo sail > sail; signal");
    let session = yard.begin("test -f sail", |new| {
        let mut second = new.plan.phases[0].clone();
        new.plan.phases[0].breakpoint = true;
        second.name = "PAINT".to_owned();
        new.plan.phases.push(second);
    });
    let ended = yard.drive(session).unwrap();
    let look = |verdict: &Option<LoopVerdict>| {
        matches!(verdict, Some(LoopVerdict::NeedsPerson { need: PersonNeed::Breakpoint, .. }))
    };
    assert!(look(&ended.verdict), "{:?}", ended.verdict);
    assert_eq!(ended.state.status, Status::Paused);
    assert!(yard.drive(session).is_err(), "nobody has looked yet");
    assert_eq!(yard.starts(), 1);
    yard.engine().act(session, Command::ContinueBreakpoint { details: None }).unwrap();
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 2), "{}", ended.why);
}

#[test]
fn a_phase_can_be_skipped() {
    let yard = Yard::new();
    yard.always("finish done");
    let session = yard.begin("test -f sail", |new| {
        let mut second = new.plan.phases[0].clone();
        second.name = "PAINT".to_owned();
        second.evidence[0].command = "true".to_owned();
        new.plan.phases.push(second);
    });
    say(&yard, session, LoopCommand::SkipPhase { by: "somebody".to_owned() });
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 1), "{}", ended.why);
}

/// Two loops in the same files cannot tell whose changes are whose: the second one is refused and leaves nothing behind,
/// however the directory is called. One that has ended, or stands still, is in nobody's way.
#[test]
fn a_second_loop_in_one_tree_is_refused() {
    let yard = Yard::new();
    yard.step(1, "touch at-work; while [ ! -f go ]; do sleep 0.02; done; echo sail > sail; finish done");
    yard.always("finish done");
    let (first, second) = (yard.begin("test -f sail", |_| {}), yard.begin("test -f sail", |_| {}));
    std::thread::scope(|scope| {
        let drives = scope.spawn(|| yard.drive(first).unwrap());
        while !yard.has("at-work") {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let before = yard.engine().load(second).unwrap().state.seq;
        let why = yard.drive(second).unwrap_err();
        let busy = matches!(&why, segno_engine::Error::TreeBusy { session, .. } if *session == first);
        assert!(busy, "{why}");
        assert_eq!(yard.engine().load(second).unwrap().state.seq, before);
        let other_name = yard.base().join("quay");
        std::os::unix::fs::symlink(yard.project(), &other_name).unwrap();
        let mut there = Yard::again(yard.base());
        there.settings.project = other_name;
        let plan = yard.engine().load(first).unwrap().state.looping.unwrap().plan.clone();
        let begun = there.engine().loop_begin(NewLoop { plan, ..NewLoop::default() }, &there.settings);
        assert!(matches!(begun, Err(segno_engine::Error::TreeBusy { .. })), "{begun:?}");
        yard.write("go", "");
        assert_eq!(drives.join().unwrap().state.status, Status::Completed);
    });
    let all = yard.engine().list(&segno_store::Filter::default()).unwrap();
    assert_eq!(all.len(), 2, "what was refused is no session");
    assert_eq!(yard.drive(second).unwrap().state.status, Status::Completed);
}

/// One that waited in the foreground finds another loop at work when its time has come: it waits for that too.
#[test]
fn one_that_waited_waits_for_the_tree_too() {
    /// Lets the other one begin while it waits, and end when it says that it is in the way.
    struct Between<'a>(&'a Yard, Mutex<Option<Sender<()>>>, Mutex<u32>);
    impl LoopListener for Between<'_> {
        fn hear(&self, news: &LoopNews) {
            match news {
                LoopNews::Waiting { .. } => {
                    let Some(begin) = self.1.lock().unwrap().take() else { return };
                    begin.send(()).unwrap();
                    while !self.0.has("at-work") {
                        std::thread::sleep(std::time::Duration::from_millis(5));
                    }
                }
                LoopNews::Problem(text) if text.contains("works in this tree") => {
                    *self.2.lock().unwrap() += 1;
                    self.0.write("go", "");
                }
                _ => {}
            }
        }
    }
    let yard = Yard::new();
    yard.step(1, &format!("limit {}", yard.seconds(7_200)));
    yard.step(2, "touch at-work; while [ ! -f go ]; do sleep 0.02; done; echo s > sail; finish done");
    yard.always("echo sail > sail; finish done");
    let first = yard.begin("test -f sail", |_| {});
    // It has another home of its agent, so the limit is not its own.
    let mut other = Yard::again(yard.base());
    other.settings.environment.push(("CLAUDE_CONFIG_DIR".into(), yard.base().join("other-home").into()));
    let second = other.begin("test -f sail", |_| {});
    let (begin, begun) = channel();
    let between = Between(&yard, Mutex::new(Some(begin)), Mutex::new(0));
    std::thread::scope(|scope| {
        let other = &other;
        let drives = scope.spawn(move || {
            begun.recv().unwrap();
            other.drive(second).unwrap()
        });
        let (stop, sleeper) = (Stop::default(), FakeSleeper(yard.clock()));
        let host = yard.host(&between, WokenHow::Foreground, true, &stop, &sleeper);
        let ended = yard.engine().loop_drive(first, &host).unwrap();
        assert_eq!(drives.join().unwrap().state.status, Status::Completed);
        assert_eq!((ended.state.status, *between.2.lock().unwrap()), (Status::Completed, 1), "{}", ended.why);
    });
}
