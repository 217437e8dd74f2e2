//! Copying rows into a new database.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::Statement;
use rusqlite::Transaction;
use rusqlite::types::Value as Sql;
use segno_core::Event;
use segno_core::SessionId;
use segno_core::Uid;

use super::Salvaged;
use super::deep;
use super::fault;
use super::scan;
use super::unless_damaged;
use crate::Error;
use crate::codec;
use crate::sqlite::session;
use crate::sqlite::texts;

/// No event's row is smaller. A session cannot have had more events than the file has room for: a larger number is
/// damaged.
const SMALLEST_EVENT: u64 = 64;

const EVENT: &str = "id, session, key, at_us, run, epoch, kind, version, body, hash";

/// Copies everything that can be read.
pub(super) fn copy(
    old: &Connection,
    fresh: &mut Connection,
    location: &str,
    salvaged: &mut Salvaged,
) -> Result<(), Error> {
    let tx = fresh.transaction().map_err(|e| fault(location, e))?;
    let old_rows = old_rows(old, location)?;
    let lost = copy_events(old, &tx, location, &old_rows, salvaged)?;
    if copy_table(old, &tx, location, "blobs", "rowid, hash, bytes, content", &["hash"])? {
        dig_for_blobs(old, &tx, location)?;
    }
    if copy_table(old, &tx, location, "damage", "id, session, seq, found_us, what, content", &[])? {
        salvaged.lose("a part of what was set apart earlier".to_owned());
    }
    if copy_table(old, &tx, location, "leases", "session, epoch, holder, acquired_us, heartbeat_us", &[])? {
        salvaged.lose("who drove some of the sessions".to_owned());
    }
    make_sessions(&tx, location, old_rows, &lost, salvaged)?;
    make_references(&tx, location, salvaged)?;
    // Epochs only grow: a lost row must not let a replaced driver back in.
    tx.execute(
        "INSERT OR IGNORE INTO leases SELECT session, max(epoch), NULL, 0, 0 FROM events
         WHERE epoch IS NOT NULL GROUP BY session",
        [],
    )
    .map_err(|e| fault(location, e))?;
    tx.commit().map_err(|e| fault(location, e))
}

/// Copies events, and tells which are known to have been there and cannot be read.
fn copy_events(
    old: &Connection,
    fresh: &Transaction<'_>,
    location: &str,
    old_rows: &BTreeMap<i64, Old>,
    salvaged: &mut Salvaged,
) -> Result<BTreeSet<i64>, Error> {
    let sql = |e| fault(location, e);
    let mut ask = old.prepare(&format!("SELECT {EVENT} FROM events WHERE id = ?1")).map_err(sql)?;
    let mut insert = fresh
        .prepare(&format!(
            "INSERT OR IGNORE INTO events ({EVENT}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        ))
        .map_err(sql)?;
    // What there should be, as far as anything says so.
    let mut wanted = scan::row_ids(old, location, "events", &["session", "key"])?.0;
    for (pk, old) in old_rows {
        wanted.extend((1..=old.head_seq).map(|seq| session::event_id(*pk, seq)));
    }
    let mut missing = BTreeSet::new();
    for id in wanted {
        let saved = match columns(&mut ask, location, id)? {
            Some(values) => put(&mut insert, location, id, values)?,
            None => false,
        };
        if saved {
            salvaged.events += 1;
        } else {
            missing.insert(id);
        }
    }
    drop(ask);
    // Behind a new beginning that does not fit, everything is on pages that nothing leads to.
    let all = salvaged.events == 0 && missing.is_empty() && !salvaged.lost.is_empty();
    if all || !missing.is_empty() {
        let everywhere = deep::rows(old, location, "events", EVENT, |values| {
            let Some(Sql::Integer(id)) = values.first() else { return Ok(()) };
            let id = *id;
            if (all || missing.contains(&id)) && put(&mut insert, location, id, values)? {
                missing.remove(&id);
                salvaged.events += 1;
            }
            Ok(())
        })?;
        if !everywhere {
            salvaged.lose("whatever else there was on pages that cannot be looked at".to_owned());
        }
    }
    Ok(missing)
}

/// Writes an event's row, if it is one: a row of another session than its number says is none of ours.
fn put(insert: &mut Statement<'_>, location: &str, id: i64, values: Vec<Sql>) -> Result<bool, Error> {
    if values.get(1) != Some(&Sql::Integer(session::pk_of(id))) {
        return Ok(false);
    }
    let rows = unless_damaged(location, insert.execute(rusqlite::params_from_iter(values)))?;
    Ok(rows.is_some_and(|rows| rows > 0))
}

/// Texts prove themselves: what has the hash it is stored under is what was stored.
fn dig_for_blobs(old: &Connection, fresh: &Transaction<'_>, location: &str) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let mut wanted = BTreeSet::new();
    let mut insert = fresh
        .prepare("INSERT OR IGNORE INTO blobs (hash, bytes, content) VALUES (?1, ?2, ?3)")
        .map_err(sql)?;
    texts::each_reference(fresh, location, None, |_, hash| {
        wanted.insert(hash);
        Ok(())
    })?;
    // What cannot be found again is told with the references to it.
    deep::rows(old, location, "blobs", "hash, bytes, content", |values| {
        let [Sql::Blob(hash), Sql::Integer(bytes), Sql::Blob(content)] = &values[..] else { return Ok(()) };
        let known = <[u8; 32]>::try_from(hash.as_slice()).is_ok_and(|hash| wanted.contains(&hash));
        if known && codec::decompress(content, u64::try_from(*bytes).unwrap_or(0), hash).is_some() {
            unless_damaged(location, insert.execute(rusqlite::params_from_iter(values)))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// A row as it is stored, if it is there and can be read.
fn columns(ask: &mut Statement<'_>, location: &str, id: i64) -> Result<Option<Vec<Sql>>, Error> {
    let count = ask.column_count();
    unless_damaged(location, ask.query_row([id], |row| (0..count).map(|index| row.get(index)).collect()))
}

/// Copies the rows of a table that can be read. True if some cannot.
fn copy_table(
    old: &Connection,
    fresh: &Transaction<'_>,
    location: &str,
    table: &str,
    names: &str,
    order: &[&str],
) -> Result<bool, Error> {
    let marks = (1..=names.split(',').count()).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
    let mut insert = fresh
        .prepare(&format!("INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})"))
        .map_err(|e| fault(location, e))?;
    let ask = old.prepare(&format!("SELECT {names} FROM {table} WHERE rowid = ?1"));
    let Some(mut ask) = unless_damaged(location, ask)? else { return Ok(true) };
    let (ids, mut damaged) = scan::row_ids(old, location, table, order)?;
    for id in ids {
        let saved = match columns(&mut ask, location, id)? {
            Some(values) => unless_damaged(location, insert.execute(rusqlite::params_from_iter(values)))?,
            None => None,
        };
        damaged |= saved.is_none();
    }
    Ok(damaged)
}

/// What the damaged database says of a session.
struct Old {
    id: SessionId,
    uid: Uid,
    head_seq: u64,
    head_hash: [u8; 32],
}

fn old_rows(old: &Connection, location: &str) -> Result<BTreeMap<i64, Old>, Error> {
    let mut rows = BTreeMap::new();
    let pragma = |name: &str| {
        let value = old.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
        value.map_err(|e| fault(location, e))
    };
    let most = pragma("page_count")? * pragma("page_size")? / SMALLEST_EVENT;
    let ask = old.prepare("SELECT id, uid, head_seq, head_hash FROM sessions WHERE pk = ?1");
    let Some(mut ask) = unless_damaged(location, ask)? else { return Ok(rows) };
    for pk in scan::row_ids(old, location, "sessions", &["id"])?.0 {
        let found = ask.query_row([pk], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, [u8; 16]>(1)?, row.get(2)?, row.get(3)?))
        });
        let Some((id, uid, head_seq, head_hash)) = unless_damaged(location, found)? else { continue };
        if let Ok(id) = id.parse()
            && head_seq <= most
        {
            rows.insert(pk, Old { id, uid: Uid::new(uuid::Uuid::from_bytes(uid)), head_seq, head_hash });
        }
    }
    Ok(rows)
}

/// Session rows follow from the events: the first event of each carries its name and identity.
fn make_sessions(
    fresh: &Transaction<'_>,
    location: &str,
    mut old_rows: BTreeMap<i64, Old>,
    lost: &BTreeSet<i64>,
    salvaged: &mut Salvaged,
) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let mut ask = fresh.prepare("SELECT session, max(id) FROM events GROUP BY session").map_err(sql)?;
    let heads: Vec<(i64, i64)> = ask
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(sql)?
        .collect::<Result<_, _>>()
        .map_err(sql)?;
    for (pk, head) in heads {
        let known = old_rows.remove(&pk);
        let Some((id, uid)) = identity(fresh, location, pk)?.or(known.as_ref().map(|old| (old.id, old.uid)))
        else {
            // Its number must be free for the next session.
            let count = forget(fresh, pk).map_err(sql)?;
            salvaged.events -= count;
            salvaged.lose(format!(
                "session number {pk} with {count} event(s): neither its first event nor its name can be read"
            ));
            continue;
        };
        let hash: Vec<u8> = fresh
            .query_row("SELECT substr(hash, 1, 32) FROM events WHERE id = ?1", [head], |row| row.get(0))
            .map_err(sql)?;
        let found = session::seq_of(head);
        // Events that were acknowledged keep their numbers, even if they are gone.
        let (head_seq, head_hash) = match known {
            Some(old) if old.head_seq > found => (old.head_seq, old.head_hash.to_vec()),
            _ => (found, hash),
        };
        fresh
            .execute(
                "INSERT INTO sessions
                 (pk, id, uid, status, project, made_by, head_seq, head_hash, updated_us, summary)
                 VALUES (?1, ?2, ?3, 'active', '', 'new', ?4, ?5, 0, ?6)",
                (
                    pk,
                    id.to_string(),
                    uid.as_bytes(),
                    head_seq,
                    head_hash,
                    format!("{{\"session_id\":\"{id}\"}}"),
                ),
            )
            .map_err(sql)?;
        for (first, last) in runs(lost, pk, found + 1..=head_seq) {
            salvaged.lose(format!("session {id}: events {first} to {last}"));
        }
    }
    for (pk, old) in old_rows {
        forget(fresh, pk).map_err(sql)?;
        salvaged.lose(format!("session {}: all of its {} event(s)", old.id, old.head_seq));
    }
    Ok(())
}

/// Removes what would otherwise belong to the next session with this number.
fn forget(fresh: &Transaction<'_>, pk: i64) -> rusqlite::Result<u64> {
    fresh.execute("DELETE FROM leases WHERE session = ?1", [pk])?;
    let count = fresh.execute("DELETE FROM events WHERE session = ?1", [pk])?;
    Ok(count as u64)
}

/// The numbers of a session's lost events, those at its end included, as first and last of each run.
fn runs(lost: &BTreeSet<i64>, pk: i64, end: std::ops::RangeInclusive<u64>) -> Vec<(u64, u64)> {
    let ids = lost.range(session::event_id(pk, 0)..session::event_id(pk + 1, 0));
    let numbers: BTreeSet<u64> = ids.map(|id| session::seq_of(*id)).chain(end).collect();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for seq in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == seq => *last = seq,
            _ => runs.push((seq, seq)),
        }
    }
    runs
}

fn identity(fresh: &Connection, location: &str, pk: i64) -> Result<Option<(SessionId, Uid)>, Error> {
    let first = fresh.query_row(
        "SELECT kind, version, body FROM events WHERE id = ?1",
        [session::event_id(pk, 1)],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?, row.get::<_, String>(2)?)),
    );
    let Some((kind, version, body)) = unless_damaged(location, first)? else { return Ok(None) };
    let begun = match Event::decode(&kind, version, &body) {
        Ok(Event::SessionCreated(created)) => Some((created.id, created.uid)),
        Ok(Event::SessionImported(imported)) => Some((imported.state.session_id, imported.state.uid)),
        _ => None,
    };
    Ok(match begun {
        Some((id, uid)) => Some((name_here(fresh, location, pk)?.unwrap_or(id), uid)),
        None => None,
    })
}

/// A journal that came from another store begins with the name that the session had there.
fn name_here(fresh: &Connection, location: &str, pk: i64) -> Result<Option<SessionId>, Error> {
    let last = fresh.query_row(
        "SELECT version, body FROM events WHERE session = ?1 AND kind = 'journal_imported'
         ORDER BY id DESC LIMIT 1",
        [pk],
        |row| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?)),
    );
    let Some((version, body)) = unless_damaged(location, last)? else { return Ok(None) };
    Ok(match Event::decode("journal_imported", version, &body) {
        Ok(Event::JournalImported(imported)) => Some(imported.id),
        _ => None,
    })
}

/// Which session refers to which text follows from the events too. A reference that went missing would let the text
/// be cleared away.
fn make_references(fresh: &Transaction<'_>, location: &str, salvaged: &mut Salvaged) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let mut insert = texts::note_reference(fresh, location)?;
    let mut exists = fresh.prepare("SELECT 1 FROM blobs WHERE hash = ?1").map_err(sql)?;
    texts::each_reference(fresh, location, None, |id, hash| {
        let (pk, seq) = (session::pk_of(id), session::seq_of(id));
        insert.execute((hash, pk, seq))?;
        if exists.query_row([hash], |_| Ok(())).optional()?.is_none() {
            let name = name(fresh, pk).unwrap_or_else(|| format!("number {pk}"));
            salvaged.lose(format!("session {name}: a long text of event {seq}"));
        }
        Ok(())
    })
}

fn name(fresh: &Connection, pk: i64) -> Option<String> {
    fresh.query_row("SELECT id FROM sessions WHERE pk = ?1", [pk], |row| row.get(0)).ok()
}
