//! Reading, and the trait put together.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::types::Value as Sql;
use segno_core::List;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_core::Uid;
use segno_core::event::Holder;

use super::SqliteStore;
use super::fault;
use super::journal;
use super::session;
use super::upkeep;
use crate::Error;
use crate::Store;
use crate::codec;
use crate::types::*;

/// How often a waiting reader looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Store for SqliteStore {
    fn location(&self) -> String {
        self.place.clone()
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
        if self.purpose == super::Purpose::Inspect {
            return batch.iter().map(|_| Err(Error::ReadOnly { place: self.place.clone() })).collect();
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
        self.read(|connection, place, cache| {
            let row = session::find_row(connection, place, session)?;
            let newest = session::newest(connection, place, session, &row, cache)?;
            Ok(Loaded { state: newest.state, notices: newest.notices })
        })
    }

    fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<Vec<EventRow>, Error> {
        self.read(|connection, place, _| {
            let row = session::find_row(connection, place, session)?;
            journal::events(connection, place, &row, after, limit)
        })
    }

    fn page(&self, session: SessionId, list: List, page: &Page) -> Result<Vec<Item>, Error> {
        self.read(|connection, place, _| {
            let row = session::find_row(connection, place, session)?;
            page_of(connection, place, row.pk, list, page)
        })
    }

    fn rows(&self, session: SessionId, list: List, keys: &[String]) -> Result<Vec<Item>, Error> {
        self.read(|connection, place, _| {
            let row = session::find_row(connection, place, session)?;
            rows_of(connection, place, row.pk, list, keys)
        })
    }

    fn items(&self, session: SessionId, list: List, page: &Page) -> Result<Items, Error> {
        self.read(|connection, place, _| {
            let row = session::find_row(connection, place, session)?;
            let items = page_of(connection, place, row.pk, list, page)?;
            // A list that ends within its first page need not be counted.
            let total = if page.after.is_none() && items.len() < page.limit {
                items.len() as u64
            } else {
                count_of(connection, place, row.pk, list)?
            };
            Ok(Items { items, total })
        })
    }

    fn blob(&self, hash: &[u8; 32]) -> Result<String, Error> {
        self.read(|connection, place, _| {
            let found: Option<(u64, Vec<u8>)> = connection
                .prepare_cached("SELECT bytes, content FROM blobs WHERE hash = ?1")
                .and_then(|mut ask| ask.query_row([hash], |row| Ok((row.get(0)?, row.get(1)?))).optional())
                .map_err(|e| fault(place, e))?;
            let name = || hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let (bytes, content) = found.ok_or_else(|| Error::NoBlob(name()))?;
            codec::decompress(&content, bytes, hash).ok_or_else(|| Error::Damaged {
                place: place.to_owned(),
                what: format!("the text {} is not what was stored", name()),
            })
        })
    }

    fn list(&self, filter: &Filter) -> Result<Listing, Error> {
        self.read(|connection, place, _| list(connection, place, filter))
    }

    fn known(&self, session: SessionId) -> Result<Option<Known>, Error> {
        self.read(|connection, place, _| session::known(connection, place, session))
    }

    fn acknowledged(&self) -> Result<BTreeMap<SessionId, u64>, Error> {
        Ok(super::heads::read(&self.path))
    }

    fn kept_summary(&self, session: SessionId) -> Result<String, Error> {
        self.read(|connection, place, _| {
            let row = session::find_row(connection, place, session)?;
            connection
                .query_row("SELECT summary FROM sessions WHERE pk = ?1", [row.pk], |row| row.get(0))
                .map_err(|e| fault(place, e))
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
        self.read(|connection, place, _| {
            let sql = |e| fault(place, e);
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
            let head = self.read(|connection, place, _| {
                session::find_row(connection, place, session).map(|row| row.head_seq)
            })?;
            let left = until.map_or(LOOK_AGAIN, |until| until.saturating_duration_since(Instant::now()));
            if head > seq || left.is_zero() {
                return Ok(head);
            }
            std::thread::sleep(left.min(LOOK_AGAIN));
        }
    }

    fn acquire(&self, session: SessionId, holder: &Holder, over: Option<Over>) -> Result<Lease, Error> {
        let holder = holder.clone();
        self.write(move |direct| super::lease::acquire(direct, session, &holder, over))
    }

    fn renew(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        self.write(move |direct| super::lease::renew(direct, session, epoch))
    }

    fn release(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        self.write(move |direct| super::lease::release(direct, session, epoch))
    }

    fn lease(&self, session: SessionId) -> Result<Option<Lease>, Error> {
        self.read(|connection, place, _| {
            let row = session::find_row(connection, place, session)?;
            super::lease::read(connection, place, row.pk)
        })
    }

    fn leases(&self) -> Result<Vec<(SessionId, Lease)>, Error> {
        self.read(|connection, place, _| super::lease::all(connection, place))
    }

    fn usage(&self) -> Result<Vec<Usage>, Error> {
        self.read(|connection, place, _| super::usage::usage(connection, place))
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
        self.read(|connection, place, _| super::forget::search(connection, place, holds))
    }

    fn scrub(&self, holds: &Holds) -> Result<(), Error> {
        let holds = holds.clone();
        self.write(move |direct| super::forget::scrub(direct, &holds))
    }

    fn collect_garbage(&self) -> Result<Garbage, Error> {
        self.write(upkeep::collect_garbage)
    }

    fn integrity(&self, deep: bool) -> Result<Vec<String>, Error> {
        self.read(|connection, place, _| upkeep::integrity(connection, place, deep))
    }

    fn quarantine(&self, session: SessionId, seq: u64, what: &str) -> Result<(), Error> {
        let what = what.to_owned();
        self.write(move |direct| upkeep::quarantine(direct, session, seq, &what))
    }

    fn quarantined(&self) -> Result<Vec<Damage>, Error> {
        self.read(|connection, place, _| upkeep::quarantined(connection, place))
    }

    fn maintain(&self) -> Result<(), Error> {
        if self.purpose != super::Purpose::Inspect {
            super::heads::shorten(&self.path);
        }
        upkeep::maintain(&mut self.direct(), &self.path)
    }

    fn backup(&self, to: &Path) -> Result<u64, Error> {
        self.read(|connection, place, _| super::copy::backup(connection, place, to))
    }
}

impl SqliteStore {
    fn read<T>(
        &self,
        job: impl FnOnce(&Connection, &str, &super::Cache) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut direct = self.direct();
        let place = direct.place.clone();
        let result = read_at_once(&mut direct, &place, job);
        direct.distrust_after(&result);
        result
    }
}

/// Everything that is read is of one moment, however many questions it takes.
fn read_at_once<T>(
    direct: &mut super::Direct,
    place: &str,
    job: impl FnOnce(&Connection, &str, &super::Cache) -> Result<T, Error>,
) -> Result<T, Error> {
    let (connection, cache, _) = direct.connection()?;
    let moment = connection.unchecked_transaction().map_err(|e| fault(place, e))?;
    job(&moment, place, cache)
}

/// A limit as SQLite takes it: its integers have a sign.
fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn count_of(connection: &Connection, place: &str, pk: i64, list: List) -> Result<u64, Error> {
    connection
        .prepare_cached("SELECT count(*) FROM items WHERE session = ?1 AND list = ?2")
        .and_then(|mut ask| ask.query_row((pk, list.as_str()), |row| row.get(0)))
        .map_err(|e| fault(place, e))
}

/// The question for a page of a list. However long the list is, only the page is read.
fn page_sql(list: List, newest_first: bool) -> String {
    // Keys of some lists sort by time, others are read in the order of their events.
    let by_seq = matches!(list, List::Tools | List::Files | List::Outputs);
    let order = match (by_seq, newest_first) {
        (true, false) => "(seq, key) > (?3, ?4) ORDER BY seq, key",
        (true, true) => "(seq, key) < (?3, ?4) ORDER BY seq DESC, key DESC",
        (false, false) => "key > ?4 AND ?3 = ?3 ORDER BY key",
        (false, true) => "key < ?4 AND ?3 = ?3 ORDER BY key DESC",
    };
    // SQLite uses a partial index only for a question that has the index's own condition, word for word.
    let partial = if by_seq { "AND list IN ('tools', 'files', 'outputs')" } else { "" };
    let name = list.as_str();
    format!(
        "SELECT key, seq, body FROM items WHERE session = ?1 AND list = '{name}' {partial} AND ?2 = ?2 AND {order} LIMIT ?5"
    )
}

fn page_of(
    connection: &Connection,
    place: &str,
    pk: i64,
    list: List,
    page: &Page,
) -> Result<Vec<Item>, Error> {
    let sql = |e| fault(place, e);
    let name = list.as_str();
    let text = page_sql(list, page.newest_first);
    let (seq, key): (i64, Sql) = match (&page.after, page.newest_first) {
        (Some(place), _) => (i64::try_from(place.seq).unwrap_or(i64::MAX), Sql::Text(place.key.clone())),
        (None, false) => (-1, Sql::Text(String::new())),
        // A blob sorts after every text.
        (None, true) => (i64::MAX, Sql::Blob(vec![0xff])),
    };
    let mut statement = connection.prepare_cached(&text).map_err(sql)?;
    let rows = statement
        .query_map((pk, name, seq, key, at_most(page.limit)), |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?, row.get::<_, String>(2)?))
        })
        .map_err(sql)?;
    let mut found = Vec::new();
    for row in rows {
        found.push(item(row.map_err(sql)?));
    }
    Ok(found)
}

fn rows_of(
    connection: &Connection,
    place: &str,
    pk: i64,
    list: List,
    keys: &[String],
) -> Result<Vec<Item>, Error> {
    let sql = |e| fault(place, e);
    let mut statement = connection
        .prepare_cached("SELECT key, seq, body FROM items WHERE session = ?1 AND list = ?2 AND key = ?3")
        .map_err(sql)?;
    let mut found = Vec::new();
    for key in keys {
        let row = statement
            .query_row((pk, list.as_str(), key), |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?, row.get::<_, String>(2)?))
            })
            .optional()
            .map_err(sql)?;
        found.extend(row.map(item));
    }
    Ok(found)
}

fn item((key, seq, body): (String, u64, String)) -> Item {
    let body = serde_json::from_str(&body)
        .unwrap_or_else(|why| serde_json::json!({ "damaged": format!("this row cannot be read: {why}") }));
    Item { key, seq, body }
}

pub(super) fn list(connection: &Connection, place: &str, filter: &Filter) -> Result<Listing, Error> {
    let sql = |e| fault(place, e);
    let mut wheres = vec!["1".to_owned()];
    let mut values: Vec<Sql> = Vec::new();
    if let Some(project) = &filter.project {
        values.push(Sql::Text(project.clone()));
        wheres.push(format!("project = ?{}", values.len()));
    }
    if !filter.statuses.is_empty() {
        // Words of our own enum, never text from outside.
        let words: Vec<String> = filter.statuses.iter().map(|status| format!("'{status}'")).collect();
        wheres.push(format!("status IN ({})", words.join(", ")));
    }
    if let Some(made_by) = filter.made_by {
        wheres.push(format!("made_by = '{}'", super::create::maker(made_by)));
    }
    if let Some(since) = filter.since {
        values.push(Sql::Integer(since.as_micros()));
        wheres.push(format!("updated_us >= ?{}", values.len()));
    }
    if let Some(until) = filter.until {
        values.push(Sql::Integer(until.as_micros()));
        wheres.push(format!("updated_us < ?{}", values.len()));
    }
    let wheres = wheres.join(" AND ");
    let limit = filter.limit.and_then(|limit| i64::try_from(limit).ok());
    let order =
        limit.map_or(String::new(), |limit| format!("ORDER BY updated_us DESC, pk DESC LIMIT {limit}"));
    let text = format!(
        "SELECT updated_us, pk, id, uid, status, project, made_by, head_seq, summary FROM sessions
         WHERE {wheres} {order}"
    );
    let mut statement = connection.prepare_cached(&text).map_err(sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(&values)).map_err(sql)?;
    let mut found: Vec<(i64, i64, Summary)> = Vec::new();
    let mut unreadable = Vec::new();
    let mut without_name = 0;
    while let Some(row) = rows.next().map_err(sql)? {
        let (summary, problem) = summary(row);
        if let Some(problem) = problem {
            unreadable.push((summary.as_ref().map(|summary| summary.session_id), problem));
        }
        match summary {
            Some(summary) => found.push((row.get(0).unwrap_or(0), row.get(1).unwrap_or(0), summary)),
            None => without_name += 1,
        }
    }
    // Sorting here is quicker than SQLite's sorter, which would carry every summary along.
    if limit.is_none() {
        found.sort_unstable_by_key(|(updated, pk, _)| std::cmp::Reverse((*updated, *pk)));
    }
    let total = match limit {
        Some(_) => connection
            .query_row(
                &format!("SELECT count(*) FROM sessions WHERE {wheres}"),
                rusqlite::params_from_iter(&values),
                |row| row.get(0),
            )
            .map_err(sql)?,
        None => found.len() as u64 + without_name,
    };
    Ok(Listing { sessions: found.into_iter().map(|(_, _, summary)| summary).collect(), total, unreadable })
}

/// The one way from a session's row to its summary, of whatever age the row is. What the row's own columns say is
/// surer than what the summary does; if that cannot be read at all, they are what is shown. None if not even the name
/// can be read.
fn summary(row: &rusqlite::Row<'_>) -> (Option<Summary>, Option<String>) {
    let kept = row.get::<_, String>(8).map_err(|e| e.to_string());
    let name: Option<SessionId> = row.get::<_, String>(2).ok().and_then(|id| id.parse().ok());
    let name = name.or_else(|| kept.as_ref().ok().and_then(|kept| crate::verify::name_in(kept)));
    let Some(id) = name else { return (None, Some("its name cannot be read".to_owned())) };
    let read = kept.and_then(|kept| serde_json::from_str::<Summary>(&kept).map_err(|e| e.to_string()));
    match read {
        Ok(summary) => (Some(Summary { session_id: id, ..summary }), None),
        Err(why) => {
            let text = |index| row.get::<_, String>(index).unwrap_or_default();
            let bare = Summary {
                session_id: id,
                uid: Uid::new(uuid::Uuid::from_bytes(row.get(3).unwrap_or_default())),
                status: text(4).parse().unwrap_or(Status::Active),
                project: text(5),
                made_by: super::create::maker_of(&text(6)),
                created_at: id.timestamp(),
                updated_at: Timestamp::from_micros(row.get(0).unwrap_or(0)),
                seq: row.get(7).unwrap_or(0),
                ..Summary::default()
            };
            (Some(bare), Some(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_by_an_index_and_never_sorted_as_a_whole() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("../../migrations/sqlite/0002_lists.sql")).unwrap();
        for list in List::ALL {
            for newest_first in [false, true] {
                let text = format!("EXPLAIN QUERY PLAN {}", page_sql(list, newest_first));
                let mut ask = connection.prepare(&text).unwrap();
                let plan: Vec<String> = ask
                    .query_map((1, "x", 5, "k", 10), |row| row.get::<_, String>(3))
                    .unwrap()
                    .map(Result::unwrap)
                    .collect();
                let plan = plan.join("; ");
                assert!(plan.contains("SEARCH items USING INDEX items_by_"), "{list:?}: {plan}");
                assert!(!plan.contains("FOR ORDER BY"), "{list:?} is sorted: {plan}");
            }
        }
    }
}
