//! The rows of lists, and texts that were set aside.

use std::collections::HashMap;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use segno_core::ItemChange;
use segno_core::List;
use segno_core::Mark;
use segno_redact::Blob;
use serde_json::Map;
use serde_json::Value;

use super::fault;
use crate::Error;
use crate::codec;
use crate::error::Certainty;

/// Changes of a session's rows that wait for the end of the transaction: a row that changes twice is written once.
#[derive(Default)]
pub(super) struct Changes {
    rows: Vec<Changed>,
    indices: HashMap<(List, String), usize>,
}

struct Changed {
    list: List,
    key: String,
    /// The event that changed it first.
    seq: u64,
    fields: Map<String, Value>,
}

impl Changes {
    /// Adds what follows from one event.
    pub(super) fn add(&mut self, mark: &Mark, changes: Vec<ItemChange>) {
        for ItemChange { list, key, fields } in changes {
            let location = (list, key);
            if let Some(row) = self.indices.get(&location).and_then(|index| self.rows.get_mut(*index)) {
                row.fields.extend(fields);
                continue;
            }
            let key = location.1.clone();
            self.indices.insert(location, self.rows.len());
            self.rows.push(Changed { list, key, seq: mark.seq, fields });
        }
    }

    /// Lays them over the rows.
    pub(super) fn write(&mut self, connection: &Connection, location: &str, pk: i64) -> Result<(), Error> {
        self.indices.clear();
        for row in self.rows.drain(..) {
            row.write(connection, location, pk)?;
        }
        Ok(())
    }
}

impl Changed {
    fn write(self, connection: &Connection, location: &str, pk: i64) -> Result<(), Error> {
        let sql = |e| fault(location, e);
        let list = self.list.as_str();
        let found: Option<(i64, Vec<u8>)> = connection
            .prepare_cached("SELECT id, body FROM items WHERE session = ?1 AND list = ?2 AND key = ?3")
            .map_err(sql)?
            .query_row((pk, list, &self.key), |row| {
                Ok((row.get(0)?, row.get_ref(1)?.as_bytes().unwrap_or_default().to_vec()))
            })
            .optional()
            .map_err(sql)?;
        let body = |fields: &Map<String, Value>| serde_json::to_string(fields).unwrap_or_default();
        match found {
            None => connection
                .prepare_cached(
                    "INSERT INTO items (session, list, key, seq, body) VALUES (?1, ?2, ?3, ?4, ?5)",
                )
                .and_then(|mut insert| insert.execute((pk, list, &self.key, self.seq, body(&self.fields)))),
            Some((id, old)) => {
                // A damaged row is a derived one: what is known now replaces it, the journal has the rest.
                let mut fields: Map<String, Value> = serde_json::from_slice(&old).unwrap_or_default();
                fields.extend(self.fields);
                connection
                    .prepare_cached("UPDATE items SET body = ?2 WHERE id = ?1")
                    .and_then(|mut update| update.execute((id, body(&fields))))
            }
        }
        .map(drop)
        .map_err(sql)
    }
}

/// Keeps a text under its hash, once however often it comes.
pub(super) fn write_blob(
    connection: &Connection,
    location: &str,
    pk: i64,
    seq: u64,
    blob: &Blob,
) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let known: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ?1)")
        .and_then(|mut ask| ask.query_row([blob.hash], |row| row.get(0)))
        .map_err(sql)?;
    if !known {
        let content = codec::compress(&blob.content).map_err(|why| Error::Failed {
            location: location.to_owned(),
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
