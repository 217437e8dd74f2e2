//! Phases: which one a session is in, which are done, and the plan of an earlier state.

use super::State;
use super::apply::Mark;
use crate::event::Metric;
use crate::event::Verdict;
use crate::event::Workflow;
use crate::limits;

impl State {
    /// A phase that is left forward is done, unless a check of it failed. Whoever goes back has what they go back to,
    /// and all after it, before them again.
    pub(super) fn leave_phase(&mut self, from: Option<&str>, to: &str) {
        let index_of = |phase: &str| {
            let declared = self
                .workflow
                .as_ref()
                .and_then(|workflow| workflow.phases.iter().position(|known| known == phase));
            declared.or_else(|| self.phases_completed.iter().position(|done| done == phase))
        };
        let declared = self.workflow.as_ref().is_some_and(|workflow| !workflow.phases.is_empty());
        let back = match (from.and_then(index_of), index_of(to)) {
            (Some(from), Some(to)) if declared => to < from,
            // Without a list, a phase that was done before is one that is gone back to.
            (_, to) => !declared && to.is_some(),
        };
        if back {
            let ahead = index_of(to).unwrap_or(0);
            let still: Vec<String> = self
                .phases_completed
                .iter()
                .filter(|done| index_of(done).is_some_and(|at| at < ahead))
                .cloned()
                .collect();
            self.phases_completed = still;
            return;
        }
        let failed = self.verification.values().any(|verdict| *verdict == Verdict::Fail);
        if let Some(left) = from.filter(|_| !failed)
            && !self.phases_completed.iter().any(|done| done == left)
            && self.phases_completed.len() < limits::PHASES
        {
            self.phases_completed.push(left.to_owned());
        }
    }

    /// Keeps what a metric was in the present phase, within bounds.
    pub(super) fn note_phase_metric(&mut self, name: &str, value: Metric) {
        let Some(phase) = &self.phase else { return };
        if !self.phase_metrics.contains_key(phase) && self.phase_metrics.len() >= limits::PHASES {
            return;
        }
        let metrics = self.phase_metrics.entry(phase.clone()).or_default();
        if metrics.len() < limits::PHASE_METRICS || metrics.contains_key(name) {
            metrics.insert(name.to_owned(), value);
        }
    }

    /// Plan and values are those of an earlier state. What was used, counted and recorded since stays.
    pub(super) fn take_plan_of(&mut self, then: &Self, mark: &Mark) {
        self.workflow.clone_from(&then.workflow);
        self.phase.clone_from(&then.phase);
        self.phase_since = mark.at;
        (self.step, self.of) = (then.step, then.of);
        (self.iteration, self.attempt) = (then.iteration, then.attempt.max(1));
        self.phases_completed.clone_from(&then.phases_completed);
        self.verification.clone_from(&then.verification);
        self.workflow_state.clone_from(&then.workflow_state);
        self.progress_set = then.progress_set;
        self.metrics.clone_from(&then.metrics);
        self.phase_metrics.clone_from(&then.phase_metrics);
        self.position.clone_from(&then.position);
        self.milestone.clone_from(&then.milestone);
        self.breakpoint.clone_from(&then.breakpoint);
        self.outputs.clone_from(&then.outputs);
        self.agent.clone_from(&then.agent);
        if let (Some(state), Some(phase)) = (&mut self.looping, &then.phase)
            && state.plan.phase(phase).is_some()
        {
            state.enter(mark.at, phase);
        }
        for (name, agent) in &mut self.agents {
            agent.active = then.agents.get(name).is_some_and(|before| before.active);
        }
    }
}

/// The number of a phase among the workflow's, and how many there are.
pub(crate) fn step_of(workflow: Option<&Workflow>, phase: Option<&str>) -> (Option<u32>, Option<u32>) {
    let Some(workflow) = workflow.filter(|workflow| !workflow.phases.is_empty()) else { return (None, None) };
    let of = u32::try_from(workflow.phases.len()).ok();
    let step = phase
        .and_then(|phase| workflow.phases.iter().position(|known| known == phase))
        .and_then(|index| u32::try_from(index + 1).ok());
    (step, of)
}
