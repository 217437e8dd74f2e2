//! Samples of the events of a loop.

use std::collections::BTreeMap;

use super::samples::at;
use super::samples::id;
use super::*;
use crate::id::SessionId;
use crate::looping::*;
use crate::text::Text;

/// A plan with all that a plan can hold.
pub(crate) fn plan() -> LoopPlan {
    let red = PhasePlan {
        name: "red".into(),
        prompt: "Write failing tests.".into(),
        agent: Some("claude".into()),
        model: Some("opus".into()),
        context: Context::Fresh,
        gate: GateRule::Red { criteria: 2 },
        evidence: vec![EvidencePlan {
            name: "tests".into(),
            command: "cargo test".into(),
            report: Some("target/junit.xml".into()),
            ..EvidencePlan::default()
        }],
        max_iterations: Some(10),
        max_seconds: Some(3_600),
        on_start: vec!["./begin".into()],
        on_complete: vec!["./end".into()],
        on_error: vec!["./help".into()],
        breakpoint: true,
        ..PhasePlan::default()
    };
    let green = PhasePlan {
        name: "green".into(),
        prompt: "Make them pass.".into(),
        gate: GateRule::Green { runs: 2 },
        evidence: red.evidence.clone(),
        thresholds: Thresholds::of(2, 3),
        ..PhasePlan::default()
    };
    let coverage = MetricRule { name: "coverage".into(), at_least: Some(80.0), ..MetricRule::default() };
    let refactor = PhasePlan {
        name: "refactor".into(),
        gate: GateRule::Metrics(vec![coverage]),
        on_reject: Some(OnReject { to: "green".into(), most: 3, other_model: true }),
        optional: true,
        ..PhasePlan::default()
    };
    LoopPlan {
        workflow: "tdflow".into(),
        phases: vec![red, green, refactor],
        work: "Make the checkout work offline.".into(),
        caps: LoopCaps {
            iterations: Some(30),
            seconds: Some(7_200),
            iteration_tokens: Some(200_000),
            iteration_micros: Some(2_000_000),
            day_tokens: Some(2_000_000),
            day_micros: Some(20_000_000),
        },
        limits: LimitPolicy {
            hours: Some((1_320, 420)),
            zone_minutes: 60,
            leave_percent: Some(30),
            stop_at_percent: Some(95),
            agents: vec!["claude".into(), "codex".into()],
            back: true,
            ..LimitPolicy::default()
        },
        own: OwnWindows { calls_per_hour: Some(100), tokens_per_hour: Some(1_000_000) },
        signal: true,
        queue: Some(QueuePlan { command: Some("br ready --json".into()), ..QueuePlan::default() }),
        hour: HourWindow { start: Some(at(0)), calls: 2, tokens: 900 },
        notify: vec!["bell".into()],
    }
}

fn tests(passed: u64, failed: u64) -> TestCounts {
    let total = passed + failed;
    TestCounts { total, passed, failed, runner: "cargo test".into(), ..TestCounts::default() }
}

fn item() -> WorkItemMark {
    WorkItemMark { id: "shop-7".into(), title: "Offline checkout".into() }
}

fn evidence() -> EvidenceMark {
    EvidenceMark {
        name: "tests".into(),
        exit: Some(101),
        passes: false,
        command_hash: "c0ffee".into(),
        ..EvidenceMark::default()
    }
}

pub(crate) fn observation() -> Observation {
    let named = |name: &str| Named { count: 1, names: vec![name.into()] };
    Observation {
        end: RunEnd::Ran,
        outcome: "completed".into(),
        asked: Some(Asked::Pause),
        seconds: 65,
        calls: 12,
        denials: 1,
        denied: vec!["Bash(rm -rf target): allow `Bash(rm:*)`".into()],
        allow: vec!["Bash(cargo test *)".into()],
        question: Some("Shall I go on?".into()),
        error: Some(ErrorMark::of("assertion failed: cart is empty")),
        claims: Claims {
            exit_signal: Some(false),
            status: Some("IN_PROGRESS".into()),
            verdict: Some("REJECT".into()),
            metrics: BTreeMap::from([("tests_passing".into(), 8.0)]),
            problems: vec!["3 + 4 tests are not 8".into()],
            contradiction: None,
            recommendation: Some("look at the cart".into()),
        },
        tests: Some(tests(8, 2)),
        changes: TestChanges {
            newly_passing: named("cart::empty"),
            still_failing: named("cart::offline"),
            ..TestChanges::default()
        },
        since_start: Some(SinceStart { new: 2, removed: 0, old_failing: 1 }),
        by_number: true,
        measured: 1,
        flaky: false,
        restless: vec!["tests/snapshot.txt".into()],
        lost: Named { count: 1, names: vec!["test_new.py".into()] },
        evidence: vec![evidence()],
        protected: None,
        metrics: BTreeMap::from([("coverage".into(), 81.5)]),
        open_items: Some(4),
        tree_before: Some("7ree1".into()),
        tree_after: Some("7ree2".into()),
        measured_tree: Some("7ree3".into()),
        files_changed: 3,
        commits: 1,
        repeated: Repeated { identical: 2, cycle: 4 },
        tokens: 40_000,
        micros: Some(410_000),
        day: DayUse { tokens: 90_000, micros: 900_000, ..DayUse::default() },
        over_budget: Some("100,000 of 100,000 tokens".into()),
        limit: Some(LimitMark {
            class: LimitClass::Plan,
            until: Some(at(7_200)),
            window: Some("five_hour".into()),
            model_only: Some("opus".into()),
            account: "claude:default".into(),
            words: "resets 3pm".into(),
        }),
        windows: vec![PlanWindow {
            name: "seven_day".into(),
            used_percent: 68,
            resets_at: Some(at(90_000)),
            longest: true,
        }],
        context_percent: Some(44),
        setup: None,
    }
}

fn gate() -> GateResult {
    GateResult {
        conditions: vec![Condition {
            name: "failing tests".into(),
            wanted: "0".into(),
            value: "2".into(),
            holds: false,
            acceptable: false,
            mark: None,
        }],
        gate_1: false,
        gate_2: Some(false),
        can_exit: false,
        tree: Some("7ree2".into()),
        runs: 0,
        warnings: vec!["the tests came out differently on the same tree".into()],
    }
}

fn breaker() -> Breaker {
    Breaker {
        state: BreakerState::Open,
        no_progress: 2,
        same_error: 1,
        last_error: Some("00ab54a98ceb1f0a".into()),
        opened_at: Some(at(60)),
        reason: Some("2 iterations without progress".into()),
        cause: Some(BreakerCause::NoProgress),
        opens: 1,
        compared: Some("tree 7ree2, tests 8/10".into()),
        ..Breaker::default()
    }
}

fn ended(iteration: u64, verdict: LoopVerdict) -> Event {
    IterationEnded {
        iteration,
        phase: "green".into(),
        run: Some("run-2".into()),
        agent: Some("claude".into()),
        observation: Box::new(observation()),
        progress: Progress {
            made: true,
            measured: true,
            why: vec!["2 more tests pass".into()],
            compared: "tests 6/10 with 8/10".into(),
        },
        gate: gate(),
        breaker: Box::new(breaker()),
        verdict,
        line: "iter 7  green  6→8/10 tests  +3 files  $0.41  goes on: gate 1 fails (failing tests)".into(),
    }
    .into()
}

fn verdicts() -> Vec<LoopVerdict> {
    let why = || "it is so".to_owned();
    let soon = at(30);
    vec![
        LoopVerdict::Continue { why: why() },
        LoopVerdict::NextPhase { to: "refactor".into() },
        LoopVerdict::Complete,
        LoopVerdict::BackTo { phase: "green".into(), why: why(), attempt: 1 },
        LoopVerdict::Stopped { how: Asked::Signal },
        LoopVerdict::Cap { which: CapKind::DayMoney, why: why() },
        LoopVerdict::Halt { why: why() },
        LoopVerdict::Park { until: soon, class: ParkReason::Plan, why: why() },
        LoopVerdict::BackOff { until: soon, why: why() },
        LoopVerdict::NeedsPerson { need: PersonNeed::CannotAct, why: why() },
        LoopVerdict::HandOver { to: "codex".into(), why: why() },
    ]
}

/// At least one of every kind of a loop.
pub(crate) fn looping() -> Vec<Event> {
    let names = BTreeMap::from([
        ("cart::empty".to_owned(), TestEnd::Passed),
        ("cart::offline".to_owned(), TestEnd::Failed),
        ("cart::slow".to_owned(), TestEnd::Skipped),
    ]);
    let receipt = Receipt {
        tree: Some("7ree2".into()),
        commands: vec!["cargo test".into()],
        evidence: vec![evidence()],
        counts: tests(10, 0),
        at: at(70),
    };
    let parked = LoopParked {
        until: Some(at(7_200)),
        class: ParkReason::Plan,
        account: Some("claude:default".into()),
        window: Some("five_hour".into()),
        windows_waited: 1,
        words: "the window of five hours is used up".into(),
    };
    let mut events: Vec<Event> = vec![
        LoopStarted { plan: Box::new(plan()), parent: Some(SessionId::at(at(-60))), item: Some(item()) }
            .into(),
        LoopStarted {
            plan: Box::new(LoopPlan {
                workflow: "simple".into(),
                phases: vec![PhasePlan { name: "work".into(), ..PhasePlan::default() }],
                ..LoopPlan::default()
            }),
            parent: None,
            item: None,
        }
        .into(),
        LoopStarted { plan: Box::new(plan()), parent: None, item: None }.into(),
        LoopBaselineTaken {
            phase: "green".into(),
            tree: Some("7ree1".into()),
            tests: tests(6, 4),
            names,
            evidence: vec![evidence()],
            protected: None,
            unloaded: [("test_new.py".to_owned(), UnloadedTests { written: 2, told: true })].into(),
        }
        .into(),
        LoopBaselineTaken { phase: "red".into(), ..LoopBaselineTaken::default() }.into(),
    ];
    events.extend((1..).zip(verdicts()).map(|(iteration, verdict)| ended(iteration, verdict)));
    events.extend([
        BreakerChanged {
            from: BreakerState::Open,
            to: BreakerState::HalfOpen,
            reason: "30 minutes are over".into(),
            by: BreakerBy::Cooldown,
        }
        .into(),
        GateMeasured { phase: "green".into(), result: gate(), by_hand: true }.into(),
        GateAccepted {
            phase: "green".into(),
            because: Text::from("the test was wrong"),
            conditions: vec!["removed tests".into()],
            tree: Some("7ree2".into()),
        }
        .into(),
        GatePassed { phase: "green".into(), receipt }.into(),
        parked.into(),
        LoopParked { words: "it waits until you say so".into(), ..LoopParked::default() }.into(),
        LoopWoken { how: WokenHow::Timer, early: false }.into(),
        OperatorNoted { text: "use the other cart".into() }.into(),
        PhaseSkipped { phase: "red".into(), by: "ann".into() }.into(),
        HandedOver {
            from_agent: Some("claude".into()),
            to_agent: "codex".into(),
            why: "its window is used up".into(),
            until: None,
        }
        .into(),
        ItemTaken { item: item(), session: Some(id()), ..ItemTaken::default() }.into(),
        ItemTaken {
            item: item(),
            session: Some(id()),
            group: Some("shop-1".into()),
            follow_up: true,
            failures: Some(2),
        }
        .into(),
        ItemEnded {
            item: item(),
            end: ItemEnd::Failed,
            failures: 2,
            retry_at: Some(at(120)),
            why: "halted: no progress".into(),
            used: ItemUse::default(),
        }
        .into(),
        ItemEnded {
            item: item(),
            end: ItemEnd::Done,
            failures: 0,
            retry_at: None,
            why: String::new(),
            used: ItemUse {
                iterations: 3,
                tokens: 40_000,
                micros: 410_000,
                hour: HourWindow { start: Some(at(0)), calls: 3, tokens: 40_000 },
            },
        }
        .into(),
        QueueListed { ready: vec![item()], total: 1, skipped: 2 }.into(),
    ]);
    events
}
