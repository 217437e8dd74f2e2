//! Letting a loop go further than its plan said, or with another model.

use super::plan::LoopPlan;
use super::state::LoopState;
use super::verdict::time_spent;
use crate::state::State;
use crate::time::Timestamp;

/// How much further a loop may go than it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Further {
    /// Iterations from here on.
    pub iterations: Option<u64>,
    /// Seconds from here on.
    pub seconds: Option<u64>,
    /// Iterations that were used beside those that the loop itself has counted: of the item that it works on.
    pub beside: u64,
    /// The model that works from here on.
    pub model: Option<String>,
}

impl Further {
    /// The plan of a loop that may go so much further, as a whole and in its present phase, as far as these are capped.
    /// None if it may go as far already: a cap never gets lower.
    pub fn plan(&self, state: &State, at: Timestamp) -> Option<LoopPlan> {
        let looping: &LoopState = state.looping.as_deref()?;
        let mut plan = looping.plan.clone();
        let (whole, here) = time_spent(looping, at);
        let total = looping.total.saturating_add(self.beside);
        if let Some(phase) = plan.phases.iter_mut().find(|phase| phase.name == looping.phase) {
            raise(&mut phase.max_iterations, state.iteration, self.iterations);
            raise(&mut phase.max_seconds, here, self.seconds);
        }
        if let Some(model) = &self.model {
            // Phases that were given another one on purpose, such as one that judges, keep it.
            let before = looping.phase_plan().and_then(|phase| phase.model.clone());
            for phase in plan.phases.iter_mut().filter(|phase| phase.model == before) {
                phase.model = Some(model.clone());
            }
        }
        raise(&mut plan.caps.iterations, total, self.iterations);
        raise(&mut plan.caps.seconds, whole, self.seconds);
        (plan != looping.plan).then_some(plan)
    }
}

/// What is not capped stays so.
fn raise(most: &mut Option<u64>, used: u64, more: Option<u64>) {
    if let (Some(most), Some(more)) = (most, more) {
        *most = (*most).max(used.saturating_add(more));
    }
}
