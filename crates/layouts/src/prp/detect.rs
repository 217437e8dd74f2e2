//! What the document does about a session that it finds: its two functions, word for word in what they answer.

use segno_core::Timestamp;
use segno_core::detect::Action;
use segno_core::detect::Expired;
use serde_json::Map;
use serde_json::Value;

use super::read::MOST_ITERATIONS;
use super::wire::BREAKER;
use super::wire::LOOP_STATE;
use super::wire::PHASES;
use crate::files::FileSet;

/// What was found in a folder of this family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// What to do.
    pub action: Action,
    /// Why, unless it can simply be taken up.
    pub reason: Option<String>,
    /// Which of the four conditions holds.
    pub expired: Option<Expired>,
    /// The document's own word for what to do about an expired one: `reset_or_abort`, `no_resume`, `create_new`, `reset`.
    pub document_action: Option<&'static str>,
    /// Whether an import takes it over as it is.
    pub importable: bool,
    /// The session's name there.
    pub session_id: Option<String>,
    /// The work it is about.
    pub prp_file: Option<String>,
    /// The phase.
    pub phase: Option<String>,
    /// The turn of the loop.
    pub iteration: Option<u64>,
    /// Where it stands, in the document's word.
    pub status: Option<String>,
}

/// What to do about the session in a folder; none if there is none. `wanted` is the work that is asked for.
pub fn detect(files: &FileSet, wanted: Option<&str>, now: Timestamp) -> Option<Detected> {
    let importable = super::read(files, now).is_ok();
    Some(Detected { importable, ..decide(files, wanted, now)? })
}

fn decide(files: &FileSet, wanted: Option<&str>, now: Timestamp) -> Option<Detected> {
    let bytes = files.get(LOOP_STATE)?;
    let corrupted = |why: String, state: &Map<String, Value>| {
        found(
            state,
            Action::OfferReset,
            Some((Expired::Corrupted, format!("State corrupted: {why}"), "reset")),
        )
    };
    let state = match crate::files::object(LOOP_STATE, bytes) {
        Ok(state) => state,
        Err(damage) => return Some(corrupted(damage.why, &Map::new())),
    };
    // Check Circuit Breaker.
    match files.object(BREAKER) {
        Ok(Some(breaker)) if breaker.get("state").and_then(Value::as_str) == Some("OPEN") => {
            let why = breaker.get("open_reason").and_then(Value::as_str).unwrap_or("None");
            let reason = format!("Circuit Breaker OPEN: {why}");
            return Some(found(
                &state,
                Action::OfferReset,
                Some((Expired::BreakerOpen, reason, "reset_or_abort")),
            ));
        }
        Ok(_) => {}
        Err(damage) => return Some(corrupted(damage.to_string(), &state)),
    }
    // Check completion.
    let said = |name: &str| state.get(name).and_then(Value::as_str);
    if said("status") == Some("completed") {
        let reason = "Session completed successfully".to_owned();
        return Some(found(&state, Action::CreateNew, Some((Expired::Ended, reason, "no_resume"))));
    }
    // Check PRP match.
    if let Some(wanted) = wanted
        && said("prp_file") != Some(wanted)
    {
        let reason =
            format!("PRP mismatch: session={}, requested={wanted}", said("prp_file").unwrap_or("None"));
        return Some(found(&state, Action::CreateNew, Some((Expired::OtherWork, reason, "create_new"))));
    }
    // Run validation.
    Some(match validate(&state, wanted, now) {
        Ok(()) => found(&state, Action::OfferResume, None),
        Err(why) => corrupted(why, &state),
    })
}

/// Whether a session can be resumed. What the document lists as corruption without a check is checked too: the types of
/// the required fields, and moments in the future.
pub(super) fn validate(
    state: &Map<String, Value>,
    wanted: Option<&str>,
    now: Timestamp,
) -> Result<(), String> {
    const REQUIRED: [&str; 5] = ["session_id", "prp_file", "started_at", "current_phase", "status"];
    for field in REQUIRED {
        if !state.contains_key(field) {
            return Err(format!("Missing required field: {field}"));
        }
    }
    let said = |name: &str| match state.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "None".to_owned(),
        Some(other) => other.to_string(),
    };
    if let Some(wanted) = wanted
        && said("prp_file") != wanted
    {
        return Err(format!("PRP mismatch: session={}, requested={wanted}", said("prp_file")));
    }
    let phase = said("current_phase");
    if !PHASES.contains(&phase.as_str()) {
        return Err(format!("Invalid phase: {phase}"));
    }
    let status = said("status");
    match status.as_str() {
        "created" | "running" | "paused" | "suspended" => {}
        "completed" => return Err("Session already completed".to_owned()),
        "halted" => return Err("Session halted by Circuit Breaker".to_owned()),
        _ => return Err(format!("Invalid status: {status}")),
    }
    if let Some(iteration) = state.get("current_iteration").and_then(Value::as_f64)
        && !(0.0..=MOST_ITERATIONS as f64).contains(&iteration)
    {
        let said = said("current_iteration");
        return Err(format!("Invalid current_iteration: {said} is not 0 to {MOST_ITERATIONS}"));
    }
    for name in ["started_at", "last_activity"] {
        let mut fields = crate::fields::Fields::new(LOOP_STATE, state.clone(), now);
        fields.moment(name).map_err(|damage| damage.why)?;
    }
    Ok(())
}

fn found(
    state: &Map<String, Value>,
    action: Action,
    expired: Option<(Expired, String, &'static str)>,
) -> Detected {
    let text = |name: &str| state.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let (expired, reason, document_action) = match expired {
        Some((expired, reason, action)) => (Some(expired), Some(reason), Some(action)),
        None => (None, None, None),
    };
    Detected {
        action,
        reason,
        expired,
        document_action,
        importable: false,
        session_id: text("session_id"),
        prp_file: text("prp_file"),
        phase: text("current_phase"),
        iteration: state.get("current_iteration").and_then(Value::as_u64),
        status: text("status"),
    }
}
