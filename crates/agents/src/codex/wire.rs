//! The lines of `codex exec --json`, exactly as written. Every field may be missing; what is not listed is skipped.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::classify::ProviderAnswer;
use crate::event::PlanItem;
use crate::raw::Raw;
use crate::tokens::TokenCounts;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) r#type: Option<String>,
    pub(super) thread_id: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<Message>,
    pub(super) message: Option<String>,
    pub(super) item: Option<Item>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) message: Option<String>,
}

/// A provider's refusal, passed on as text.
pub(super) type Answer = ProviderAnswer<AnswerError>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnswerError {
    pub(super) message: Option<String>,
    pub(super) code: Option<String>,
    pub(super) r#type: Option<String>,
    /// Epoch seconds.
    pub(super) resets_at: Option<i64>,
}

/// Token counts over the whole thread, all resumes and forks included.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
    reasoning_output_tokens: u64,
}

impl Usage {
    /// Here the input counts what met a cache, too.
    pub(super) fn counts(&self) -> TokenCounts {
        TokenCounts {
            input: self
                .input_tokens
                .saturating_sub(self.cached_input_tokens)
                .saturating_sub(self.cache_write_input_tokens),
            cache_read: self.cached_input_tokens,
            cache_write: self.cache_write_input_tokens,
            output: self.output_tokens,
            reasoning: self.reasoning_output_tokens,
        }
    }
}

/// All kinds of items in one shape: each has its own few of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) r#type: Option<String>,
    pub(super) text: Option<String>,
    pub(super) message: Option<String>,
    pub(super) status: Option<String>,
    pub(super) command: Option<String>,
    pub(super) aggregated_output: Option<String>,
    pub(super) exit_code: Option<i64>,
    pub(super) changes: Option<Vec<Change>>,
    pub(super) server: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) arguments: Option<Raw>,
    pub(super) result: Option<Raw>,
    pub(super) error: Option<Raw>,
    pub(super) prompt: Option<String>,
    pub(super) receiver_thread_ids: Option<Vec<String>>,
    pub(super) agents_states: Option<BTreeMap<String, AgentState>>,
    pub(super) query: Option<String>,
    pub(super) items: Option<Vec<PlanItem>>,
}

#[derive(Debug, Default, Deserialize, serde::Serialize)]
#[serde(default)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) kind: Option<String>,
}

#[derive(Debug, Default, Deserialize, serde::Serialize)]
#[serde(default)]
pub(super) struct AgentState {
    pub(super) status: Option<String>,
    pub(super) message: Option<String>,
}
