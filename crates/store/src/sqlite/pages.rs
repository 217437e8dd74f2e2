//! Pages of lists, and lists of sessions.

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::types::Value as Sql;
use segno_core::List;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_core::Uid;

use super::fault;
use crate::Error;
use crate::types::*;

/// A limit as SQLite takes it: its integers have a sign.
pub(super) fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn count_of(connection: &Connection, location: &str, pk: i64, list: List) -> Result<u64, Error> {
    connection
        .prepare_cached(&count_sql(list))
        .and_then(|mut ask| ask.query_row([pk], |row| row.get(0)))
        .map_err(|e| fault(location, e))
}

/// The question for how many rows a list has. All of them are counted, in the smallest index that has them.
fn count_sql(list: List) -> String {
    let (partial, name) = (partial(list), list.as_str());
    format!("SELECT count(*) FROM items WHERE session = ?1 AND list = '{name}' {partial}")
}

/// Whether a list is read in the order of its events; the keys of the others sort by time.
fn is_by_seq(list: List) -> bool {
    matches!(list, List::Tools | List::Files | List::Outputs)
}

/// SQLite uses a partial index only for a question that has the index's own condition, word for word.
fn partial(list: List) -> &'static str {
    if is_by_seq(list) { "AND list IN ('tools', 'files', 'outputs')" } else { "" }
}

/// The question for a page of a list. However long the list is, only the page is read.
pub(super) fn page_sql(list: List, newest_first: bool) -> String {
    let by_seq = is_by_seq(list);
    let order = match (by_seq, newest_first) {
        (true, false) => "(seq, key) > (?3, ?4) ORDER BY seq, key",
        (true, true) => "(seq, key) < (?3, ?4) ORDER BY seq DESC, key DESC",
        (false, false) => "key > ?4 AND ?3 = ?3 ORDER BY key",
        (false, true) => "key < ?4 AND ?3 = ?3 ORDER BY key DESC",
    };
    let (partial, name) = (partial(list), list.as_str());
    format!(
        "SELECT key, seq, body FROM items WHERE session = ?1 AND list = '{name}' {partial} AND ?2 = ?2 AND {order} LIMIT ?5"
    )
}

pub(super) fn page_of(
    connection: &Connection,
    location: &str,
    pk: i64,
    list: List,
    page: &Page,
) -> Result<Vec<Item>, Error> {
    let sql = |e| fault(location, e);
    let name = list.as_str();
    let text = page_sql(list, page.newest_first);
    let (seq, key): (i64, Sql) = match (&page.after, page.newest_first) {
        (Some(location), _) => {
            (i64::try_from(location.seq).unwrap_or(i64::MAX), Sql::Text(location.key.clone()))
        }
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

/// The question for one place in a list. What is passed over is stepped over in the index, and not read.
fn position_sql(list: List) -> String {
    let order = if is_by_seq(list) { "seq DESC, key DESC" } else { "key DESC" };
    let (partial, name) = (partial(list), list.as_str());
    format!(
        "SELECT seq, key FROM items WHERE session = ?1 AND list = '{name}' {partial} ORDER BY {order} LIMIT 1 OFFSET ?2"
    )
}

pub(super) fn position_of(
    connection: &Connection,
    location: &str,
    pk: i64,
    list: List,
    newer: usize,
) -> Result<Option<ItemPosition>, Error> {
    connection
        .prepare_cached(&position_sql(list))
        .and_then(|mut ask| {
            ask.query_row((pk, at_most(newer)), |row| Ok(ItemPosition { seq: row.get(0)?, key: row.get(1)? }))
                .optional()
        })
        .map_err(|e| fault(location, e))
}

pub(super) fn rows_of(
    connection: &Connection,
    location: &str,
    pk: i64,
    list: List,
    keys: &[String],
) -> Result<Vec<Item>, Error> {
    let sql = |e| fault(location, e);
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

pub(super) fn item((key, seq, body): (String, u64, String)) -> Item {
    let body = serde_json::from_str(&body)
        .unwrap_or_else(|why| serde_json::json!({ "damaged": format!("this row cannot be read: {why}") }));
    Item { key, seq, body }
}

/// How a summary that is pinned or archived says so. A quotation mark in a text of it is written differently, so that this
/// stands in no other.
const PINNED: &str = "\"pinned\":true";
const ARCHIVED: &str = "\"archived\":true";

pub(super) fn list(connection: &Connection, location: &str, filter: &Filter) -> Result<Listing, Error> {
    let sql = |e| fault(location, e);
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
    for tag in &filter.tags {
        values.push(Sql::Text(tag.clone()));
        wheres.push(format!(
            "CASE WHEN json_valid(summary) THEN EXISTS (SELECT 1 FROM json_each(summary, '$.tags') WHERE value = ?{})
             ELSE 0 END",
            values.len()
        ));
    }
    for (wanted, member) in [(filter.pinned, PINNED), (filter.archived, ARCHIVED)] {
        wheres
            .extend(wanted.map(|wanted| format!("(instr(summary, '{member}') > 0) = {}", u8::from(wanted))));
    }
    let wheres = wheres.join(" AND ");
    let limit = filter.limit.and_then(|limit| i64::try_from(limit).ok());
    let first =
        if filter.pinned_first { format!("instr(summary, '{PINNED}') > 0 DESC, ") } else { String::new() };
    let order = limit
        .map_or(String::new(), |limit| format!("ORDER BY {first}updated_us DESC, pk DESC LIMIT {limit}"));
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
        let first = |summary: &Summary| filter.pinned_first && summary.pinned;
        found.sort_unstable_by_key(|(updated, pk, summary)| {
            std::cmp::Reverse((first(summary), *updated, *pk))
        });
    }
    let seen = found.len() as u64 + without_name;
    let total = match limit {
        // A page that is not full is the last one.
        Some(limit) if i64::try_from(seen).is_ok_and(|seen| seen >= limit) => connection
            .query_row(
                &format!("SELECT count(*) FROM sessions WHERE {wheres}"),
                rusqlite::params_from_iter(&values),
                |row| row.get(0),
            )
            .map_err(sql)?,
        _ => seen,
    };
    Ok(Listing { sessions: found.into_iter().map(|(_, _, summary)| summary).collect(), total, unreadable })
}

/// The one way from a session's row to its summary, of whatever age the row is. What the row's own columns say is
/// surer than what the summary does; if that cannot be read at all, they are what is shown. None if not even the name
/// can be read.
pub(super) fn summary(row: &rusqlite::Row<'_>) -> (Option<Summary>, Option<String>) {
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
            for question in [page_sql(list, false), page_sql(list, true), position_sql(list)] {
                let mut ask = connection.prepare(&format!("EXPLAIN QUERY PLAN {question}")).unwrap();
                let mut rows = ask.raw_query();
                let mut plan = String::new();
                while let Some(row) = rows.next().unwrap() {
                    plan += &row.get::<_, String>(3).unwrap();
                }
                assert!(plan.contains("INDEX items_by_"), "{list:?}: {plan}");
                assert!(!plan.contains("FOR ORDER BY"), "{list:?} is sorted: {plan}");
            }
        }
    }

    #[test]
    fn a_list_is_counted_in_its_smallest_index() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("../../migrations/sqlite/0002_lists.sql")).unwrap();
        for list in List::ALL {
            let mut ask = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", count_sql(list))).unwrap();
            let plan: String = ask.query_row([1], |row| row.get(3)).unwrap();
            let index = if is_by_seq(list) { "items_by_seq" } else { "items_by_key" };
            assert!(plan.contains(&format!("COVERING INDEX {index} (")), "{list:?}: {plan}");
        }
    }
}
