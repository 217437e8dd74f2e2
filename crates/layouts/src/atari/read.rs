//! A `state.json` of atari into a session.

use segno_core::List;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::state::Reason;
use serde_json::Value;
use serde_json::json;

use crate::family::Family;
use crate::fields::Fields;
use crate::files::Damage;
use crate::files::FileSet;
use crate::found::Found;
use crate::found::Imported;
use crate::found::line;
use crate::found::name;

const FILE: &str = "state.json";
/// The newest form of the file that is known.
const VERSION: u64 = 2;

/// atari is never written, so its words are never asked for.
fn word(_: Status) -> &'static str {
    ""
}

/// Reads the one file.
///
/// # Errors
/// If it is damaged, or of a form that is not known.
pub fn read(files: &FileSet, now: Timestamp) -> Result<Imported, Damage> {
    let Some(members) = files.object(FILE)? else {
        return Err(Damage::new(FILE, "Missing file: without it there is no session"));
    };
    if !members.contains_key("version") || !members.contains_key("status") {
        return Err(Damage::new(FILE, "Missing required field: version and status of an atari state"));
    }
    let mut fields = Fields::new(FILE, members, now);
    match fields.number("version") {
        Some(1..=VERSION) => {}
        Some(0) | None => return Err(Damage::new(FILE, "Invalid version: it is not 1 or 2")),
        Some(newer) => {
            return Err(Damage::new(FILE, format!("Invalid version: {newer} is newer than {VERSION}")));
        }
    }
    let mut found = Found { id: "atari".to_owned(), ..Found::default() };
    let said = fields.text("status").unwrap_or_default();
    let stall = fields.text("stall_reason");
    let (status, what) = match said.as_str() {
        // Whoever worked is not there any more.
        "working" | "stopping" => (Status::Interrupted, None),
        "idle" => (Status::Active, None),
        "paused" => (Status::Paused, Some("asked")),
        "stalled" => (Status::Paused, Some("error")),
        "stopped" => (Status::Paused, Some("ended")),
        _ => return Err(Damage::new(FILE, format!("Invalid status: {}", name(said)))),
    };
    found.status = Some((said, status));
    found.reason = what.map(|what| Reason { what: what.to_owned(), details: stall.map(line) });
    found.iteration = fields.number("iteration").unwrap_or(0);
    found.updated_at = fields.moment("updated_at")?;
    if let Some(cost) = fields.value("total_cost") {
        match cost.as_f64() {
            Some(dollars) if (0.0..1e9).contains(&dollars) => {
                found.cost_micros = (dollars * 1e6).round() as u64
            }
            _ => return Err(fields.damage("total_cost", &cost, "an amount of money")),
        }
    }
    let current = fields.text("current_bead").filter(|bead| !bead.is_empty());
    let title = fields.text("active_top_level_title").filter(|title| !title.is_empty());
    found.topic = title.or_else(|| current.clone()).or_else(|| Some("atari".to_owned()));
    let _ = fields.value("total_turns");
    beads(&mut found, &mut fields, current.as_deref());
    let (left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    found.kept.insert(FILE.to_owned(), Value::Object(left));
    let session = found.session(Family::Atari, word, now);
    Ok(Imported { family: Family::Atari, sessions: vec![session], warnings: Vec::new() })
}

/// Each bead is a task; the conversation of the present one can be gone on with.
fn beads(found: &mut Found, fields: &mut Fields<'_>, current: Option<&str>) {
    let Some(Value::Object(history)) = fields.value("history") else { return };
    let mut last: Option<(Timestamp, String)> = None;
    for (index, (id, bead)) in history.into_iter().enumerate() {
        let Value::Object(bead) = bead else {
            fields.warn(format!("history.{id} is no object; left out"));
            continue;
        };
        let now = found.updated_at.unwrap_or(Timestamp::from_micros(i64::MAX));
        let mut bead = Fields::new(FILE, bead, now);
        let status = bead.text("status").unwrap_or_default();
        let state = match status.as_str() {
            "completed" => "done",
            "abandoned" | "skipped" => "dropped",
            _ => "open",
        };
        let at = bead.some_moment("last_attempt");
        let attempts = bead.number("attempts").unwrap_or(0);
        if let Some(error) = bead.text("last_error").filter(|error| !error.is_empty()) {
            found.row(List::Errors, json!({ "timestamp": at, "message": error, "phase": null }));
            found.error_count += 1;
        }
        if let Some(conversation) = bead.text("last_session_id").filter(|id| !id.is_empty()) {
            let when = at.unwrap_or(Timestamp::EPOCH);
            let wins = current == Some(id.as_str()) || last.as_ref().is_none_or(|(known, _)| when >= *known);
            if wins && current.is_none_or(|current| current == id) {
                last = Some((when, conversation));
            }
        }
        let text = format!("{} ({status}, {attempts} attempts)", line(id));
        found.row(List::Tasks, json!({ "task": index + 1, "text": text, "state": state, "added_at": at }));
        found.created_at = match (found.created_at, at) {
            (Some(known), Some(at)) => Some(known.min(at)),
            (known, at) => known.or(at),
        };
        fields.hear(bead);
    }
    found.conversation = last.map(|(_, id)| ("claude".to_owned(), id));
}
