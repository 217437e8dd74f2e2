//! Checking every session's record: chain, numbering, fold. Works for any backend.

use segno_core::SessionId;
use segno_core::State;
use segno_core::Summary;
use serde::Serialize;

use crate::Error;
use crate::Store;
use crate::fold::state_at;
use crate::types::EventRow;
use crate::types::Filter;

/// What was found out about a store.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// How many sessions were looked at.
    pub sessions: u64,
    /// How many events were read.
    pub events: u64,
    /// What is wrong below the sessions.
    pub store: Vec<String>,
    /// What is wrong with sessions.
    pub problems: Vec<Problem>,
}

/// Something wrong with a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// Which session, as far as its name can be read.
    pub session: String,
    /// Which event.
    pub seq: Option<u64>,
    /// What is wrong.
    pub what: String,
    /// Whether it is only in what is folded, so that the journal can mend it.
    pub derived: bool,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.store.is_empty() && self.problems.is_empty()
    }
}

/// Looks at every session. `progress` hears after each how many are done.
pub fn verify(store: &dyn Store, deep: bool, mut progress: impl FnMut(u64, u64)) -> Result<Report, Error> {
    let mut report = Report { store: store.integrity(deep)?, ..Report::default() };
    let listing = match store.list(&Filter::default()) {
        Ok(listing) => listing,
        Err(Error::Damaged { what, .. }) => {
            report.store.push(what);
            return Ok(report);
        }
        Err(other) => return Err(other),
    };
    let total = listing.total;
    for summary in listing.sessions {
        let id = match serde_json::from_str::<Summary>(&summary) {
            Ok(summary) => summary.session_id,
            Err(why) => match name_in(&summary) {
                Some(id) => {
                    report.note(&id.to_string(), None, format!("its summary cannot be read: {why}"), true);
                    id
                }
                None => {
                    report.note("?", None, format!("a session's summary cannot be read: {why}"), true);
                    continue;
                }
            },
        };
        report.sessions += 1;
        match verify_session(store, id, &summary, &mut report) {
            // Somebody deleted it since the list was made.
            Err(Error::NotFound(_)) => report.sessions -= 1,
            other => other?,
        }
        progress(report.sessions, total);
    }
    Ok(report)
}

impl Report {
    fn note(&mut self, session: &str, seq: Option<u64>, what: String, derived: bool) {
        self.problems.push(Problem { session: session.to_owned(), seq, what, derived });
    }
}

/// A damaged summary may still show whose it is.
pub(crate) fn name_in(text: &str) -> Option<SessionId> {
    text.match_indices("session_").find_map(|(start, _)| text.get(start..start + 30)?.parse().ok())
}

fn verify_session(store: &dyn Store, id: SessionId, summary: &str, report: &mut Report) -> Result<(), Error> {
    let name = id.to_string();
    let mut after = 0;
    let mut broken = false;
    loop {
        let rows = match store.events(id, after, 1_000) {
            Ok(rows) => rows,
            Err(Error::Damaged { what, .. }) => {
                report.note(&name, None, what, false);
                return Ok(());
            }
            Err(other) => return Err(other),
        };
        if rows.is_empty() {
            break;
        }
        for row in rows {
            match row {
                EventRow::Whole(stored) => {
                    after = stored.seq;
                    report.events += 1;
                    if let Err(why) = stored.event() {
                        broken = true;
                        report.note(&name, Some(stored.seq), why.to_string(), false);
                    }
                }
                EventRow::Damaged { seq, what } => {
                    after = seq;
                    broken = true;
                    report.note(&name, Some(seq), what, false);
                }
            }
        }
    }
    match store.load(id) {
        Ok(loaded) => {
            for notice in loaded.notices {
                // The events' own problems are named above.
                if !notice.starts_with("event ") {
                    report.note(&name, None, notice, true);
                }
            }
            if !broken {
                compare(store, id, &loaded.state, summary, report)?;
            }
        }
        Err(Error::SessionDamaged { what, .. }) if !broken => report.note(&name, None, what, false),
        Err(Error::SessionDamaged { .. }) => {}
        Err(Error::Damaged { what, .. }) => report.note(&name, None, what, false),
        Err(other) => return Err(other),
    }
    Ok(())
}

/// The fold of the journal must be the state that is kept.
fn compare(
    store: &dyn Store,
    id: SessionId,
    state: &State,
    summary: &str,
    report: &mut Report,
) -> Result<(), Error> {
    // Others may be writing: what was listed, loaded and read need not be of the same moment.
    let (folded, _) = state_at(store, id, state.seq)?;
    if folded != *state {
        report.note(&id.to_string(), None, "the kept state is not the fold of its journal".to_owned(), true);
    }
    let wanted = serde_json::to_value(Summary::from(&folded)).unwrap_or_default();
    let listed_at = serde_json::from_str::<Summary>(summary).map_or(state.seq, |summary| summary.seq);
    // One that an older program wrote may say less.
    let kept: serde_json::Map<String, serde_json::Value> = serde_json::from_str(summary).unwrap_or_default();
    let agrees = kept.iter().all(|(name, value)| wanted.get(name) == Some(value));
    if listed_at == state.seq && (kept.is_empty() || !agrees) {
        report.note(&id.to_string(), None, "the kept summary is not that of its state".to_owned(), true);
    }
    Ok(())
}
