//! Keeping the database in order: deleting, collecting, checking.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::Transaction;
use rusqlite::TransactionBehavior;
use segno_core::SessionId;
use segno_core::Timestamp;

use super::Direct;
use super::check_form;
use super::fault;
use super::journal;
use super::lists;
use super::open::beside;
use super::session;
use super::texts;
use super::turn::Turn;
use super::turn::Turns;
use super::write::write_folded;
use crate::Error;
use crate::fold::Fold;
use crate::fold::Folded;
use crate::fold::PAGE;
use crate::types::*;

/// A short process that opens the store alone reads the whole log first, so the log is kept short: one larger than this
/// is copied into the database by the next command that is not in a hurry.
const LOG_OVER: u64 = 256 * 1024;

/// While sessions are driven, their drivers keep the log from growing. Whoever only comes by leaves it to them, up to here.
const LOG_OF_DRIVERS: u64 = 32 * 1024 * 1024;
/// A log that is longer is cut by whoever has the turn. Copying it, as processes that stay do, lets it be written from its
/// beginning once nobody reads in it; with many readers that moment may never come by itself.
const LOG_MOST: u64 = 32 * 1024 * 1024;

fn length_of_log(path: &Path) -> u64 {
    std::fs::metadata(beside(path, "-wal")).map_or(0, |meta| meta.len())
}

/// Copies the log into the database if it has grown, as far as readers allow. Somebody who writes just now does so too, or
/// the next one.
pub(super) fn maintain(direct: &mut Direct, path: &Path) -> Result<(), Error> {
    let log = length_of_log(path);
    if log < LOG_OVER {
        return Ok(());
    }
    let location = direct.location.clone();
    let purpose = direct.options.purpose;
    let is_hasty = purpose == super::Purpose::Recurring;
    let (connection, _, _) = direct.connection()?;
    if purpose == super::Purpose::OneShot && log < LOG_OF_DRIVERS && super::lease::any(connection, &location)?
    {
        return Ok(());
    }
    let Some(_turn) = Turns::take_idle(path) else { return Ok(()) };
    super::busy::patience(if is_hasty { Duration::ZERO } else { TEND_PATIENCE });
    // Truncating gives the room back; if somebody reads or writes just now, the next command does it.
    match connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        Ok(()) => Ok(()),
        Err(e) => match fault(&location, e) {
            Error::Busy { .. } => Ok(()),
            other => Err(other),
        },
    }
}

/// Cuts a log that has become long, before anybody else writes again. If somebody reads in it for longer, the next one
/// tries.
pub(super) fn bound_log(connection: &Connection, path: &Path, _turn: &Turn) {
    if length_of_log(path) >= LOG_MOST {
        let waited = super::busy::waited();
        super::busy::patience(TEND_PATIENCE);
        // What goes wrong here is no loss: what was committed is in the log.
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        // It was not others that were waited for.
        super::busy::patience(TEND_PATIENCE);
        super::busy::add_waited(waited);
    }
}

/// Makes sure of what a failed commit may have left in the log. After a failed sync the system may take the log's bytes
/// for written although they are not, and a later sync of it proves nothing; copied into the database they are
/// written again, and that is synced.
pub(super) fn settle_doubt(connection: &Connection, location: &str) -> Result<(), Error> {
    let (busy, log, copied): (bool, i64, i64) = connection
        .query_row("PRAGMA wal_checkpoint(FULL)", [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(|e| super::commit_fault(location, e))?;
    if busy || copied < log {
        return Err(Error::Busy { location: location.to_owned() });
    }
    Ok(())
}

/// Upkeep waits for nobody: whoever is busy now will be done when the next command comes.
const TEND_PATIENCE: Duration = Duration::from_millis(50);

pub(super) fn transact<T>(
    direct: &mut Direct,
    job: impl FnOnce(&Transaction<'_>, &str) -> Result<T, Error>,
) -> Result<T, Error> {
    let location = direct.location.clone();
    let (connection, cache, file, _turn) = direct.for_writing()?;
    cache.clear();
    let tx = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|e| fault(&location, e))?;
    check_form(&tx, &location, file)?;
    let done = job(&tx, &location)?;
    match tx.commit() {
        Ok(()) => Ok(done),
        Err(e) => Err(direct.commit_failed(e)),
    }
}

pub(super) fn delete(
    direct: &mut Direct,
    session: SessionId,
    at: Option<u64>,
    over: Option<Over>,
) -> Result<bool, Error> {
    let path = direct.path.clone();
    let deleted = transact(direct, |tx, location| {
        let row = match session::find_row(tx, location, session) {
            Ok(row) => row,
            Err(Error::NotFound(_)) => return Ok(false),
            Err(other) => return Err(other),
        };
        if let Some(expected) = at.filter(|at| *at != row.head_seq) {
            return Err(Error::Conflict { expected, actual: row.head_seq });
        }
        super::lease::refuse_held(tx, location, row.pk, over)?;
        let sql = |e| fault(location, e);
        let own = texts::of_session(tx, location, row.pk)?;
        let range = (session::event_id(row.pk, 0), session::event_id(row.pk + 1, 0));
        tx.execute("DELETE FROM events WHERE id >= ?1 AND id < ?2", range).map_err(sql)?;
        for table in ["items", "states", "leases", "blob_refs"] {
            tx.execute(&format!("DELETE FROM {table} WHERE session = ?1"), [row.pk]).map_err(sql)?;
        }
        tx.execute("DELETE FROM sessions WHERE pk = ?1", [row.pk]).map_err(sql)?;
        tx.execute("DELETE FROM damage WHERE session = ?1", [session.to_string()]).map_err(sql)?;
        // Only its own texts can have become nobody's: looking at all of them would hold up every writer.
        texts::drop_unused(tx, location, &own)?;
        Ok(true)
    })?;
    if deleted {
        super::heads::note(&path, &[(session, 0)]);
    }
    Ok(deleted)
}

pub(super) fn collect_garbage(direct: &mut Direct) -> Result<Garbage, Error> {
    transact(direct, texts::collect)
}

/// Folds a session anew and writes everything that follows from its journal.
pub(super) fn rebuild(direct: &mut Direct, session: SessionId) -> Result<Loaded, Error> {
    transact(direct, |tx, location| {
        let row = session::find_row(tx, location, session)?;
        refold(tx, location, session, &row)
    })
}

/// The same within a transaction.
pub(super) fn refold(
    tx: &Transaction<'_>,
    location: &str,
    session: SessionId,
    row: &session::Row,
) -> Result<Loaded, Error> {
    let sql = |e| fault(location, e);
    tx.execute("DELETE FROM items WHERE session = ?1", [row.pk]).map_err(sql)?;
    tx.execute("DELETE FROM states WHERE session = ?1", [row.pk]).map_err(sql)?;
    let mut fold = Fold::new(session, None, session::known(tx, location, session)?);
    loop {
        let rows = journal::events(tx, location, row, fold.after(), PAGE)?;
        if rows.is_empty() {
            break;
        }
        let mut changes = lists::Changes::default();
        for event in rows {
            if let Some(folded) = fold.take(event) {
                let Folded { state, mark, event, applied } = folded;
                changes.add(&mark, segno_core::project(state, &mark, &event, applied));
            }
        }
        changes.write(tx, location, row.pk)?;
    }
    let (mut state, notices) = fold.finish()?;
    state.seq = row.head_seq;
    write_folded(tx, location, row, &state, false)?;
    // It never changes, so appending leaves it alone; a saved session may have it wrong.
    tx.execute(
        "UPDATE sessions SET made_by = ?2 WHERE pk = ?1",
        (row.pk, super::create::maker(state.made_by)),
    )
    .map_err(sql)?;
    texts::mend(tx, location, row.pk)?;
    Ok(Loaded { state, notices })
}

pub(super) fn integrity(connection: &Connection, location: &str, deep: bool) -> Result<Vec<String>, Error> {
    match look_for_damage(connection, deep).map_err(|e| fault(location, e)) {
        // A check that cannot go on for damage has found it.
        Err(Error::Damaged { what, .. }) => Ok(vec![what]),
        other => other,
    }
}

fn look_for_damage(connection: &Connection, deep: bool) -> rusqlite::Result<Vec<String>> {
    let pragma = if deep { "integrity_check" } else { "quick_check" };
    let mut statement = connection.prepare(&format!("PRAGMA {pragma}"))?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut problems = Vec::new();
    for row in rows {
        match row {
            Ok(line) if line == "ok" => {}
            Ok(line) => problems.push(line),
            Err(e) => {
                problems.push(e.to_string());
                return Ok(problems);
            }
        }
    }
    problems.extend(super::schema::foreign_steps(connection)?);
    problems.extend(wrong_heads(connection)?);
    Ok(problems)
}

/// Sessions whose own row does not agree with their last event. Missing events are told where they are missing.
fn wrong_heads(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut ask = connection.prepare(
        "SELECT s.id FROM sessions s WHERE EXISTS
         (SELECT 1 FROM events e WHERE e.id = (s.pk << 36) + s.head_seq AND substr(e.hash, 1, 32) <> s.head_hash)
         OR EXISTS (SELECT 1 FROM events e WHERE e.id > (s.pk << 36) + s.head_seq AND e.id < (s.pk + 1) << 36)",
    )?;
    let rows = ask.query_map([], |row| row.get::<_, String>(0))?;
    rows.map(|id| Ok(format!("the row of session {} does not fit its last event", id?))).collect()
}

pub(super) fn quarantine(direct: &mut Direct, session: SessionId, seq: u64, what: &str) -> Result<(), Error> {
    transact(direct, |tx, location| {
        let sql = |e| fault(location, e);
        let known: bool = tx
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM damage WHERE session = ?1 AND seq = ?2)",
                (session.to_string(), seq),
                |row| row.get(0),
            )
            .map_err(sql)?;
        if known {
            return Ok(());
        }
        // The row's own bytes are kept as they were found; a row that is gone or unreadable leaves nothing to keep.
        let bytes = || {
            let row = session::find_row(tx, location, session)?;
            tx.query_row(
                "SELECT CAST(key || char(10) || kind || char(10) || body AS BLOB) FROM events WHERE id = ?1",
                [session::event_id(row.pk, seq)],
                |row| row.get::<_, Option<Vec<u8>>>(0),
            )
            .optional()
            .map_err(sql)
        };
        let content = match bytes() {
            Ok(found) => found.flatten(),
            Err(Error::Damaged { .. } | Error::NotFound(_)) => None,
            Err(other) => return Err(other),
        };
        tx.execute(
            "INSERT INTO damage (session, seq, found_us, what, content)
             VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000000 AS INTEGER), ?3, ?4)",
            (session.to_string(), seq, what, content),
        )
        .map_err(sql)?;
        Ok(())
    })
}

pub(super) fn quarantined(connection: &Connection, location: &str) -> Result<Vec<Damage>, Error> {
    let sql = |e| fault(location, e);
    let mut statement = connection
        .prepare("SELECT session, seq, found_us, what, coalesce(length(content), 0) FROM damage ORDER BY id")
        .map_err(sql)?;
    let rows = statement
        .query_map([], |row| {
            Ok(Damage {
                session: row.get(0)?,
                seq: row.get(1)?,
                found_at: Timestamp::from_micros(row.get(2)?),
                what: row.get(3)?,
                bytes: row.get(4)?,
            })
        })
        .map_err(sql)?;
    rows.collect::<Result<_, _>>().map_err(sql)
}
