//! Taking texts out of what is stored, so that no byte of them is left in the database or its log.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::types::ValueRef;

use super::Direct;
use super::fault;
use super::heads;
use super::journal;
use super::lists;
use super::open;
use super::schema;
use super::session;
use super::texts;
use super::upkeep;
use super::write::Inserted;
use super::write::Written;
use super::write::insert_event;
use crate::Error;
use crate::chain;
use crate::codec;
use crate::error::Certainty;
use crate::types::Forget;
use crate::types::Holds;
use crate::types::Loaded;
use crate::types::Rewritten;

/// A text that was set aside is unpacked up to this size to look into it; redaction sets none aside that is larger.
const LARGEST_TEXT: u64 = 1 << 30;

pub(super) fn forget(direct: &mut Direct, forget: Forget) -> Result<Loaded, Error> {
    overwrite_what_goes(direct)?;
    let path = direct.path.clone();
    let id = forget.session;
    let loaded = upkeep::transact(direct, |tx, location| {
        let mut row = session::find_row(tx, location, id)?;
        if row.head_seq != forget.at_seq {
            return Err(Error::Conflict { expected: forget.at_seq, actual: row.head_seq });
        }
        super::lease::refuse_held(tx, location, row.pk, forget.over)?;
        schema::allow_seals(tx).map_err(|e| fault(location, e))?;
        let own = texts::of_session(tx, location, row.pk)?;
        for rewritten in &forget.events {
            rewrite(tx, location, &row, id, rewritten)?;
        }
        if let Some(hash) = session::hash_at(tx, location, row.pk, row.head_seq)? {
            row.head_hash = hash;
        }
        let written =
            Written { key: forget.key.clone(), at: forget.at, run: None, epoch: None, forgotten: None };
        if insert_event(tx, location, &mut row, &written, &forget.note)? == Inserted::KeyKnown {
            let what = format!("the key {} is known", forget.key);
            return Err(Error::Failed {
                location: location.to_owned(),
                what,
                certainty: Certainty::NotWritten,
            });
        }
        let loaded = upkeep::refold(tx, location, id, &row)?;
        texts::drop_unused(tx, location, &own)?;
        Ok(loaded)
    })?;
    heads::note(&path, &[(id, loaded.state.seq)]);
    Ok(loaded)
}

/// Replaces what an event says. Its hash stays, for what follows is chained to it.
fn rewrite(
    tx: &Connection,
    location: &str,
    row: &session::Row,
    session: segno_core::SessionId,
    rewritten: &Rewritten,
) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let damaged =
        |what: &str| Error::SessionDamaged { session, what: format!("event {} {what}", rewritten.seq) };
    let id = session::event_id(row.pk, rewritten.seq);
    let stored = tx
        .query_row(
            "SELECT id, key, at_us, run, epoch, kind, version, body, hash FROM events WHERE id = ?1",
            [id],
            |found| journal::read_event(found, rewritten.seq),
        )
        .optional()
        .map_err(sql)?
        .ok_or_else(|| damaged("is not there"))?;
    let before = match rewritten.seq {
        1 => Some(chain::start(&row.uid)),
        seq => session::hash_at(tx, location, row.pk, seq - 1)?,
    };
    let before = before.ok_or_else(|| damaged("follows one that cannot be read"))?;
    let key = rewritten.key.as_ref().map_or(stored.key.as_str(), |key| key.as_str());
    let version = rewritten.event.version();
    let link = chain::Link { key, version, body: rewritten.event.body(), ..stored.link() };
    let mut hashes = stored.hash.to_vec();
    hashes.extend_from_slice(&chain::seal(&before, &stored.hash, &link));
    tx.execute(
        "UPDATE events SET key = ?2, version = ?3, body = ?4, hash = ?5 WHERE id = ?1",
        (id, key, version, link.body, hashes),
    )
    .map_err(sql)?;
    for blob in rewritten.event.blobs() {
        lists::write_blob(tx, location, row.pk, rewritten.seq, blob)?;
    }
    Ok(())
}

/// From now on this connection writes zeros over what it removes.
fn overwrite_what_goes(direct: &mut Direct) -> Result<(), Error> {
    let location = direct.location.clone();
    let (connection, _, _, _) = direct.for_writing()?;
    let on: bool = connection
        .pragma_update_and_check(None, "secure_delete", true, |row| row.get(0))
        .map_err(|e| fault(&location, e))?;
    if on {
        return Ok(());
    }
    let what = "what is removed cannot be overwritten".to_owned();
    Err(Error::Failed { location, what, certainty: Certainty::NotWritten })
}

pub(super) fn scrub(direct: &mut Direct, holds: &Holds) -> Result<(), Error> {
    overwrite_what_goes(direct)?;
    upkeep::transact(direct, |tx, location| {
        let sql = |e| fault(location, e);
        let mut ask = tx.prepare("SELECT id, what, content FROM damage").map_err(sql)?;
        let mut rows = ask.query([]).map_err(sql)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(sql)? {
            if value_holds(row.get_ref(1).map_err(sql)?, holds)
                || value_holds(row.get_ref(2).map_err(sql)?, holds)
            {
                found.push(row.get::<_, i64>(0).map_err(sql)?);
            }
        }
        for id in found {
            // That there was damage stays known.
            tx.execute("UPDATE damage SET what = 'forgotten', content = NULL WHERE id = ?1", [id])
                .map_err(sql)?;
        }
        texts::collect(tx, location)
    })?;
    let location = direct.location.clone();
    let patience = direct.options.busy;
    let (connection, cache, _, _turn) = direct.for_writing()?;
    cache.clear();
    // Free pages, and the room between rows, may hold what was there before anything was overwritten.
    connection.execute_batch("VACUUM").map_err(|e| fault(&location, e))?;
    empty_log(connection, &location, patience)
}

/// Copies the log into the database and cuts it to nothing. Waits for who reads.
fn empty_log(connection: &Connection, location: &str, patience: Duration) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        let busy =
            match connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0)) {
                Ok(busy) => busy,
                Err(e) => match fault(location, e) {
                    Error::Busy { .. } => true,
                    other => return Err(other),
                },
            };
        if !busy {
            return Ok(());
        }
        if began.elapsed() > patience {
            return Err(Error::Busy { location: location.to_owned() });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Looks into every value of every table.
pub(super) fn search(
    connection: &Connection,
    location: &str,
    holds: &Holds,
) -> Result<BTreeMap<String, u64>, Error> {
    let sql = |e| fault(location, e);
    let mut tables =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").map_err(sql)?;
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).map_err(sql)?.collect::<Result<_, _>>().map_err(sql)?;
    let mut found = BTreeMap::new();
    for table in tables {
        let mut ask =
            connection.prepare(&format!("SELECT * FROM \"{}\"", table.replace('"', "\"\""))).map_err(sql)?;
        let columns = ask.column_count();
        let mut rows = ask.query([]).map_err(sql)?;
        let mut count = 0;
        while let Some(row) = rows.next().map_err(sql)? {
            let values = (0..columns).map(|column| row.get_ref(column));
            let holds =
                |value: rusqlite::Result<ValueRef<'_>>| value.is_ok_and(|value| value_holds(value, holds));
            count += u64::from(values.into_iter().any(holds));
        }
        if count > 0 {
            found.insert(table, count);
        }
    }
    Ok(found)
}

fn value_holds(value: ValueRef<'_>, holds: &Holds) -> bool {
    match value {
        ValueRef::Text(bytes) => holds(bytes),
        // Long texts are packed.
        ValueRef::Blob(bytes) => {
            holds(bytes) || codec::unpack(bytes, LARGEST_TEXT).is_some_and(|text| holds(&text))
        }
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => false,
    }
}

/// Whether a file that is or was a store holds something, in its rows or anywhere else.
///
/// # Errors
/// If it cannot be told: the file cannot be read, or its rows cannot.
pub fn file_holds(path: &Path, holds: &Holds) -> Result<bool, Error> {
    let location = path.display().to_string();
    let bytes = std::fs::read(path)
        .map_err(|why| Error::UnusableLocation { location: location.clone(), why: why.to_string() })?;
    if holds(&bytes) {
        return Ok(true);
    }
    drop(bytes);
    let connection = open::peek(path, &location)?;
    Ok(!search(&connection, &location, holds)?.is_empty())
}
