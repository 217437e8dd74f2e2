//! Reading, and the trait put together.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use segno_core::List;
use segno_core::SessionId;
use segno_core::event::Holder;

use super::SqliteStore;
use super::fault;
use super::journal;
use super::pages::at_most;
use super::pages::count_of;
use super::pages::list;
use super::pages::page_of;
use super::pages::position_of;
use super::pages::rows_of;
use super::session;
use super::upkeep;
use crate::Error;
use crate::Purpose;
use crate::Store;
use crate::codec;
use crate::types::*;

/// How often a waiting reader looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Store for SqliteStore {
    fn is_shared(&self) -> bool {
        // A file on a disk of this machine: network file systems are refused.
        false
    }

    fn location(&self) -> String {
        self.location.clone()
    }

    fn identity(&self) -> Identity {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn adopt(&self) -> Result<Identity, Error> {
        let adopted = self.write(super::Direct::adopt)?;
        self.direct().file.becomes(adopted.clone());
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = adopted.clone();
        Ok(adopted)
    }

    fn create(&self, create: Create) -> Result<Loaded, Error> {
        self.write(move |direct| super::create::create(direct, create))
    }

    fn restore(&self, restore: Restore) -> Result<Loaded, Error> {
        self.write(move |direct| super::restore::restore(direct, restore))
    }

    fn append(&self, mut batch: Vec<Append>) -> Vec<Result<Appended, Error>> {
        if batch.is_empty() {
            return Vec::new();
        }
        if self.purpose == Purpose::Inspect {
            return batch.iter().map(|_| Err(Error::ReadOnly { location: self.location.clone() })).collect();
        }
        match &self.writer {
            Some(writer) => writer.append(batch),
            None => super::append::append(&mut self.direct(), &mut batch),
        }
    }

    fn append_soon(&self, batch: Vec<Append>) -> Answer {
        match &self.writer {
            Some(writer) if !batch.is_empty() => writer.append_soon(batch),
            _ => {
                let results = self.append(batch);
                Answer::new(move || results)
            }
        }
    }

    fn load(&self, session: SessionId) -> Result<Loaded, Error> {
        self.read(|connection, location, cache| {
            let row = session::find_row(connection, location, session)?;
            let newest = session::newest(connection, location, session, &row, cache)?;
            Ok(Loaded { state: newest.state, notices: newest.notices })
        })
    }

    fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<Vec<EventRow>, Error> {
        self.read(|connection, location, _| {
            let row = session::find_row(connection, location, session)?;
            journal::events(connection, location, &row, after, limit)
        })
    }

    fn page(&self, session: SessionId, list: List, page: &Page) -> Result<Vec<Item>, Error> {
        self.read(|connection, location, _| {
            let row = session::find_row(connection, location, session)?;
            page_of(connection, location, row.pk, list, page)
        })
    }

    fn position(&self, session: SessionId, list: List, newer: usize) -> Result<Option<ItemPosition>, Error> {
        self.read(|connection, location, _| {
            let row = session::find_row(connection, location, session)?;
            position_of(connection, location, row.pk, list, newer)
        })
    }

    fn rows(&self, session: SessionId, list: List, keys: &[String]) -> Result<Vec<Item>, Error> {
        self.read(|connection, location, _| {
            let row = session::find_row(connection, location, session)?;
            rows_of(connection, location, row.pk, list, keys)
        })
    }

    fn items(&self, session: SessionId, list: List, page: &Page) -> Result<Items, Error> {
        self.read(|connection, location, _| {
            let row = session::find_row(connection, location, session)?;
            let items = page_of(connection, location, row.pk, list, page)?;
            // A list that ends within its first page need not be counted.
            let total = if page.after.is_none() && items.len() < page.limit {
                items.len() as u64
            } else {
                count_of(connection, location, row.pk, list)?
            };
            Ok(Items { items, total })
        })
    }

    fn blob(&self, hash: &[u8; 32]) -> Result<String, Error> {
        self.read(|connection, location, _| {
            let found: Option<(u64, Vec<u8>)> = connection
                .prepare_cached("SELECT bytes, content FROM blobs WHERE hash = ?1")
                .and_then(|mut ask| ask.query_row([hash], |row| Ok((row.get(0)?, row.get(1)?))).optional())
                .map_err(|e| fault(location, e))?;
            let name = || hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let (bytes, content) = found.ok_or_else(|| Error::NoBlob(name()))?;
            codec::decompress(&content, bytes, hash).ok_or_else(|| Error::Damaged {
                location: location.to_owned(),
                what: format!("the text {} is not what was stored", name()),
            })
        })
    }

    fn list(&self, filter: &Filter) -> Result<Listing, Error> {
        self.read(|connection, location, _| list(connection, location, filter))
    }

    fn others(&self, query: &OthersQuery) -> Result<OthersView, Error> {
        self.read(|connection, location, cache| {
            super::shared::read(connection, location, query, &|session| {
                let row = session::find_row(connection, location, session)?;
                Ok(session::newest(connection, location, session, &row, cache)?.state)
            })
        })
    }

    fn known(&self, session: SessionId) -> Result<Option<Known>, Error> {
        self.read(|connection, location, _| session::known(connection, location, session))
    }

    fn acknowledged(&self) -> Result<BTreeMap<SessionId, u64>, Error> {
        Ok(super::heads::read(&self.path))
    }

    fn kept_summary(&self, session: SessionId) -> Result<String, Error> {
        self.read(|connection, location, _| {
            let row = session::find_row(connection, location, session)?;
            connection
                .query_row("SELECT summary FROM sessions WHERE pk = ?1", [row.pk], |row| row.get(0))
                .map_err(|e| fault(location, e))
        })
    }

    fn find(&self, suffix: &str, limit: usize) -> Result<Vec<SessionId>, Error> {
        // An id ends in digits and underscores; anything else names no session.
        if suffix.is_empty()
            || suffix.len() > 30
            || !suffix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        {
            return Ok(Vec::new());
        }
        self.read(|connection, location, _| {
            let sql = |e| fault(location, e);
            let mut statement = connection
                .prepare_cached(
                    "SELECT id FROM sessions WHERE substr(id, -length(?1)) = ?1 ORDER BY id DESC LIMIT ?2",
                )
                .map_err(sql)?;
            let rows =
                statement.query_map((suffix, at_most(limit)), |row| row.get::<_, String>(0)).map_err(sql)?;
            let mut ids = Vec::new();
            for row in rows {
                if let Ok(id) = row.map_err(sql)?.parse() {
                    ids.push(id);
                }
            }
            Ok(ids)
        })
    }

    fn wait_after(&self, session: SessionId, seq: u64, timeout: Duration) -> Result<u64, Error> {
        // No end at all if it is too far away to be told.
        let until = Instant::now().checked_add(timeout);
        loop {
            let head = self.read(|connection, location, _| {
                session::find_row(connection, location, session).map(|row| row.head_seq)
            })?;
            let left = until.map_or(LOOK_AGAIN, |until| until.saturating_duration_since(Instant::now()));
            if head > seq || left.is_zero() {
                return Ok(head);
            }
            std::thread::sleep(left.min(LOOK_AGAIN));
        }
    }

    fn change_mark(&self) -> Result<u64, Error> {
        self.read(|connection, location, _| {
            connection.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(|e| fault(location, e))
        })
    }

    fn acquire(&self, session: SessionId, holder: &Holder, over: Option<Over>) -> Result<Lease, Error> {
        let holder = holder.clone();
        self.write(move |direct| super::lease::acquire(direct, session, &holder, over))
    }

    fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }

    fn renew(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        self.write(move |direct| super::lease::renew(direct, session, epoch))
    }

    fn release(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        self.write(move |direct| super::lease::release(direct, session, epoch))
    }

    fn lease(&self, session: SessionId) -> Result<Option<Lease>, Error> {
        self.read(|connection, location, _| {
            let row = session::find_row(connection, location, session)?;
            super::lease::read(connection, location, row.pk)
        })
    }

    fn leases(&self) -> Result<Vec<(SessionId, Lease)>, Error> {
        self.read(|connection, location, _| super::lease::all(connection, location))
    }

    fn usage(&self) -> Result<Vec<Usage>, Error> {
        self.read(|connection, location, _| super::usage::usage(connection, location))
    }

    fn delete(&self, session: SessionId, over: Option<Over>) -> Result<bool, Error> {
        self.write(move |direct| upkeep::delete(direct, session, None, over))
    }

    fn delete_at(&self, session: SessionId, seq: u64, over: Option<Over>) -> Result<bool, Error> {
        self.write(move |direct| upkeep::delete(direct, session, Some(seq), over))
    }

    fn rebuild(&self, session: SessionId) -> Result<Loaded, Error> {
        self.write(move |direct| upkeep::rebuild(direct, session))
    }

    fn forget(&self, forget: Forget) -> Result<Loaded, Error> {
        self.write(move |direct| super::forget::forget(direct, forget))
    }

    fn search(&self, holds: &Holds) -> Result<std::collections::BTreeMap<String, u64>, Error> {
        self.read(|connection, location, _| super::forget::search(connection, location, holds))
    }

    fn scrub(&self, holds: &Holds) -> Result<(), Error> {
        let holds = holds.clone();
        self.write(move |direct| super::forget::scrub(direct, &holds))
    }

    fn collect_garbage(&self) -> Result<Garbage, Error> {
        self.write(upkeep::collect_garbage)
    }

    fn integrity(&self, deep: bool) -> Result<Vec<String>, Error> {
        self.read(|connection, location, _| upkeep::integrity(connection, location, deep))
    }

    fn quarantine(&self, session: SessionId, seq: u64, what: &str) -> Result<(), Error> {
        let what = what.to_owned();
        self.write(move |direct| upkeep::quarantine(direct, session, seq, &what))
    }

    fn quarantined(&self) -> Result<Vec<Damage>, Error> {
        self.read(|connection, location, _| upkeep::quarantined(connection, location))
    }

    fn maintain(&self) -> Result<(), Error> {
        if self.purpose != Purpose::Inspect {
            super::heads::shorten(&self.path);
        }
        upkeep::maintain(&mut self.direct(), &self.path)
    }

    fn backup(&self, to: &Path) -> Result<u64, Error> {
        self.read(|connection, location, _| super::copy::backup(connection, location, to))
    }
}

impl SqliteStore {
    fn read<T>(
        &self,
        job: impl FnOnce(&Connection, &str, &super::Cache) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut direct = self.direct();
        let location = direct.location.clone();
        let result = read_at_once(&mut direct, &location, job);
        direct.invalidate_after(&result);
        result
    }
}

/// Everything that is read is of one moment, however many questions it takes.
fn read_at_once<T>(
    direct: &mut super::Direct,
    location: &str,
    job: impl FnOnce(&Connection, &str, &super::Cache) -> Result<T, Error>,
) -> Result<T, Error> {
    let (connection, cache, _) = direct.connection()?;
    let moment = connection.unchecked_transaction().map_err(|e| fault(location, e))?;
    job(&moment, location, cache)
}
