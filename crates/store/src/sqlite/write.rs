//! Writing an event with all that follows from it.

use rusqlite::Connection;
use segno_core::EventKey;
use segno_core::FOLD_VERSION;
use segno_core::Mark;
use segno_core::State;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_redact::Redacted;

use super::fault;
use super::lists;
use super::session;
use super::session::Row;
use crate::Error;
use crate::chain;
use crate::codec;

/// What is stored of an event besides the event.
pub(super) struct Written {
    pub(super) key: EventKey,
    pub(super) at: Timestamp,
    pub(super) run: Option<String>,
    pub(super) epoch: Option<u64>,
    /// Texts were taken out of it elsewhere: the hash it had before.
    pub(super) forgotten: Option<[u8; 32]>,
}

/// Whether an event got its row.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It did.
    Yes,
    /// The session has an event with this key already.
    KeyKnown,
}

/// Writes one event with its texts, and folds it in. What follows for the lists is added to `changes`.
pub(super) fn write_event(
    connection: &Connection,
    location: &str,
    row: &mut Row,
    state: &mut State,
    changes: &mut lists::Changes,
    written: &Written,
    redacted: &Redacted,
) -> Result<Inserted, Error> {
    let seq = row.head_seq + 1;
    if insert_event(connection, location, row, written, redacted)? == Inserted::KeyKnown {
        return Ok(Inserted::KeyKnown);
    }
    let mark = Mark { seq, at: written.at, run: written.run.clone() };
    let event = redacted.event();
    let applied = state.apply(&mark, event);
    changes.add(&mark, segno_core::project(state, &mark, event, applied));
    Ok(Inserted::Yes)
}

/// Writes the event's own row and its texts, chained to the head.
pub(super) fn insert_event(
    connection: &Connection,
    location: &str,
    row: &mut Row,
    written: &Written,
    redacted: &Redacted,
) -> Result<Inserted, Error> {
    let seq = row.head_seq + 1;
    let event = redacted.event();
    let link = chain::Link {
        seq,
        at_us: written.at.as_micros(),
        key: written.key.as_str(),
        run: written.run.as_deref(),
        epoch: written.epoch,
        kind: event.kind(),
        version: redacted.version(),
        body: redacted.body(),
    };
    let hash = written.forgotten.unwrap_or_else(|| chain::next(&row.head_hash, &link));
    let mut hashes = hash.to_vec();
    if written.forgotten.is_some() {
        hashes.extend_from_slice(&chain::seal(&row.head_hash, &hash, &link));
        super::schema::allow_seals(connection).map_err(|e| fault(location, e))?;
    }
    let inserted = connection
        .prepare_cached(
            "INSERT INTO events (id, session, key, at_us, run, epoch, kind, version, body, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )
        .and_then(|mut insert| {
            insert.execute((
                session::event_id(row.pk, seq),
                row.pk,
                link.key,
                link.at_us,
                link.run,
                link.epoch,
                link.kind,
                link.version,
                link.body,
                hashes,
            ))
        });
    match inserted {
        Ok(_) => {}
        Err(why) if is_known_key(&why) => return Ok(Inserted::KeyKnown),
        Err(why) => return Err(fault(location, why)),
    }
    for blob in redacted.blobs() {
        lists::write_blob(connection, location, row.pk, seq, blob)?;
    }
    row.head_seq = seq;
    row.head_hash = hash;
    Ok(Inserted::Yes)
}

/// The index of keys is the only one of that table besides its row ids, whose conflicts have a code of their own.
fn is_known_key(why: &rusqlite::Error) -> bool {
    why.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE)
}

/// Writes what is folded from the journal: the state, and the session in one line.
pub(super) fn write_folded(
    connection: &Connection,
    location: &str,
    row: &Row,
    state: &State,
    keep: bool,
) -> Result<(), Error> {
    if !keep {
        let (body, digest) = codec::encode_state(state, location)?;
        connection
            .prepare_cached(
                "INSERT INTO states (session, seq, fold, body, digest) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (session) DO UPDATE SET seq = ?2, fold = ?3, body = ?4, digest = ?5",
            )
            .and_then(|mut put| put.execute((row.pk, state.seq, FOLD_VERSION, body, digest)))
            .map_err(|e| fault(location, e))?;
    }
    let summary = Summary::from(state);
    let json = serde_json::to_string(&summary).unwrap_or_default();
    connection
        .prepare_cached(
            "UPDATE sessions SET status = ?2, project = ?3, head_seq = ?4, head_hash = ?5, updated_us = ?6,
             summary = ?7 WHERE pk = ?1",
        )
        .and_then(|mut update| {
            update.execute((
                row.pk,
                state.status.as_str(),
                &state.project.path,
                row.head_seq,
                row.head_hash,
                state.updated_at.as_micros(),
                json,
            ))
        })
        .map_err(|e| fault(location, e))?;
    Ok(())
}
