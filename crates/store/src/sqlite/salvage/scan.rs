//! Finding every row that can still be read, past pages that cannot.

use std::collections::BTreeSet;

use rusqlite::Connection;
use rusqlite::OptionalExtension;

use super::unless_damaged;
use crate::Error;

/// The row ids of a table, from wherever they can be learned: from an index, which lies on pages of its own, read from
/// both ends, and from the table itself, stepping over what cannot be read.
///
/// Answers too whether anything could not be read on the way.
pub(super) fn row_ids(
    old: &Connection,
    location: &str,
    table: &str,
    index_order: &[&str],
) -> Result<(BTreeSet<i64>, bool), Error> {
    let mut ids = BTreeSet::new();
    let mut damaged = false;
    if !index_order.is_empty() {
        for direction in ["ASC", "DESC"] {
            let order: Vec<String> =
                index_order.iter().map(|column| format!("{column} {direction}")).collect();
            let sql = format!("SELECT rowid FROM {table} ORDER BY {}", order.join(", "));
            if unless_damaged(location, collect(old, &sql, &mut ids))?.is_some() {
                // From one end to the other: the way back shows nothing new.
                break;
            }
            damaged = true;
        }
    }
    let mut after = 0;
    while let Some(next) = walk(old, location, table, after, &mut ids)? {
        damaged = true;
        match past(old, location, table, next)? {
            Some(further) => after = further,
            None => break,
        }
    }
    Ok((ids, damaged))
}

fn collect(old: &Connection, sql: &str, ids: &mut BTreeSet<i64>) -> rusqlite::Result<()> {
    let mut statement = old.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        ids.insert(row.get(0)?);
    }
    Ok(())
}

/// Reads on to the end, or to damage: then it says after which row. A page that is not where it belongs may show rows that
/// were passed already; that is damage too, or this would go round in a circle for ever.
fn walk(
    old: &Connection,
    location: &str,
    table: &str,
    after: i64,
    ids: &mut BTreeSet<i64>,
) -> Result<Option<i64>, Error> {
    let sql = format!("SELECT rowid FROM {table} NOT INDEXED WHERE rowid > ?1 ORDER BY rowid");
    let mut last = after;
    let walked = old.prepare(&sql).and_then(|mut statement| {
        let mut rows = statement.query([after])?;
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            ids.insert(id);
            if id <= last {
                return Ok(false);
            }
            last = id;
        }
        Ok(true)
    });
    let whole = unless_damaged(location, walked)?.unwrap_or(false);
    Ok((!whole).then_some(last))
}

/// The smallest row id after which reading works again: a later row is there, or none any more. Row ids are far apart
/// where one session ends and the next begins, so the step is doubled until it is past the damage and then halved until
/// it is just past it.
fn past(old: &Connection, location: &str, table: &str, bad: i64) -> Result<Option<i64>, Error> {
    let mut fails = bad;
    let mut step: i64 = 1;
    let mut works = loop {
        let Some(next) = bad.checked_add(step) else { return Ok(None) };
        if works_after(old, location, table, next)? {
            break next;
        }
        fails = next;
        let Some(doubled) = step.checked_mul(2) else { return Ok(None) };
        step = doubled;
    };
    while works - fails > 1 {
        let middle = fails + (works - fails) / 2;
        if works_after(old, location, table, middle)? {
            works = middle;
        } else {
            fails = middle;
        }
    }
    Ok(Some(works))
}

fn works_after(old: &Connection, location: &str, table: &str, after: i64) -> Result<bool, Error> {
    let sql = format!("SELECT rowid FROM {table} NOT INDEXED WHERE rowid > ?1 ORDER BY rowid LIMIT 1");
    let answer = old
        .prepare_cached(&sql)
        .and_then(|mut ask| ask.query_row([after], |row| row.get::<_, i64>(0)).optional());
    Ok(unless_damaged(location, answer)?.is_some_and(|next| next.is_none_or(|next| next > after)))
}
