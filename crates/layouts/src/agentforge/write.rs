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

/// The document's word for what happened, where it has one: its history ends with how the session stands.
fn action(ours: String) -> String {
    match ours.as_str() {
        "session_halted" | "session_interrupted" => "session_paused".to_owned(),
        "session_failed" => "session_aborted".to_owned(),
        _ => ours,
    }
}

/// What happened. The document's history says of every phase where it was come from, also of one that was gone back to.
fn history(snapshot: &Snapshot<'_>) -> Vec<wire::History> {
    let mut all: Vec<wire::History> = Vec::new();
    let mut phase: Option<String> = None;
    for row in snapshot.rows::<HistoryRow>() {
        let at = row.timestamp.unwrap_or(snapshot.state.created_at);
        let moved = row.phase.is_some() && row.phase != phase;
        let before = phase.replace(row.phase.clone().unwrap_or_default()).filter(|phase| !phase.is_empty());
        let way = || {
            format!(
                "from {} to {}",
                before.as_deref().unwrap_or("none"),
                row.phase.as_deref().unwrap_or("none")
            )
        };
        let advanced = row.action == "phase_advanced";
        let back = row.action == "state_restored" && moved;
        let details = row.details.as_ref().map(|details| details.short(DETAILS));
        // The first phase of a loop comes from none.
        let details = details.map(|said| if advanced && said.starts_with("to ") { way() } else { said });
        let action = action(row.action.clone());
        all.push(wire::History { timestamp: wire::Moment(at), action, phase: row.phase.clone(), details });
        if back {
            let details = Some(way());
            all.push(wire::History {
                timestamp: wire::Moment(at),
                action: "phase_advanced".to_owned(),
                phase: row.phase,
                details,
            });
        }
    }
    all
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

/// The one file.
pub fn write(snapshot: &Snapshot<'_>, existing: &FileSet) -> Vec<(String, Vec<u8>)> {
    let state = snapshot.state;
    let artifacts = snapshot.rows::<ArtifactRow>().into_iter().map(|row| wire::Artifact {
        path: row.path,
        artifact_type: if row.artifact_type == "created" { "created" } else { "modified" },
        timestamp: wire::Moment(row.timestamp.unwrap_or(state.created_at)),
        phase: row.phase,
    });
    let mut history = history(snapshot);
    if history.is_empty() {
        // The document's history is never empty.
        history.push(wire::History {
            timestamp: wire::Moment(state.created_at),
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
        created_at: wire::Moment(state.created_at),
        updated_at: wire::Moment(state.updated_at),
        completed_at: state.completed_at.map(wire::Moment),
        token_budget: wire::TokenBudget {
            total_budget: state.budget.total_budget,
            tokens_used: state.budget.tokens_used,
            // As its document computes it: below nothing, once more is used than there was.
            tokens_remaining: signed(state.budget.total_budget)
                .saturating_sub(signed(state.budget.tokens_used)),
        },
        artifacts: artifacts.collect(),
        history,
        segno: snapshot.extension(),
    };
    let file = file_name(snapshot);
    let present = |_: &Node| existing.get(&file).and_then(super::read::parse_node);
    let node: Node =
        snapshot.document((Family::AgentForge, "session.yaml"), &session, present, &["token_budget"]);
    vec![(file, node::to_yaml_with_quoted_moments(&node).into_bytes())]
}
