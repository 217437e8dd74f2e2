//! Files of `.ralph/` into a session.

use segno_core::List;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::state::Reason;
use segno_core::text::shorten;
use serde_json::Value;
use serde_json::json;

use crate::family::Family;
use crate::fields::Fields;
use crate::fields::moment;
use crate::files::Damage;
use crate::files::FileSet;
use crate::found::Found;
use crate::found::Imported;
use crate::found::line;

const SESSION: &str = ".ralph_session";
const CONVERSATION: &str = ".claude_session_id";
const BREAKER: &str = ".circuit_breaker_state";
const BREAKER_HISTORY: &str = ".circuit_breaker_history";
const STATUS: &str = "status.json";
const PROMPT: &str = "PROMPT.md";
const PLAN: &str = "fix_plan.md";
const EXITS: &str = ".exit_signals";

/// Files whose absence is said.
const EXPECTED: [&str; 6] = [SESSION, CONVERSATION, BREAKER, STATUS, PROMPT, PLAN];

/// Ralph is never written, so its words are never asked for.
fn word(_: Status) -> &'static str {
    ""
}

/// Reads the session of such a folder.
///
/// # Errors
/// If none of its files says anything of a session, or one of them is damaged.
pub fn read(files: &FileSet, now: Timestamp) -> Result<Imported, Damage> {
    let mut found = Found::default();
    for name in EXPECTED.iter().filter(|name| files.get(name).is_none()) {
        found.missing.push((*name).to_owned());
    }
    if found.missing.len() == EXPECTED.len() {
        return Err(Damage::new(SESSION, "Missing file: nothing here says what the session was"));
    }
    found.status = Some(("interrupted".to_owned(), Status::Interrupted));
    if let Some(members) = files.object(SESSION)? {
        let mut fields = Fields::new(SESSION, members, now);
        found.id = fields.text("session_id").unwrap_or_default();
        // After a reset its fields are empty texts.
        found.created_at = optional(&mut fields, "created_at")?;
        found.updated_at = optional(&mut fields, "last_used")?;
        let (_, warnings) = fields.rest();
        found.warnings.extend(warnings);
    }
    conversation(&mut found, files, now)?;
    status(&mut found, files, now)?;
    breaker(&mut found, files, now)?;
    if let Some(prompt) = text(files, PROMPT) {
        let heading =
            prompt.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(|l| !l.is_empty());
        found.topic = heading.map(|heading| shorten(heading, 80));
        found.intent = Some(prompt);
    }
    if let Some(plan) = text(files, PLAN) {
        tasks(&mut found, &plan);
    }
    if files.get(PROMPT).is_some() {
        found.file = Some(".ralph/PROMPT.md".to_owned());
    }
    if let Some(signals) = files.object(EXITS)? {
        found.kept.insert(EXITS.to_owned(), Value::Object(signals));
    }
    if found.id.is_empty() {
        found.id = found.conversation.as_ref().map_or_else(|| "ralph".to_owned(), |(_, id)| id.clone());
    }
    let session = found.session(Family::Ralph, word, now);
    Ok(Imported { family: Family::Ralph, sessions: vec![session], warnings: Vec::new() })
}

fn text(files: &FileSet, name: &str) -> Option<String> {
    files.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

fn optional(fields: &mut Fields<'_>, name: &str) -> Result<Option<Timestamp>, Damage> {
    if fields.has(name) {
        let value = fields.value(name);
        if value.as_ref().and_then(Value::as_str).is_some_and(str::is_empty) {
            return Ok(None);
        }
        let Some(value) = value else { return Ok(None) };
        let said = value.as_str().and_then(moment);
        return said.map(Some).ok_or_else(|| fields.damage(name, &value, "a date and time"));
    }
    Ok(None)
}

/// The agent's conversation: an object, or, as older versions wrote it, the id alone.
fn conversation(found: &mut Found, files: &FileSet, now: Timestamp) -> Result<(), Damage> {
    let Some(bytes) = files.get(CONVERSATION) else { return Ok(()) };
    let plain = String::from_utf8_lossy(bytes).trim().to_owned();
    let is_id = |id: &str| {
        !id.is_empty()
            && id.len() <= 200
            && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let id = if plain.starts_with('{') {
        let mut fields = Fields::new(CONVERSATION, crate::files::object(CONVERSATION, bytes)?, now);
        let at = optional(&mut fields, "timestamp")?;
        found.updated_at = found.updated_at.max(at);
        fields.text("session_id").unwrap_or_default()
    } else {
        plain
    };
    if is_id(&id) {
        found.conversation = Some(("claude".to_owned(), id));
    } else if !id.is_empty() {
        found.warnings.push(format!("{CONVERSATION}: it is no id of a conversation; left out"));
    }
    Ok(())
}

fn status(found: &mut Found, files: &FileSet, now: Timestamp) -> Result<(), Damage> {
    let Some(members) = files.object(STATUS)? else { return Ok(()) };
    let mut fields = Fields::new(STATUS, members, now);
    found.iteration = fields.number("loop_count").unwrap_or(0);
    let at = optional(&mut fields, "timestamp")?;
    found.updated_at = found.updated_at.max(at);
    found.last_action = fields.text("last_action");
    let exit = fields.text("exit_reason").filter(|exit| !exit.is_empty());
    let said = fields.text("status").unwrap_or_default();
    let done = ["project_complete", "plan_complete", "completion_signals"];
    let ended = exit.as_deref().is_some_and(|exit| done.contains(&exit)) || said == "completed";
    if ended {
        found.status = Some((said, Status::Completed));
    } else if let Some(exit) = exit {
        found.status = Some((said, Status::Paused));
        found.reason = Some(Reason { what: "ended".to_owned(), details: Some(line(exit)) });
    }
    let (left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    found.kept.insert(STATUS.to_owned(), Value::Object(left));
    Ok(())
}

fn breaker(found: &mut Found, files: &FileSet, now: Timestamp) -> Result<(), Damage> {
    if let Some(bytes) = files.get(BREAKER_HISTORY)
        && let Ok(Value::Array(changes)) = serde_json::from_slice(bytes)
    {
        for change in changes.iter().rev().take(50).rev() {
            let said = |name: &str| change.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
            let Some(at) = moment(&said("timestamp")) else { continue };
            let details = format!("{} to {}: {}", said("from_state"), said("to_state"), said("reason"));
            found.row(
                List::History,
                json!({ "timestamp": at, "action": "breaker_changed", "details": details }),
            );
        }
    }
    let Some(members) = files.object(BREAKER)? else { return Ok(()) };
    let mut fields = Fields::new(BREAKER, members, now);
    let state = fields.text("state").unwrap_or_default();
    if !["CLOSED", "HALF_OPEN", "OPEN"].contains(&state.as_str()) {
        return Err(Damage::new(BREAKER, format!("Invalid state: {}", line(state))));
    }
    let why = fields.text("reason");
    if state == "OPEN" && found.status.as_ref().is_none_or(|(_, status)| status.is_open()) {
        found.status = Some(("halted".to_owned(), Status::Halted));
        found.reason = Some(Reason { what: "breaker open".to_owned(), details: why.map(line) });
    }
    let at = optional(&mut fields, "last_change")?;
    found.created_at = found.created_at.or(at);
    let (mut left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    left.insert("state".to_owned(), json!(state));
    found.kept.insert(BREAKER.to_owned(), Value::Object(left));
    Ok(())
}

/// The checkboxes of the plan. Dates in brackets are none.
fn tasks(found: &mut Found, plan: &str) {
    let mut number = 0;
    for text in plan.lines() {
        let text = text.trim_start().trim_start_matches(['-', '*']).trim_start();
        let (state, rest) = match text.get(..3) {
            Some("[ ]") => ("open", &text[3..]),
            Some("[x]" | "[X]") => ("done", &text[3..]),
            _ => continue,
        };
        number += 1;
        found.row(
            List::Tasks,
            json!({ "task": number, "text": line(rest.trim().to_owned()), "state": state }),
        );
    }
}
