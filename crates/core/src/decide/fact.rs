//! What follows from a fact. Nothing here refuses because of the state.

use super::budget::crossed;
use super::check::not_empty;
use crate::event as ev;
use crate::event::FactEvent;
use crate::fact::Fact;
use crate::fingerprint::fingerprint;
use crate::limits;
use crate::refusal::Refusal;
use crate::state::State;

/// The events of a fact, or which of its values can never be recorded. Where no state is at hand, because no store is,
/// what depends on it is left out: it happened all the same.
pub fn events_of_fact(state: Option<&State>, fact: Fact) -> Result<Vec<FactEvent>, Refusal> {
    match fact {
        Fact::DriverDetached { epoch } => one(ev::DriverDetached { epoch }),
        Fact::TopicSet { topic } => {
            limits::line("topic", &topic)?;
            one(ev::TopicSet { topic })
        }
        Fact::TokensRecorded { tokens, estimated, source } => {
            let recorded = ev::TokensRecorded { tokens, estimated, source, below: None };
            let warnings = state.map(|state| crossed(state, Some(tokens), 0)).unwrap_or_default();
            Ok([vec![recorded.into()], warnings].concat())
        }
        Fact::CostRecorded { micros, source } => {
            let recorded = ev::CostRecorded { micros, source, below: None, list: None };
            // What an agent says counts instead of what was reckoned of its run.
            let reckoned = |state: &State| match source {
                ev::Source::Hand => 0,
                ev::Source::Stream | ev::Source::Hook => state.run.as_ref().map_or(0, |run| run.list_micros),
            };
            let news = |state: &State| crossed(state, None, micros.saturating_sub(reckoned(state)));
            let warnings = state.map(news).unwrap_or_default();
            Ok([vec![recorded.into()], warnings].concat())
        }
        Fact::FileChanged { path, change, call } => {
            limits::line("path", &path)?;
            limits::optional_name("call id", call.as_deref())?;
            one(ev::FileChanged { path, change, call })
        }
        Fact::HistoryNoted { action, phase, details } => {
            limits::line("action", &action)?;
            limits::optional_name("phase", phase.as_deref())?;
            one(ev::HistoryNoted { action, phase, details })
        }
        Fact::ToolStarted { call, tool, input, write_ahead, source } => {
            limits::name("call id", &call)?;
            limits::name("tool", &tool)?;
            // A call must be recorded whatever it was given; what could not be read back is kept as text.
            let input =
                if limits::is_shallow(&input) { input } else { serde_json::Value::String(input.to_string()) };
            one(ev::ToolStarted { call, tool, input, write_ahead, source, recurs: true })
        }
        Fact::ToolEnded { call, tool, end, output, source } => {
            limits::name("call id", &call)?;
            limits::optional_name("tool", tool.as_deref())?;
            one(ev::ToolEnded { call, tool, end, output, source, evidence: None, recurs: true })
        }
        Fact::MemoryUsed { usage, source, query, result } => {
            not_empty("query", &query)?;
            limits::optional_name("memory", source.as_deref())?;
            one(ev::MemoryUsed { usage, source, query, result })
        }
        Fact::ErrorRecorded { message, error_kind } => {
            not_empty("message", &message)?;
            limits::optional_name("error kind", error_kind.as_deref())?;
            let fingerprint = fingerprint(message.excerpt());
            let phase = state.and_then(|state| state.phase.clone());
            let iteration = state.map_or(0, |state| state.iteration);
            let history = true;
            one(ev::ErrorRecorded { message, error_kind, phase, iteration, fingerprint, history })
        }
        Fact::Said { channel, text, message, parent } => {
            limits::optional_name("message id", message.as_deref())?;
            limits::optional_name("call id", parent.as_deref())?;
            one(ev::Said { channel, text, message, parent })
        }
        Fact::TurnCompleted(completed) => one(completed),
        Fact::RunNamed(named) => {
            limits::name("run", &named.run)?;
            limits::name("conversation", &named.native_id)?;
            limits::optional_name("model", named.model.as_deref())?;
            limits::optional_name("version", named.version.as_deref())?;
            one(named)
        }
        Fact::Reported { what, body } => {
            limits::name("report", &what)?;
            // As with calls: it must be recorded whatever it holds.
            let body = if limits::is_shallow(&body) {
                body
            } else {
                serde_json::json!({ "text": body.to_string() })
            };
            one(ev::Reported { what, body })
        }
        Fact::RecoveryChosen(chosen) => recovery_chosen(*chosen),
        Fact::ResumeAttempted(attempted) => {
            if attempted.attempt == 0 || attempted.attempt > attempted.of {
                return Err(Refusal::bad(
                    "attempt",
                    format!("attempt {} of {}", attempted.attempt, attempted.of),
                ));
            }
            one(attempted)
        }
    }
}

fn recovery_chosen(chosen: ev::RecoveryChosen) -> Result<Vec<FactEvent>, Refusal> {
    limits::optional_name("target", chosen.target.as_deref())?;
    for option in &chosen.offered {
        limits::optional_name("target", option.target.as_deref())?;
        limits::line("option", &option.text)?;
        limits::line("loss", &option.loses)?;
    }
    if chosen.offered.len() > limits::WAYS {
        return Err(Refusal::TooMany { what: "ways to go on", limit: limits::WAYS });
    }
    one(chosen)
}

fn one(event: impl Into<FactEvent>) -> Result<Vec<FactEvent>, Refusal> {
    Ok(vec![event.into()])
}
