//! Numbered migrations. A file is never edited once it has been released: its checksum is kept in the database.

use std::time::Duration;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::TransactionBehavior;

use super::fault;
use crate::Error;

/// One step of the schema.
pub struct Migration {
    /// The form of the store after it.
    pub version: u32,
    /// Its file's name.
    pub name: &'static str,
    /// It.
    pub sql: &'static str,
}

/// Every step, in order.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "0001_journal",
        sql: include_str!("../../migrations/sqlite/0001_journal.sql"),
    },
    Migration { version: 2, name: "0002_lists", sql: include_str!("../../migrations/sqlite/0002_lists.sql") },
    Migration {
        version: 3,
        name: "0003_identity",
        sql: include_str!("../../migrations/sqlite/0003_identity.sql"),
    },
];

/// The form this program writes.
pub const NEWEST: u32 = 3;

/// The form of a store with events that texts were taken out of. It has no other tables, and a store gets it when something
/// in it is forgotten for the first time: programs that do not know how such an event is sealed must not write it.
pub const SEALED: u32 = 4;

/// `segn` as a number: says that a database is ours.
pub const APPLICATION_ID: i32 = 0x7365_676e;

/// The form a database has; 0 for an empty one.
pub fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Gives a store the form [`SEALED`]. Part of the transaction that makes the first seal.
pub(super) fn allow_seals(connection: &Connection) -> rusqlite::Result<()> {
    if version(connection)? < SEALED {
        connection.pragma_update(None, "user_version", SEALED)?;
    }
    Ok(())
}

/// Steps that were applied to a database and are not the ones we know under their numbers.
pub(super) fn foreign_steps(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let found = version(connection)?;
    for migration in MIGRATIONS.iter().filter(|m| m.version <= found) {
        let applied: Option<String> = connection
            .query_row("SELECT checksum FROM migrations WHERE version = ?1", [migration.version], |row| {
                row.get(0)
            })
            .optional()?;
        if applied.as_deref() != Some(checksum(migration).as_str()) {
            wrong.push(format!("migration {} is not the one that was applied", migration.name));
        }
    }
    Ok(wrong)
}

fn checksum(migration: &Migration) -> String {
    blake3::hash(migration.sql.as_bytes()).to_hex().to_string()
}

/// Sessions that somebody drives.
pub(super) fn drivers(connection: &Connection, location: &str) -> Result<u64, Error> {
    super::lease::count_driven(connection, location, Duration::from_secs(60))
}

/// Brings an older database to the form `to`, one transaction for all steps: it has the old form or the new one.
pub fn migrate(connection: &mut Connection, location: &str, to: u32) -> Result<(), Error> {
    let wrong = |what: String| Error::Damaged { location: location.to_owned(), what };
    let tx = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|e| fault(location, e))?;
    // Asked again under the lock: another process may have done it meanwhile.
    let from = version(&tx).map_err(|e| fault(location, e))?;
    if from >= to {
        return Ok(());
    }
    // So may a driver have come.
    if from > 0 {
        let drivers = drivers(&tx, location)?;
        if drivers > 0 {
            return Err(Error::DriversAlive { location: location.to_owned(), to, drivers });
        }
    }
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (
            version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_us INTEGER NOT NULL
        ) STRICT;",
    )
    .map_err(|e| fault(location, e))?;
    for migration in MIGRATIONS.iter().filter(|m| m.version <= to) {
        let checksum = checksum(migration);
        let applied: Option<String> = tx
            .query_row("SELECT checksum FROM migrations WHERE version = ?1", [migration.version], |row| {
                row.get(0)
            })
            .optional()
            .map_err(|e| fault(location, e))?;
        match applied {
            Some(known) if known == checksum => {}
            Some(_) => {
                return Err(wrong(format!("migration {} is not the one that was applied", migration.name)));
            }
            None if migration.version <= from => {
                return Err(wrong(format!("migration {} was never applied", migration.name)));
            }
            None => {
                tx.execute_batch(migration.sql).map_err(|e| fault(location, e))?;
                tx.execute(
                    "INSERT INTO migrations VALUES (?1, ?2, ?3, CAST(unixepoch('subsec') * 1000000 AS INTEGER))",
                    (migration.version, migration.name, checksum),
                )
                .map_err(|e| fault(location, e))?;
            }
        }
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(|e| fault(location, e))?;
    tx.pragma_update(None, "user_version", to).map_err(|e| fault(location, e))?;
    tx.commit().map_err(|e| fault(location, e))
}
