//! What the agent was asked to do, whole.

use segno_core::Event;
use segno_core::State;
use segno_store::EventRow;

use crate::Engine;
use crate::Error;

/// How many sessions are gone back through for the one in which the task was given.
const SESSIONS: usize = 32;

impl Engine {
    /// What the agent of a session was asked to do, all of it, as it was recorded. A session that goes on from another
    /// one without being told anything new has that one's task.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn task(&self, state: &State) -> Result<Option<String>, Error> {
        // A loop makes every prompt anew from its work; the last of them is not the task.
        if let Some(looping) = &state.looping {
            let work = self.whole(&looping.plan.work)?;
            return Ok(Some(work).filter(|work| !work.trim().is_empty()));
        }
        let mut state = state.clone();
        for _ in 0..SESSIONS {
            if let Some(seq) = state.asked {
                return self.prompt_at(&state, seq);
            }
            state = match state.continues.map(|before| self.load(before)) {
                Some(Ok(loaded)) => loaded.state,
                // Without the session before, nobody knows.
                Some(Err(_)) | None => return Ok(None),
            };
        }
        Ok(None)
    }

    fn prompt_at(&self, state: &State, seq: u64) -> Result<Option<String>, Error> {
        let row = self.store().events(state.session_id, seq.saturating_sub(1), 1)?.pop();
        let Some(EventRow::Whole(stored)) = row else { return Ok(None) };
        match stored.event() {
            Ok(Event::RunStarted(started)) => started.prompt.map(|prompt| self.whole(&prompt)).transpose(),
            _ => Ok(None),
        }
    }
}
