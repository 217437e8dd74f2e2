//! A store that counts the rows that are read from it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use segno_core::List;
use segno_core::SessionId;
use segno_core::event::Holder;
use segno_store::*;

pub(crate) struct CountedStore {
    inner: Box<dyn Store>,
    rows: Arc<AtomicU64>,
    before_page: Option<BeforePage>,
}

/// Hears of each page of a list before it is read.
type BeforePage = Box<dyn Fn(List) + Send + Sync>;

impl CountedStore {
    /// Before another store; events and rows of lists that are read are counted there.
    pub(crate) fn new(inner: Box<dyn Store>, rows: Arc<AtomicU64>) -> Self {
        Self { inner, rows, before_page: None }
    }

    /// Tells somebody before it reads the next page.
    pub(crate) fn before_page(self, hear: BeforePage) -> Self {
        Self { before_page: Some(hear), ..self }
    }

    fn count(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::SeqCst);
    }
}

/// Hands a call on as it is.
macro_rules! hand_on {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> $answer {
            self.inner.$name($($argument),*)
        })*
    };
}

impl Store for CountedStore {
    fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<Vec<EventRow>, Error> {
        self.inner.events(session, after, limit).inspect(|rows| self.count(rows.len()))
    }

    fn page(&self, session: SessionId, list: List, page: &Page) -> Result<Vec<Item>, Error> {
        if let Some(hear) = &self.before_page {
            hear(list);
        }
        self.inner.page(session, list, page).inspect(|rows| self.count(rows.len()))
    }

    fn rows(&self, session: SessionId, list: List, keys: &[String]) -> Result<Vec<Item>, Error> {
        self.inner.rows(session, list, keys).inspect(|rows| self.count(rows.len()))
    }

    fn items(&self, session: SessionId, list: List, page: &Page) -> Result<Items, Error> {
        self.inner.items(session, list, page).inspect(|items| self.count(items.items.len()))
    }

    hand_on! {
        location() -> String;
        identity() -> Identity;
        adopt() -> Result<Identity, Error>;
        is_shared() -> bool;
        create(create: Create) -> Result<Loaded, Error>;
        restore(restore: Restore) -> Result<Loaded, Error>;
        append(batch: Vec<Append>) -> Vec<Result<Appended, Error>>;
        append_soon(batch: Vec<Append>) -> Answer;
        load(session: SessionId) -> Result<Loaded, Error>;
        position(session: SessionId, list: List, newer: usize) -> Result<Option<ItemPosition>, Error>;
        blob(hash: &[u8; 32]) -> Result<String, Error>;
        known(session: SessionId) -> Result<Option<Known>, Error>;
        acknowledged() -> Result<BTreeMap<SessionId, u64>, Error>;
        kept_summary(session: SessionId) -> Result<String, Error>;
        list(filter: &Filter) -> Result<Listing, Error>;
        find(suffix: &str, limit: usize) -> Result<Vec<SessionId>, Error>;
        wait_after(session: SessionId, seq: u64, timeout: Duration) -> Result<u64, Error>;
        change_mark() -> Result<u64, Error>;
        acquire(session: SessionId, holder: &Holder, over: Option<Over>) -> Result<Lease, Error>;
        renew(session: SessionId, epoch: u64) -> Result<(), Error>;
        release(session: SessionId, epoch: u64) -> Result<(), Error>;
        others(query: &OthersQuery) -> Result<OthersView, Error>;
        lease(session: SessionId) -> Result<Option<Lease>, Error>;
        leases() -> Result<Vec<(SessionId, Lease)>, Error>;
        usage() -> Result<Vec<Usage>, Error>;
        delete(session: SessionId, over: Option<Over>) -> Result<bool, Error>;
        delete_at(session: SessionId, seq: u64, over: Option<Over>) -> Result<bool, Error>;
        rebuild(session: SessionId) -> Result<Loaded, Error>;
        forget(forget: Forget) -> Result<Loaded, Error>;
        search(holds: &Holds) -> Result<BTreeMap<String, u64>, Error>;
        scrub(holds: &Holds) -> Result<(), Error>;
        collect_garbage() -> Result<Garbage, Error>;
        integrity(deep: bool) -> Result<Vec<String>, Error>;
        quarantine(session: SessionId, seq: u64, what: &str) -> Result<(), Error>;
        quarantined() -> Result<Vec<Damage>, Error>;
        maintain() -> Result<(), Error>;
        backup(to: &Path) -> Result<u64, Error>;
    }
}
