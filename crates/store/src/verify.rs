//! Checking every session's record: chain, numbering, fold. Works for any backend.

use std::time::Duration;

use segno_core::SessionId;
use segno_core::State;
use segno_core::Summary;
use segno_core::summary::is_form_of;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use crate::Error;
use crate::Store;
use crate::fold::state_at;
use crate::rows;
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
    // Asked before the sessions are: what is acknowledged meanwhile is not missing from them.
    let mut acknowledged = store.acknowledged()?;
    let listing = match store.list(&Filter::default()) {
        Ok(listing) => listing,
        Err(Error::Damaged { what, .. }) => {
            report.store.push(what);
            return Ok(report);
        }
        Err(other) => return Err(other),
    };
    for (id, why) in &listing.unreadable {
        let name = id.map_or("?".to_owned(), |id| id.to_string());
        report.note(&name, None, format!("its summary cannot be read: {why}"), true);
    }
    for summary in listing.sessions {
        let id = summary.session_id;
        report.sessions += 1;
        match verify_session(store, id, acknowledged.remove(&id), &mut report) {
            // Somebody deleted it since the list was made.
            Err(Error::NotFound(_)) => report.sessions -= 1,
            other => other?,
        }
        progress(report.sessions, listing.total);
    }
    for (id, seq) in acknowledged {
        // Made or deleted since the list was made, or deleted by a program that notes nothing.
        if matches!(store.kept_summary(id), Err(Error::NotFound(_)))
            && store.acknowledged()?.contains_key(&id)
        {
            let what = format!("all of its {seq} event(s) were acknowledged and are not there");
            report.note(&id.to_string(), Some(1), what, false);
        }
    }
    Ok(report)
}

/// Looks at one session.
pub fn verify_one(store: &dyn Store, session: SessionId) -> Result<Vec<Problem>, Error> {
    let mut report = Report::default();
    verify_session(store, session, None, &mut report)?;
    Ok(report.problems)
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

fn verify_session(
    store: &dyn Store,
    id: SessionId,
    acknowledged: Option<u64>,
    report: &mut Report,
) -> Result<(), Error> {
    let name = id.to_string();
    let Some(read) = read_events(store, id, report)? else { return Ok(()) };
    if let Some(seq) = acknowledged.filter(|seq| *seq > read.head) {
        let what = format!("events up to {seq} were acknowledged, and there are {}", read.head);
        report.note(&name, Some(read.head + 1), what, false);
    }
    match store.load(id) {
        Ok(loaded) => {
            for notice in loaded.notices {
                // The events' own problems are named above.
                if !notice.starts_with("event ") {
                    report.note(&name, None, notice, true);
                }
            }
            if !read.broken {
                compare(store, id, &loaded.state, report)?;
            }
        }
        Err(Error::SessionDamaged { what, .. }) if !read.broken => report.note(&name, None, what, false),
        Err(Error::SessionDamaged { .. }) => {}
        Err(Error::Damaged { what, .. }) => report.note(&name, None, what, false),
        Err(other) => return Err(other),
    }
    Ok(())
}

struct Read {
    head: u64,
    broken: bool,
}

/// Reads every event and every text it refers to. None if damage ends it early.
fn read_events(store: &dyn Store, id: SessionId, report: &mut Report) -> Result<Option<Read>, Error> {
    let name = id.to_string();
    let mut read = Read { head: 0, broken: false };
    let mut sealed = std::collections::BTreeSet::new();
    loop {
        let rows = match store.events(id, read.head, 1_000) {
            Ok(rows) => rows,
            Err(Error::Damaged { what, .. }) => {
                report.note(&name, None, what, false);
                return Ok(None);
            }
            Err(other) => return Err(other),
        };
        if rows.is_empty() {
            for seq in sealed {
                let what = "a text was taken out of it, and no event says so".to_owned();
                report.note(&name, Some(seq), what, false);
            }
            return Ok(Some(read));
        }
        for row in rows {
            read.head = row.seq();
            match row {
                EventRow::Whole(stored) => {
                    report.events += 1;
                    if stored.seal.is_some() {
                        sealed.insert(stored.seq);
                    }
                    match stored.event() {
                        Ok(segno_core::Event::TextsForgotten(forgotten)) => {
                            sealed.retain(|seq| !forgotten.events.contains(seq));
                        }
                        Ok(_) => {}
                        Err(why) => {
                            read.broken = true;
                            report.note(&name, Some(stored.seq), why.to_string(), false);
                        }
                    }
                    for hash in rows::references(&stored.body) {
                        match store.blob(&hash) {
                            Ok(_) => {}
                            Err(why @ (Error::NoBlob(_) | Error::Damaged { .. })) => {
                                let what = format!("a long text of it: {why}");
                                report.note(&name, Some(stored.seq), what, true);
                            }
                            Err(other) => return Err(other),
                        }
                    }
                }
                EventRow::Damaged { seq, what } => {
                    read.broken = true;
                    report.note(&name, Some(seq), what, false);
                }
            }
        }
    }
}

/// The fold of the journal must be what is kept: the state, the summary, the rows of lists.
fn compare(store: &dyn Store, id: SessionId, state: &State, report: &mut Report) -> Result<(), Error> {
    // Others may be writing: what was loaded and read need not be of the same moment.
    let (folded, _) = state_at(store, id, state.seq)?;
    let mut wrong = Vec::new();
    if folded != *state {
        wrong.push("the kept state is not the fold of its journal".to_owned());
    }
    let kept: Option<Map<String, Value>> = serde_json::from_str(&store.kept_summary(id)?).ok();
    let wanted = serde_json::to_value(Summary::from(&folded)).unwrap_or_default();
    let agrees = kept.is_some_and(|kept| wanted.as_object().is_some_and(|wanted| is_form_of(&kept, wanted)));
    if !agrees {
        wrong.push("the kept summary is not that of its state".to_owned());
    }
    match rows::wrong(store, id, state.seq) {
        Ok(rows) => wrong.extend(rows),
        Err(Error::Damaged { what, .. }) => wrong.push(format!("its lists cannot be read: {what}")),
        Err(other) => return Err(other),
    }
    // What was written meanwhile would look like damage. Who writes so much is looked at another time.
    if store.wait_after(id, state.seq, Duration::ZERO)? == state.seq {
        for what in wrong {
            report.note(&id.to_string(), None, what, true);
        }
    }
    Ok(())
}
