//! A saved database is looked at before it takes the place of the damaged one.

use std::path::Path;
use std::time::SystemTime;

use rusqlite::Connection;

use super::Salvaged;
use super::open;
use super::unless_damaged;
use crate::Error;
use crate::sqlite::fault;
use crate::sqlite::upkeep;

/// What can be seen of the damaged files from outside.
#[derive(PartialEq, Eq)]
pub(super) struct Look([Option<(u64, Option<SystemTime>)>; 2]);

impl Look {
    pub(super) fn at(path: &Path) -> std::io::Result<Self> {
        let look = |suffix| match std::fs::metadata(open::beside(path, suffix)) {
            Ok(meta) => Ok(Some((meta.len(), meta.modified().ok()))),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why),
        };
        Ok(Self([look("")?, look("-wal")?]))
    }
}

/// Refuses a saved database that is not sound, or that holds less than can be read of the damaged one and was not
/// said to.
pub(super) fn saved(saved: &Path, copy: &Path, salvaged: &Salvaged) -> Result<(), Error> {
    let location = saved.display().to_string();
    let refuse = |what: String| Error::Damaged {
        location: location.clone(),
        what: format!("{what}; the damaged store was left as it was"),
    };
    let connection = open::scratch(saved, &location)?;
    if let Some(problem) = upkeep::integrity(&connection, &location, true)?.into_iter().next() {
        return Err(refuse(format!("what was saved is not sound: {problem}")));
    }
    let there = count(&connection, "events").map_err(|e| fault(&location, e))?;
    if there != salvaged.events {
        let events = salvaged.events;
        return Err(refuse(format!("{events} events were saved, and {there} are there")));
    }
    connection.close().map_err(|(_, e)| fault(&location, e))?;
    if salvaged.is_complete() {
        let old = copy.display().to_string();
        let readable = open::try_scratch(copy).and_then(|connection| count(&connection, "events"));
        if let Some(readable) = unless_damaged(&old, readable)?
            && readable > there
        {
            return Err(refuse(format!("{readable} events can be read, and only {there} were saved")));
        }
    }
    Ok(())
}

fn count(connection: &Connection, table: &str) -> rusqlite::Result<u64> {
    connection.query_row(&format!("SELECT count(*) FROM {table} NOT INDEXED"), [], |row| row.get(0))
}
