//! `session.yaml` as the document names its members.

use segno_core::Timestamp;
use serde::Serialize;
use serde::Serializer;

use crate::snapshot::Extension;

/// A moment as the origin writes and reads it: ISO text in UTC without an offset. It compares its moments with such ones
/// only, and what says where it is cannot be compared with them.
pub(super) struct Moment(pub Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.to_string().trim_end_matches('Z'))
    }
}

#[derive(Serialize)]
pub(super) struct Session {
    pub session_id: String,
    pub state: &'static str,
    pub workflow_type: Option<String>,
    pub current_phase: Option<String>,
    pub attempt_number: u64,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub completed_at: Option<Moment>,
    pub token_budget: TokenBudget,
    pub artifacts: Vec<Artifact>,
    pub history: Vec<History>,
    pub segno: Extension,
}

#[derive(Serialize)]
pub(super) struct TokenBudget {
    pub total_budget: u64,
    pub tokens_used: u64,
    pub tokens_remaining: i64,
}

#[derive(Serialize)]
pub(super) struct Artifact {
    pub path: String,
    pub artifact_type: &'static str,
    pub timestamp: Moment,
    pub phase: Option<String>,
}

#[derive(Serialize)]
pub(super) struct History {
    pub timestamp: Moment,
    pub action: String,
    pub phase: Option<String>,
    pub details: Option<String>,
}
