//! What follows from a journal besides the state, folded anew to compare it with what is kept: rows of lists, and the
//! texts that events refer to.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::summary::is_form_of;
use segno_core::text::BLOB_MEMBER;
use serde_json::Map;
use serde_json::Value;

use crate::Error;
use crate::Store;
use crate::fold::Fold;
use crate::fold::Folded;
use crate::fold::PAGE;
use crate::types::ItemPosition;
use crate::types::Page;

/// How many rows are held in memory at once. A longer session is folded several times, for a part of its rows each.
const AT_ONCE: u64 = 50_000;

/// The texts that an event's body refers to.
pub(crate) fn references(body: &str) -> Vec<[u8; 32]> {
    let mut hashes = Vec::new();
    if body.contains(BLOB_MEMBER) {
        find_references(&serde_json::from_str(body).unwrap_or_default(), &mut hashes);
    }
    hashes
}

fn find_references(value: &Value, hashes: &mut Vec<[u8; 32]>) {
    match value {
        Value::Object(members) => {
            let hash = members.get(BLOB_MEMBER).and_then(|hash| hash.as_str());
            if let Some(hash) = hash.and_then(|hash| blake3::Hash::from_hex(hash).ok()) {
                hashes.push(*hash.as_bytes());
            }
            members.values().for_each(|member| find_references(member, hashes));
        }
        Value::Array(items) => items.iter().for_each(|item| find_references(item, hashes)),
        _ => {}
    }
}

/// A row as the journal says it should be.
struct Row {
    seq: u64,
    fields: Map<String, Value>,
}

/// What a row is found by.
type Key = (List, String);

/// The rows of a session that are not what its journal says, in words. Others may be writing meanwhile: whoever asks has
/// to see that nothing was added since `head`.
pub(crate) fn wrong(store: &dyn Store, session: SessionId, head: u64) -> Result<Vec<String>, Error> {
    let mut total = 0;
    for list in List::ALL {
        total += store.items(session, list, &Page::first(1))?.total;
    }
    let parts = total / AT_ONCE + 1;
    let mut problems = Vec::new();
    for part in 0..parts {
        let is_of_part = |key: &Key| parts == 1 || part_of(key, parts) == part;
        let mut wanted = folded(store, session, head, is_of_part)?;
        for list in List::ALL {
            each(store, session, list, |key, seq, body| {
                let location = (list, key);
                if is_of_part(&location) {
                    match wanted.remove(&location) {
                        Some(row) if is_right(&row, seq, body) => {}
                        Some(_) => {
                            problems.push(format!("row {} of its {} is wrong", location.1, list.as_str()))
                        }
                        None => problems.push(format!(
                            "row {} of its {} follows from no event",
                            location.1,
                            list.as_str()
                        )),
                    }
                }
            })?;
        }
        problems.extend(
            wanted.keys().map(|(list, key)| format!("row {key} of its {} is missing", list.as_str())),
        );
    }
    Ok(problems)
}

fn is_right(wanted: &Row, seq: u64, body: &Value) -> bool {
    wanted.seq == seq && body.as_object().is_some_and(|kept| is_form_of(kept, &wanted.fields))
}

fn part_of(key: &Key, parts: u64) -> u64 {
    let hash = blake3::hash(key.1.as_bytes());
    u64::from(hash.as_bytes()[0]) % parts
}

/// Gives every row of a list, as it is kept, to `take`.
fn each(
    store: &dyn Store,
    session: SessionId,
    list: List,
    mut take: impl FnMut(String, u64, &Value),
) -> Result<(), Error> {
    let mut after = None;
    loop {
        let rows = store.page(session, list, &Page { after, limit: PAGE, newest_first: false })?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(ItemPosition { seq: last.seq, key: last.key.clone() });
        for row in rows {
            take(row.key, row.seq, &row.body);
        }
    }
}

/// The rows that follow from the journal up to an event.
fn folded(
    store: &dyn Store,
    session: SessionId,
    head: u64,
    wanted: impl Fn(&Key) -> bool,
) -> Result<BTreeMap<Key, Row>, Error> {
    let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
    let mut fold = Fold::new(session, None, store.known(session)?);
    'pages: loop {
        let events = store.events(session, fold.after(), PAGE)?;
        if events.is_empty() {
            break;
        }
        for event in events {
            if event.seq() > head {
                break 'pages;
            }
            if let Some(folded) = fold.take(event) {
                lay(&mut rows, &folded, &wanted);
            }
        }
    }
    Ok(rows)
}

/// The rows of a list as the journal says they should be, in the order of their keys.
pub fn from_journal(store: &dyn Store, session: SessionId, list: List) -> Result<Vec<crate::Item>, Error> {
    let rows = folded(store, session, u64::MAX, |key| key.0 == list)?;
    let item =
        |((_, key), row): (Key, Row)| crate::Item { key, seq: row.seq, body: Value::Object(row.fields) };
    Ok(rows.into_iter().map(item).collect())
}

/// Tells how a session was at some of its events, which is what its journal says up to each: its state, and the rows of the
/// wanted lists in the order they began. Events that it has not are left out.
pub fn each_as_of(
    store: &dyn Store,
    session: SessionId,
    seqs: &BTreeSet<u64>,
    lists: &[List],
    mut take: impl FnMut(u64, &State, BTreeMap<List, Vec<Value>>),
) -> Result<(), Error> {
    let Some(last) = seqs.last() else { return Ok(()) };
    let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
    let mut fold = Fold::new(session, None, store.known(session)?);
    loop {
        let events = store.events(session, fold.after(), PAGE)?;
        if events.is_empty() {
            return Ok(());
        }
        for event in events {
            if event.seq() > *last {
                return Ok(());
            }
            let Some(folded) = fold.take(event) else { continue };
            lay(&mut rows, &folded, &|key| lists.contains(&key.0));
            if seqs.contains(&folded.mark.seq) {
                let of = |list: &List| {
                    let mut all: Vec<&Row> =
                        rows.iter().filter(|((of, _), _)| of == list).map(|(_, row)| row).collect();
                    all.sort_by_key(|row| row.seq);
                    (*list, all.into_iter().map(|row| Value::Object(row.fields.clone())).collect())
                };
                take(folded.mark.seq, folded.state, lists.iter().map(of).collect());
            }
        }
    }
}

/// Lays what an event says of rows over them.
fn lay(rows: &mut BTreeMap<Key, Row>, folded: &Folded<'_>, wanted: &dyn Fn(&Key) -> bool) {
    let Folded { state, mark, event, applied } = folded;
    for change in segno_core::project(state, mark, event, *applied) {
        let key = (change.list, change.key);
        if wanted(&key) {
            let row = rows.entry(key).or_insert(Row { seq: mark.seq, fields: Map::new() });
            row.fields.extend(change.fields);
        }
    }
}
