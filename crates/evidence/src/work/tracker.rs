//! What `br ready --json`, `bd ready --json` and other trackers print.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Map;
use serde_json::Value;

use super::SkipReason;
use super::WorkError;
use super::WorkItem;
use super::WorkList;
use super::time;

/// Names under which trackers put an item or a list of them.
const WRAPPERS: &[&str] = &[
    "issue", "item", "bead", "task", "issues", "items", "beads", "tasks", "data", "result", "results",
    "ready",
];

/// How deep wrappers may stand in one another.
const DEEPEST: usize = 3;

/// Reads what a tracker prints: a list, bare or under a name such as `issues`, one item, or one item in each line. What
/// stands before the first line with JSON is passed over, because trackers warn there. An empty list is no error.
///
/// # Errors
/// If there is no JSON, or no item in it, or the tracker tells of an error.
pub fn work_items(output: &str) -> Result<WorkList, WorkError> {
    let mut found = Vec::new();
    let mut any_list = false;
    for value in values(output)? {
        collect(value, 0, &mut found, &mut any_list)?;
    }
    if found.is_empty() && !any_list {
        return Err(WorkError::NoItems);
    }
    let status_of: BTreeMap<String, bool> =
        found.iter().map(|fields| (text(fields, ID), is_done(&word(fields, STATUS)))).collect();
    let mut list = WorkList::default();
    for fields in &found {
        let item = item(fields);
        match skip_reason(fields, &item, &status_of) {
            Some(reason) => list.skipped.push((item, reason)),
            None => list.ready.push(item),
        }
    }
    list.ready.sort_by(order);
    Ok(list)
}

/// The JSON values of an output. Beginnings are looked for at the start of a line; whatever follows must be JSON to the
/// end, since half a list is not the list.
fn values(output: &str) -> Result<Vec<Value>, WorkError> {
    let whole = match serde_json::from_str(output) {
        Ok(value) => return Ok(vec![value]),
        Err(why) => why,
    };
    let mut at = 0;
    let mut tries = 0;
    for line in output.split_inclusive('\n') {
        if line.starts_with(['[', '{']) && tries < MOST_TRIES {
            tries += 1;
            let all: Result<Vec<Value>, _> =
                serde_json::Deserializer::from_str(&output[at..]).into_iter().collect();
            match all {
                Ok(values) => return Ok(values),
                Err(why) if why.is_eof() => return Err(WorkError::NotJson(why.to_string())),
                // A warning in brackets, for one.
                Err(_) => {}
            }
        }
        at += line.len();
    }
    Err(WorkError::NotJson(whole.to_string()))
}

/// How many lines may look like the beginning without being it.
const MOST_TRIES: usize = 20;

type Fields = Map<String, Value>;

fn collect(
    value: Value,
    depth: usize,
    found: &mut Vec<Fields>,
    any_list: &mut bool,
) -> Result<(), WorkError> {
    match value {
        Value::Array(items) if depth < DEEPEST => {
            *any_list |= items.is_empty();
            for item in items {
                collect(item, depth + 1, found, any_list)?;
            }
        }
        Value::Object(fields) if ["id", "key", "title"].iter().any(|name| fields.contains_key(*name)) => {
            found.push(fields);
        }
        Value::Object(mut fields) if depth < DEEPEST => {
            if let Some(inside) = WRAPPERS.iter().find_map(|name| fields.remove(*name)) {
                return collect(inside, depth + 1, found, any_list);
            }
            if let Some(why) = fields.get("error").and_then(|why| as_text(why.get("message").unwrap_or(why)))
            {
                return Err(WorkError::Tracker(why));
            }
        }
        // A tracker written in Go prints this for an empty list.
        Value::Null => *any_list = true,
        _ => {}
    }
    Ok(())
}

const ID: &[&str] = &["id", "key", "number"];
const STATUS: &[&str] = &["status", "state"];
const KIND: &[&str] = &["issue_type", "type"];

fn item(fields: &Fields) -> WorkItem {
    let some = |names: &[&str]| Some(word(fields, names)).filter(|word| !word.is_empty());
    let labels = ["labels", "label", "tags"].iter().find_map(|name| fields.get(*name));
    WorkItem {
        id: text(fields, ID),
        title: text(fields, &["title", "summary", "name"]),
        description: text(fields, &["description", "body", "text"]),
        priority: fields.get("priority").and_then(priority),
        status: some(STATUS),
        issue_type: some(KIND),
        created_at: ["created_at", "created", "createdAt"]
            .iter()
            .find_map(|name| as_text(fields.get(*name)?)),
        labels: labels.map(names).unwrap_or_default(),
        parent: fields
            .get("parent")
            .and_then(reference)
            .or_else(|| depends(fields, PARENT).into_iter().next()),
        blocked_by: blockers(fields),
    }
}

const PARENT: &[&str] = &["parent-child", "parent"];
const BLOCKS: &[&str] = &["blocks", "blocked-by", "blocked_by"];

/// The items that this one depends on in one of these ways and that are not said to be done.
fn depends(fields: &Fields, kinds: &[&str]) -> Vec<String> {
    let dependencies = fields.get("dependencies").and_then(Value::as_array);
    let mut ids = Vec::new();
    for dependency in dependencies.into_iter().flatten().filter_map(Value::as_object) {
        let kind = word(dependency, &["dependency_type", "type", "dep_type"]);
        let id = text(dependency, &["depends_on_id", "depends_on", "id"]);
        if kinds.contains(&kind.as_str()) && !id.is_empty() && !is_done(&word(dependency, STATUS)) {
            ids.push(id);
        }
    }
    ids
}

fn blockers(fields: &Fields) -> Vec<String> {
    let mut ids = fields.get("blocked_by").map(names).unwrap_or_default();
    ids.extend(depends(fields, BLOCKS));
    ids.sort();
    ids.dedup();
    ids
}

fn skip_reason(fields: &Fields, item: &WorkItem, done: &BTreeMap<String, bool>) -> Option<SkipReason> {
    let status = item.status.clone().unwrap_or_default();
    if is_done(&status) {
        return Some(SkipReason::Closed(status));
    }
    if item.issue_type.as_deref() == Some("epic") {
        return Some(SkipReason::Epic);
    }
    if ["deferred", "on_hold", "paused"].contains(&status.as_str()) {
        return Some(SkipReason::PutOff(status));
    }
    // An item that is not in the list may be done, and the tracker says elsewhere if this one waits for it.
    let open: Vec<String> =
        item.blocked_by.iter().filter(|id| done.get(*id) == Some(&false)).cloned().collect();
    let says_so = status == "blocked" || fields.get("blocked") == Some(&Value::Bool(true));
    if says_so || !open.is_empty() {
        return Some(SkipReason::Blocked(if open.is_empty() { item.blocked_by.clone() } else { open }));
    }
    item.id.is_empty().then_some(SkipReason::NoId)
}

fn is_done(status: &str) -> bool {
    ["closed", "done", "completed", "complete", "resolved", "cancelled", "canceled", "tombstone"]
        .contains(&status)
}

fn order(a: &WorkItem, b: &WorkItem) -> Ordering {
    let urgency = |item: &WorkItem| item.priority.unwrap_or(f64::MAX);
    // Who does not say when it was made comes after those that do.
    let age = |item: &WorkItem| item.created_at.as_deref().and_then(time::instant).unwrap_or(i128::MAX);
    urgency(a).total_cmp(&urgency(b)).then_with(|| age(a).cmp(&age(b))).then_with(|| a.id.cmp(&b.id))
}

/// A number, or one as in `P1`.
fn priority(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => {
            text.trim().trim_start_matches(['P', 'p']).parse().ok().filter(|n: &f64| n.is_finite())
        }
        _ => None,
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn text(fields: &Fields, names: &[&str]) -> String {
    names.iter().find_map(|name| as_text(fields.get(*name)?)).unwrap_or_default()
}

fn word(fields: &Fields, names: &[&str]) -> String {
    names.iter().find_map(|name| fields.get(*name)?.as_str().map(str::to_lowercase)).unwrap_or_default()
}

/// A name, or an object that has one.
fn reference(value: &Value) -> Option<String> {
    as_text(value)
        .or_else(|| as_text(value.get("id").or_else(|| value.get("name"))?))
        .filter(|name| !name.is_empty())
}

fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().filter_map(reference).collect(),
        other => reference(other).into_iter().collect(),
    }
}
