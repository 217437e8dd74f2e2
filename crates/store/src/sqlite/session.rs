//! Finding a session and its newest state.

use std::collections::HashMap;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use segno_core::FOLD_VERSION;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Uid;

use super::fault;
use super::journal;
use crate::Error;
use crate::codec;
use crate::fold::Fold;
use crate::fold::PAGE;
use crate::types::Known;

/// Row ids of events are session pk * 2^36 + seq.
const SEQ_BITS: u32 = 36;

/// The row id of an event.
pub(super) fn event_id(pk: i64, seq: u64) -> i64 {
    (pk << SEQ_BITS) | i64::try_from(seq & ((1 << SEQ_BITS) - 1)).unwrap_or(0)
}

/// The number of the event with this row id.
pub(super) fn seq_of(id: i64) -> u64 {
    u64::try_from(id & ((1 << SEQ_BITS) - 1)).unwrap_or(0)
}

/// The session of the event with this row id.
pub(super) fn pk_of(id: i64) -> i64 {
    id >> SEQ_BITS
}

/// What the sessions table says of a session.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) pk: i64,
    pub(super) uid: Uid,
    pub(super) head_seq: u64,
    pub(super) head_hash: [u8; 32],
}

/// A session's newest state as this process last wrote it.
#[derive(Clone)]
pub(super) struct Cached {
    pub(super) head_hash: [u8; 32],
    pub(super) state: State,
    pub(super) keep: bool,
}

/// States by session. An entry counts only while the journal's head is the one it was folded to.
#[derive(Default)]
pub(super) struct Cache(HashMap<i64, Cached>);

impl Cache {
    /// Sessions a process works on at once are few.
    const MOST: usize = 64;

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn put(&mut self, pk: i64, cached: Cached) {
        if self.0.len() >= Self::MOST && !self.0.contains_key(&pk) {
            self.0.clear();
        }
        self.0.insert(pk, cached);
    }

    fn get(&self, row: &Row) -> Option<&Cached> {
        self.0.get(&row.pk).filter(|cached| cached.head_hash == row.head_hash)
    }
}

pub(super) fn find_row(connection: &Connection, location: &str, session: SessionId) -> Result<Row, Error> {
    let mut statement = connection
        .prepare_cached("SELECT pk, uid, head_seq, head_hash FROM sessions WHERE id = ?1")
        .map_err(|e| fault(location, e))?;
    let found = statement
        .query_row([session.to_string()], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, [u8; 16]>(1)?,
                row.get::<_, u64>(2)?,
                row.get::<_, [u8; 32]>(3)?,
            ))
        })
        .optional()
        .map_err(|e| fault(location, e))?;
    let (pk, uid, head_seq, head_hash) = found.ok_or(Error::NotFound(session))?;
    Ok(Row { pk, uid: Uid::new(uuid::Uuid::from_bytes(uid)), head_seq, head_hash })
}

/// The hash that an event is stored with, if it can be read.
pub(super) fn hash_at(
    connection: &Connection,
    location: &str,
    pk: i64,
    seq: u64,
) -> Result<Option<[u8; 32]>, Error> {
    let found = connection
        .prepare_cached("SELECT hash FROM events WHERE id = ?1")
        .and_then(|mut ask| ask.query_row([event_id(pk, seq)], |row| row.get(0)).optional());
    match found.map_err(|e| fault(location, e)) {
        Err(Error::Damaged { .. }) => Ok(None),
        other => Ok(other?.map(|journal::Hashes { hash, .. }| hash)),
    }
}

/// A loaded state, whether the stored one must be left as it is, and what is wrong.
pub(super) struct Newest {
    pub(super) state: State,
    /// A newer segno's fold is stored: it must not be overwritten by an older one.
    pub(super) keep: bool,
    pub(super) notices: Vec<String>,
}

/// The state at the journal's head: the stored one, brought up by the events after it, or a fresh fold.
pub(super) fn newest(
    connection: &Connection,
    location: &str,
    session: SessionId,
    row: &Row,
    cache: &Cache,
) -> Result<Newest, Error> {
    if let Some(cached) = cache.get(row) {
        return Ok(Newest { state: cached.state.clone(), keep: cached.keep, notices: Vec::new() });
    }
    let mut statement = connection
        .prepare_cached("SELECT seq, fold, body, digest FROM states WHERE session = ?1")
        .map_err(|e| fault(location, e))?;
    let stored = statement
        .query_row([row.pk], |found| {
            Ok((
                found.get::<_, u64>(0)?,
                found.get::<_, u32>(1)?,
                found.get::<_, String>(2)?,
                found.get::<_, Vec<u8>>(3)?,
            ))
        })
        .optional();
    let mut notices = Vec::new();
    let (start, keep) = match stored {
        Ok(Some((seq, fold, body, digest))) => {
            let decoded = codec::decode_state(seq, &body, &digest);
            if decoded.is_none() && fold == FOLD_VERSION {
                notices.push("the stored state was damaged and was folded anew from the journal".to_owned());
            }
            // What an older fold left out must be folded in from the beginning.
            (decoded.filter(|_| fold >= FOLD_VERSION), fold > FOLD_VERSION)
        }
        Ok(None) => (None, false),
        Err(e) => match fault(location, e) {
            Error::Damaged { what, .. } => {
                notices.push(format!(
                    "the stored state cannot be read ({what}) and was folded anew from the journal"
                ));
                (None, false)
            }
            other => return Err(other),
        },
    };
    if let Some(state) = &start
        && state.seq == row.head_seq
    {
        return Ok(Newest { state: state.clone(), keep, notices });
    }
    let state = fold_on(connection, location, session, row, start, &mut notices)?;
    Ok(Newest { state, keep, notices })
}

/// Folds the journal from where `start` ends to its head. Damaged events are skipped and named.
pub(super) fn fold_on(
    connection: &Connection,
    location: &str,
    session: SessionId,
    row: &Row,
    start: Option<State>,
    notices: &mut Vec<String>,
) -> Result<State, Error> {
    let mut fold = Fold::new(session, start, known(connection, location, session)?);
    loop {
        let rows = journal::events(connection, location, row, fold.after(), PAGE)?;
        if rows.is_empty() {
            break;
        }
        for event in rows {
            fold.take(event);
        }
    }
    let (mut state, more) = fold.finish()?;
    notices.extend(more);
    // A damaged last event still counts in the numbering.
    state.seq = row.head_seq;
    Ok(state)
}

/// What a session's own row says of it, if it can be read.
pub(super) fn known(
    connection: &Connection,
    location: &str,
    session: SessionId,
) -> Result<Option<Known>, Error> {
    let found = connection
        .prepare_cached("SELECT uid, project, made_by FROM sessions WHERE id = ?1")
        .and_then(|mut ask| {
            ask.query_row([session.to_string()], |row| {
                Ok((row.get::<_, [u8; 16]>(0)?, row.get(1)?, row.get::<_, String>(2)?))
            })
            .optional()
        });
    match found.map_err(|e| fault(location, e)) {
        Ok(found) => Ok(found.map(|(uid, project, made_by)| Known {
            uid: Uid::new(uuid::Uuid::from_bytes(uid)),
            project,
            made_by: super::create::maker_of(&made_by),
        })),
        Err(Error::Damaged { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}
