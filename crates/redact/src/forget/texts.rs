//! Which parts of an event are somebody's words, and which say what it is about.

use std::collections::HashMap;

use segno_core::text::BLOB_MEMBER;
use serde_json::Map;
use serde_json::Value;

use super::FORGOTTEN;

/// Members that say what an event is about, not what anybody wrote: they stay when texts are forgotten. Words of ours
/// that are no texts need not be here: an event would be none without them, and so they stay.
const STRUCTURE: &[&str] = &[
    "agent",
    "at",
    "call",
    "change",
    "channel",
    "checksum",
    "commit",
    "hash",
    "id",
    "key",
    "kind",
    "list",
    "made_by",
    "model",
    "name",
    "native_id",
    "outcome",
    "parent",
    "path",
    "phase",
    "project",
    "run",
    "session_id",
    "state",
    "status",
    "tool",
    "tree",
    "uid",
    "version",
    "what",
];

/// Members that are texts in these kinds of events, though elsewhere they are not.
const TEXTS: &[(&str, &str)] = &[("agent_state_set", "/state"), ("workflow_state_set", "/state")];

/// Names that somebody chose. They are told apart, so each gets another one of ours.
const NAMES: &[(&str, &str)] = &[
    ("breakpoint_continued", "name"),
    ("breakpoint_reached", "name"),
    ("cache_removed", "key"),
    ("cache_set", "key"),
    ("checkpoint_created", "name"),
    ("metric_set", "name"),
    ("milestone_reached", "name"),
    ("output_recorded", "name"),
];

/// Members that hold JSON of somebody else.
const FOREIGN: &[&str] = &["/input", "/raw"];

/// Whether a text is one that stands for what was forgotten.
fn is_forgotten(text: &str) -> bool {
    text == FORGOTTEN || (text.starts_with("[forgotten ") && text.ends_with(']'))
}

/// The name that somebody gave in an event. A checkpoint that is called like the reason for it got its name from us.
fn name_in<'b>(kind: &str, body: &'b Value) -> Option<&'b str> {
    let (_, member) = NAMES.iter().find(|(known, _)| *known == kind)?;
    let reason = body.get("reason").and_then(Value::as_str).unwrap_or_default().replace('_', " ");
    let ours = |name: &str| kind == "checkpoint_created" && name == reason;
    body.get(*member).and_then(Value::as_str).filter(|name| !name.is_empty() && !ours(name))
}

/// The id of a checkpoint without the name in it.
pub(super) fn bare(id: &str) -> Option<String> {
    let digits = id.strip_prefix("cp-")?.split('-').next()?;
    Some(format!("cp-{digits}"))
}

/// Gives every name of an event that somebody chose another one, which says nothing.
pub(super) fn rename(kind: &str, body: &Value, names: &mut HashMap<String, String>) {
    let Some(name) = name_in(kind, body) else { return };
    if kind == "checkpoint_created"
        && let Some(id) = body.get("id").and_then(Value::as_str)
        && let Some(bare) = bare(id)
    {
        names.insert(id.to_owned(), bare);
    }
    if names.contains_key(name) {
        return;
    }
    // One that was forgotten before keeps its number.
    let again = is_forgotten(name).then(|| name.to_owned());
    let new = again.or_else(|| {
        let free = |name: &String| !names.contains_key(name) && !names.values().any(|taken| taken == name);
        (names.len() + 1..).map(|number| format!("[forgotten {number}]")).find(free)
    });
    names.insert(name.to_owned(), new.unwrap_or_else(|| FORGOTTEN.to_owned()));
}

/// Puts the new names in the place of the old ones: where they are given, as ids, and as members of a state.
pub(super) fn put_names(kind: &str, body: &mut Value, names: &HashMap<String, String>) {
    let new = name_in(kind, body).map(|name| names.get(name).map_or(FORGOTTEN, String::as_str).to_owned());
    if let (Some(new), Some((_, member))) = (new, NAMES.iter().find(|(known, _)| *known == kind))
        && let Some(text) = body.get_mut(*member)
    {
        *text = Value::from(new);
    }
    if !names.is_empty() {
        put_everywhere(body, names, false);
    }
}

fn put_everywhere(value: &mut Value, names: &HashMap<String, String>, in_state: bool) {
    match value {
        Value::String(text) if text.starts_with("cp-") => {
            if let Some(new) = names.get(text.as_str()) {
                text.clone_from(new);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| put_everywhere(item, names, in_state)),
        Value::Object(members) => {
            let all = std::mem::take(members);
            *members = all
                .into_iter()
                .map(|(name, mut member)| {
                    put_everywhere(&mut member, names, in_state || name == "state");
                    let new = names.get(&name).filter(|_| in_state).cloned();
                    (new.unwrap_or(name), member)
                })
                .collect::<Map<String, Value>>();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Where the texts of a body are, the outermost first: whatever anybody wrote. Each path is a list of single steps.
pub(super) fn texts_of(kind: &str, value: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    walk(kind, value, &mut Vec::new(), &mut found);
    found
}

fn walk(kind: &str, value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    // What an agent gave its tool is its own, whatever its members are called.
    let first = path.first().cloned().unwrap_or_default();
    let foreign = FOREIGN.contains(&first.as_str()) || TEXTS.contains(&(kind, first.as_str()));
    let mut step = |name: String, member: &Value, found: &mut Vec<Vec<String>>| {
        path.push(name);
        walk(kind, member, path, found);
        path.pop();
    };
    match value {
        Value::String(text) if !is_forgotten(text) && !text.is_empty() => found.push(path.clone()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                step(format!("/{index}"), item, found);
            }
        }
        Value::Object(members) if members.contains_key(BLOB_MEMBER) => found.push(path.clone()),
        Value::Object(members) => {
            // The id of a message, beside what was said or where a conversation stood.
            let is_id =
                |name: &str| name == "message" && (kind == "said" || members.contains_key("native_id"));
            for (name, member) in members {
                let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                let own = is_text(&pointer, kind, &first);
                let structure = !own && (STRUCTURE.contains(&name.as_str()) || is_id(name));
                if foreign || !(member.is_string() && structure) {
                    step(pointer, member, found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a member at the top of this kind of event is a text by way of exception.
fn is_text(pointer: &str, kind: &str, first: &str) -> bool {
    first.is_empty() && TEXTS.contains(&(kind, pointer))
}
