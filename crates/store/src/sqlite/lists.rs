//! The rows of lists, and texts that were set aside.

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use segno_core::ItemChange;
use segno_core::Mark;
use segno_redact::Blob;
use serde_json::Map;
use serde_json::Value;

use super::fault;
use crate::Error;
use crate::codec;
use crate::error::Certainty;

/// Lays changes over the rows of a session's lists.
pub(super) fn write(
    connection: &Connection,
    place: &str,
    pk: i64,
    mark: &Mark,
    changes: &[ItemChange],
) -> Result<(), Error> {
    let sql = |e| fault(place, e);
    for change in changes {
        let list = change.list.as_str();
        let found: Option<(i64, Vec<u8>)> = connection
            .prepare_cached("SELECT id, body FROM items WHERE session = ?1 AND list = ?2 AND key = ?3")
            .map_err(sql)?
            .query_row((pk, list, &change.key), |row| {
                Ok((row.get(0)?, row.get_ref(1)?.as_bytes().unwrap_or_default().to_vec()))
            })
            .optional()
            .map_err(sql)?;
        match found {
            None => {
                let body = Value::Object(change.fields.clone()).to_string();
                connection
                    .prepare_cached(
                        "INSERT INTO items (session, list, key, seq, body) VALUES (?1, ?2, ?3, ?4, ?5)",
                    )
                    .and_then(|mut insert| insert.execute((pk, list, &change.key, mark.seq, body)))
                    .map_err(sql)?;
            }
            Some((id, old)) => {
                // A damaged row is a derived one: what is known now replaces it, the journal has the rest.
                let mut fields: Map<String, Value> = serde_json::from_slice(&old).unwrap_or_default();
                for (name, value) in &change.fields {
                    fields.insert(name.clone(), value.clone());
                }
                connection
                    .prepare_cached("UPDATE items SET body = ?2 WHERE id = ?1")
                    .and_then(|mut update| update.execute((id, Value::Object(fields).to_string())))
                    .map_err(sql)?;
            }
        }
    }
    Ok(())
}

/// Keeps a text under its hash, once however often it comes.
pub(super) fn write_blob(
    connection: &Connection,
    place: &str,
    pk: i64,
    seq: u64,
    blob: &Blob,
) -> Result<(), Error> {
    let sql = |e| fault(place, e);
    let known: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ?1)")
        .and_then(|mut ask| ask.query_row([blob.hash], |row| row.get(0)))
        .map_err(sql)?;
    if !known {
        let content = codec::compress(&blob.content).map_err(|why| Error::Failed {
            place: place.to_owned(),
            what: format!("a text cannot be compressed: {why}"),
            certainty: Certainty::NotWritten,
        })?;
        connection
            .prepare_cached("INSERT INTO blobs (hash, bytes, content) VALUES (?1, ?2, ?3)")
            .and_then(|mut insert| insert.execute((blob.hash, blob.content.len() as u64, content)))
            .map_err(sql)?;
    }
    connection
        .prepare_cached("INSERT OR IGNORE INTO blob_refs (hash, session, seq) VALUES (?1, ?2, ?3)")
        .and_then(|mut insert| insert.execute((blob.hash, pk, seq)))
        .map_err(sql)?;
    Ok(())
}
