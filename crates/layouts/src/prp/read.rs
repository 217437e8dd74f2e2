//! Files of `.prp-session/` into a session.

use std::collections::BTreeMap;

use segno_core::List;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::Workflow;
use segno_core::limits;
use segno_core::state::Reason;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::status;
use super::wire::BREAKER;
use super::wire::FILES;
use super::wire::GATE;
use super::wire::LOOP_STATE;
use super::wire::METRICS;
use super::wire::PHASES;
use super::wire::QA;
use super::wire::RATE_LIMIT;
use super::wire::STATUS_LOG;
use super::wire::members;
use super::word;
use crate::family::Family;
use crate::fields::Fields;
use crate::files::Damage;
use crate::files::FileSet;
use crate::found::Found;
use crate::found::Imported;
use crate::found::line;
use crate::found::metrics;

/// The document's iterations end here.
pub(super) const MOST_ITERATIONS: u64 = 100;
/// How much of a log is kept with a session: its end, by which the rest is found again in the file. Longer values are not part
/// of what a session's state has at hand.
const MOST_LOG: usize = 4 * 1024;

/// Reads the session of such a folder.
///
/// # Errors
/// If a file is damaged, or neither the main state nor the metrics are there.
pub fn read(files: &FileSet, now: Timestamp) -> Result<Imported, Damage> {
    let mut found = Found::default();
    let there = files.object(LOOP_STATE)?;
    let whole = there.is_some();
    let main = match there {
        Some(state) => state,
        // The metrics name the session too.
        None => match files.object(METRICS)? {
            Some(metrics) => from_metrics(&metrics)?,
            None => return Err(Damage::new(LOOP_STATE, "Missing file: without it there is no session")),
        },
    };
    for name in FILES.iter().filter(|name| files.get(name).is_none() && **name != QA) {
        found.missing.push((*name).to_owned());
    }
    loop_state(&mut found, main, whole, now)?;
    breaker(&mut found, files)?;
    phase_metrics(&mut found, files)?;
    for name in [RATE_LIMIT, GATE, QA] {
        if let Some(content) = files.object(name)? {
            keep(&mut found, name, content);
        }
    }
    if let Some(log) = files.get(STATUS_LOG) {
        let text = String::from_utf8_lossy(log);
        let (blocks, warnings) = super::status_log::blocks(&text);
        if found.extension.is_none() {
            let newest = super::status_log::newest(&text, MOST_LOG);
            found.kept.insert(STATUS_LOG.to_owned(), json!(newest));
        }
        found.warnings.extend(warnings);
        for block in blocks {
            let details = format!("{} iteration {}, {} %", block.status, block.iteration, block.progress);
            let row = json!({
                "timestamp": block.at, "action": "phase_status", "phase": block.phase, "details": details,
            });
            found.row(List::History, row);
        }
    }
    if let Some(history) = found.rows.get_mut(&List::History) {
        history.sort_by_key(|row| row.get("timestamp").and_then(Value::as_str).map(ToOwned::to_owned));
    }
    let session = found.session(Family::Prp, word, now);
    Ok(Imported { family: Family::Prp, sessions: vec![session], warnings: Vec::new() })
}

/// What the metrics say of the session itself.
fn from_metrics(metrics: &Map<String, Value>) -> Result<Map<String, Value>, Damage> {
    let mut state = Map::new();
    for field in ["session_id", "prp_file", "started_at", "current_phase"] {
        let Some(value) = metrics.get(field) else {
            return Err(Damage::new(METRICS, format!("Missing required field: {field}")));
        };
        state.insert(field.to_owned(), value.clone());
    }
    state.insert("status".to_owned(), json!("suspended"));
    Ok(state)
}

fn loop_state(
    found: &mut Found,
    state: Map<String, Value>,
    whole: bool,
    now: Timestamp,
) -> Result<(), Damage> {
    let file = if whole { LOOP_STATE } else { METRICS };
    // A session that has ended is not resumable, and is a session all the same.
    match super::detect::validate(&state, None, now) {
        Ok(()) => {}
        Err(why) if why == "Session already completed" || why == "Session halted by Circuit Breaker" => {}
        Err(why) if why == "Invalid status: aborted" => {}
        Err(why) => return Err(Damage::new(file, why)),
    }
    // What a session of ours says of its past is in its record, and need not be kept twice.
    let past = if state.contains_key(crate::EXTENSION) { Map::new() } else { past(&state) };
    let mut fields = Fields::new(file, state, now);
    found.id = fields.text("session_id").unwrap_or_default();
    found.file = fields.text("prp_file").filter(|file| !file.is_empty());
    found.topic = found.file.as_ref().map(|file| stem(file));
    found.created_at = fields.moment("started_at")?;
    found.updated_at = fields.moment("last_activity")?;
    found.completed_at = fields.moment("completed_at")?;
    let phase = fields.text("current_phase");
    let mut phases: Vec<String> = PHASES[..4].iter().map(|phase| (*phase).to_owned()).collect();
    if phase.as_deref() == Some("QA") || fields.has("qa_attempts") {
        phases.push("QA".to_owned());
    }
    found.workflow = Some(Workflow { name: "prp".to_owned(), phases });
    found.phase = phase;
    found.iteration = fields.number("current_iteration").unwrap_or(0);
    if found.iteration > MOST_ITERATIONS {
        let why = format!("Invalid current_iteration: {} is not 0 to {MOST_ITERATIONS}", found.iteration);
        return Err(Damage::new(file, why));
    }
    let said = fields.text("status").unwrap_or_default();
    found.status = status(&said).map(|status| (said, status));
    let halt = fields.text("halt_reason");
    let pause = fields.text("pause_reason");
    let what = found.status.as_ref().map(|(_, status)| *status);
    found.reason = match what {
        Some(Status::Halted) => Some(Reason { what: "breaker open".to_owned(), details: halt.map(line) }),
        Some(Status::Paused) => Some(Reason { what: "asked".to_owned(), details: pause.map(line) }),
        _ => None,
    };
    let done = fields.texts("phases_completed");
    let (known, unknown): (Vec<_>, Vec<_>) =
        done.into_iter().partition(|phase| PHASES.contains(&phase.as_str()));
    found.phases_completed = known;
    for phase in unknown {
        fields.warn(format!("Invalid phase: {phase} in phases_completed; left out"));
    }
    for mut error in fields.objects("error_history") {
        let text = error.text("error").unwrap_or_default();
        let row = json!({
            "timestamp": error.some_moment("timestamp").or(found.updated_at).or(found.created_at),
            "message": text,
            "phase": error.text("phase"),
            "iteration": error.number("iteration").unwrap_or(0),
            "fingerprint": error.text("hash").unwrap_or_default(),
        });
        found.row(List::Errors, row);
        fields.hear(error);
    }
    found.error_count = found.rows.get(&List::Errors).map_or(0, |rows| rows.len() as u64);
    if let Some(at) = found.created_at {
        found.row(List::History, json!({ "timestamp": at, "action": "session_created", "phase": "RED" }));
    }
    if let Some(mut history) = fields.object("phase_history") {
        for phase in PHASES {
            let Some(mut entry) = history.object(phase) else { continue };
            if let Some(at) = entry.some_moment("completed_at") {
                let why = entry.text("exit_reason");
                found.row(
                    List::History,
                    json!({ "timestamp": at, "action": "phase_left", "phase": phase, "details": why }),
                );
            }
            history.hear(entry);
        }
        fields.hear(history);
    }
    for known in PAST.into_iter().chain(["paused_at"]) {
        let _ = fields.value(known);
    }
    found.extension = fields.value(crate::EXTENSION);
    let (mut left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    if whole {
        left.extend(past);
        found.kept.insert(LOOP_STATE.to_owned(), Value::Object(left));
    }
    Ok(())
}

/// Members of the main file that tell of the session's past: they count until it has one of its own.
const PAST: [&str; 4] = ["total_agent_calls", "resumed_at", "qa_attempts", "phase_history"];

fn past(state: &Map<String, Value>) -> Map<String, Value> {
    let told = PAST.into_iter().filter_map(|name| Some((name.to_owned(), state.get(name)?.clone())));
    told.collect()
}

fn breaker(found: &mut Found, files: &FileSet) -> Result<(), Damage> {
    let Some(content) = files.object(BREAKER)? else { return Ok(()) };
    let state = content.get("state").and_then(Value::as_str).unwrap_or("CLOSED");
    if !["CLOSED", "HALF_OPEN", "OPEN"].contains(&state) {
        return Err(Damage::new(BREAKER, format!("Invalid state: {state}")));
    }
    if state == "OPEN" {
        let why = content.get("open_reason").and_then(Value::as_str).map(|why| line(why.to_owned()));
        if let Some((said, status)) = &mut found.status
            && status.is_open()
        {
            (*said, *status) = ("halted".to_owned(), Status::Halted);
        }
        if found.status.as_ref().is_some_and(|(_, status)| *status == Status::Halted) {
            let details = why.or_else(|| found.reason.take().and_then(|reason| reason.details));
            found.reason = Some(Reason { what: "breaker open".to_owned(), details });
        }
    }
    keep(found, BREAKER, content);
    Ok(())
}

/// Keeps a file for when the session is written back. Of one that we wrote, only what somebody else put into it is kept.
fn keep(found: &mut Found, file: &str, mut content: Map<String, Value>) {
    content.remove(crate::EXTENSION);
    if found.extension.is_some() {
        content.retain(|name, _| !members(file).contains(&name.as_str()));
    }
    found.kept.insert(file.to_owned(), Value::Object(content));
}

fn phase_metrics(found: &mut Found, files: &FileSet) -> Result<(), Damage> {
    let Some(mut content) = files.object(METRICS)? else { return Ok(()) };
    if let Some(other) = content.get("session_id").and_then(Value::as_str).filter(|id| *id != found.id) {
        let other = crate::found::name(other.to_owned());
        found
            .warnings
            .push(format!("{METRICS}: Session mismatch: it is about {other}, not {}; left out", found.id));
        return Ok(());
    }
    let Some(Value::Object(phases)) = content.remove("phases") else { return Ok(()) };
    let told = phases.clone();
    for (phase, stand) in phases.into_iter().take(limits::PHASES) {
        let Value::Object(mut stand) = stand else { continue };
        let mut all = BTreeMap::new();
        for member in ["current_metrics", "final_metrics"] {
            if let Some(Value::Object(mut numbers)) = stand.remove(member) {
                all.extend(metrics(&mut numbers));
            }
        }
        if found.phase.as_ref() == Some(&phase) {
            found.metrics.clone_from(&all);
        }
        if !all.is_empty() {
            found.phase_metrics.insert(phase, all);
        }
    }
    for known in ["session_id", "prp_file", "started_at", "current_phase", crate::EXTENSION] {
        content.remove(known);
    }
    if found.extension.is_none() {
        content.insert("phases".to_owned(), Value::Object(told));
    }
    found.kept.insert(METRICS.to_owned(), Value::Object(content));
    Ok(())
}

/// The name of a file without its folder and ending: what the work is about.
fn stem(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".md").unwrap_or(name).to_owned()
}
