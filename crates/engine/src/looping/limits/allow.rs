//! Letting a loop go further than its plan said.

use segno_core::SessionId;
use segno_core::State;
use segno_core::looping::time_spent;

use crate::Engine;
use crate::Error;
use crate::looping::driver::drive::the_loop;

impl Engine {
    /// Allows so many more iterations, and so much more time, than were used so far: of the loop and of its present phase,
    /// as far as these are capped.
    ///
    /// # Errors
    /// If the session is no loop, or has ended.
    pub fn loop_allow(
        &self,
        session: SessionId,
        iterations: Option<u64>,
        seconds: Option<u64>,
    ) -> Result<State, Error> {
        let state = self.load(session)?.state;
        let looping = the_loop(&state)?;
        let (whole, here) = time_spent(looping, self.now());
        let mut plan = looping.plan.clone();
        let phase = plan.phases.iter_mut().find(|phase| phase.name == looping.phase);
        let further = |most: &mut Option<u64>, used: u64, more: u64| {
            *most = most.map(|most| most.max(used.saturating_add(more)));
        };
        if let Some(phase) = phase {
            iterations.iter().for_each(|more| further(&mut phase.max_iterations, state.iteration, *more));
            seconds.iter().for_each(|more| further(&mut phase.max_seconds, here, *more));
        }
        if let Some(more) = iterations {
            plan.caps.iterations = Some(looping.total.saturating_add(more));
        }
        seconds.iter().for_each(|more| further(&mut plan.caps.seconds, whole, *more));
        self.loop_replan(session, plan)
    }
}
