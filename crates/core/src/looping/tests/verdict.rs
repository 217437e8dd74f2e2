//! The verdict: exactly one, in a fixed order.

use rstest::rstest;

use super::*;
use crate::event::PauseReason;
use crate::status::Status;

fn word(verdict: &LoopVerdict) -> &'static str {
    verdict.word()
}

/// Each row has one reason more than the next: the first one that holds decides.
#[test]
fn the_order_of_verdicts() {
    let full = || {
        let limit = LimitMark { class: LimitClass::Plan, until: Some(at(9_000)), ..LimitMark::default() };
        Observation {
            end: RunEnd::Limited,
            limit: Some(limit),
            over_budget: Some("all of it".into()),
            asked: Some(Asked::Pause),
            ..done(1)
        }
    };
    let open = |story: &mut Story| {
        let changed = crate::event::BreakerChanged {
            to: BreakerState::Open,
            reason: "stuck".into(),
            ..crate::event::BreakerChanged::default()
        };
        story.record(&changed.into());
    };
    let decided = |seen: Observation, is_open: bool| {
        let mut story = begun(simple());
        story.ok(Command::StartIteration);
        if is_open {
            open(&mut story);
        }
        let iteration = Iteration { number: 1, seen: &seen, agent: None, at: now(&story), jitter: 0 };
        word(&decide(looping(&story), iteration).verdict)
    };
    assert_eq!(decided(full(), true), "stopped");
    let not_asked = || Observation { asked: None, ..full() };
    assert_eq!(decided(not_asked(), true), "completed");
    let not_done = || Observation { evidence: vec![evidence(false)], ..not_asked() };
    assert_eq!(decided(not_done(), true), "cap reached");
    let in_budget = || Observation { over_budget: None, ..not_done() };
    assert_eq!(decided(in_budget(), true), "halted");
    assert_eq!(decided(in_budget(), false), "parked");
    let free = Observation { limit: None, end: RunEnd::Ran, ..in_budget() };
    assert_eq!(decided(free, false), "goes on");
}

#[test]
fn a_gate_that_passes_on_the_last_iteration_is_completed() {
    let mut plan = simple();
    plan.caps.iterations = Some(2);
    let mut story = begun(plan.clone());
    iterate(&mut story, moved(1));
    assert_eq!(iterate(&mut story, done(2)), LoopVerdict::Complete);
    assert_eq!(story.state.status, Status::Completed);
    let mut other = begun(plan);
    iterate(&mut other, moved(1));
    let capped = iterate(&mut other, moved(2));
    assert_eq!(capped, LoopVerdict::Cap { which: CapKind::Iterations, why: "2 of 2 iterations".into() });
    assert_eq!(other.state.status, Status::Paused);
    assert_eq!(other.state.reason.as_ref().unwrap().what, PauseReason::Budget.as_str());
}

#[rstest]
#[case(Asked::Pause, Status::Paused, "asked")]
#[case(Asked::Stop, Status::Paused, "asked")]
#[case(Asked::Signal, Status::Paused, "user interrupt")]
#[case(Asked::Abort, Status::Aborted, "")]
fn what_a_person_asks_for_comes_first(#[case] how: Asked, #[case] status: Status, #[case] what: &str) {
    let mut story = begun(simple());
    let seen = Observation { end: RunEnd::Stopped, asked: Some(how), ..done(1) };
    assert_eq!(iterate(&mut story, seen), LoopVerdict::Stopped { how });
    assert_eq!(story.state.status, status);
    assert_eq!(story.state.reason.as_ref().map_or("", |reason| reason.what.as_str()), what);
    // It is no iteration: the next one has its number.
    assert_eq!((looping(&story).total, story.state.iteration), (0, 0));
}

#[rstest]
#[case("seconds", CapKind::Seconds)]
#[case("phase seconds", CapKind::PhaseSeconds)]
#[case("phase iterations", CapKind::PhaseIterations)]
#[case("iteration tokens", CapKind::IterationTokens)]
#[case("iteration money", CapKind::IterationMoney)]
#[case("day tokens", CapKind::DayTokens)]
#[case("day money", CapKind::DayMoney)]
#[case("budget", CapKind::Budget)]
fn every_cap_stops(#[case] name: &str, #[case] which: CapKind) {
    let mut plan = simple();
    let day = DayUse { tokens: 10, micros: 10, ..DayUse::default() };
    let mut seen = Observation { tokens: 11, micros: Some(11), day, ..moved(1) };
    match name {
        "seconds" => plan.caps.seconds = Some(1),
        "phase seconds" => plan.phases[0].max_seconds = Some(1),
        "phase iterations" => plan.phases[0].max_iterations = Some(1),
        "iteration tokens" => plan.caps.iteration_tokens = Some(10),
        "iteration money" => plan.caps.iteration_micros = Some(10),
        "day tokens" => plan.caps.day_tokens = Some(10),
        "day money" => plan.caps.day_micros = Some(10),
        _ => seen.over_budget = Some("all".into()),
    }
    let mut story = begun(plan);
    let verdict = iterate(&mut story, seen);
    let LoopVerdict::Cap { which: reached, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(reached, which);
    assert_eq!(story.state.status, Status::Paused);
}

/// An iteration that begins late may not take longer than what is left, and always gets a moment.
#[test]
fn the_time_that_is_left() {
    let mut plan = simple();
    let left = |plan: &LoopPlan, after: i64| {
        let story = begun(plan.clone());
        let began = looping(&story).started_at;
        time_left(looping(&story), began.plus_seconds(after))
    };
    assert_eq!(left(&plan, 10), None);
    plan.caps.seconds = Some(100);
    assert_eq!((left(&plan, 10), left(&plan, 99), left(&plan, 500)), (Some(90), Some(1), Some(1)));
    plan.phases[0].max_seconds = Some(30);
    // The phase began a second after the loop.
    assert_eq!(left(&plan, 10), Some(21));
}

#[test]
fn a_hard_budget_of_the_session_stops_the_loop() {
    let mut story = begun(simple());
    story.state.budget = crate::TokenBudget { total_budget: 100, hard: true, ..Default::default() };
    story.ok(crate::story::tokens(100, crate::event::Source::Stream));
    let verdict = iterate(&mut story, moved(1));
    assert_eq!(verdict, LoopVerdict::Cap { which: CapKind::Budget, why: "100 of 100 tokens".into() });
}

#[test]
fn a_cap_that_nobody_raised_holds_when_it_is_taken_up_again() {
    let mut plan = simple();
    plan.caps.iterations = Some(1);
    let mut story = begun(plan.clone());
    iterate(&mut story, moved(1));
    story.ok(crate::story::resume());
    assert!(matches!(next_step(&story.state, now(&story)), NextStep::Capped(LoopVerdict::Cap { .. })));
    plan.caps.iterations = Some(2);
    story.ok(say(LoopCommand::Start { plan: Box::new(plan), parent: None, item: None }));
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Iterate { again: false });
    assert_eq!(looping(&story).total, 1);
}

#[test]
fn qa_sends_back_twice_and_then_asks() {
    let mut story = begun(prp());
    let to_qa = |story: &mut Story| {
        while looping(story).phase != "QA" {
            story.ok(say(LoopCommand::SkipPhase { by: "test".into() }));
            story.ok(say(LoopCommand::Advance));
        }
        baseline(story, counts(6, 0), &[]);
    };
    let mut tree = 0;
    let mut reject = |story: &mut Story| {
        tree += 1;
        let claims = Claims { verdict: Some("REJECT".into()), ..Claims::default() };
        iterate(story, Observation { claims, ..done(tree) })
    };
    for attempt in 1..3 {
        to_qa(&mut story);
        let why = "QA rejects it".to_owned();
        assert_eq!(reject(&mut story), LoopVerdict::BackTo { phase: "GREEN".into(), why, attempt });
        assert_eq!(looping(&story).phase, "GREEN");
        assert_eq!(looping(&story).stand().unwrap().sent_back, attempt);
    }
    to_qa(&mut story);
    let why = "QA rejects it, and it was sent back 2 times before".to_owned();
    let asks = LoopVerdict::NeedsPerson { need: PersonNeed::Escalated, why };
    assert_eq!(reject(&mut story), asks);
    assert_eq!(story.state.status, Status::Paused);
    // Whoever goes on as it is hears the same, and nothing that is not so.
    story.ok(crate::story::resume());
    baseline(&mut story, counts(6, 0), &[]);
    assert_eq!(reject(&mut story), asks);
}

#[test]
fn a_breakpoint_waits_and_the_next_phase_follows() {
    let mut plan = prp();
    plan.phases[1].breakpoint = true;
    let mut story = begun(plan);
    story.ok(say(LoopCommand::SkipPhase { by: "test".into() }));
    story.ok(say(LoopCommand::Advance));
    baseline(&mut story, counts(6, 0), &[]);
    let verdict = iterate(&mut story, Observation { measured: 2, ..done(1) });
    assert!(matches!(verdict, LoopVerdict::NeedsPerson { need: PersonNeed::Breakpoint, .. }), "{verdict:?}");
    assert_eq!(story.state.status, Status::Paused);
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Breakpoint { name: "GREEN".into() });
    story.ok(Command::ContinueBreakpoint { details: None });
    story.ok(crate::story::resume());
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Advance);
    story.ok(say(LoopCommand::Advance));
    assert_eq!(looping(&story).phase, "REFACTOR");
    assert_eq!(looping(&story).phases[1].end, Some(PhaseEnd::Passed));
    // Without a gate that passed nobody goes further.
    assert!(matches!(story.refused(say(LoopCommand::Advance)), crate::refusal::Refusal::BadValue { .. }));
}

/// A person looks at the last phase, and lets it go: nothing follows, so the loop is done.
#[test]
fn a_breakpoint_in_the_last_phase_is_the_last_thing() {
    let mut plan = simple();
    plan.phases[0].breakpoint = true;
    let mut story = begun(plan);
    let verdict = iterate(&mut story, done(1));
    assert!(matches!(verdict, LoopVerdict::NeedsPerson { need: PersonNeed::Breakpoint, .. }), "{verdict:?}");
    story.ok(Command::ContinueBreakpoint { details: None });
    story.ok(crate::story::resume());
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Advance);
    story.ok(say(LoopCommand::Advance));
    assert_eq!(story.state.status, Status::Completed);
    assert_eq!(looping(&story).phases[0].end, Some(PhaseEnd::Passed));
}

/// The exit checks of loops that listen to words: none of them ends this one.
#[test]
fn completion_words_never_complete() {
    let mut story = begun(simple());
    for tree in 1..8 {
        let claims = Claims {
            exit_signal: Some(true),
            status: Some("COMPLETE".into()),
            verdict: Some("APPROVE".into()),
            recommendation: Some("All tasks complete. The project is done.".into()),
            ..Claims::default()
        };
        let verdict = iterate(&mut story, Observation { claims, ..moved(tree) });
        assert!(matches!(verdict, LoopVerdict::Continue { .. }), "{verdict:?}");
    }
    assert_eq!(story.state.status, Status::Active);
}

/// A block that contradicts itself is no signal, and the line says so.
#[test]
fn a_contradiction_is_no_signal() {
    let mut plan = simple();
    plan.signal = true;
    let mut story = begun(plan);
    let claims = |contradiction: Option<&str>| Claims {
        exit_signal: contradiction.is_none().then_some(true),
        contradiction: contradiction.map(ToOwned::to_owned),
        ..Claims::default()
    };
    let seen = |contradiction, seen: Observation| Observation { claims: claims(contradiction), ..seen };
    let why = Some("STATUS is BLOCKED, and EXIT_SIGNAL is true");
    iterate(&mut story, seen(why, moved(1)));
    let line = looping(&story).line.clone().unwrap();
    let told = "its status block contradicts itself: STATUS is BLOCKED, and EXIT_SIGNAL is true";
    assert_eq!(
        line,
        format!("iter 1  work  +1 file  goes on: gate 1 fails (command tests: exit 101); {told}")
    );
    iterate(&mut story, seen(why, done(2)));
    assert_eq!(
        looping(&story).line.clone().unwrap(),
        format!("iter 2  work  6/6 tests  +1 file  goes on: {told}")
    );
    assert_eq!(iterate(&mut story, seen(None, done(3))), LoopVerdict::Complete);
}

#[test]
fn one_line_says_why() {
    let mut story = begun(prp());
    baseline(&mut story, counts(6, 0), &[("old", TestEnd::Passed)]);
    for _ in 0..6 {
        let seen =
            Observation { tests: Some(counts(6, 4)), ..moved(u32::try_from(story.state.seq).unwrap()) };
        iterate(&mut story, seen);
    }
    let seen =
        Observation { tests: Some(counts(8, 2)), files_changed: 3, micros: Some(412_000), ..moved(900) };
    iterate(&mut story, seen);
    let line = looping(&story).line.clone().unwrap();
    assert_eq!(
        line,
        "iter 7  RED  6→8/10 tests  +3 files  $0.41  goes on: gate 1 fails (new failing tests: 0)"
    );
    let seen = Observation { tests: Some(counts(8, 2)), tokens: 1_200, ..moved(901) };
    iterate(&mut story, seen);
    let line = looping(&story).line.clone().unwrap();
    assert!(
        line.starts_with("iter 8  RED  8/10 tests  +1 file  1200 tokens (unpriced)  goes on: "),
        "{line}"
    );
}

/// A cap on time is no budget, and is not called one: what lifts it is time.
#[rstest]
#[case::time(LoopCaps { seconds: Some(3_600), ..LoopCaps::default() }, "timed out")]
#[case::iterations(LoopCaps { iterations: Some(1), ..LoopCaps::default() }, "budget reached")]
fn what_a_capped_loop_is_paused_for(#[case] caps: LoopCaps, #[case] reason: &str) {
    let mut story = begun(LoopPlan { caps, ..simple() });
    story.ok(Command::StartIteration);
    let verdict = end(&mut story, moved(1), at(4_000));
    assert!(matches!(verdict, LoopVerdict::Cap { .. }), "{verdict:?}");
    let reason_of = story.state.reason.clone().unwrap().what;
    assert_eq!((story.state.status, reason_of.as_str()), (Status::Paused, reason));
}

/// What is allowed is counted from where the loop is, and takes nothing away.
#[test]
fn more_is_never_fewer() {
    let mut plan = simple();
    (plan.caps.iterations, plan.phases[0].max_iterations) = (Some(30), Some(2));
    let mut story = begun(plan);
    iterate(&mut story, moved(1));
    let allow = |story: &mut Story, iterations: u64, beside: u64| {
        let further = Further { iterations: Some(iterations), beside, ..Further::default() };
        let at = now(story);
        let events = story.ok(say(LoopCommand::Allow { further, at })).len();
        let plan = &looping(story).plan;
        (events, plan.caps.iterations, plan.phases[0].max_iterations, plan.caps.seconds)
    };
    assert_eq!(allow(&mut story, 10, 0), (1, Some(30), Some(11), None));
    assert_eq!(allow(&mut story, 10, 0), (0, Some(30), Some(11), None), "nothing is to be recorded");
    assert_eq!(allow(&mut story, 10, 25), (1, Some(36), Some(11), None), "with an item of a queue");
}

/// Another model works from here on, but not where a phase was given one of its own.
#[test]
fn another_model_may_go_on() {
    let mut plan = simple();
    let judge = PhasePlan { name: "JUDGE".into(), model: Some("sonnet".into()), ..plan.phases[0].clone() };
    plan.phases.push(judge);
    let mut story = begun(plan);
    let further = Further { model: Some("haiku".into()), ..Further::default() };
    let at = now(&story);
    story.ok(say(LoopCommand::Allow { further, at }));
    let models = looping(&story)
        .plan
        .phases
        .iter()
        .map(|phase| phase.model.as_deref().unwrap_or(""))
        .collect::<Vec<_>>();
    assert_eq!(models, ["haiku", "sonnet"]);
}

/// Deviation: a breaker that opened in the iteration that met a cap is tried like one that halted.
#[test]
fn one_iteration_is_tried_after_a_cap_too() {
    let mut plan = simple();
    plan.caps.iterations = Some(3);
    let mut story = begun(plan);
    let verdicts: Vec<LoopVerdict> = (0..3).map(|_| iterate(&mut story, idle())).collect();
    assert!(matches!(verdicts[2], LoopVerdict::Cap { .. }), "{verdicts:?}");
    assert_eq!((story.state.status, looping(&story).breaker.state), (Status::Paused, BreakerState::Open));
    story.ok(say(LoopCommand::Probe { by: BreakerBy::CauseGone, reason: "x".into() }));
    assert_eq!(story.state.status, Status::Active);
}
