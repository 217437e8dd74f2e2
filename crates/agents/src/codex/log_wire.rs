//! The lines of a rollout, exactly as Codex writes them. Every field may be missing; what is not listed is skipped.

use std::collections::HashMap;

use serde::Deserialize;

use super::limits::RateLimits;
use super::wire::Usage;
use crate::raw::Raw;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) timestamp: Option<String>,
    pub(super) ordinal: Option<u64>,
    pub(super) r#type: Option<String>,
    pub(super) payload: Option<Payload>,
}

/// All payloads in one shape: each has its own few of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Payload {
    pub(super) r#type: Option<String>,
    pub(super) id: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) forked_from_id: Option<String>,
    pub(super) thread_id: Option<String>,
    pub(super) turn_id: Option<String>,
    pub(super) timestamp: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) cli_version: Option<String>,
    pub(super) thread_source: Option<String>,
    pub(super) source: Option<Raw>,
    pub(super) model: Option<String>,
    pub(super) role: Option<String>,
    pub(super) content: Option<Raw>,
    pub(super) summary: Option<Raw>,
    pub(super) message: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) status: Option<String>,
    pub(super) arguments: Option<Raw>,
    pub(super) input: Option<Raw>,
    pub(super) action: Option<Raw>,
    pub(super) output: Option<Raw>,
    pub(super) item: Option<Item>,
    pub(super) info: Option<TokenInfo>,
    /// How much fits into the context, told when a turn begins.
    pub(super) model_context_window: Option<u64>,
    pub(super) usage: Option<Usage>,
    pub(super) thread_token_usage: Option<Usage>,
    pub(super) last_agent_message: Option<String>,
    pub(super) duration_ms: Option<u64>,
    pub(super) rate_limits: Option<RateLimits>,
    /// What ended the turn.
    pub(super) error: Option<TurnError>,
    pub(super) codex_error_info: Option<Raw>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnError {
    pub(super) message: Option<String>,
    pub(super) codex_error_info: Option<Raw>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenInfo {
    pub(super) total_token_usage: Option<Usage>,
    pub(super) last_token_usage: Option<Usage>,
    pub(super) model_context_window: Option<u64>,
}

/// What became of something that Codex shows to people.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    pub(super) r#type: Option<String>,
    pub(super) id: Option<String>,
    pub(super) status: Option<String>,
    pub(super) content: Option<Raw>,
    pub(super) aggregated_output: Option<String>,
    pub(super) exit_code: Option<i64>,
    pub(super) changes: Option<HashMap<String, Change>>,
    pub(super) stdout: Option<String>,
    pub(super) stderr: Option<String>,
    pub(super) result: Option<Raw>,
    pub(super) error: Option<Raw>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Change {
    pub(super) r#type: Option<String>,
    pub(super) move_path: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    pub(super) text: Option<String>,
}

/// The result of a call that is an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Success {
    pub(super) success: Option<bool>,
}
