//! Whole loops: the fold, killing and going on, replaying, and how large the state grows.

use super::*;
use crate::event::IterationEnded;
use crate::state::Mark;
use crate::status::Status;
use crate::story::kinds;

/// The PRP workflow from its first phase to its end.
#[test]
fn through_all_phases() {
    let mut plan = prp();
    plan.signal = true;
    let mut story = begun(plan);
    let says = |seen: Observation| {
        let claims = Claims { exit_signal: Some(true), ..seen.claims.clone() };
        Observation { claims, ..seen }
    };
    let mut seen = Observation { tests: Some(counts(6, 2)), ..done(1) };
    seen.changes.new_failing = named(2);
    assert_eq!(iterate(&mut story, says(seen)), LoopVerdict::NextPhase { to: "GREEN".into() });
    baseline(&mut story, counts(6, 2), &[("a", TestEnd::Failed)]);
    let since_start = Some(SinceStart { new: 2, ..SinceStart::default() });
    let green = Observation { tests: Some(counts(8, 0)), measured: 2, since_start, ..done(2) };
    assert_eq!(iterate(&mut story, says(green)), LoopVerdict::NextPhase { to: "REFACTOR".into() });
    baseline(&mut story, counts(8, 0), &[]);
    let mut refactor = says(Observation { tests: Some(counts(8, 0)), ..done(3) });
    refactor.claims.metrics.insert("no_improvements_found".into(), 1.0);
    assert_eq!(iterate(&mut story, refactor), LoopVerdict::NextPhase { to: "DOCUMENT".into() });
    baseline(&mut story, counts(8, 0), &[]);
    let metrics = [("docs_generated".to_owned(), 3.0), ("has_adr".to_owned(), 1.0)].into();
    let document = says(Observation { metrics, tests: Some(counts(8, 0)), ..done(4) });
    assert_eq!(iterate(&mut story, document), LoopVerdict::NextPhase { to: "QA".into() });
    baseline(&mut story, counts(8, 0), &[]);
    let mut qa = says(Observation { tests: Some(counts(8, 0)), ..done(5) });
    qa.claims.verdict = Some("APPROVE".into());
    qa.claims.metrics.insert("blocking_issues".into(), 0.0);
    assert_eq!(iterate(&mut story, qa), LoopVerdict::Complete);
    assert_eq!(story.state.status, Status::Completed);
    let ends: Vec<_> = looping(&story).phases.iter().map(|stand| (stand.end, stand.iterations)).collect();
    assert_eq!(ends, [(Some(PhaseEnd::Passed), 1); 5]);
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Ended);
}

/// The decision and all that follows from it are one append.
#[test]
fn what_follows_comes_with_the_decision() {
    let mut story = begun(simple());
    story.ok(Command::StartIteration);
    let observation = Box::new(done(1));
    let at = now(&story);
    let events =
        story.ok(say(LoopCommand::EndIteration { run: None, agent: None, observation, at, jitter: 0 }));
    assert_eq!(kinds(&events), ["iteration_ended", "gate_passed", "checkpoint_created", "session_completed"]);
    let Event::GatePassed(passed) = &events[1] else { panic!("{events:?}") };
    assert_eq!(passed.receipt.tree.as_deref(), Some("t1"));
    assert_eq!(passed.receipt.commands, ["cargo test"]);
    assert_eq!(passed.receipt.counts, counts(6, 0));
}

/// One that was cut short with its driver is begun again, under the same number.
#[test]
fn an_iteration_that_was_killed_is_taken_up_again() {
    let mut story = begun(simple());
    iterate(&mut story, moved(1));
    story.ok(Command::StartIteration);
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Iterate { again: true });
    story.ok(Command::StartIteration);
    assert_eq!(story.state.iteration, 2);
    let at = now(&story);
    end(&mut story, moved(2), at);
    assert_eq!((looping(&story).total, story.state.iteration), (2, 2));
    // Nothing is decided on twice.
    let observation = Box::new(moved(3));
    let again = say(LoopCommand::EndIteration { run: None, agent: None, observation, at, jitter: 0 });
    assert!(matches!(story.refused(again), crate::refusal::Refusal::Already(_)));
}

#[test]
fn a_start_that_fails_and_a_limit_are_no_iterations() {
    let mut story = begun(simple());
    iterate(&mut story, Observation { end: RunEnd::StartFailed, ..idle() });
    assert_eq!((looping(&story).total, story.state.iteration), (0, 0));
    iterate(&mut story, limited(LimitClass::Overload, None));
    assert_eq!((looping(&story).total, story.state.iteration), (0, 0));
    iterate(&mut story, moved(1));
    assert_eq!((looping(&story).total, story.state.iteration), (1, 1));
}

#[test]
fn notes_are_kept_until_the_agent_has_heard_them() {
    let mut story = begun(simple());
    story.ok(say(LoopCommand::Say { text: "use the other cart".into() }));
    // It could not be started: it has heard nothing.
    iterate(&mut story, Observation { end: RunEnd::StartFailed, ..idle() });
    assert_eq!(looping(&story).notes.len(), 1);
    story.ok(Command::StartIteration);
    // One that comes while it works is for the next prompt.
    story.ok(say(LoopCommand::Say { text: "and hurry".into() }));
    let at = now(&story);
    end(&mut story, moved(1), at);
    let texts: Vec<&str> = looping(&story).notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(texts, ["and hurry"]);
}

#[test]
fn a_parked_loop_wakes_once_and_only_when_it_is_due() {
    let mut story = begun(simple());
    let until = at(7_200);
    let verdict = iterate(&mut story, limited(LimitClass::Plan, Some(until)));
    let due = until.plus_seconds(30);
    assert!(
        matches!(verdict, LoopVerdict::Park { until, class: ParkReason::Plan, .. } if until == due),
        "{verdict:?}"
    );
    assert_eq!(story.state.status, Status::Paused);
    assert_eq!(crate::Summary::from(&story.state).waiting_until, Some(due));
    assert_eq!(looping(&story).windows_waited, 1);
    let wake = |how, at| say(LoopCommand::Wake { how, at, others: vec![] });
    use crate::event::WokenHow::Command as ByCommand;
    use crate::event::WokenHow::Person;
    assert!(matches!(
        story.refused(wake(ByCommand, due.plus_seconds(-1))),
        crate::refusal::Refusal::Already(_)
    ));
    assert_eq!(next_step(&story.state, due), NextStep::Wake);
    // Somebody says that it is to stay parked: nothing but somebody wakes it.
    let mut held = Story::of(story.state.clone());
    held.ok(say(LoopCommand::Hold));
    assert_eq!(next_step(&held.state, due), NextStep::Held);
    assert!(matches!(held.refused(wake(ByCommand, due)), crate::refusal::Refusal::Already(_)));
    held.ok(wake(Person, due));
    assert_eq!(held.state.status, Status::Active);
    story.ok(wake(ByCommand, due));
    assert_eq!(story.state.status, Status::Active);
    assert!(matches!(story.refused(wake(ByCommand, due)), crate::refusal::Refusal::Already(_)));
    assert_eq!(crate::Summary::from(&story.state).waiting_until, None);
    // The time that it was parked is not time that it worked.
    assert!(looping(&story).parked_seconds > 0);
}

#[test]
fn an_imported_loop_runs_nothing_here() {
    let mut story = begun(simple());
    iterate(&mut story, moved(1));
    let event = crate::event::SessionImported {
        state: Box::new(story.state.clone()),
        renamed_from: None,
        source: "bundle".into(),
    };
    let state = crate::State::begin(&Mark { seq: 1, at: at(0), run: None }, &event.into()).unwrap();
    assert_eq!(state.looping, None);
}

/// Whoever goes on by another plan keeps what was done; what is measured by other commands is measured anew.
#[test]
fn another_plan_goes_on_where_the_first_one_was() {
    let mut story = begun(simple());
    iterate(&mut story, moved(1));
    let start = |plan: LoopPlan| say(LoopCommand::Start { plan: Box::new(plan), parent: None, item: None });
    let mut plan = simple();
    plan.caps.iterations = Some(7);
    story.ok(start(plan.clone()));
    assert_eq!((looping(&story).total, looping(&story).plan.caps.iterations), (1, Some(7)));
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Iterate { again: false });
    plan.phases[0].evidence[0].command = "make test".into();
    story.ok(start(plan));
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Baseline);
    assert_eq!((looping(&story).total, looping(&story).phases[0].iterations), (1, 1));
}

#[test]
fn plans_that_cannot_be_followed_are_refused() {
    let refused = |plan: LoopPlan| plan.check().unwrap_err().to_string();
    let bare = || phase("work", GateRule::Until);
    assert_eq!(refused(plan(vec![])), "bad workflow: it has no phases");
    assert_eq!(refused(plan(vec![bare(), bare()])), "bad workflow: it lists phase work twice");
    let blind = PhasePlan { evidence: vec![], ..bare() };
    assert_eq!(
        refused(plan(vec![blind])),
        "bad gate: phase work has no command that measures it: give it `evidence`, or name one with --until"
    );
    let endless = PhasePlan { thresholds: Thresholds::of(0, 5), ..bare() };
    assert_eq!(
        refused(plan(vec![endless])),
        "bad threshold: a loop that gets nowhere has to stop at some time"
    );
    let forward = OnReject { to: "later".into(), most: 3, other_model: false };
    let sent = PhasePlan { on_reject: Some(forward), ..bare() };
    assert_eq!(refused(plan(vec![sent])), "bad workflow: no phase later before work");
    // A long prompt is set aside when it is recorded; a few of them are fine.
    let long = PhasePlan { prompt: "x".repeat(50_000).into(), ..bare() };
    assert_eq!(plan(vec![long.clone()]).check(), Ok(()));
    let many = (0..9).map(|n| PhasePlan { name: format!("p{n}"), ..long.clone() }).collect();
    assert!(refused(plan(many)).starts_with("bad plan: "));
}

/// A loop that alternates between all sorts of outcomes, for 500 iterations.
fn long_story(iterations: u32, mut each: impl FnMut(u32, &Story)) -> (Story, Vec<Event>) {
    let mut plan = simple();
    plan.caps.iterations = None;
    let mut story = begun(plan);
    let mut journal = Vec::new();
    for n in 1..=iterations {
        let mut seen = if n % 3 == 0 { idle() } else { moved(n) };
        seen.tests = Some(counts(u64::from(n % 7), 3));
        seen.error =
            (n % 4 == 0).then(|| ErrorMark::of(&format!("{} is missing", "e".repeat(n as usize % 50))));
        seen.question = (n % 5 == 0).then(|| "Shall I go on with this?".repeat(40));
        seen.tokens = u64::from(n) * 100;
        for _ in 0..4 {
            seen.changes.newly_failing.add("a::very::long::name::of::a::test");
        }
        story.ok(say(LoopCommand::Say { text: "go on".into() }));
        let item = crate::event::WorkItemMark { id: format!("i{n}"), title: "t".into() };
        story.ok(say(LoopCommand::TakeItem(crate::event::ItemTaken {
            item: item.clone(),
            ..Default::default()
        })));
        let done = crate::event::ItemEnd::Done;
        story.ok(say(LoopCommand::EndItem {
            item,
            end: done,
            failures: 0,
            retry_at: None,
            why: String::new(),
            used: ItemUse::default(),
        }));
        story.ok(Command::StartIteration);
        let at = now(&story);
        let observation = Box::new(seen);
        let end = say(LoopCommand::EndIteration { run: None, agent: None, observation, at, jitter: 0 });
        journal.extend(story.ok(end));
        each(n, &story);
    }
    (story, journal)
}

/// Folding what was stored gives the state that was live, with every kind of event of a loop in it.
#[test]
fn a_loop_folds_from_its_stored_events() {
    let mut story = Story::new();
    let mut journal = Vec::new();
    let mut ok = |story: &mut Story, command: Command| journal.extend(story.ok(command));
    let start = LoopCommand::Start { plan: Box::new(prp()), parent: None, item: None };
    let item = || crate::event::WorkItemMark { id: "i".into(), title: "t".into() };
    let taken =
        LoopBaselineTaken { phase: "RED".into(), tests: counts(6, 0), ..LoopBaselineTaken::default() };
    let limit = Box::new(limited(LimitClass::Plan, Some(at(7_200))));
    let mut metrics = moved(1);
    metrics.metrics.insert("coverage".into(), 1.0 / 3.0);
    let ended = |observation: Box<Observation>, at: Timestamp| LoopCommand::EndIteration {
        run: Some("r".into()),
        agent: Some("claude".into()),
        observation,
        at,
        jitter: 7,
    };
    for command in [start, LoopCommand::TakeBaseline(taken), LoopCommand::Say { text: "hurry".into() }] {
        ok(&mut story, say(command));
    }
    for observation in [Box::new(metrics), limit] {
        ok(&mut story, Command::StartIteration);
        let end = ended(observation, now(&story));
        ok(&mut story, say(end));
    }
    let end = crate::event::ItemEnd::Done;
    let gate = looping(&story).gate.clone().unwrap();
    let rest = [
        LoopCommand::Hold,
        LoopCommand::Wake { how: crate::event::WokenHow::Person, at: at(9_000), others: vec![] },
        LoopCommand::MeasureGate { phase: "RED".into(), result: gate, by_hand: true },
        LoopCommand::TakeItem(crate::event::ItemTaken { item: item(), ..Default::default() }),
        LoopCommand::ListItems { ready: vec![item()], total: 1, skipped: 0 },
        LoopCommand::EndItem {
            item: item(),
            end,
            failures: 0,
            retry_at: None,
            why: String::new(),
            used: ItemUse { iterations: 2, tokens: 9, micros: 8, ..ItemUse::default() },
        },
        LoopCommand::HandOver { to: "codex".into(), why: "x".into() },
        LoopCommand::SkipPhase { by: "ann".into() },
        LoopCommand::Advance,
    ];
    for command in rest {
        ok(&mut story, say(command));
    }
    let mut again = Story::new();
    for event in &journal {
        let stored = event.encode();
        again.record(&Event::decode(&stored.kind, stored.version, &stored.body).unwrap());
    }
    assert_eq!(again.state, story.state);
    let json = serde_json::to_string(&story.state).unwrap();
    assert_eq!(serde_json::from_str::<crate::State>(&json).unwrap(), story.state);
}

#[test]
fn the_state_of_a_long_loop_stays_flat() {
    let size = |story: &Story| serde_json::to_string(looping(story)).unwrap().len();
    let mut sizes = Vec::new();
    let (story, _) = long_story(600, |n, story| {
        if n >= 300 {
            sizes.push(size(story));
        }
    });
    assert_eq!(looping(&story).total, 600);
    assert_eq!(looping(&story).items_done, 600);
    let (first, last) = (&sizes[..100], &sizes[200..]);
    let (least, most) = (first.iter().min().unwrap(), first.iter().max().unwrap());
    // Only numbers have more digits.
    assert!(last.iter().all(|size| *size <= most + 500), "{least} to {most}, then {}", size(&story));
    assert!(*most < 64 * 1024, "{most}");
}

/// Whoever reads the journal comes to the same decisions.
#[test]
fn replaying_the_journal_gives_the_same_decisions() {
    let mut plan = simple();
    plan.caps.iterations = None;
    let mut again = begun(plan);
    let (story, journal) = long_story(120, |_, _| {});
    let ended = journal.iter().filter_map(|event| match event {
        Event::IterationEnded(ended) => Some(ended),
        _ => None,
    });
    for IterationEnded { observation, verdict, breaker, gate, progress, line, .. } in ended.cloned() {
        again.ok(Command::StartIteration);
        let observation = *observation;
        let iteration = Iteration { number: 1, seen: &observation, agent: None, at: now(&again), jitter: 0 };
        let decision = decide(looping(&again), iteration);
        assert_eq!((decision.verdict, decision.gate, decision.progress), (verdict, gate, progress));
        assert_eq!((decision.breaker, decision.line), (*breaker, line));
        let at = now(&again);
        end(&mut again, observation, at);
    }
    assert_eq!(looping(&again).breaker, looping(&story).breaker);
    assert_eq!(looping(&again).total, 120);
}
