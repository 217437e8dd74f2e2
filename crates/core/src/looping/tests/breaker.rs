//! The breaker: thresholds, states and everything that feeds it.

use rstest::rstest;

use super::*;

/// An observation in one letter. `.` nothing moved, `p` progress, `e` the same error, `E` the same error with new files,
/// `f` another error each time, `q` a question, `d` all denied, `s` no start, `l` a limit, `i` identical calls,
/// `c` a circle, `x` cut short, `m` the same error while more tests pass, `$` very dear.
fn seen(letter: char, n: u32) -> Observation {
    let error = |text: &str| Some(ErrorMark::of(text));
    match letter {
        '.' => idle(),
        'p' => moved(n),
        'e' => Observation { error: error("cannot find value"), ..idle() },
        'E' => Observation { error: error("cannot find value"), ..moved(n) },
        'f' => Observation { error: error(&format!("no such thing: {}", "x".repeat(n as usize))), ..idle() },
        'm' => {
            let tests = Some(counts(u64::from(10 + n), 2));
            Observation { error: error("cannot find value"), tests, ..moved(n) }
        }
        'q' => Observation { question: Some("Shall I?".into()), ..idle() },
        'd' => Observation { end: RunEnd::CannotAct, denials: 3, calls: 3, ..idle() },
        's' => Observation { end: RunEnd::StartFailed, error: error("no such program"), ..idle() },
        'l' => limited(LimitClass::Transient, None),
        'i' => Observation { repeated: Repeated { identical: 5, cycle: 0 }, ..idle() },
        'c' => Observation { repeated: Repeated { identical: 0, cycle: 10 }, ..idle() },
        'x' => Observation { end: RunEnd::Cut, ..idle() },
        '$' => Observation { micros: Some(1_000_000), ..idle() },
        '1' => Observation { micros: Some(100_000), ..moved(n) },
        other => panic!("{other}"),
    }
}

/// The states after each step, as letters: `C`, `H`, `O`; what opened it.
fn walk(limits: &Thresholds, letters: &str) -> (String, Option<BreakerCause>) {
    let mut plan = simple();
    plan.phases[0].thresholds = *limits;
    plan.caps.iterations = None;
    let mut story = begun(plan);
    let mut states = String::new();
    for (n, letter) in (1..).zip(letters.chars()) {
        story.ok(Command::StartIteration);
        let iteration =
            Iteration { number: 1, seen: &seen(letter, n), agent: None, at: now(&story), jitter: 0 };
        let decision = decide(looping(&story), iteration);
        states.push(match decision.breaker.state {
            BreakerState::Closed => 'C',
            BreakerState::HalfOpen => 'H',
            BreakerState::Open => 'O',
        });
        if decision.breaker.state == BreakerState::Open {
            return (states, decision.breaker.cause);
        }
        // Only what the breaker counts matters here, so a pause is gone on from at once.
        let at = now(&story);
        end(&mut story, seen(letter, n), at);
        if story.state.status == crate::status::Status::Paused {
            story.ok(crate::story::resume());
        }
    }
    (states, None)
}

/// No progress and same error, by phase.
#[rstest]
#[case("RED", 3, 5)]
#[case("GREEN", 2, 3)]
#[case("REFACTOR", 5, 5)]
#[case("DOCUMENT", 3, 5)]
#[case("QA", 3, 3)]
#[case("anything", 3, 5)]
#[case("green", 2, 3)]
fn thresholds_by_phase(#[case] phase: &str, #[case] no_progress: u32, #[case] same_error: u32) {
    let limits = Thresholds::for_phase(phase);
    assert_eq!((limits.no_progress, limits.same_error), (no_progress, same_error));
    // Deviation: there is a warning in every phase, also where the threshold is 2.
    assert_eq!(limits.half_open(), if no_progress == 2 { 1 } else { 2 });
    let opens = usize::try_from(no_progress).unwrap();
    let (states, cause) = walk(&limits, &".".repeat(opens + 2));
    assert_eq!(states.len(), opens);
    assert!(states.contains('H') && states.ends_with('O'), "{states}");
    assert_eq!(cause, Some(BreakerCause::NoProgress));
}

#[rstest]
// The usual walk: closed, a warning, open.
#[case("...", "CHO", Some(BreakerCause::NoProgress))]
// Progress closes it, from the warning too.
#[case("..p..p", "CHCCHC", None)]
// The same error opens it from any state; with new files every time nothing else does.
#[case("EEEEE", "CCCCO", Some(BreakerCause::SameError))]
// Other errors are not the same.
#[case("ff", "CH", None)]
#[case("EEEEpE", "CCCCCC", None)]
// Deviation: an error that stays while more tests pass is no sign of standing still.
#[case("mmmmmmmm", "CCCCCCCC", None)]
// Questions neither are progress nor stand still, but they end.
#[case("qqq", "CHO", Some(BreakerCause::Questions))]
#[case("q.q.q", "CCHHO", Some(BreakerCause::Questions))]
// A question beside progress is none of its business.
#[case("qpqpqp", "CCCCCC", None)]
// Starts that fail are no iterations; three in a row open it.
#[case("sss", "CCO", Some(BreakerCause::StartFailures))]
#[case("sspss", "CCCCC", None)]
// Limits are neither failure nor iteration.
#[case("llllllll", "CCCCCCCC", None)]
#[case(".l.l.", "CCHHO", Some(BreakerCause::NoProgress))]
// The same call again and again, and circles: a warning, then open.
#[case("pii", "CCO", Some(BreakerCause::IdenticalCalls))]
#[case("pcc", "CCO", Some(BreakerCause::Cycles))]
// A crash or a timeout without progress is an iteration without progress.
#[case("xxx", "CHO", Some(BreakerCause::NoProgress))]
// Dear iterations that bring nothing, against what this loop usually costs.
#[case("111$$", "CCCCO", Some(BreakerCause::Spend))]
fn walks(#[case] letters: &str, #[case] states: &str, #[case] cause: Option<BreakerCause>) {
    assert_eq!(walk(&Thresholds::of(3, 5), letters), (states.to_owned(), cause), "{letters}");
}

/// Deviation: denials do not open the breaker; after three iterations with nothing else a person is asked.
#[test]
fn cannot_act_asks_a_person() {
    let mut story = begun(simple());
    let goes_on = |verdict: LoopVerdict| matches!(verdict, LoopVerdict::Continue { .. });
    assert!(goes_on(iterate(&mut story, seen('d', 1))));
    assert!(goes_on(iterate(&mut story, seen('d', 2))));
    assert_eq!(looping(&story).breaker.denials, 2);
    let third = iterate(&mut story, seen('d', 3));
    let LoopVerdict::NeedsPerson { need: PersonNeed::CannotAct, why } = third else { panic!("{third:?}") };
    assert_eq!(why, "all that the agent tried was denied, 3 times");
    assert_eq!(story.state.status, crate::status::Status::Paused);
    assert_eq!(looping(&story).breaker.state, BreakerState::Closed);
    // Whoever gave it the rights goes on, and it may try as often again.
    story.ok(crate::story::resume());
    assert!(goes_on(iterate(&mut story, seen('d', 4))));
}

/// An agent that may look but not do what the work needs gets nowhere; whoever comes is told what would help.
#[test]
fn who_halts_after_denials_is_told_the_rule_that_would_help() {
    let mut story = begun(simple());
    let some = Observation {
        calls: 4,
        denials: 1,
        denied: vec!["Bash cargo test".into()],
        allow: vec!["Bash(cargo test *)".into()],
        ..idle()
    };
    let mut verdict = iterate(&mut story, some.clone());
    while story.state.status == crate::status::Status::Active {
        verdict = iterate(&mut story, some.clone());
    }
    let why =
        "3 iterations without progress; denied: Bash cargo test; it would be allowed by Bash(cargo test *)";
    assert_eq!(verdict, LoopVerdict::Halt { why: why.to_owned() });
}

#[test]
fn it_halts_the_session_and_says_why() {
    let mut story = begun(simple());
    iterate(&mut story, idle());
    iterate(&mut story, idle());
    let verdict = iterate(&mut story, idle());
    assert_eq!(verdict, LoopVerdict::Halt { why: "3 iterations without progress".into() });
    assert_eq!(story.state.status, crate::status::Status::Halted);
    let breaker = &looping(&story).breaker;
    assert_eq!((breaker.no_progress, breaker.opens, breaker.probing), (3, 1, false));
    assert_eq!(breaker.compared.as_deref(), Some("tree t0 unchanged"));
    let changes: Vec<_> = looping(&story).breaker_changes.iter().map(|change| change.to).collect();
    assert_eq!(changes, [BreakerState::HalfOpen, BreakerState::Open]);
    // It survives: nothing goes on by itself, and resuming needs a reset.
    assert_eq!(story.refused(crate::story::resume()), crate::refusal::Refusal::BreakerOpen);
    story.ok(Command::Resume { reset_breaker: true, details: None });
    assert_eq!(looping(&story).breaker, Breaker::default());
}

#[test]
fn after_the_cool_down_one_iteration_is_tried() {
    let mut story = begun(simple());
    for _ in 0..3 {
        iterate(&mut story, idle());
    }
    let opened = looping(&story).breaker.opened_at.unwrap();
    let due = opened.plus_seconds(1_800);
    assert_eq!(next_step(&story.state, due.plus_seconds(-1)), NextStep::Halted { probe_at: Some(due) });
    // A clock that was set back does not make it due.
    assert_eq!(next_step(&story.state, opened.plus_seconds(-9)), NextStep::Halted { probe_at: Some(due) });
    assert_eq!(next_step(&story.state, due), NextStep::Probe);
    let probe = || say(LoopCommand::Probe { by: BreakerBy::Cooldown, reason: "30 minutes are over".into() });
    story.ok(probe());
    assert_eq!(story.state.status, crate::status::Status::Active);
    assert_eq!(looping(&story).breaker.state, BreakerState::HalfOpen);
    // What was counted is kept: one more without progress opens it again.
    assert!(matches!(iterate(&mut story, idle()), LoopVerdict::Halt { .. }));
    assert_eq!(looping(&story).breaker.opens, 2);
    story.ok(probe());
    // One with progress closes it.
    assert!(matches!(iterate(&mut story, moved(1)), LoopVerdict::Continue { .. }));
    assert_eq!(looping(&story).breaker.state, BreakerState::Closed);
    assert_eq!((looping(&story).breaker.opens, looping(&story).breaker.no_progress), (0, 0));
}

#[test]
fn after_three_probes_only_a_person_closes_it() {
    let mut story = begun(simple());
    for _ in 0..3 {
        iterate(&mut story, idle());
    }
    for _ in 0..3 {
        let much_later = at(1_000_000);
        assert_eq!(next_step(&story.state, much_later), NextStep::Probe);
        story.ok(say(LoopCommand::Probe { by: BreakerBy::Cooldown, reason: "x".into() }));
        iterate(&mut story, idle());
    }
    assert_eq!(next_step(&story.state, at(1_000_000)), NextStep::Halted { probe_at: None });
}

#[rstest]
#[case(PersonDid::Noted, BreakerCause::NoProgress, true)]
#[case(PersonDid::ChangedFiles, BreakerCause::SameError, true)]
#[case(PersonDid::Noted, BreakerCause::StartFailures, false)]
#[case(PersonDid::ChangedPlan, BreakerCause::StartFailures, true)]
#[case(PersonDid::ChangedSetup, BreakerCause::StartFailures, true)]
fn a_cause_that_is_gone(#[case] did: PersonDid, #[case] cause: BreakerCause, #[case] gone: bool) {
    let open = Breaker { state: BreakerState::Open, cause: Some(cause), ..Breaker::default() };
    assert_eq!(open.is_cause_gone(did), gone);
    assert!(!Breaker::default().is_cause_gone(did));
}

#[test]
fn skipping_the_phase_lets_an_open_loop_go_on() {
    let mut story = begun(prp());
    for _ in 0..3 {
        iterate(&mut story, idle());
    }
    assert_eq!(story.state.status, crate::status::Status::Halted);
    story.ok(say(LoopCommand::SkipPhase { by: "ann".into() }));
    story.ok(crate::story::resume());
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Advance);
    story.ok(say(LoopCommand::Advance));
    assert_eq!(looping(&story).phase, "GREEN");
    assert_eq!(looping(&story).phases[0].end, Some(PhaseEnd::Skipped));
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Baseline);
}

fn halted() -> Story {
    let mut story = begun(simple());
    for _ in 0..3 {
        iterate(&mut story, idle());
    }
    assert_eq!(story.state.status, crate::status::Status::Halted);
    story
}

/// Deviation: what somebody did since lets one iteration be tried at once, and only one.
#[test]
fn a_note_or_another_plan_lets_one_iteration_be_tried() {
    let mut story = halted();
    assert_eq!(cause_gone(looping(&story), &[]), None);
    assert_eq!(cause_gone(looping(&story), &[PersonDid::ChangedFiles]), Some("files were changed since"));
    story.ok(say(LoopCommand::Say { text: "try the other door".into() }));
    let why = cause_gone(looping(&story), &[]).unwrap();
    assert_eq!(why, "there is a note that the agent has not been told yet");
    story.ok(say(LoopCommand::Probe { by: BreakerBy::CauseGone, reason: why.into() }));
    assert_eq!(story.state.status, crate::status::Status::Active);
    assert_eq!(looping(&story).breaker.state, BreakerState::HalfOpen);
    assert!(matches!(iterate(&mut story, idle()), LoopVerdict::Halt { .. }));
    assert_eq!(cause_gone(looping(&story), &[]), None, "the agent was told, and it did not help");
    let plan = Box::new(LoopPlan { work: "something else".into(), ..simple() });
    story.ok(say(LoopCommand::Start { plan, parent: None, item: None }));
    assert_eq!(cause_gone(looping(&story), &[]), Some("it has another plan"));
    story.ok(say(LoopCommand::Probe { by: BreakerBy::CauseGone, reason: "x".into() }));
    assert!(!looping(&story).replanned);
}

/// A reset by hand is enough: nothing else has to be said to go on.
#[test]
fn after_a_reset_it_can_be_resumed() {
    let mut story = halted();
    assert_eq!(crate::detect::refusal(&story.state, false), Some("Session halted by Circuit Breaker"));
    story.ok(say(LoopCommand::ResetBreaker { reason: "the server is up".into() }));
    assert_eq!(crate::detect::refusal(&story.state, false), None);
    story.ok(crate::story::resume());
    assert_eq!(story.state.status, crate::status::Status::Active);
}
