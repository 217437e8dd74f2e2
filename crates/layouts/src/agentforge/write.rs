//! A session as a `session.yaml` of AgentForge.

use segno_core::rows::ArtifactRow;
use segno_core::rows::HistoryRow;

use super::wire;
use super::word;
use crate::family::Family;
use crate::files::FileSet;
use crate::node;
use crate::node::Node;
use crate::snapshot::Snapshot;

/// How much of the details of a history entry is shown.
const DETAILS: usize = 2_000;

/// Where the file of a session is below the folder of the family.
pub fn file_name(snapshot: &Snapshot<'_>) -> String {
    format!("{}/session.yaml", id(snapshot))
}

fn id(snapshot: &Snapshot<'_>) -> String {
    snapshot.name(Family::AgentForge)
}

/// The one file.
pub fn write(snapshot: &Snapshot<'_>, existing: &FileSet) -> Vec<(String, Vec<u8>)> {
    let state = snapshot.state;
    let artifacts = snapshot.rows::<ArtifactRow>().into_iter().map(|row| wire::Artifact {
        path: row.path,
        artifact_type: if row.artifact_type == "created" { "created" } else { "modified" },
        timestamp: row.timestamp.unwrap_or(state.created_at),
        phase: row.phase,
    });
    let mut history: Vec<wire::History> = snapshot
        .rows::<HistoryRow>()
        .into_iter()
        .map(|row| wire::History {
            timestamp: row.timestamp.unwrap_or(state.created_at),
            action: row.action,
            phase: row.phase,
            details: row.details.map(|details| details.short(DETAILS)),
        })
        .collect();
    if history.is_empty() {
        // The document's history is never empty.
        history.push(wire::History {
            timestamp: state.created_at,
            action: "session_created".to_owned(),
            phase: None,
            details: None,
        });
    }
    let session = wire::Session {
        session_id: id(snapshot),
        state: word(state.status),
        workflow_type: state.workflow.as_ref().map(|workflow| workflow.name.clone()),
        current_phase: state.phase.clone(),
        attempt_number: state.attempt,
        created_at: state.created_at,
        updated_at: state.updated_at,
        completed_at: state.completed_at,
        token_budget: wire::TokenBudget {
            total_budget: state.budget.total_budget,
            tokens_used: state.budget.tokens_used,
        },
        artifacts: artifacts.collect(),
        history,
        segno: snapshot.extension(),
    };
    let file = file_name(snapshot);
    let present = existing.get(&file).and_then(super::read::parse_node);
    let node: Node = snapshot.document(
        (Family::AgentForge, "session.yaml"),
        &session,
        present.as_ref(),
        &["token_budget"],
    );
    vec![(file, node::to_yaml(&node).into_bytes())]
}
