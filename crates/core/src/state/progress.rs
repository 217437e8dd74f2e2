//! How far the work has come, in percent.

use crate::event::Workflow;

/// How much of the whole each phase of a PRP is: writing the code takes longest.
const WEIGHTS: [(&str, u64); 5] =
    [("RED", 10), ("GREEN", 45), ("REFACTOR", 15), ("DOCUMENT", 15), ("QA", 15)];
/// After so many iterations a phase counts as nearly done.
const ITERATIONS: u64 = 10;

/// By the phases that lie behind, each for what it weighs, and the iterations of the one that goes on. Nothing for a
/// workflow whose phases have no weights.
pub(crate) fn weighted(workflow: Option<&Workflow>, phase: Option<&str>, iteration: u64) -> Option<u8> {
    let workflow = workflow.filter(|workflow| workflow.name == "prp")?;
    let weigh = |name: &str| {
        let found = WEIGHTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, weight)| *weight)
    };
    let weights: Vec<u64> = workflow.phases.iter().map(|name| weigh(name)).collect::<Option<_>>()?;
    let at = workflow.phases.iter().position(|name| Some(name.as_str()) == phase)?;
    let all: u64 = weights.iter().sum();
    let behind: u64 = weights[..at].iter().sum();
    let done = behind * ITERATIONS + weights[at] * iteration.min(ITERATIONS);
    u8::try_from(done * 100 / (all * ITERATIONS)).ok()
}

/// By the number of the step.
pub(crate) fn percent_done(step: Option<u32>, of: Option<u32>) -> Option<u8> {
    let of = u64::from(of.filter(|of| *of > 0)?);
    let done = u64::from(step?.saturating_sub(1)).min(of);
    u8::try_from(done * 100 / of).ok()
}
