//! `session.yaml` files of AgentForge into sessions.

use segno_core::List;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::Workflow;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::word;
use crate::family::Family;
use crate::fields::Fields;
use crate::files::Damage;
use crate::files::FileSet;
use crate::files::kind;
use crate::found::Found;
use crate::found::Imported;
use crate::found::ImportedSession;
use crate::found::name;
use crate::node::Node;
use crate::yaml;

/// A session of this family is small.
const MOST_NODES: usize = 1_000_000;

/// Reads every session of the folder, or of one session's folder.
///
/// # Errors
/// If there is one session and its file is damaged. Of several, the damaged ones are told of.
pub fn read(files: &FileSet, now: Timestamp) -> Result<Imported, Damage> {
    let names: Vec<&str> =
        files.names().filter(|name| *name == "session.yaml" || name.ends_with("/session.yaml")).collect();
    let mut imported = Imported { family: Family::AgentForge, sessions: Vec::new(), warnings: Vec::new() };
    if names.is_empty() {
        return Err(Damage::new("session.yaml", "Missing file: without it there is no session"));
    }
    for name in &names {
        match session(name, files.get(name).unwrap_or_default(), now) {
            Ok(session) => imported.sessions.push(session),
            Err(damage) if names.len() == 1 => return Err(damage),
            Err(damage) => imported.warnings.push(format!("not imported: {damage}")),
        }
    }
    Ok(imported)
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    yaml::read(text, MOST_NODES)
}

/// The document in its own order, if it is one.
pub(crate) fn parse_node(bytes: &[u8]) -> Option<Node> {
    parse(std::str::from_utf8(bytes).ok()?).ok()
}

fn session(file: &str, bytes: &[u8], now: Timestamp) -> Result<ImportedSession, Damage> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Damage::new(file, "YAML parse error: it is not UTF-8 text"))?;
    if text.trim().is_empty() {
        return Err(Damage::new(file, "YAML parse error: the file is empty"));
    }
    let value: Value = parse(text).map_err(|why| Damage::new(file, format!("YAML parse error: {why}")))?;
    let Value::Object(members) = value else {
        let why = format!("YAML parse error: {} where a mapping should be", kind(&value));
        return Err(Damage::new(file, why));
    };
    for field in ["session_id", "state", "created_at", "updated_at", "token_budget", "artifacts", "history"] {
        if !members.contains_key(field) {
            return Err(Damage::new(file, format!("Missing required field: {field}")));
        }
    }
    let mut found = Found::default();
    fields(&mut found, file, members, now)?;
    if file.split('/').rev().nth(1).is_some_and(|folder| folder != found.id) {
        found.warnings.push(format!("{file}: the folder is not named after the session {}", found.id));
    }
    Ok(found.session(Family::AgentForge, word, now))
}

fn fields(found: &mut Found, file: &str, members: Map<String, Value>, now: Timestamp) -> Result<(), Damage> {
    let mut fields = Fields::new(file, members, now);
    let wrong = |what: String| Damage::new(file, what);
    found.id = fields.text("session_id").unwrap_or_default();
    if !is_id(&found.id) {
        return Err(wrong(format!(
            "Invalid session_id: {} is not session_YYYYMMDD_HHMMSS_microseconds",
            name(found.id.clone())
        )));
    }
    let said = fields.text("state").unwrap_or_default();
    let status = match said.as_str() {
        "active" => Status::Active,
        "paused" => Status::Paused,
        "completed" => Status::Completed,
        "aborted" => Status::Aborted,
        _ => return Err(wrong(format!("Invalid state: {}", name(said)))),
    };
    found.status = Some((said, status));
    let phase = fields.text("current_phase").map(name);
    found.workflow =
        fields.text("workflow_type").map(|kind| Workflow { name: name(kind), phases: Vec::new() });
    found.phase = phase;
    found.attempt = fields.number("attempt_number");
    if found.attempt == Some(0) {
        return Err(wrong("Invalid attempt_number: 0 is not positive".to_owned()));
    }
    found.created_at = fields.moment("created_at")?;
    found.updated_at = fields.moment("updated_at")?;
    found.completed_at = fields.moment("completed_at")?;
    if let (Some(created), Some(updated)) = (found.created_at, found.updated_at)
        && updated < created
    {
        return Err(wrong("updated_at is before created_at".to_owned()));
    }
    if found.completed_at.is_some() && !status.is_terminal() {
        return Err(wrong(format!("completed_at is set, but the state is {status}")));
    }
    let Some(mut budget) = fields.object("token_budget") else {
        return Err(wrong("Invalid token_budget: it is no mapping".to_owned()));
    };
    found.total_budget = budget.number("total_budget");
    if found.total_budget.is_none_or(|total| total == 0) {
        return Err(wrong("Invalid token_budget.total_budget: it is not positive".to_owned()));
    }
    found.tokens_used = budget.number("tokens_used").unwrap_or(0);
    // It follows from the other two.
    let _ = (budget.value("tokens_remaining"), budget.value("remaining"));
    fields.put_back("token_budget", budget);
    for mut artifact in fields.objects("artifacts") {
        let change = artifact.text("artifact_type").unwrap_or_default();
        if change != "created" && change != "modified" {
            return Err(wrong(format!("Invalid artifact_type: {}", name(change))));
        }
        let row = json!({
            "path": artifact.text("path").unwrap_or_default(),
            "artifact_type": change,
            "timestamp": artifact.moment("timestamp")?.or(found.updated_at),
            "phase": artifact.text("phase"),
        });
        found.row(List::Artifacts, row);
        fields.hear(artifact);
    }
    for mut entry in fields.objects("history") {
        let action = entry.text("action").unwrap_or_default();
        if action.is_empty() {
            return Err(wrong("Invalid history: an entry without an action".to_owned()));
        }
        let row = json!({
            "timestamp": entry.moment("timestamp")?.or(found.updated_at),
            "action": action,
            "phase": entry.text("phase"),
            "details": entry.text("details"),
        });
        found.row(List::History, row);
        fields.hear(entry);
    }
    if !found.rows.contains_key(&List::History) {
        return Err(wrong("the history is empty".to_owned()));
    }
    found.extension = fields.value(crate::EXTENSION);
    let (left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    found.kept.insert("session.yaml".to_owned(), Value::Object(left));
    Ok(())
}

/// The document's ids end in microseconds; those that the origin really writes end in six hexadecimal digits.
fn is_id(id: &str) -> bool {
    let Some(rest) = id.strip_prefix("session_") else { return false };
    let parts: Vec<&str> = rest.split('_').collect();
    let [date, time, last] = parts.as_slice() else { return false };
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    digits(date, 8) && digits(time, 6) && last.len() == 6 && last.bytes().all(|b| b.is_ascii_hexdigit())
}
