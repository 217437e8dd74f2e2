//! A session that was a loop in another store. Its plan names commands, so it is none here until somebody says so.

use segno_core::SessionId;
use segno_core::event::Event;
use segno_core::looping::LoopPlan;

use crate::Engine;
use crate::Error;

/// How many events are read at once.
const PAGE: usize = 500;

impl Engine {
    /// The plan that an imported session had where it came from; none if it was no loop there, or is one here.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn loop_elsewhere(&self, session: SessionId) -> Result<Option<LoopPlan>, Error> {
        if self.load(session)?.state.looping.is_some() {
            return Ok(None);
        }
        let (mut plan, mut after) = (None, 0);
        loop {
            let rows = self.store().events(session, after, PAGE)?;
            let Some(last) = rows.last() else { return Ok(plan) };
            after = last.seq();
            for row in &rows {
                let segno_store::EventRow::Whole(stored) = row else { continue };
                match stored.event() {
                    Ok(Event::LoopStarted(started)) => plan = Some(*started.plan),
                    Ok(Event::SessionImported(imported)) => {
                        plan = imported.state.looping.map(|looping| looping.plan);
                    }
                    _ => {}
                }
            }
        }
    }
}
