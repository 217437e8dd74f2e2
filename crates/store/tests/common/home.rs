//! A folder with one SQLite store in it.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use rusqlite::Connection;
use segno_core::SessionId;
use segno_store::Error;
use segno_store::OpenOptions;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;
use segno_store::sqlite::schema;

use crate::common::*;

pub(crate) struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// In memory where the machine has such a place, for tests that make many stores and lose no power.
    pub(crate) fn quick() -> Self {
        match tempfile::tempdir_in("/dev/shm") {
            Ok(dir) => Self { dir },
            Err(_) => Self::new(),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.file("segno.db")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn open(&self) -> SqliteStore {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<SqliteStore, Error> {
        SqliteStore::open(&self.db(), OpenOptions::default())
    }

    /// Another program's look at the database.
    pub(crate) fn raw(&self) -> Connection {
        Connection::open(self.db()).unwrap()
    }

    /// Brings the log into the database, so that its file holds everything.
    pub(crate) fn checkpoint(&self) {
        self.raw().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    }

    /// The database's file as it is.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.db()).unwrap()
    }
}

/// A store of an older form with a session in it: the tables that the form has, filled from a store of today.
pub(crate) fn older(to: u32) -> (Home, SessionId) {
    let today = Home::quick();
    let store = today.open();
    let session = make(&store, 1);
    for n in 0..10 {
        jot(&store, session, &format!("n{n}"));
    }
    store.acquire(session, &holder("a"), None).unwrap();
    store.release(session, 1).unwrap();
    let home = Home::quick();
    let mut old = Connection::open(home.db()).unwrap();
    old.pragma_update(None, "journal_mode", "wal").unwrap();
    schema::migrate(&mut old, "old", to).unwrap();
    old.execute("ATTACH ?1 AS today", [today.db().to_str().unwrap()]).unwrap();
    let tables: Vec<String> = old
        .prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name <> 'migrations'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for table in tables {
        old.execute_batch(&format!("INSERT INTO main.{table} SELECT * FROM today.{table}")).unwrap();
    }
    drop(old);
    assert_eq!(schema::version(&home.raw()).unwrap(), to);
    (home, session)
}

/// This test binary again, as another process that runs one test; `role` tells that test what it is.
pub(crate) fn again(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env("SEGNO_TEST_ROLE", role);
    command
}

/// What this process is, if a test started it.
pub(crate) fn role() -> Option<String> {
    std::env::var("SEGNO_TEST_ROLE").ok()
}
