//! Claude Code's stream, exactly as it writes it. Every field may be missing; what is not listed is skipped.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::raw::Raw;
use crate::tokens::TokenCounts;

/// What every line has. `type` may stand anywhere in the object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head {
    pub(super) r#type: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) uuid: Option<String>,
    pub(super) timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Init {
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) claude_code_version: Option<String>,
    #[serde(rename = "permissionMode")]
    pub(super) permission_mode: Option<String>,
    pub(super) tools: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Assistant {
    pub(super) message: Message,
    pub(super) parent_tool_use_id: Option<String>,
    pub(super) error: Option<String>,
    pub(super) is_api_error_message: Option<bool>,
    pub(super) api_error_status: Option<u16>,
    pub(super) api_error_type: Option<String>,
    pub(super) api_error: Option<String>,
    pub(super) api_error_params: Option<ApiErrorParams>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiErrorParams {
    pub(super) rate_limit_info: Option<RateLimitInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    /// A string, or a list of blocks.
    pub(super) content: Option<Raw>,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    pub(super) r#type: Option<String>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) input: Option<Raw>,
    pub(super) tool_use_id: Option<String>,
    /// A string, or a list of blocks.
    pub(super) content: Option<Raw>,
    pub(super) is_error: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    pub(super) message: Message,
    pub(super) parent_tool_use_id: Option<String>,
    pub(super) tool_use_result: Option<Raw>,
    pub(super) tool_result_meta: Option<Vec<ResultMeta>>,
    #[serde(rename = "isSynthetic")]
    pub(super) is_synthetic: Option<bool>,
    #[serde(rename = "isReplay")]
    pub(super) is_replay: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultMeta {
    pub(super) id: Option<String>,
    pub(super) non_execution_kind: Option<String>,
    pub(super) permission_decision: Option<PermissionDecision>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PermissionDecision {
    pub(super) decision: Option<String>,
    pub(super) source: Option<String>,
}

/// The structured result of a call; an object for some tools, a string for failures.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolUseResult {
    pub(super) r#type: Option<String>,
    #[serde(rename = "filePath", alias = "notebook_path")]
    pub(super) file_path: Option<String>,
    #[serde(rename = "backgroundTaskId")]
    pub(super) background_task_id: Option<String>,
    /// A sub-agent that goes on by itself.
    #[serde(rename = "isAsync")]
    pub(super) is_async: Option<bool>,
    #[serde(rename = "agentId")]
    pub(super) agent_id: Option<String>,
    pub(super) interrupted: Option<bool>,
}

impl ToolUseResult {
    /// What goes on after the call was answered.
    pub(super) fn background(&self) -> Option<String> {
        let agent = self.agent_id.as_ref().filter(|_| self.is_async == Some(true));
        self.background_task_id.as_ref().or(agent).cloned()
    }
}

/// The one thing of interest in the inputs of the tools that write files.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FileInput {
    pub(super) file_path: Option<String>,
    pub(super) notebook_path: Option<String>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    input_tokens: u64,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: u64,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: u64,
}

impl Usage {
    pub(super) fn counts(&self) -> TokenCounts {
        TokenCounts {
            input: self.input_tokens,
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
            output: self.output_tokens,
            reasoning: self.output_tokens_details.as_ref().map_or(0, |details| details.thinking_tokens),
        }
    }
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    thinking_tokens: Option<u64>,
    pub(super) context_window: Option<u64>,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Option<f64>,
}

impl ModelUsage {
    pub(super) fn counts(&self) -> TokenCounts {
        TokenCounts {
            input: self.input_tokens,
            cache_read: self.cache_read_input_tokens,
            cache_write: self.cache_creation_input_tokens,
            output: self.output_tokens,
            reasoning: self.thinking_tokens.unwrap_or(0),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultLine {
    pub(super) subtype: Option<String>,
    pub(super) is_error: bool,
    pub(super) terminal_reason: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) num_turns: Option<u64>,
    pub(super) duration_ms: Option<u64>,
    pub(super) duration_api_ms: Option<u64>,
    pub(super) result_index: Option<u64>,
    /// Over all resumes of the conversation.
    pub(super) total_cost_usd: Option<f64>,
    /// The same in versions that had other names for it.
    pub(super) total_cost: Option<f64>,
    pub(super) cost_usd: Option<f64>,
    /// Of this turn, without sub-agents and compaction.
    pub(super) usage: Option<Usage>,
    /// Over all resumes of the conversation.
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Option<BTreeMap<String, ModelUsage>>,
    pub(super) model_usage_since_last_result: Option<BTreeMap<String, ModelUsage>>,
    pub(super) permission_denials: Option<Vec<DenialLine>>,
    pub(super) errors: Option<Vec<Raw>>,
    pub(super) result: Option<Raw>,
    pub(super) api_error_status: Option<u16>,
    pub(super) api_error_type: Option<String>,
    pub(super) api_error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DenialLine {
    pub(super) tool_name: Option<String>,
    pub(super) tool_use_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimitLine {
    pub(super) rate_limit_info: RateLimitInfo,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RateLimitInfo {
    pub(super) status: Option<String>,
    pub(super) resets_at: Option<f64>,
    pub(super) rate_limit_type: Option<String>,
    pub(super) utilization: Option<f64>,
    pub(super) overage_status: Option<String>,
    pub(super) overage_disabled_reason: Option<String>,
    pub(super) is_using_overage: Option<bool>,
    pub(super) unified_windows: Option<BTreeMap<String, Window>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Window {
    pub(super) utilization: Option<f64>,
    pub(super) resets_at: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolProgress {
    pub(super) tool_use_id: Option<String>,
    pub(super) tool_name: Option<String>,
    pub(super) parent_tool_use_id: Option<String>,
    pub(super) elapsed_time_seconds: Option<f64>,
    pub(super) heartbeat: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamLine {
    pub(super) event: StreamEvent,
    pub(super) api_message_id: Option<String>,
    pub(super) parent_tool_use_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamEvent {
    pub(super) r#type: Option<String>,
    pub(super) delta: Option<Delta>,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) partial_json: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ControlLine {
    pub(super) request_id: Option<String>,
    pub(super) request: Option<ControlRequest>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ControlRequest {
    pub(super) subtype: Option<String>,
    pub(super) tool_name: Option<String>,
    pub(super) tool_use_id: Option<String>,
    pub(super) input: Option<Raw>,
}
