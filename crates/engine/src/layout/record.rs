//! The past of a session from its journal, for files that show it. One that is looked at again goes on where it was left: by
//! this process, or by one before, which kept what it had folded beside the store. What is kept is a copy like the files
//! themselves: without it the journal is read from its beginning once more.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use segno_core::Event;
use segno_core::FOLD_VERSION;
use segno_core::SessionId;
use segno_core::State;
use segno_core::StoreId;
use segno_files::Links;
use segno_layouts::prp::Record;
use segno_store::EventRow;
use serde::Deserialize;
use serde::Serialize;

use crate::Engine;
use crate::Error;

/// How many events are read at once.
const PAGE: usize = 1_000;
/// How many sessions are remembered.
const MOST: usize = 4;
/// How many events a process reads again at most, rather than to keep what it has folded after each of them.
const AGAIN: u64 = 500;
/// A longer past is not read back: its log alone has at most half of that.
const LONGEST: u64 = 16 << 20;

/// What was read so far.
#[derive(Default)]
pub(crate) struct Records(Mutex<BTreeMap<SessionId, Known>>);

/// A past, and up to which event it is kept for others.
#[derive(Clone)]
struct Known {
    record: Arc<Record>,
    kept: u64,
}

/// A past as it is kept. It is of this journal if the event that it ends with has that hash, and was folded as this
/// program folds if it was the same program.
#[derive(Serialize, Deserialize)]
struct Kept<R> {
    program: String,
    fold: u32,
    store: StoreId,
    session: SessionId,
    seq: u64,
    hash: String,
    record: R,
}

impl Engine {
    /// What the journal says of a session's past, up to this state of it; none if its beginning cannot be read.
    pub(super) fn layout_record(&self, state: &State) -> Result<Option<Arc<Record>>, Error> {
        let known = self.records.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&state.session_id);
        let known = match known.filter(|known| known.record.seq() <= state.seq) {
            Some(known) => Some(known),
            None => self.kept_past(state)?,
        };
        let kept = known.as_ref().map_or(0, |known| known.kept);
        let Some(record) = self.read_record(state, known.map(|known| known.record))? else { return Ok(None) };
        let is_behind = record.seq().saturating_sub(kept) > AGAIN;
        let kept = if is_behind && self.keep_past(state, &record) { record.seq() } else { kept };
        let mut all = self.records.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(state.session_id, Known { record: Arc::clone(&record), kept });
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

    /// Where the past of a session is kept.
    pub(crate) fn past_file(&self, session: SessionId) -> Option<PathBuf> {
        let folder = self.options.layout.pasts.as_ref()?;
        Some(folder.join(format!("{}-{session}.json", self.store_id())))
    }

    /// What a process before this one kept, if it is of this journal. What cannot be read is folded anew.
    fn kept_past(&self, state: &State) -> Result<Option<Known>, Error> {
        let Some(path) = self.past_file(state.session_id).filter(|_| state.seq > AGAIN) else {
            return Ok(None);
        };
        let bytes = segno_files::read_bounded(&path, LONGEST, Links::Refuse).ok().flatten();
        let kept: Option<Kept<Record>> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let is_ours = |kept: &Kept<Record>| {
            (kept.program.as_str(), kept.fold) == (env!("CARGO_PKG_VERSION"), FOLD_VERSION)
                && (kept.store, kept.session) == (self.store_id(), state.session_id)
                && (1..=state.seq).contains(&kept.seq)
                && kept.record.seq() == kept.seq
        };
        let Some(kept) = kept.filter(is_ours) else { return Ok(None) };
        let is_there = self.hash_of(state.session_id, kept.seq)? == Some(kept.hash);
        Ok(is_there.then(|| Known { record: Arc::new(kept.record), kept: kept.seq }))
    }

    /// Keeps a past for who comes after; false if that cannot be done now.
    fn keep_past(&self, state: &State, record: &Record) -> bool {
        let Some(path) = self.past_file(state.session_id) else { return false };
        let (session, seq) = (state.session_id, record.seq());
        let Ok(Some(hash)) = self.hash_of(session, seq) else { return false };
        let (program, fold) = (env!("CARGO_PKG_VERSION").to_owned(), FOLD_VERSION);
        let kept = Kept { program, fold, store: self.store_id(), session, seq, hash, record };
        let made = path.parent().is_some_and(|folder| segno_files::private_directory(folder).is_ok());
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        made && segno_files::replace_lazily(&path, &bytes).is_ok()
    }

    /// The hash that an event is chained with, in hexadecimal.
    fn hash_of(&self, session: SessionId, seq: u64) -> Result<Option<String>, Error> {
        let found = self.store().events(session, seq.saturating_sub(1), 1)?.pop();
        Ok(match found {
            Some(EventRow::Whole(stored)) if stored.seq == seq => {
                Some(stored.hash.iter().map(|byte| format!("{byte:02x}")).collect())
            }
            _ => None,
        })
    }

    /// Removes what is kept of the past of a session that is no more.
    pub(crate) fn remove_past(&self, session: SessionId) {
        if let Some(path) = self.past_file(session) {
            // Without one there is nothing to be done.
            let _ = std::fs::remove_file(path);
        }
        self.records.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
}
