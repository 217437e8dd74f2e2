//! The files of a go-team registry, as the document and its siblings name their members.

use std::collections::BTreeMap;

use segno_core::Timestamp;
use segno_core::event::Metric;
use serde::Serialize;

use crate::node::Node;
use crate::snapshot::Extension;

#[derive(Serialize)]
pub(super) struct Entry {
    pub id: String,
    pub topic: String,
    pub status: &'static str,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub current_step: u32,
    pub current_checkpoint: Option<String>,
    pub progress: Progress,
    pub git_branch: Option<String>,
    pub resumable: bool,
    pub completed_at: Option<Timestamp>,
    pub segno: EntryExtension,
}

/// Whose entry it is; a hash of the entry is added to it.
#[derive(Serialize)]
pub(super) struct EntryExtension {
    pub session_id: String,
    pub seq: u64,
}

#[derive(Serialize)]
pub(super) struct Progress {
    pub steps_completed: u32,
    pub total_steps: u32,
    pub percentage: u8,
}

#[derive(Serialize)]
pub(super) struct Manifest {
    pub session_id: String,
    pub topic: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub checkpoints: Vec<Node>,
    pub current_checkpoint: Option<String>,
    pub current_step: u32,
    pub rollback_history: Vec<Node>,
}

#[derive(Serialize)]
pub(super) struct ManifestEntry {
    pub id: String,
    pub step: u32,
    pub step_name: String,
    pub timestamp: Timestamp,
    pub valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalidated_by: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Rollback {
    pub id: String,
    pub timestamp: Timestamp,
    pub from_checkpoint: Option<String>,
    pub from_step: Option<u32>,
    pub to_checkpoint: Option<String>,
    pub to_step: Option<u32>,
    pub reason: &'static str,
}

#[derive(Serialize)]
pub(super) struct RollbackHistory {
    pub session_id: String,
    pub history: Vec<Node>,
}

#[derive(Serialize)]
pub(super) struct Live {
    pub session_id: String,
    pub saved_at: Timestamp,
    pub save_trigger: String,
    pub state: TeamState,
    pub context: Context,
    pub outputs: Outputs,
    pub recovery_point: RecoveryPoint,
    pub session: SessionBlock,
    pub segno: Extension,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct TeamState {
    pub topic: String,
    pub date: String,
    pub phase: Option<String>,
    pub current_step: u32,
    pub current_agent: Option<String>,
    pub iteration_count: u64,
    pub max_iterations: u64,
    pub breakpoint_active: bool,
    pub metrics: BTreeMap<String, Metric>,
}

#[derive(Serialize)]
pub(super) struct Context {
    pub last_action: Option<String>,
    pub pending_tasks: Vec<String>,
    pub current_file: Option<String>,
    pub current_line: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Outputs {
    pub spec: Option<String>,
    pub architecture: Option<String>,
    pub code_files: Vec<String>,
    pub test_files: Vec<String>,
    pub review_comments: Vec<String>,
    pub optimizations: Vec<String>,
    pub release_config: Option<String>,
    pub partial_output: Option<String>,
}

#[derive(Serialize)]
pub(super) struct RecoveryPoint {
    pub checkpoint: Option<String>,
    pub actions_since_checkpoint: u64,
    pub can_resume_from_action: bool,
}

#[derive(Serialize)]
pub(super) struct SessionBlock {
    pub id: String,
    pub status: &'static str,
    pub created_at: Timestamp,
    pub auto_save: AutoSave,
    pub recovery: RecoveryBlock,
}

#[derive(Serialize)]
pub(super) struct AutoSave {
    pub enabled: bool,
    pub interval: u64,
    pub last_save: Timestamp,
}

#[derive(Serialize)]
pub(super) struct RecoveryBlock {
    pub enabled: bool,
    pub last_checkpoint: Option<String>,
    pub actions_since_checkpoint: u64,
}

#[derive(Serialize)]
pub(super) struct Recovery {
    pub session_id: String,
    pub interrupted_at: Timestamp,
    pub interrupt_reason: &'static str,
    pub last_known_state: LastKnown,
    pub recovery_options: Vec<RecoveryOption>,
    pub recommended: &'static str,
    pub auto_resume_enabled: bool,
    pub git_state: GitState,
}

#[derive(Serialize)]
pub(super) struct LastKnown {
    pub step: u32,
    pub step_name: Option<String>,
    pub agent: Option<String>,
    pub action: Option<String>,
}

#[derive(Serialize)]
pub(super) struct RecoveryOption {
    pub id: u32,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub target: Option<String>,
    pub description: &'static str,
    pub data_loss: String,
    pub recommended: bool,
}

#[derive(Serialize)]
pub(super) struct GitState {
    pub branch: Option<String>,
    pub last_commit: Option<String>,
    pub uncommitted_changes: Option<bool>,
}

#[derive(Serialize)]
pub(super) struct Checkpoint {
    pub id: String,
    pub session_id: String,
    pub step_number: u32,
    pub step_name: String,
    pub created_at: Timestamp,
    pub state: TeamState,
    pub outputs: Outputs,
    pub files: Files,
    pub git: Git,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Files {
    pub created: Vec<String>,
    pub modified: Vec<String>,
    pub deleted: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Git {
    pub enabled: bool,
    pub branch: Option<String>,
    pub commit_hash: Option<String>,
}
