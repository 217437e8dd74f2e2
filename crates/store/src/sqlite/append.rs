//! Appending: every check and every write of an append in one immediate transaction.

use std::collections::HashMap;
use std::collections::HashSet;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::TransactionBehavior;
use segno_core::EventKey;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Summary;
use segno_redact::Redacted;

use super::Direct;
use super::check_form;
use super::fault;
use super::journal;
use super::lease;
use super::lease::Held;
use super::lists;
use super::session;
use super::session::Cache;
use super::session::Cached;
use super::session::Row;
use super::shared;
use super::upkeep;
use super::write::Inserted;
use super::write::Written;
use super::write::write_event;
use super::write::write_folded;
use crate::Error;
use crate::error::Certainty;
use crate::types::Append;
use crate::types::Appended;
use crate::types::EventRow;
use crate::types::Filter;
use crate::types::OthersQuery;
use crate::types::OthersView;
use crate::types::StoredEvent;
use crate::types::What;

/// The kind of an event that came too late.
const LATE: &str = "late_recorded";

/// Appends in one transaction. If the database itself fails part-way, each append is tried alone, so that one
/// bad append cannot take the others down.
pub(super) fn append(direct: &mut Direct, batch: &mut [Append]) -> Vec<Result<Appended, Error>> {
    let together = attempt(direct, batch);
    direct.note_waited();
    match together {
        Ok(results) => results,
        Err(Error::Busy { location }) => {
            batch.iter().map(|_| Err(Error::Busy { location: location.clone() })).collect()
        }
        Err(failed) if batch.len() == 1 => vec![Err(failed)],
        Err(failed) => one_by_one(direct, batch, failed.certainty()),
    }
}

/// Each append alone. After one that failed nothing more is written of the same session: its events would stand in the
/// journal in another order than they happened.
fn one_by_one(
    direct: &mut Direct,
    batch: &mut [Append],
    together: Certainty,
) -> Vec<Result<Appended, Error>> {
    let mut stopped: HashSet<SessionId> = HashSet::new();
    let location = direct.location.clone();
    let mut results = Vec::with_capacity(batch.len());
    for one in batch {
        let session = one.session;
        let result = if stopped.contains(&session) {
            let what = "an append before it could not be written".to_owned();
            Err(Error::Failed { location: location.clone(), what, certainty: Certainty::NotWritten })
        } else {
            attempt(direct, std::slice::from_mut(one))
                .and_then(|mut results| results.pop().unwrap_or(Err(Error::NotFound(session))))
        };
        results.push(result.map_err(|why| {
            if is_answer(&why) {
                return why;
            }
            stopped.insert(session);
            // All of them may be there already, if that is what the first attempt came to.
            match together {
                Certainty::Unknown => {
                    Error::Failed { location: location.clone(), what: why.to_string(), certainty: together }
                }
                Certainty::NotWritten => why,
            }
        }));
    }
    results
}

/// Whether an error is the answer to one append, made before anything was written for it.
fn is_answer(why: &Error) -> bool {
    matches!(
        why,
        Error::NotFound(_)
            | Error::Refused(_)
            | Error::Conflict { .. }
            | Error::StaleEpoch { .. }
            | Error::SessionDamaged { .. }
    )
}

fn attempt(direct: &mut Direct, batch: &mut [Append]) -> Result<Vec<Result<Appended, Error>>, Error> {
    let results = together(direct, batch);
    direct.invalidate_after(&results);
    results
}

fn together(direct: &mut Direct, batch: &mut [Append]) -> Result<Vec<Result<Appended, Error>>, Error> {
    let location = direct.location.clone();
    let path = direct.path.clone();
    let held = direct.held.clone();
    let (connection, cache, file, turn) = direct.for_writing()?;
    let tx = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|e| fault(&location, e))?;
    check_form(&tx, &location, file)?;
    let mut work =
        Work { connection: &tx, location: &location, cache, held: &held, sessions: HashMap::new() };
    let mut results = Vec::with_capacity(batch.len());
    for append in batch {
        match work.stage(append) {
            Ok(appended) => results.push(Ok(appended)),
            Err(answer) if is_answer(&answer) => results.push(Err(answer)),
            Err(failed) => return Err(failed),
        }
    }
    let Finished { cached: sessions, beaten } = work.finish()?;
    match tx.commit() {
        Ok(()) => {
            let heads: Vec<_> = sessions
                .iter()
                .filter(|(_, _, changed)| *changed)
                .map(|(_, cached, _)| (cached.state.session_id, cached.state.seq))
                .collect();
            for (pk, cached, _) in sessions {
                cache.put(pk, cached);
            }
            upkeep::bound_log(connection, &path, &turn);
            drop(turn);
            super::heads::note(&path, &heads);
            direct.held.beat(&beaten);
            Ok(results)
        }
        Err(e) => Err(direct.commit_failed(e)),
    }
}

struct Work<'a> {
    connection: &'a Connection,
    location: &'a str,
    cache: &'a Cache,
    held: &'a Held,
    sessions: HashMap<SessionId, Working>,
}

/// A session as it will be after the transaction.
struct Working {
    row: Row,
    state: State,
    keep: bool,
    changed: bool,
    /// Its driver; nobody else can change it before this transaction ends.
    driven: Option<lease::Standing>,
    /// The driver under which something was appended and that has not been heard of for a while.
    beats: Option<u64>,
    changes: lists::Changes,
}

/// What a transaction comes to.
struct Finished {
    /// Each session, and whether it was changed.
    cached: Vec<(i64, Cached, bool)>,
    /// Those whose holder said that it lives.
    beaten: Vec<SessionId>,
}

/// What became of one append.
enum Staged {
    Appended(Appended),
    /// Its key was known: nothing was written.
    KeyKnown,
}

impl Work<'_> {
    fn stage(&mut self, append: &mut Append) -> Result<Appended, Error> {
        let mut working = self.working(append.session)?;
        // Whatever is refused below leaves the session as it is.
        let result = self.stage_in(append, &mut working);
        self.sessions.insert(append.session, working);
        result
    }

    fn stage_in(&self, append: &mut Append, working: &mut Working) -> Result<Appended, Error> {
        // Facts that nobody made before are written without a look: the index of keys says if they were.
        let is_plain = matches!(append.what, What::Facts(_))
            && append.if_late.is_none()
            && append.former_key.is_none()
            && append.expected_seq.is_none();
        if !is_plain && let Some(appended) = self.repeated(append, working)? {
            return Ok(appended);
        }
        match self.decide_and_write(append, working) {
            Ok(Staged::Appended(appended)) => Ok(appended),
            Ok(Staged::KeyKnown) => self.repeated(append, working)?.ok_or_else(|| self.lost_key(append)),
            // An answer that was given once is given again, whoever drives now.
            Err(stale @ Error::StaleEpoch { .. }) if is_plain => self.repeated(append, working)?.ok_or(stale),
            Err(why) => Err(why),
        }
    }

    fn lost_key(&self, append: &Append) -> Error {
        Error::Failed {
            location: self.location.to_owned(),
            what: format!("the key {} is known, but not found", append.key),
            certainty: Certainty::NotWritten,
        }
    }

    fn working(&mut self, id: SessionId) -> Result<Working, Error> {
        if let Some(working) = self.sessions.remove(&id) {
            return Ok(working);
        }
        let mut row = session::find_row(self.connection, self.location, id)?;
        let newest = session::newest(self.connection, self.location, id, &row, self.cache)?;
        // The chain goes on from the event itself: a damaged session row must not break it.
        if let Some(hash) = session::hash_at(self.connection, self.location, row.pk, row.head_seq)? {
            row.head_hash = hash;
        }
        Ok(Working {
            row,
            state: newest.state,
            keep: newest.keep,
            changed: false,
            driven: None,
            beats: None,
            changes: lists::Changes::default(),
        })
    }

    /// The first answer again, if the key is known.
    fn repeated(&self, append: &Append, working: &Working) -> Result<Option<Appended>, Error> {
        let find = |key: &EventKey| find_key(self.connection, self.location, working.row.pk, key);
        let mut known = find(&append.key)?.map(|first| (&append.key, first));
        if let (None, Some(former)) = (known, &append.former_key) {
            known = find(former)?.map(|first| (former, first));
        }
        let Some((key, first)) = known else { return Ok(None) };
        let mut last = first;
        for part in 1.. {
            // The events of one append lie together; a key that only looks like a part lies elsewhere.
            match find(&key.part(part))? {
                Some(seq) if seq == last + 1 => last = seq,
                _ => break,
            }
        }
        let mut appended =
            Appended { first, last, repeated: true, late: false, state: None, events: Vec::new() };
        if append.epoch.is_some() || append.want_state {
            self.recall(append, working, &mut appended)?;
        }
        Ok(Some(appended))
    }

    /// What was said the first time, read back from the journal.
    fn recall(&self, append: &Append, working: &Working, appended: &mut Appended) -> Result<(), Error> {
        let count = usize::try_from(appended.last - appended.first + 1).unwrap_or(usize::MAX);
        for found in journal::events(self.connection, self.location, &working.row, appended.first - 1, count)?
        {
            let EventRow::Whole(stored) = found else { continue };
            if stored.seq == appended.first && append.epoch.is_some() {
                appended.late = stored.kind == LATE || is_first_of(append.if_late.as_deref(), &stored);
            }
            if append.want_state
                && let Ok(event) = stored.event()
            {
                appended.events.push(event);
            }
        }
        appended.state = append.want_state.then(|| Box::new(working.state.clone()));
        Ok(())
    }

    fn decide_and_write(&self, append: &mut Append, working: &mut Working) -> Result<Staged, Error> {
        let late = self.is_late(append, working)?;
        if let Some(expected) = append.expected_seq
            && !late
            && expected != working.row.head_seq
        {
            return Err(Error::Conflict { expected, actual: working.row.head_seq });
        }
        let decided;
        let events: &[Redacted] = match (&mut append.what, &append.if_late) {
            (_, Some(instead)) if late => instead,
            (What::Facts(events), _) => events,
            (What::Decide(decider), _) => {
                decided = decider(&working.state)?;
                &decided
            }
            (What::DecideWithOthers(query, decider), _) => {
                decided = decider(&working.state, &self.others(query, &working.state)?)?;
                &decided
            }
        };
        let first = working.row.head_seq + 1;
        for (part, redacted) in events.iter().enumerate() {
            let written = Written {
                key: append.key.part(part),
                at: append.at,
                run: append.run.clone(),
                epoch: append.epoch,
                forgotten: None,
            };
            let Working { row, state, changes, .. } = &mut *working;
            match write_event(self.connection, self.location, row, state, changes, &written, redacted)? {
                Inserted::Yes => working.changed = true,
                Inserted::KeyKnown if part == 0 => return Ok(Staged::KeyKnown),
                // What was written of it before goes with the transaction.
                Inserted::KeyKnown => return Err(self.lost_key(append)),
            }
        }
        let last = working.row.head_seq;
        let appended = Appended {
            first: first.min(last),
            last,
            repeated: false,
            late,
            state: append.want_state.then(|| Box::new(working.state.clone())),
            events: if append.want_state {
                events.iter().map(|e| e.event().clone()).collect()
            } else {
                Vec::new()
            },
        };
        Ok(Staged::Appended(appended))
    }

    /// The sessions that a filter finds, as they will be after this transaction as far as it is known now.
    fn found(&self, filter: &Filter) -> Result<Vec<Summary>, Error> {
        let filter = Filter { limit: None, ..filter.clone() };
        let mut found = super::pages::list(self.connection, self.location, &filter)?.sessions;
        // What appends before this one changed is written at the end.
        for working in self.sessions.values().filter(|working| working.changed) {
            found.retain(|one| one.session_id != working.state.session_id);
            let summary = Summary::from(&working.state);
            if filter.fits(&summary) {
                found.push(summary);
            }
        }
        Ok(found)
    }

    /// What has to be known of other sessions. What this transaction has changed and not written yet counts as it will be.
    fn others(&self, query: &OthersQuery, own: &State) -> Result<OthersView, Error> {
        let sessions = match &query.sessions {
            Some(filter) => self.found(filter)?,
            None => Vec::new(),
        };
        let in_hand = |session: SessionId| match self.sessions.get(&session) {
            _ if session == own.session_id => Some(own),
            Some(working) => Some(&working.state),
            None => None,
        };
        let used = shared::read_with(self.connection, self.location, query, &in_hand, &|session| {
            let row = session::find_row(self.connection, self.location, session)?;
            Ok(session::newest(self.connection, self.location, session, &row, self.cache)?.state)
        })?;
        Ok(OthersView { sessions, ..used })
    }

    fn is_late(&self, append: &Append, working: &mut Working) -> Result<bool, Error> {
        let Some(given) = append.epoch else { return Ok(false) };
        let driven = match working.driven {
            Some(known) => known,
            None => *working.driven.insert(lease::standing(self.connection, self.location, working.row.pk)?),
        };
        let current = driven.epoch;
        if given == current {
            // The clock is asked only by whoever may have to say that it lives: a hook does not.
            if self.held.holds(append.session, given) && driven.wants_beat() {
                working.beats = Some(given);
            }
            return Ok(false);
        }
        // A number that no driver can ever have had is nobody's late word.
        if append.if_late.is_some() && i64::try_from(given).is_ok() {
            Ok(true)
        } else {
            Err(Error::StaleEpoch { given, current })
        }
    }

    /// Writes what is folded, once per session however many events it got.
    fn finish(self) -> Result<Finished, Error> {
        let mut cached = Vec::with_capacity(self.sessions.len());
        let mut beaten = Vec::new();
        for (session, mut working) in self.sessions {
            if working.changed {
                if let Some(epoch) = working.beats
                    && lease::beat(self.connection, self.location, working.row.pk, epoch)?
                {
                    beaten.push(session);
                }
                working.changes.write(self.connection, self.location, working.row.pk)?;
                write_folded(self.connection, self.location, &working.row, &working.state, working.keep)?;
            }
            let entry = Cached { head_hash: working.row.head_hash, state: working.state, keep: working.keep };
            cached.push((working.row.pk, entry, working.changed));
        }
        Ok(Finished { cached, beaten })
    }
}

/// Whether a stored event is the one that was to be written instead.
fn is_first_of(if_late: Option<&[Redacted]>, stored: &StoredEvent) -> bool {
    if_late
        .and_then(<[Redacted]>::first)
        .is_some_and(|late| late.event().kind() == stored.kind && late.body() == stored.body)
}

fn find_key(connection: &Connection, location: &str, pk: i64, key: &EventKey) -> Result<Option<u64>, Error> {
    let mut statement = connection
        .prepare_cached("SELECT id FROM events WHERE session = ?1 AND key = ?2")
        .map_err(|e| fault(location, e))?;
    statement
        .query_row((pk, key.as_str()), |row| Ok(session::seq_of(row.get(0)?)))
        .optional()
        .map_err(|e| fault(location, e))
}
