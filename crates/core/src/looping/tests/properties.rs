//! What holds for any sequence of outcomes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::status::Status;

/// Any outcome of a run that leaves nothing that can be measured.
fn nothing() -> impl Strategy<Value = Observation> {
    let end = prop_oneof![
        6 => Just(RunEnd::Ran),
        2 => Just(RunEnd::Cut),
        2 => Just(RunEnd::CannotAct),
        2 => Just(RunEnd::StartFailed),
    ];
    (end, 0..4_u8, any::<bool>(), any::<bool>(), 0..8_u32, 0..14_u32, 0..2_000_000_u64).prop_map(
        |(end, error, asks, claims, identical, cycle, micros)| {
            let mut seen = Observation { end, micros: Some(micros), ..idle() };
            seen.error = (error > 0)
                .then(|| ErrorMark::of(["", "no file", "no type", "no value"][usize::from(error)]));
            seen.question = asks.then(|| "Which one?".to_owned());
            seen.repeated = Repeated { identical, cycle };
            if claims {
                seen.claims.exit_signal = Some(true);
                seen.claims.status = Some("COMPLETE".into());
                seen.claims.metrics.insert("files_modified".into(), 3.0);
            }
            seen
        },
    )
}

/// Goes on by itself as long as anything lets it, and counts the steps.
fn steps_until_stop(plan: LoopPlan, outcomes: &[Observation]) -> u64 {
    let mut story = begun(plan);
    let mut steps = 0;
    let mut outcomes = outcomes.iter().cycle();
    loop {
        let mut when = now(&story);
        if let NextStep::Halted { probe_at: Some(at) } = next_step(&story.state, when) {
            when = at;
        }
        match next_step(&story.state, when) {
            NextStep::Probe => {
                story.ok(say(LoopCommand::Probe { by: BreakerBy::Cooldown, reason: "x".into() }));
            }
            NextStep::Iterate { .. } if story.state.status == Status::Active => {
                iterate(&mut story, outcomes.next().unwrap().clone());
                steps += 1;
            }
            _ => return steps,
        }
        assert!(steps < 10_000, "it never ends");
    }
}

/// Where a loop stands, without what depends on how many events there were.
fn standing(story: &Story) -> (Status, String, u64, u64, Breaker, Option<&'static str>) {
    let state = looping(story);
    let breaker = Breaker { opened_at: None, ..state.breaker.clone() };
    let word = state.verdict.as_ref().map(LoopVerdict::word);
    (story.state.status, state.phase.clone(), state.total, story.state.iteration, breaker, word)
}

/// Drives a loop with these outcomes; where `kills` says so its driver dies after it has begun an iteration, and whoever
/// comes next has only what was stored.
fn driven(outcomes: &[Observation], kills: &[bool]) -> Story {
    let mut story = begun(prp());
    let mut kills = kills.iter().cycle();
    for outcome in outcomes {
        if story.state.status != Status::Active {
            break;
        }
        if next_step(&story.state, now(&story)) == NextStep::Baseline {
            baseline(&mut story, counts(6, 0), &[]);
        }
        story.ok(Command::StartIteration);
        if *kills.next().unwrap() {
            let stored = serde_json::to_string(&story.state).unwrap();
            story = Story::of(serde_json::from_str(&stored).unwrap());
            assert_eq!(next_step(&story.state, now(&story)), NextStep::Iterate { again: true });
            story.ok(Command::StartIteration);
        }
        let at = now(&story);
        end(&mut story, outcome.clone(), at);
    }
    story
}

/// Any outcome: nothing, files, or all that a phase asks for.
fn anything() -> impl Strategy<Value = Observation> {
    (nothing(), 0..4_u8, 1..40_u32).prop_map(|(seen, what, tree)| match what {
        0 => seen,
        1 => Observation { end: RunEnd::Ran, tree_after: Some(format!("t{tree}")), ..seen },
        2 => {
            let mut all = Observation { measured: 2, claims: seen.claims, ..done(tree) };
            all.changes.new_failing = named(2);
            all
        }
        _ => {
            let since_start = Some(SinceStart { new: 2, ..SinceStart::default() });
            let claims =
                Claims { metrics: [("refactoring_complete".to_owned(), 1.0)].into(), ..Claims::default() };
            Observation { measured: 2, since_start, claims, ..done(tree) }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Without evidence of progress a loop ends, whatever its agent does and says, within the bound that is stated.
    #[test]
    fn without_progress_a_loop_ends(
        outcomes in vec(nothing(), 1..12),
        no_progress in 1..7_u32,
        same_error in 0..7_u32,
        questions in 1..5_u32,
        denials in 1..5_u32,
        probes in 0..4_u32,
    ) {
        let limits = Thresholds { questions, denials, probes, ..Thresholds::of(no_progress, same_error) };
        let mut plan = simple();
        plan.caps.iterations = None;
        plan.phases[0].thresholds = limits;
        let steps = steps_until_stop(plan, &outcomes);
        prop_assert!(steps <= bound(&limits), "{} steps, the bound is {}", steps, bound(&limits));
    }

    /// A loop that brings something new in every iteration is never stopped by its breaker, however slow it is, whatever
    /// else happens in it.
    #[test]
    fn a_healthy_loop_never_trips(
        outcomes in vec((nothing(), any::<bool>()), 1..60),
        phase_name in prop_oneof![Just("GREEN"), Just("RED"), Just("planning")],
    ) {
        let mut plan = plan(vec![phase(phase_name, GateRule::Until)]);
        plan.caps.iterations = None;
        let mut story = begun(plan);
        for (n, (outcome, tests)) in (1_u32..).zip(outcomes) {
            let end = if outcome.end == RunEnd::Cut { RunEnd::Cut } else { RunEnd::Ran };
            // The same error with nothing better measured is what the breaker is for.
            let error = outcome.error.filter(|_| tests);
            let tests = tests.then(|| counts(u64::from(n) + 10, 1));
            let seen = Observation { end, error, tests, tree_before: None, ..outcome };
            let seen = Observation { tree_before: Some(format!("t{}", n - 1)), tree_after: Some(format!("t{n}")), ..seen };
            let verdict = iterate(&mut story, seen);
            prop_assert!(matches!(verdict, LoopVerdict::Continue { .. }), "{:?}", verdict);
            prop_assert_eq!(looping(&story).breaker.state, BreakerState::Closed);
        }
    }

    /// A gate that does not pass never completes anything, whatever is claimed.
    #[test]
    fn nothing_completes_without_the_gate(outcomes in vec(nothing(), 1..12)) {
        let mut story = begun(simple());
        for outcome in outcomes {
            if next_step(&story.state, now(&story)) != (NextStep::Iterate { again: false }) || story.state.status != Status::Active {
                break;
            }
            iterate(&mut story, outcome);
        }
        prop_assert!(story.state.status != Status::Completed);
    }

    /// Wherever a driver is killed, the loop comes to the same end.
    #[test]
    fn any_kill_gives_the_same_end(outcomes in vec(anything(), 1..16), kills in vec(any::<bool>(), 1..8)) {
        let whole = driven(&outcomes, &[false]);
        let killed = driven(&outcomes, &kills);
        prop_assert_eq!(standing(&whole), standing(&killed));
    }
}
