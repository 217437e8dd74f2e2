//! More ways to open a store, and to meddle with it.

use std::time::Duration;

use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::sqlite::SqliteStore;

use crate::home::Home;

impl Home {
    pub(crate) fn open_for(&self, purpose: Purpose) -> SqliteStore {
        SqliteStore::open(&self.db(), OpenOptions { purpose, ..OpenOptions::default() }).unwrap()
    }

    pub(crate) fn open_patient(&self, purpose: Purpose, busy: Duration) -> SqliteStore {
        SqliteStore::open(&self.db(), OpenOptions { purpose, busy, ..OpenOptions::default() }).unwrap()
    }

    /// Changes the database behind the store's back.
    pub(crate) fn sql(&self, sql: &str) {
        self.raw().execute_batch(sql).unwrap();
    }
}
