//! The past of a session from its journal, for files that show it. One that is looked at again goes on where it was left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use segno_core::Event;
use segno_core::SessionId;
use segno_core::State;
use segno_layouts::prp::Record;
use segno_store::EventRow;

use crate::Engine;
use crate::Error;

/// How many events are read at once.
const PAGE: usize = 1_000;
/// How many sessions are remembered.
const MOST: usize = 4;

/// What was read so far.
#[derive(Default)]
pub(crate) struct Records(Mutex<BTreeMap<SessionId, Arc<Record>>>);

impl Engine {
    /// What the journal says of a session's past, up to this state of it; none if its beginning cannot be read.
    pub(super) fn layout_record(&self, state: &State) -> Result<Option<Arc<Record>>, Error> {
        let known = self.records.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&state.session_id);
        let known = known.filter(|record| record.seq() <= state.seq);
        let Some(record) = self.read_record(state, known)? else { return Ok(None) };
        let mut all = self.records.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(state.session_id, Arc::clone(&record));
        Ok(Some(record))
    }

    fn read_record(&self, state: &State, known: Option<Arc<Record>>) -> Result<Option<Arc<Record>>, Error> {
        let is_continued = known.is_some();
        let mut record = known;
        let mut after = record.as_ref().map_or(0, |record| record.seq());
        while after < state.seq {
            let rows = self.store().events(state.session_id, after, PAGE)?;
            if rows.is_empty() {
                break;
            }
            for row in rows.into_iter().filter(|row| row.seq() <= state.seq) {
                after = row.seq();
                let EventRow::Whole(stored) = row else { continue };
                if Record::passes_over(&stored.kind) {
                    continue;
                }
                let Ok(event) = stored.event() else { continue };
                if matches!(event, Event::TextsForgotten(_)) && is_continued {
                    // Earlier events say something else now.
                    return self.read_record(state, None);
                }
                match &mut record {
                    Some(record) => Arc::make_mut(record).take(&stored.mark(), &event),
                    None => record = Record::begin(&stored.mark(), &event).map(Arc::new),
                }
            }
        }
        if let Some(record) = &mut record {
            let seq = state.seq.max(record.seq());
            Arc::make_mut(record).pass(seq);
        }
        Ok(record)
    }
}
