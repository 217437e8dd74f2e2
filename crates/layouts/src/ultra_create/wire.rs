//! The serialised state of ultra-create, as the document names its members.

use std::collections::BTreeMap;

use segno_core::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::snapshot::Extension;

#[derive(Serialize)]
pub(super) struct Session {
    pub session_id: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub status: &'static str,
    pub project: Project,
    pub context: Context,
    pub agents: Agents,
    pub tools: Tools,
    pub decisions: Decisions,
    pub memory: Memory,
    pub files: Files,
    pub errors: Errors,
    pub checkpoints: Vec<Checkpoint>,
    pub segno: Extension,
}

#[derive(Serialize)]
pub(super) struct Project {
    pub path: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Serialize)]
pub(super) struct Context {
    pub user_intent: String,
    pub current_phase: String,
    pub progress_percent: u8,
}

#[derive(Serialize)]
pub(super) struct Agents {
    pub active: Vec<String>,
    pub states: BTreeMap<String, Value>,
}

#[derive(Serialize)]
pub(super) struct Tools {
    pub history: Vec<ToolCall>,
    pub pending: Vec<ToolCall>,
}

#[derive(Serialize)]
pub(super) struct ToolCall {
    pub tool: String,
    pub input: Value,
    pub output: Option<String>,
    pub timestamp: Timestamp,
    pub id: String,
    pub state: String,
}

#[derive(Serialize)]
pub(super) struct Decisions {
    pub tree: Vec<Decision>,
    pub current_branch: String,
}

#[derive(Serialize)]
pub(super) struct Decision {
    pub id: u64,
    pub parent: Option<u64>,
    pub branch: String,
    pub question: Option<String>,
    pub decision: Option<String>,
    pub reason: Option<String>,
    pub alternatives: Vec<String>,
    pub timestamp: Option<Timestamp>,
}

#[derive(Serialize)]
pub(super) struct Memory {
    pub hindsight_queries: Vec<Asked>,
    pub context7_lookups: Vec<Asked>,
    pub local_cache: BTreeMap<String, Value>,
}

#[derive(Serialize)]
pub(super) struct Asked {
    pub query: Option<Value>,
    pub source: Option<String>,
    pub result: Option<String>,
    pub timestamp: Option<Timestamp>,
}

#[derive(Serialize)]
pub(super) struct Files {
    pub created: Vec<String>,
    pub modified: Vec<String>,
    pub deleted: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Errors {
    pub count: u64,
    pub log: Vec<ErrorEntry>,
}

#[derive(Serialize)]
pub(super) struct ErrorEntry {
    pub message: String,
    pub phase: Option<String>,
    pub timestamp: Option<Timestamp>,
}

#[derive(Clone, Serialize)]
pub(super) struct Checkpoint {
    pub id: String,
    pub reason: String,
    pub timestamp: Timestamp,
    pub tool_count: u64,
    pub progress: u8,
}

impl Checkpoint {
    /// The file of its own.
    pub(super) fn file_name(&self) -> String {
        format!("{}.json", self.id)
    }
}

/// A checkpoint in a file of its own; it says whose it is, which the document forgot.
#[derive(Serialize)]
pub(super) struct CheckpointFile {
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    pub session_id: String,
}
