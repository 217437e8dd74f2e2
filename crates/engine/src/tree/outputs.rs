//! Outputs as they were at a checkpoint.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use segno_core::Command;
use segno_core::Event;
use segno_core::SessionId;
use segno_core::State;
use segno_core::event::OutputRecorded;
use segno_store::EventRow;

use crate::Engine;
use crate::Error;

/// How many events are read at once.
const PAGE: usize = 500;

impl Engine {
    /// What brings back the content of outputs that were recorded again since an event. `then` is the state after it;
    /// outputs that it does not have are gone with the state itself.
    pub(super) fn outputs_at(
        &self,
        session: SessionId,
        then: &State,
        seq: u64,
    ) -> Result<Vec<Command>, Error> {
        let mut again = BTreeSet::new();
        self.each_output(session, seq, None, |output| {
            if then.outputs.contains_key(&output.name) {
                again.insert(output.name);
            }
        })?;
        let mut before = BTreeMap::new();
        if !again.is_empty() {
            self.each_output(session, 0, Some(seq), |output| {
                if again.contains(&output.name) {
                    before.insert(output.name.clone(), output);
                }
            })?;
        }
        before
            .into_values()
            .map(|OutputRecorded { name, kind, content }| {
                Ok(Command::RecordOutput { name, kind, content: self.whole(&content)?.into() })
            })
            .collect()
    }

    /// Goes through the outputs that were recorded after one event, up to another.
    fn each_output(
        &self,
        session: SessionId,
        mut after: u64,
        until: Option<u64>,
        mut take: impl FnMut(OutputRecorded),
    ) -> Result<(), Error> {
        loop {
            let rows = self.store().events(session, after, PAGE)?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = match last {
                EventRow::Whole(stored) => stored.seq,
                EventRow::Damaged { seq, .. } => *seq,
            };
            for row in rows {
                let EventRow::Whole(stored) = row else { continue };
                if until.is_some_and(|until| stored.seq > until) {
                    return Ok(());
                }
                if let Ok(Event::OutputRecorded(output)) = stored.event() {
                    take(output);
                }
            }
        }
    }
}
