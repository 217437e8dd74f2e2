//! Texts that were set aside: whose they are, which are nobody's, and putting right what was damaged about them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::Transaction;
use segno_core::text::BLOB_MEMBER;

use super::fault;
use super::session;
use crate::Error;
use crate::codec;
use crate::types::Garbage;

type Hash = [u8; 32];

/// Texts that no event is noted to refer to.
const UNUSED: &str = "NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.hash = blobs.hash)";

/// The texts that a session refers to.
pub(super) fn of_session(connection: &Connection, location: &str, pk: i64) -> Result<Vec<Vec<u8>>, Error> {
    let sql = |e| fault(location, e);
    let mut ask =
        connection.prepare("SELECT DISTINCT hash FROM blob_refs WHERE session = ?1").map_err(sql)?;
    let rows = ask.query_map([pk], |row| row.get(0)).map_err(sql)?;
    rows.collect::<Result<_, _>>().map_err(sql)
}

/// Removes those of these texts that nobody refers to any more.
pub(super) fn drop_unused(tx: &Transaction<'_>, location: &str, hashes: &[Vec<u8>]) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let mut drop = tx.prepare(&format!("DELETE FROM blobs WHERE hash = ?1 AND {UNUSED}")).map_err(sql)?;
    for hash in hashes {
        drop.execute([hash]).map_err(sql)?;
    }
    Ok(())
}

/// Removes texts that nobody refers to. One that is not what its hash says stays, for what is damaged may be the hash;
/// so does one that an event speaks of although the note of it is gone, and the note is made again.
pub(super) fn collect(tx: &Transaction<'_>, location: &str) -> Result<Garbage, Error> {
    let sql = |e| fault(location, e);
    let mut unused: BTreeMap<Hash, (i64, u64)> = BTreeMap::new();
    each_unused(tx, location, |id, hash, bytes, content| {
        if let Ok(hash) = <Hash>::try_from(hash)
            && codec::decompress(content, bytes, &hash).is_some()
        {
            unused.insert(hash, (id, content.len() as u64));
        }
    })?;
    if unused.is_empty() {
        return Ok(Garbage::default());
    }
    let mut note = note_reference(tx, location)?;
    each_reference(tx, location, None, |id, hash| {
        if unused.remove(&hash).is_some() {
            note.execute((hash, session::pk_of(id), session::seq_of(id)))?;
        }
        Ok(())
    })?;
    let mut garbage = Garbage::default();
    let mut drop = tx.prepare("DELETE FROM blobs WHERE rowid = ?1").map_err(sql)?;
    for (id, bytes) in unused.into_values() {
        drop.execute([id]).map_err(sql)?;
        garbage.blobs += 1;
        garbage.bytes += bytes;
    }
    Ok(garbage)
}

/// Makes the notes of what a session refers to anew, and gives texts whose own hash was damaged the right one again.
pub(super) fn mend(tx: &Transaction<'_>, location: &str, pk: i64) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let mut missing: BTreeSet<Hash> = BTreeSet::new();
    tx.execute("DELETE FROM blob_refs WHERE session = ?1", [pk]).map_err(sql)?;
    let mut note = note_reference(tx, location)?;
    let mut exists = tx.prepare("SELECT 1 FROM blobs WHERE hash = ?1").map_err(sql)?;
    each_reference(tx, location, Some(pk), |id, hash| {
        note.execute((hash, pk, session::seq_of(id)))?;
        if exists.query_row([hash], |_| Ok(())).optional()?.is_none() {
            missing.insert(hash);
        }
        Ok(())
    })?;
    if missing.is_empty() {
        return Ok(());
    }
    let mut found: BTreeMap<i64, Hash> = BTreeMap::new();
    each_unused(tx, location, |id, _, bytes, content| {
        let own = codec::unpack(content, bytes).map(|text| *blake3::hash(&text).as_bytes());
        if let Some(hash) = own.filter(|hash| missing.remove(hash)) {
            found.insert(id, hash);
        }
    })?;
    for (id, hash) in found {
        tx.execute("UPDATE blobs SET hash = ?2 WHERE rowid = ?1", (id, hash)).map_err(sql)?;
    }
    Ok(())
}

pub(super) fn note_reference<'a>(
    tx: &'a Transaction<'_>,
    location: &str,
) -> Result<rusqlite::Statement<'a>, Error> {
    tx.prepare("INSERT OR IGNORE INTO blob_refs (hash, session, seq) VALUES (?1, ?2, ?3)")
        .map_err(|e| fault(location, e))
}

/// Every text that nobody is noted to refer to: its row, hash, length and content.
fn each_unused(
    connection: &Connection,
    location: &str,
    mut take: impl FnMut(i64, &[u8], u64, &[u8]),
) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let mut ask = connection
        .prepare(&format!("SELECT rowid, hash, bytes, content FROM blobs WHERE {UNUSED}"))
        .map_err(sql)?;
    let mut rows = ask.query([]).map_err(sql)?;
    while let Some(row) = rows.next().map_err(sql)? {
        let (Ok(id), Ok(hash), Ok(content)) =
            (row.get(0), row.get_ref(1).map(|hash| hash.as_bytes().unwrap_or_default()), row.get_ref(3))
        else {
            continue;
        };
        take(id, hash, row.get(2).unwrap_or(0), content.as_bytes().unwrap_or_default());
    }
    Ok(())
}

/// Every reference of an event, of one session or of all, to a text: the event's row id and the text's hash.
pub(super) fn each_reference(
    connection: &Connection,
    location: &str,
    pk: Option<i64>,
    mut take: impl FnMut(i64, Hash) -> rusqlite::Result<()>,
) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let (from, to) = match pk {
        Some(pk) => (session::event_id(pk, 0), session::event_id(pk + 1, 0)),
        None => (i64::MIN, i64::MAX),
    };
    let mut ask = connection
        .prepare("SELECT id, body FROM events WHERE id >= ?2 AND id < ?3 AND instr(body, ?1)")
        .map_err(sql)?;
    let mut rows = ask.query((BLOB_MEMBER, from, to)).map_err(sql)?;
    while let Some(row) = rows.next().map_err(sql)? {
        // An event that is not text is damaged, and told where events are read.
        let (Ok(id), Ok(body)) = (row.get(0), row.get::<_, String>(1)) else { continue };
        for hash in crate::rows::references(&body) {
            take(id, hash).map_err(sql)?;
        }
    }
    Ok(())
}
