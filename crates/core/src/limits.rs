//! How large the bounded parts of a session may grow. State stays small so that loading stays quick.

use crate::refusal::Refusal;

/// Longest name of a phase, metric, agent, output, branch and the like, in characters.
pub const NAME: usize = 200;
/// Longest tag, in characters.
pub const TAG: usize = 64;
/// Most tags of a session.
pub const TAGS: usize = 32;
/// Longest one-line text (topic, path, reason), in characters.
pub const LINE: usize = 4_000;
/// Most phases a workflow may list.
pub const PHASES: usize = 200;
/// Most metrics that are kept of one phase.
pub const PHASE_METRICS: usize = 16;
/// Most metrics, outputs, agents, cache entries or decision branches of a session.
pub const ENTRIES: usize = 256;
/// Most tasks that may be open at once.
pub const OPEN_TASKS: usize = 500;
/// Most open tool calls kept in the state; further ones are counted and stay in the ledger's list.
pub const OPEN_CALLS: usize = 1_000;
/// How many closed calls are remembered, so that a late second report of one does not open it again.
pub const CLOSED_CALLS: usize = 64;
/// Ids of calls that are remembered by how often they came.
pub const SEEN_IDS: usize = 256;
/// Largest workflow-specific state, all agent states together, or the whole cache, as JSON text in bytes.
pub const JSON: usize = 64 * 1024;
/// Deepest nesting of JSON in an event. Readers stop at 128 levels, and an event that is imported or recorded
/// late is wrapped in a few more.
pub const DEPTH: usize = 100;
/// Most ways to go on that are offered at once.
pub const WAYS: usize = 16;
/// How many of the newest restores are remembered.
pub const RESTORES: usize = 16;
/// How many runs before the newest are remembered by the source of their tokens.
pub const EARLIER_RUNS: usize = 16;
/// Most models of which tokens without a price are kept apart.
pub const UNPRICED: usize = 16;
/// Most phases of a loop.
pub const LOOP_PHASES: usize = 32;
/// How much of a plan of a loop may be kept in the state, as JSON text in bytes.
pub const LOOP_PLAN: usize = 64 * 1024;
/// The most that one prompt of a plan adds to that; a longer one is set aside when it is recorded.
pub const LOOP_PROMPT: usize = 8 * 1024;
/// Most evidence commands of a phase.
pub const EVIDENCE: usize = 16;
/// Longest excerpt of an error, a question or a condition of a loop, in characters.
pub const LOOP_TEXT: usize = 500;
/// Most names of tests, denied calls and the like that are listed.
pub const LOOP_NAMES: usize = 10;
/// Most tests that a baseline keeps by name.
pub const BASELINE_TESTS: usize = 5_000;
/// How many changes of the breaker are remembered.
pub const BREAKER_CHANGES: usize = 50;
/// How many iterations are remembered for charts, costs and trees that came before.
pub const LOOP_RECENT: usize = 32;
/// Most notes of the operator that wait for the next prompt.
pub const LOOP_NOTES: usize = 16;
/// Most work items that a loop remembers.
pub const LOOP_ITEMS: usize = 256;
/// Most listed work items that a loop remembers by name.
pub const LISTED_ITEMS: usize = 32;
/// Most conditions of a gate.
pub const CONDITIONS: usize = 32;

/// Most windows of agents' plans that are remembered.
pub const WINDOWS: usize = 32;

/// A name: not empty, on one line, not too long.
pub fn name(field: &'static str, text: &str) -> Result<(), Refusal> {
    bounded(field, text, NAME)
}

/// A line of text that need not be there.
pub fn optional_line(field: &'static str, text: Option<&str>) -> Result<(), Refusal> {
    text.map_or(Ok(()), |text| line(field, text))
}

/// A line of text: not empty, on one line, not too long.
pub fn line(field: &'static str, text: &str) -> Result<(), Refusal> {
    bounded(field, text, LINE)
}

pub(crate) fn bounded(field: &'static str, text: &str, max: usize) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::bad(field, "it is empty"));
    }
    if text.len() > max && text.chars().count() > max {
        return Err(Refusal::bad(field, format!("it is longer than {max} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(Refusal::bad(field, "it holds control characters"));
    }
    Ok(())
}

/// A name that may be left out.
pub(crate) fn optional_name(field: &'static str, text: Option<&str>) -> Result<(), Refusal> {
    text.map_or(Ok(()), |text| name(field, text))
}

/// A line of text that may be empty.
pub(crate) fn line_or_empty(field: &'static str, text: &str) -> Result<(), Refusal> {
    if text.is_empty() { Ok(()) } else { line(field, text) }
}

/// JSON that can be read back: not nested too deeply.
pub(crate) fn depth(field: &'static str, value: &serde_json::Value) -> Result<(), Refusal> {
    if is_shallow(value) {
        Ok(())
    } else {
        Err(Refusal::bad(field, format!("it is nested more than {DEPTH} levels deep")))
    }
}

/// Whether JSON is nested no deeper than can be read back.
pub(crate) fn is_shallow(value: &serde_json::Value) -> bool {
    fn within(value: &serde_json::Value, levels: usize) -> bool {
        match value {
            serde_json::Value::Array(items) => levels > 0 && items.iter().all(|v| within(v, levels - 1)),
            serde_json::Value::Object(fields) => levels > 0 && fields.values().all(|v| within(v, levels - 1)),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_) => true,
        }
    }
    within(value, DEPTH)
}

/// JSON that is kept in the state: not too deep and not too large.
pub fn json(field: &'static str, value: &serde_json::Value) -> Result<(), Refusal> {
    depth(field, value)?;
    let bytes = value.to_string().len();
    if bytes > JSON {
        return Err(Refusal::bad(field, format!("it has {bytes} bytes of JSON, more than {JSON}")));
    }
    Ok(())
}
