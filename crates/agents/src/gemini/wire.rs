//! The lines of Gemini CLI's `stream-json` output, exactly as written. Every field may be missing; what is not listed
//! is skipped.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::classify::ProviderAnswer;
use crate::raw::Raw;
use crate::tokens::TokenCounts;

/// All lines in one shape: each type has its own few of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) r#type: Option<String>,
    pub(super) timestamp: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) role: Option<String>,
    pub(super) content: Option<String>,
    pub(super) delta: Option<bool>,
    pub(super) tool_name: Option<String>,
    pub(super) tool_id: Option<String>,
    pub(super) parameters: Option<Raw>,
    pub(super) status: Option<String>,
    pub(super) output: Option<Raw>,
    pub(super) error: Option<ErrorInfo>,
    pub(super) severity: Option<String>,
    pub(super) message: Option<String>,
    pub(super) stats: Option<Stats>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorInfo {
    pub(super) r#type: Option<String>,
    pub(super) message: Option<String>,
}

/// What this process used; nothing of earlier runs of the conversation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stats {
    #[serde(flatten)]
    pub(super) all: Used,
    pub(super) duration_ms: Option<u64>,
    pub(super) models: BTreeMap<String, Used>,
}

/// `input_tokens` is the whole prompt, `input` the part of it that met no cache, and thoughts are only in the total.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Used {
    total_tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached: u64,
}

impl Used {
    pub(super) fn counts(&self) -> TokenCounts {
        let thoughts = self.total_tokens.saturating_sub(self.input_tokens).saturating_sub(self.output_tokens);
        TokenCounts {
            input: self.input_tokens.saturating_sub(self.cached),
            cache_read: self.cached,
            cache_write: 0,
            output: self.output_tokens.saturating_add(thoughts),
            reasoning: thoughts,
        }
    }
}

/// The inputs of the tools that mean something here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolInput {
    pub(super) file_path: Option<String>,
    pub(super) agent_name: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) todos: Option<Vec<Todo>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Todo {
    pub(super) description: Option<String>,
    pub(super) status: Option<String>,
}

/// A provider's refusal, passed on as text.
pub(super) type Answer = ProviderAnswer<AnswerError>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnswerError {
    pub(super) code: Option<u16>,
    pub(super) message: Option<String>,
    pub(super) status: Option<String>,
    /// Each kind has a shape of its own.
    pub(super) details: Vec<Raw>,
}

/// Whether a tool's call is a change of one file.
pub(super) fn writes_file(tool: &str) -> bool {
    matches!(tool, "write_file" | "replace")
}
