//! What is kept beside the store and can be made anew from it and from the files of agents at any time: which files were
//! taken in and how far, which conversation is which session, and the words of all sessions for a search.
//!
//! It is a database of its own: an append costs what it did, nobody waits for whoever fills it, and an older program that
//! does not know of it writes the store all the same. What it lacks is found by comparing it with the store.

mod files;
mod foreign;
mod words;

pub use files::FileNote;
pub use foreign::ForeignConversation;
pub use foreign::foreign_conversations;
pub use foreign::foreign_lines;
pub use words::Doc;
pub use words::Hit;
pub use words::Query;

use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::OptionalExtension as _;
use segno_core::StoreId;

use crate::Error;
use crate::sqlite::fault;

/// The form of the tables. With another one everything is made anew.
const FORM: &str = "1";

/// The tables.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS files (
    agent TEXT NOT NULL, path TEXT NOT NULL, conversation TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
    size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, offset INTEGER NOT NULL, hash BLOB NOT NULL, used TEXT NOT NULL,
    PRIMARY KEY (agent, path)
) STRICT;
CREATE TABLE IF NOT EXISTS conversations (
    agent TEXT NOT NULL, conversation TEXT NOT NULL, session TEXT NOT NULL, root TEXT, PRIMARY KEY (agent, conversation)
) STRICT;
CREATE INDEX IF NOT EXISTS conversations_by_root ON conversations (agent, root);
CREATE TABLE IF NOT EXISTS indexed (pk INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS docs (id INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, kind TEXT NOT NULL) STRICT;
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(
    text, tool, path, content='', contentless_delete=1, tokenize=\"unicode61 remove_diacritics 2\"
);
";

/// How long somebody else who writes it is waited for.
const BUSY: Duration = Duration::from_secs(10);

/// The index of a store.
pub struct Index {
    connection: Connection,
    location: String,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("location", &self.location).finish_non_exhaustive()
    }
}

/// The file of a store's index.
pub fn index_path(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".index");
    PathBuf::from(name)
}

impl Index {
    /// Opens the index of a store, or makes it. One of another store, of another form, or one that cannot be read is made anew.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(path: &Path, store: StoreId) -> Result<Self, Error> {
        match Self::try_open(path, store) {
            Ok(Some(index)) => return Ok(index),
            Ok(None) => {}
            Err(why @ Error::Busy { .. }) => return Err(why),
            Err(_) => {}
        }
        remove_index(path);
        Self::try_open(path, store)?.ok_or_else(|| Error::Damaged {
            location: path.display().to_string(),
            what: "the index cannot be made anew".to_owned(),
        })
    }

    fn try_open(path: &Path, store: StoreId) -> Result<Option<Self>, Error> {
        let location = path.display().to_string();
        let sql = |e| fault(&location, e);
        if !path.exists() {
            make_private(path).map_err(|why| Error::UnusableLocation {
                location: location.clone(),
                why: why.to_string(),
            })?;
        }
        let connection = Connection::open(path).map_err(sql)?;
        connection.busy_timeout(BUSY).map_err(sql)?;
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF;
                 PRAGMA secure_delete = ON;",
            )
            .map_err(sql)?;
        connection.execute_batch(TABLES).map_err(sql)?;
        for (name, value) in [("form", FORM.to_owned()), ("store", store.to_string())] {
            let ask = || -> rusqlite::Result<Option<String>> {
                let told =
                    connection.query_row("SELECT value FROM about WHERE name = ?1", [name], |row| row.get(0));
                told.optional()
            };
            // Who only looks does not wait for whoever writes.
            if ask().map_err(sql)?.is_none() {
                connection
                    .execute("INSERT OR IGNORE INTO about VALUES (?1, ?2)", (name, &value))
                    .map_err(sql)?;
            }
            let found = ask().map_err(sql)?.unwrap_or_default();
            if found != value {
                return Ok(None);
            }
        }
        Ok(Some(Self { connection, location }))
    }

    fn sql<T>(&self, result: rusqlite::Result<T>) -> Result<T, Error> {
        result.map_err(|e| fault(&self.location, e))
    }

    /// Whether everything in it can be read; what is wrong otherwise.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        let mut wrong = Vec::new();
        let quick: String =
            self.sql(self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)))?;
        if quick != "ok" {
            wrong.push(quick);
        }
        if let Err(why) = self.connection.execute("INSERT INTO words (words) VALUES ('integrity-check')", [])
        {
            wrong.push(why.to_string());
        }
        Ok(wrong)
    }
}

/// An empty file that only the user can read.
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

/// Removes an index with every byte in it: the next search makes it anew. False if there was none.
pub fn remove_index(path: &Path) -> bool {
    let mut there = false;
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let file = PathBuf::from(name);
        let Ok(meta) = std::fs::symlink_metadata(&file) else { continue };
        there = true;
        if meta.is_file()
            && let Ok(mut open) = std::fs::OpenOptions::new().write(true).open(&file)
        {
            let zeros = vec![0; 1 << 16];
            let mut left = meta.len();
            while left > 0 {
                let part = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
                if open.write_all(&zeros[..part]).is_err() {
                    break;
                }
                left -= part as u64;
            }
            let _ = open.sync_all();
        }
        let _ = std::fs::remove_file(&file);
    }
    there
}

#[cfg(test)]
#[path = "../index_tests.rs"]
mod tests;
