//! The policies as tables, and loops told as stories.

mod account;
mod breaker;
mod context;
mod gate;
mod progress;
mod properties;
mod queue;
mod status;
mod story;
mod verdict;
mod waiter;

use super::*;
use crate::command::Command;
use crate::event::Event;
use crate::event::LoopBaselineTaken;
use crate::event::samples::at;
use crate::story::Story;
use crate::time::Timestamp;

/// A phase with the thresholds that its name has.
pub(super) fn phase(name: &str, gate: GateRule) -> PhasePlan {
    let evidence =
        EvidencePlan { name: "tests".into(), command: "cargo test".into(), ..EvidencePlan::default() };
    PhasePlan {
        name: name.into(),
        gate,
        evidence: vec![evidence],
        thresholds: Thresholds::for_phase(name),
        ..PhasePlan::default()
    }
}

pub(super) fn plan(phases: Vec<PhasePlan>) -> LoopPlan {
    LoopPlan { workflow: "w".into(), phases, work: "do it".into(), ..LoopPlan::default() }
}

/// The phases of the PRP workflow.
pub(super) fn prp() -> LoopPlan {
    let back = Some(OnReject { to: "GREEN".into(), most: 3, other_model: true });
    plan(vec![
        phase("RED", GateRule::Red { criteria: 2 }),
        phase("GREEN", GateRule::Green { runs: 2 }),
        phase("REFACTOR", GateRule::Refactor { iterations: 5 }),
        phase("DOCUMENT", GateRule::Document { docs: 3, adr: true }),
        PhasePlan { on_reject: back, ..phase("QA", GateRule::Qa) },
    ])
}

/// A loop with one phase that has no name of its own.
pub(super) fn simple() -> LoopPlan {
    plan(vec![phase("work", GateRule::Until)])
}

pub(super) fn say(command: LoopCommand) -> Command {
    Command::Loop(Box::new(command))
}

/// A loop that has begun, in its first phase, with a baseline.
pub(super) fn begun(plan: LoopPlan) -> Story {
    begun_with(plan, counts(6, 0))
}

/// With these tests when it begins.
pub(super) fn begun_with(plan: LoopPlan, tests: TestCounts) -> Story {
    let mut story = Story::new();
    story.ok(say(LoopCommand::Start { plan: Box::new(plan), parent: None, item: None }));
    baseline(&mut story, tests, &[]);
    story
}

pub(super) fn looping(story: &Story) -> &LoopState {
    story.state.looping.as_deref().unwrap()
}

pub(super) fn looping_mut(story: &mut Story) -> &mut LoopState {
    story.state.looping.as_deref_mut().unwrap()
}

pub(super) fn baseline(story: &mut Story, tests: TestCounts, names: &[(&str, TestEnd)]) {
    let taken = LoopBaselineTaken {
        phase: looping(story).phase.clone(),
        tree: Some("t0".into()),
        tests,
        names: names.iter().map(|(name, end)| ((*name).to_owned(), *end)).collect(),
        evidence: vec![evidence(true)],
        protected: None,
        unloaded: Default::default(),
    };
    story.ok(say(LoopCommand::TakeBaseline(taken)));
}

pub(super) fn now(story: &Story) -> Timestamp {
    at(i64::try_from(story.state.seq).unwrap() + 1)
}

/// One iteration that showed this.
pub(super) fn iterate(story: &mut Story, seen: Observation) -> LoopVerdict {
    story.ok(Command::StartIteration);
    let at = now(story);
    end(story, seen, at)
}

pub(super) fn end(story: &mut Story, seen: Observation, at: Timestamp) -> LoopVerdict {
    let observation = Box::new(seen);
    let events =
        story.ok(say(LoopCommand::EndIteration { run: None, agent: None, observation, at, jitter: 0 }));
    let Some(Event::IterationEnded(ended)) = events.first() else { panic!("{events:?}") };
    ended.verdict.clone()
}

pub(super) fn counts(passed: u64, failed: u64) -> TestCounts {
    TestCounts { total: passed + failed, passed, failed, ..TestCounts::default() }
}

pub(super) fn named(count: u64) -> Named {
    Named { count, names: vec!["a".to_owned(); usize::try_from(count).unwrap()] }
}

pub(super) fn evidence(passes: bool) -> EvidenceMark {
    let exit = Some(if passes { 0 } else { 101 });
    EvidenceMark { name: "tests".into(), exit, passes, command_hash: "c1".into(), ..EvidenceMark::default() }
}

/// The agent answered, and nothing moved.
pub(super) fn idle() -> Observation {
    let tree = || Some("t0".to_owned());
    Observation {
        tree_before: tree(),
        tree_after: tree(),
        measured: 1,
        evidence: vec![evidence(false)],
        ..Observation::default()
    }
}

/// The agent left a tree that nobody has seen yet.
pub(super) fn moved(tree: u32) -> Observation {
    let name = |n: u32| Some(format!("t{n}"));
    let (tree_before, tree_after) = (name(tree.saturating_sub(1)), name(tree));
    Observation { tree_before, tree_after, files_changed: 1, ..idle() }
}

/// Every condition of this loop holds.
pub(super) fn done(tree: u32) -> Observation {
    Observation { tests: Some(counts(6, 0)), evidence: vec![evidence(true)], ..moved(tree) }
}

pub(super) fn limited(class: LimitClass, until: Option<Timestamp>) -> Observation {
    let limit = LimitMark { class, until, account: "claude".into(), ..LimitMark::default() };
    Observation { end: RunEnd::Limited, limit: Some(limit), ..idle() }
}
