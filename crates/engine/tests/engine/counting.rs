//! A store that counts what is read from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use segno_core::List;
use segno_core::SessionId;
use segno_core::event::Holder;
use segno_store::*;

/// How much was read.
#[derive(Default)]
pub(crate) struct Counts {
    /// Rows and events that were handed out.
    pub(crate) rows: AtomicU64,
    /// Lists that were counted as a whole, which costs more the longer they are.
    pub(crate) counted: AtomicU64,
}

impl Counts {
    pub(crate) fn take(&self) -> (u64, u64) {
        (self.rows.swap(0, Ordering::SeqCst), self.counted.swap(0, Ordering::SeqCst))
    }
}

pub(crate) struct Counting<S> {
    pub(crate) store: S,
    pub(crate) counts: Arc<Counts>,
}

impl<S> Counting<S> {
    fn rows(&self, rows: usize) {
        self.counts.rows.fetch_add(rows as u64, Ordering::SeqCst);
    }
}

impl<S: Store> Store for Counting<S> {
    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn location(&self) -> String {
        self.store.location()
    }
    fn identity(&self) -> Identity {
        self.store.identity()
    }
    fn adopt(&self) -> Result<Identity, Error> {
        self.store.adopt()
    }
    fn create(&self, create: Create) -> Result<Loaded, Error> {
        self.store.create(create)
    }
    fn append(&self, batch: Vec<Append>) -> Vec<Result<Appended, Error>> {
        self.store.append(batch)
    }
    fn load(&self, session: SessionId) -> Result<Loaded, Error> {
        self.store.load(session)
    }
    fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<Vec<EventRow>, Error> {
        self.store.events(session, after, limit).inspect(|rows| self.rows(rows.len()))
    }
    fn page(&self, session: SessionId, list: List, page: &Page) -> Result<Vec<Item>, Error> {
        self.store.page(session, list, page).inspect(|rows| self.rows(rows.len()))
    }
    fn position(&self, session: SessionId, list: List, newer: usize) -> Result<Option<ItemPosition>, Error> {
        self.store.position(session, list, newer)
    }
    fn rows(&self, session: SessionId, list: List, keys: &[String]) -> Result<Vec<Item>, Error> {
        self.store.rows(session, list, keys).inspect(|rows| self.rows(rows.len()))
    }
    fn items(&self, session: SessionId, list: List, page: &Page) -> Result<Items, Error> {
        self.store.items(session, list, page).inspect(|items| {
            self.rows(items.items.len());
            if items.items.len() == page.limit {
                self.counts.counted.fetch_add(1, Ordering::SeqCst);
            }
        })
    }
    fn blob(&self, hash: &[u8; 32]) -> Result<String, Error> {
        self.store.blob(hash)
    }
    fn known(&self, session: SessionId) -> Result<Option<segno_store::Known>, Error> {
        self.store.known(session)
    }
    fn kept_summary(&self, session: SessionId) -> Result<String, Error> {
        self.store.kept_summary(session)
    }
    fn list(&self, filter: &Filter) -> Result<Listing, Error> {
        self.store.list(filter)
    }
    fn find(&self, suffix: &str, limit: usize) -> Result<Vec<SessionId>, Error> {
        self.store.find(suffix, limit)
    }
    fn wait_after(&self, session: SessionId, seq: u64, timeout: Duration) -> Result<u64, Error> {
        self.store.wait_after(session, seq, timeout)
    }
    fn change_mark(&self) -> Result<u64, Error> {
        self.store.change_mark()
    }
    fn acquire(
        &self,
        session: SessionId,
        holder: &Holder,
        over: Option<segno_store::Over>,
    ) -> Result<Lease, Error> {
        self.store.acquire(session, holder, over)
    }
    fn renew(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        self.store.renew(session, epoch)
    }
    fn release(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        self.store.release(session, epoch)
    }
    fn lease(&self, session: SessionId) -> Result<Option<Lease>, Error> {
        self.store.lease(session)
    }
    fn others(&self, query: &segno_store::OthersQuery) -> Result<segno_store::OthersView, Error> {
        self.store.others(query)
    }
    fn leases(&self) -> Result<Vec<(SessionId, Lease)>, Error> {
        self.store.leases()
    }
    fn usage(&self) -> Result<Vec<segno_store::Usage>, Error> {
        self.store.usage()
    }
    fn restore(&self, restore: segno_store::Restore) -> Result<Loaded, Error> {
        self.store.restore(restore)
    }
    fn delete(&self, session: SessionId, over: Option<segno_store::Over>) -> Result<bool, Error> {
        self.store.delete(session, over)
    }
    fn delete_at(
        &self,
        session: SessionId,
        seq: u64,
        over: Option<segno_store::Over>,
    ) -> Result<bool, Error> {
        self.store.delete_at(session, seq, over)
    }
    fn forget(&self, forget: Forget) -> Result<Loaded, Error> {
        self.store.forget(forget)
    }
    fn search(&self, holds: &Holds) -> Result<BTreeMap<String, u64>, Error> {
        self.store.search(holds)
    }
    fn scrub(&self, holds: &Holds) -> Result<(), Error> {
        self.store.scrub(holds)
    }
    fn rebuild(&self, session: SessionId) -> Result<Loaded, Error> {
        self.store.rebuild(session)
    }
    fn collect_garbage(&self) -> Result<Garbage, Error> {
        self.store.collect_garbage()
    }
    fn integrity(&self, deep: bool) -> Result<Vec<String>, Error> {
        self.store.integrity(deep)
    }
    fn quarantine(&self, session: SessionId, seq: u64, what: &str) -> Result<(), Error> {
        self.store.quarantine(session, seq, what)
    }
    fn quarantined(&self) -> Result<Vec<Damage>, Error> {
        self.store.quarantined()
    }
    fn backup(&self, to: &std::path::Path) -> Result<u64, Error> {
        self.store.backup(to)
    }
}
