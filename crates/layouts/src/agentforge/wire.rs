//! `session.yaml` as the document names its members.

use segno_core::Timestamp;
use serde::Serialize;

use crate::snapshot::Extension;

#[derive(Serialize)]
pub(super) struct Session {
    pub session_id: String,
    pub state: &'static str,
    pub workflow_type: Option<String>,
    pub current_phase: Option<String>,
    pub attempt_number: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub token_budget: TokenBudget,
    pub artifacts: Vec<Artifact>,
    pub history: Vec<History>,
    pub segno: Extension,
}

#[derive(Serialize)]
pub(super) struct TokenBudget {
    pub total_budget: u64,
    pub tokens_used: u64,
    pub tokens_remaining: u64,
}

#[derive(Serialize)]
pub(super) struct Artifact {
    pub path: String,
    pub artifact_type: &'static str,
    pub timestamp: Timestamp,
    pub phase: Option<String>,
}

#[derive(Serialize)]
pub(super) struct History {
    pub timestamp: Timestamp,
    pub action: String,
    pub phase: Option<String>,
    pub details: Option<String>,
}
