//! Whether a state that came from a file can be that of a session: nothing in it may be larger than a session lets
//! anything grow, or it would cost every later command.

use segno_core::Refusal;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::limits;

/// Clocks of machines differ a little; a moment further ahead than this is wrong.
pub(crate) const AHEAD_SECONDS: i64 = 300;

/// Says what is wrong, if something is.
pub(super) fn check(state: &State, now: Timestamp) -> Result<(), String> {
    moments(state, now)?;
    names(state)?;
    texts(state)?;
    sizes(state).map_err(|refusal| refusal.to_string())
}

fn moments(state: &State, now: Timestamp) -> Result<(), String> {
    let latest = now.plus_seconds(AHEAD_SECONDS);
    let moments = [
        ("created_at", Some(state.created_at)),
        ("updated_at", Some(state.updated_at)),
        ("completed_at", state.completed_at),
        ("phase_since", Some(state.phase_since)),
    ];
    for (name, at) in moments {
        if at.is_some_and(|at| at > latest) {
            return Err(format!("{name} lies in the future"));
        }
    }
    Ok(())
}

/// Names and lines: as when they are given by hand, but with room for what redaction put into them.
fn names(state: &State) -> Result<(), String> {
    let workflow = state.workflow.iter();
    let phases = workflow.clone().flat_map(|workflow| &workflow.phases).chain(&state.phases_completed);
    let short = [
        ("workflow", workflow.map(|workflow| &workflow.name).collect::<Vec<_>>()),
        ("phase", phases.chain(&state.phase).collect()),
        ("project type", state.project.kind.iter().collect()),
        ("check", state.verification.keys().collect()),
        ("metric", state.metrics.keys().collect()),
        ("output", state.outputs.keys().collect()),
        ("agent", state.agents.keys().chain(&state.agent).collect()),
        ("cache key", state.cache.keys().collect()),
        ("milestone", state.milestone.iter().collect()),
        ("breakpoint", state.breakpoint.iter().map(|waiting| &waiting.name).collect()),
        ("branch", state.decisions.heads.keys().chain([&state.decisions.branch]).collect()),
        ("call id", state.calls.open.keys().chain(state.calls.in_doubt.keys()).collect()),
    ];
    for (field, texts) in short {
        texts.into_iter().try_for_each(|text| fits(field, text, limits::NAME, true))?;
    }
    let long = [
        ("topic", state.topic.iter().collect::<Vec<_>>()),
        ("project", vec![&state.project.path, &state.project.name]),
        ("file", state.position.iter().map(|position| &position.file).collect()),
    ];
    for (field, texts) in long {
        texts.into_iter().try_for_each(|text| fits(field, text, limits::LINE, true))?;
    }
    Ok(())
}

/// Texts that were shortened when they were taken up.
fn texts(state: &State) -> Result<(), String> {
    let calls = state.calls.open.values().chain(state.calls.in_doubt.values());
    let reason = state.reason.iter().flat_map(|reason| reason.details.iter().chain([&reason.what]));
    let texts = [
        ("intent", state.intent.iter().collect::<Vec<_>>()),
        ("reason", reason.collect()),
        ("task", state.tasks.open.values().collect()),
        ("call", calls.flat_map(|call| [&call.tool, &call.input]).collect()),
        ("last action", state.last_action.iter().collect()),
        ("error", state.errors.last.iter().collect()),
    ];
    for (field, texts) in texts {
        texts.into_iter().try_for_each(|text| fits(field, text, limits::LINE, false))?;
    }
    Ok(())
}

fn fits(field: &str, text: &str, most: usize, one_line: bool) -> Result<(), String> {
    if text.len() > most * 2 && text.chars().count() > most * 2 {
        return Err(format!("bad {field}: it is longer than {most} characters"));
    }
    if one_line && text.chars().any(char::is_control) {
        return Err(format!("bad {field}: it holds control characters"));
    }
    Ok(())
}

fn sizes(state: &State) -> Result<(), Refusal> {
    let phases = state.workflow.as_ref().map_or(0, |workflow| workflow.phases.len());
    let counts = [
        ("phases", phases.max(state.phases_completed.len()), limits::PHASES),
        ("checks", state.verification.len(), limits::ENTRIES),
        ("metrics", state.metrics.len(), limits::ENTRIES),
        ("outputs", state.outputs.len(), limits::ENTRIES),
        ("agents", state.agents.len(), limits::ENTRIES),
        ("cache entries", state.cache.len(), limits::ENTRIES),
        ("branches", state.decisions.heads.len(), limits::ENTRIES),
        ("open tasks", state.tasks.open.len(), limits::OPEN_TASKS),
        ("calls without an end", state.calls.open.len() + state.calls.in_doubt.len(), limits::OPEN_CALLS),
        ("closed calls", state.calls.closed.len(), limits::CLOSED_CALLS),
        ("runs", state.earlier_token_sources.len(), limits::EARLIER_RUNS),
    ];
    for (what, count, limit) in counts {
        if count > limit {
            return Err(Refusal::TooMany { what, limit });
        }
    }
    if let Some(value) = &state.workflow_state {
        limits::json("workflow state", value)?;
    }
    let agents: usize = state.agents.values().map(|mark| mark.state.to_string().len()).sum();
    let cache: usize = state.cache.iter().map(|(key, value)| key.len() + value.to_string().len()).sum();
    for (what, bytes) in [("bytes of agent states", agents), ("bytes in the cache", cache)] {
        if bytes > limits::JSON {
            return Err(Refusal::TooMany { what, limit: limits::JSON });
        }
    }
    Ok(())
}
