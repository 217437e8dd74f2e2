//! The `system` lines of Claude Code's stream, one shape per subtype.

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HookLine {
    pub(super) hook_id: Option<String>,
    pub(super) hook_name: Option<String>,
    pub(super) hook_event: Option<String>,
    pub(super) output: Option<String>,
    pub(super) exit_code: Option<i64>,
    pub(super) outcome: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiRetry {
    pub(super) attempt: u64,
    pub(super) max_retries: Option<u64>,
    pub(super) retry_delay_ms: Option<f64>,
    pub(super) error_status: Option<u16>,
    pub(super) error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BackgroundTasks {
    pub(super) tasks: Vec<TaskRef>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskRef {
    pub(super) task_id: Option<String>,
}

/// `task_started`, `task_progress`, `task_updated` and `task_notification`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Task {
    pub(super) task_id: String,
    pub(super) tool_use_id: Option<String>,
    pub(super) description: Option<String>,
    pub(super) subagent_type: Option<String>,
    pub(super) task_type: Option<String>,
    pub(super) is_backgrounded: bool,
    pub(super) status: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) patch: Option<TaskPatch>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskPatch {
    pub(super) status: Option<String>,
    pub(super) is_backgrounded: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompactBoundary {
    pub(super) compact_metadata: CompactMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompactMetadata {
    pub(super) trigger: Option<String>,
    pub(super) pre_tokens: Option<u64>,
    pub(super) post_tokens: Option<u64>,
}

/// `status` and `session_state_changed`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) status: Option<String>,
    pub(super) state: Option<String>,
    pub(super) compact_result: Option<String>,
}

/// `informational` and `notification`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Note {
    pub(super) content: Option<String>,
    pub(super) text: Option<String>,
    pub(super) level: Option<String>,
    pub(super) priority: Option<String>,
    pub(super) prompt_submit_outcome: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PermissionDenied {
    pub(super) tool_name: Option<String>,
    pub(super) tool_use_id: String,
    pub(super) message: Option<String>,
    pub(super) decision_reason_type: Option<String>,
}
