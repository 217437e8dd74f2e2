//! The long lists of a session: rows that follow from events, kept by the store beside the journal.
//!
//! A row is a JSON object under a key. The store lays the fields of a change over the row that is there, so
//! that the end of a tool call completes the row its start made.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::event::Event;
use crate::state::Applied;
use crate::state::Mark;
use crate::state::State;
use crate::text::Aside;
use crate::text::Text;
use crate::text::shorten;

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// What happened, for people.
    History,
    /// Result files.
    Artifacts,
    /// Named outputs.
    Outputs,
    /// Things to do, open and ended.
    Tasks,
    /// The tree of decisions.
    Decisions,
    /// The ledger.
    Tools,
    /// Files that changed, by path.
    Files,
    /// What went wrong.
    Errors,
    /// What memory was asked.
    Memory,
    /// Milestones.
    Milestones,
    /// Signs to go back to.
    Checkpoints,
    /// Checks of phases.
    Verifications,
    /// Agent processes.
    Runs,
}

impl List {
    /// Every list.
    pub const ALL: [Self; 13] = [
        Self::History,
        Self::Artifacts,
        Self::Outputs,
        Self::Tasks,
        Self::Decisions,
        Self::Tools,
        Self::Files,
        Self::Errors,
        Self::Memory,
        Self::Milestones,
        Self::Checkpoints,
        Self::Verifications,
        Self::Runs,
    ];

    /// The stored and shown name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Artifacts => "artifacts",
            Self::Outputs => "outputs",
            Self::Tasks => "tasks",
            Self::Decisions => "decisions",
            Self::Tools => "tools",
            Self::Files => "files",
            Self::Errors => "errors",
            Self::Memory => "memory",
            Self::Milestones => "milestones",
            Self::Checkpoints => "checkpoints",
            Self::Verifications => "verifications",
            Self::Runs => "runs",
        }
    }
}

impl List {
    /// Whether its rows are numbered by the events that made them.
    fn is_log(self) -> bool {
        match self {
            Self::History
            | Self::Artifacts
            | Self::Errors
            | Self::Memory
            | Self::Milestones
            | Self::Verifications => true,
            Self::Outputs
            | Self::Tasks
            | Self::Decisions
            | Self::Tools
            | Self::Files
            | Self::Checkpoints
            | Self::Runs => false,
        }
    }
}

/// How much of what a call put out its row has, in characters. The journal has all of it.
const OUTPUT: usize = 500;

/// A change to one row of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemChange {
    /// Which list.
    pub list: List,
    /// Which row.
    pub key: String,
    /// The fields to lay over it.
    pub fields: Map<String, Value>,
}

/// The rows that change because of an event that was folded in; `state` is the state after it.
pub fn project(state: &State, mark: &Mark, event: &Event, applied: Applied) -> Vec<ItemChange> {
    let mut changes = Vec::new();
    if applied == Applied::Skipped {
        return changes;
    }
    let at = mark.at;
    let mut put = |list: List, key: String, fields: Value| {
        if let Value::Object(fields) = fields {
            changes.push(ItemChange { list, key, fields });
        }
    };
    // Keys of plain logs sort as numbers do.
    let log_key = format!("{:020}", mark.seq);
    match event {
        Event::ToolStarted(e) => {
            let call = state.calls.newest.as_ref().filter(|_| e.recurs).unwrap_or(&e.call);
            let mut fields = json!({ "call": call, "tool": e.tool, "input": e.input });
            if applied == Applied::Counted {
                fields["state"] = json!("open");
                fields["started_at"] = json!(at);
                fields["write_ahead"] = json!(e.write_ahead);
                fields["run"] = json!(mark.run);
                fields["phase"] = json!(state.phase);
            } else if e.write_ahead {
                fields["write_ahead"] = json!(true);
            }
            put(List::Tools, call.clone(), fields);
        }
        Event::ToolEnded(e) if applied == Applied::Counted => {
            let call = state.calls.newest.as_ref().filter(|_| e.recurs).unwrap_or(&e.call);
            let mut fields = json!({ "call": call, "state": e.end.as_str(), "ended_at": at });
            if let Some(tool) = &e.tool {
                fields["tool"] = json!(tool);
            }
            if let Some(output) = &e.output {
                fields["output"] = json!(beginning(output));
                fields["output_bytes"] = json!(output.bytes());
            }
            if let Some(evidence) = &e.evidence {
                fields["evidence"] = json!(evidence);
            }
            put(List::Tools, call.clone(), fields);
        }
        _ if applied == Applied::Repeated => {}
        Event::ItemsImported(e) => {
            for item in &e.items {
                // Rows of a log came before all of ours, and must not meet a key that we give.
                let key = if e.list.is_log() { format!("-{}", item.key) } else { item.key.clone() };
                let mut body = item.body.clone();
                // As in the state: nobody here will hear how the call ended.
                if e.list == List::Tools && body.get("state") == Some(&json!("open")) {
                    body["state"] = json!("in_doubt");
                }
                put(e.list, key, body);
            }
        }
        Event::JournalImported(_) => {
            for call in state.calls.in_doubt.keys() {
                put(List::Tools, call.clone(), json!({ "call": call, "state": "in_doubt" }));
            }
        }
        Event::ArtifactRecorded(e) => {
            let fields = json!({ "path": e.path, "artifact_type": e.artifact_type, "timestamp": at, "phase": e.phase });
            put(List::Artifacts, log_key, fields);
        }
        Event::FileChanged(e) => {
            let call = e.call.as_ref().map(|call| state.calls.name_of(call));
            let fields = json!({
                "path": e.path, "change": e.change, "changed_at": at, "call": call, "phase": state.phase,
            });
            put(List::Files, e.path.clone(), fields);
        }
        Event::OutputRecorded(e) => {
            let fields = json!({
                "name": e.name, "kind": e.kind, "content": e.content, "recorded_at": at, "phase": state.phase,
            });
            put(List::Outputs, e.name.clone(), fields);
        }
        Event::TaskAdded(e) => {
            let fields = json!({ "task": e.task, "text": e.text, "state": "open", "added_at": at });
            put(List::Tasks, format!("{:020}", e.task), fields);
        }
        Event::TaskEnded(e) => {
            let word = if e.done { "done" } else { "dropped" };
            put(List::Tasks, format!("{:020}", e.task), json!({ "state": word, "ended_at": at }));
        }
        Event::DecisionMade(e) => {
            let fields = json!({
                "decision": e.decision, "parent": e.parent, "branch": e.branch, "question": e.question,
                "choice": e.choice, "reason": e.reason, "alternatives": e.alternatives, "decided_at": at,
                "phase": state.phase,
            });
            put(List::Decisions, format!("{:020}", e.decision), fields);
        }
        Event::ErrorRecorded(e) => {
            let fields = json!({
                "timestamp": at, "message": e.message, "error_kind": e.error_kind, "phase": e.phase,
                "iteration": e.iteration, "fingerprint": e.fingerprint,
            });
            put(List::Errors, log_key.clone(), fields);
            put_history(&mut put, state, mark, event, log_key);
        }
        Event::MemoryUsed(e) => {
            let fields = json!({
                "timestamp": at, "usage": e.usage, "source": e.source, "query": e.query, "result": e.result,
            });
            put(List::Memory, log_key, fields);
        }
        Event::MilestoneReached(e) => {
            let fields = json!({
                "name": e.name, "details": e.details, "reached_at": at, "phase": state.phase,
            });
            put(List::Milestones, log_key.clone(), fields);
            put_history(&mut put, state, mark, event, log_key);
        }
        Event::PhaseVerified(e) => {
            let fields = json!({
                "phase": e.phase, "check": e.check, "verdict": e.verdict, "details": e.details, "verified_at": at,
                "iteration": state.iteration, "attempt": state.attempt,
            });
            put(List::Verifications, log_key.clone(), fields);
            put_history(&mut put, state, mark, event, log_key);
        }
        Event::CheckpointCreated(e) => {
            let fields = json!({
                "id": e.id, "ordinal": e.ordinal, "name": e.name, "reason": e.reason, "seq": mark.seq,
                "created_at": at, "phase": state.phase, "step": state.step, "of": state.of,
                "tool_count": e.tool_count, "progress": e.progress, "valid": true, "actions": state.actions,
            });
            put(List::Checkpoints, format!("{:020}", e.ordinal), fields);
            put_history(&mut put, state, mark, event, log_key);
        }
        Event::CheckpointReady(e) => {
            let mut fields =
                json!({ "ready": true, "aside": e.aside, "checksum": e.checksum, "parent": e.parent });
            fields["snapshot"] = json!(e.snapshot);
            fields["conversation"] = json!(e.conversation);
            fields["head"] = json!(e.head);
            put(List::Checkpoints, format!("{:020}", e.ordinal), fields);
        }
        Event::CheckpointFailed(e) => {
            let fields = json!({ "ready": false, "problem": e.why });
            put(List::Checkpoints, format!("{:020}", e.ordinal), fields);
            put_history(&mut put, state, mark, event, log_key);
        }
        Event::CheckpointPinned(e) => {
            put(List::Checkpoints, format!("{:020}", e.ordinal), json!({ "pinned": e.pinned }));
        }
        Event::CheckpointDropped(e) => {
            let fields = json!({ "ready": false, "snapshot": null, "dropped": e.why });
            put(List::Checkpoints, format!("{:020}", e.ordinal), fields);
        }
        Event::CheckpointsInvalidated(e) => {
            // Bounded: a session with very many checkpoints says so of the newest.
            for ordinal in (e.after + 1..=e.up_to).rev().take(10_000) {
                let fields = json!({ "valid": false, "invalidated_by": e.after, "invalidated_at": at });
                put(List::Checkpoints, format!("{ordinal:020}"), fields);
            }
            put_history(&mut put, state, mark, event, log_key);
        }
        Event::RunStarted(_) | Event::RunNamed(_) | Event::RunEnded(_) => {
            if let Some((run, fields)) = run_row(mark, event) {
                put(List::Runs, run, fields);
            }
            put_history(&mut put, state, mark, event, log_key);
        }
        _ => put_history(&mut put, state, mark, event, log_key),
    }
    changes
}

/// What a row shows of an output; where the rest of a long one is stays with it.
fn beginning(output: &Text) -> Text {
    match output {
        Text::Whole(text) => shorten(text, OUTPUT).into(),
        Text::Aside(aside) => {
            Text::Aside(Aside { excerpt: shorten(&aside.excerpt, OUTPUT), ..aside.clone() })
        }
    }
}

/// The row of a run, and what an event lays over it.
fn run_row(mark: &Mark, event: &Event) -> Option<(String, Value)> {
    match event {
        Event::RunStarted(e) => {
            let mut fields = serde_json::to_value(e).ok()?;
            fields["started_at"] = json!(mark.at);
            fields["state"] = json!("running");
            Some((e.run.clone(), fields))
        }
        Event::RunNamed(e) => {
            let mut fields = json!({ "native_id": e.native_id });
            for (name, value) in [("model", &e.model), ("version", &e.version)] {
                if let Some(value) = value {
                    fields[name] = json!(value);
                }
            }
            Some((e.run.clone(), fields))
        }
        Event::RunEnded(e) => {
            let mut fields = serde_json::to_value(e).ok()?;
            if e.native_id.is_none() {
                fields.as_object_mut()?.remove("native_id");
            }
            fields["ended_at"] = json!(e.at.unwrap_or(mark.at));
            fields["state"] = json!("ended");
            Some((e.run.clone(), fields))
        }
        _ => None,
    }
}

fn put_history(
    put: &mut impl FnMut(List, String, Value),
    state: &State,
    mark: &Mark,
    event: &Event,
    key: String,
) {
    let Some((action, details)) = history(event) else { return };
    let phase = match event {
        Event::HistoryNoted(e) if e.phase.is_some() => e.phase.clone(),
        _ => state.phase.clone(),
    };
    put(
        List::History,
        key,
        json!({ "timestamp": mark.at, "action": action, "phase": phase, "details": details }),
    );
}

/// Whether an event is a line of the history.
pub fn is_history(event: &Event) -> bool {
    history(event).is_some()
}

/// An event as a line of the history: its action, and more about it.
fn history(event: &Event) -> Option<(String, Value)> {
    let text = |text: &Option<crate::text::Text>| json!(text);
    let (action, details) = match event {
        Event::SessionCreated(e) => ("session_created", json!(e.topic)),
        Event::SessionImported(e) => ("session_imported", json!(e.source)),
        Event::JournalImported(e) => ("session_imported", json!(e.source)),
        Event::SessionPaused(e) => (
            "session_paused",
            e.details.as_ref().map_or_else(|| json!(e.reason.as_str()), |details| json!(details)),
        ),
        Event::SessionResumed(e) if e.breaker_reset => ("session_resumed", json!("breaker reset")),
        Event::SessionResumed(e) => ("session_resumed", text(&e.details)),
        Event::SessionInterrupted(e) => ("session_interrupted", json!(e.reason.as_str())),
        Event::SessionHalted(e) => ("session_halted", json!(e.reason)),
        Event::SessionCompleted(e) => ("session_completed", text(&e.summary)),
        Event::SessionAborted(e) => ("session_aborted", text(&e.reason)),
        Event::SessionFailed(e) => ("session_failed", text(&e.reason)),
        Event::PhaseAdvanced(e) => {
            let details = match &e.from {
                Some(from) => format!("from {from} to {}", e.to),
                None => format!("to {}", e.to),
            };
            ("phase_advanced", json!(details))
        }
        Event::WorkflowSet(e) => ("workflow_set", json!(e.workflow.name)),
        Event::AttemptStarted(e) => ("attempt_started", json!(format!("attempt {}", e.attempt))),
        Event::PhaseVerified(e) => ("phase_verified", json!(format!("{}: {}", e.check, e.verdict.as_str()))),
        Event::BudgetSet(e) => (
            "budget_set",
            json!(format!("{} {}{}", e.total, unit(e.unit), if e.hard { ", hard" } else { "" })),
        ),
        Event::BudgetExtended(e) => ("budget_extended", json!(format!("added {} {}", e.added, unit(e.unit)))),
        Event::BudgetWarned(e) => {
            ("budget_warning", json!(format!("{} of {} {}", e.used, e.total, unit(e.unit))))
        }
        Event::BudgetExceeded(e) => {
            ("budget_exceeded", json!(format!("{} of {} {}", e.used, e.total, unit(e.unit))))
        }
        Event::AgentSwitched(e) => ("agent_switched", json!(e.to)),
        Event::RunStarted(e) => {
            let version = e.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
            ("run_started", json!(format!("{}{version}, ledger {}", e.agent, e.ledger.as_str())))
        }
        Event::CheckpointFailed(e) => ("checkpoint_failed", json!(e.why.short(crate::limits::NAME))),
        Event::CheckpointsInvalidated(e) => {
            ("checkpoints_invalidated", json!(format!("{} to {}", e.after + 1, e.up_to)))
        }
        Event::FilesRestored(e) => {
            let what = format!(
                "to checkpoint {}: {} written, {} removed, {} left as they are",
                e.to, e.written, e.removed, e.kept
            );
            (restore_word(e.kind), json!(what))
        }
        Event::StateRestored(e) => ("state_restored", json!(format!("from checkpoint {}", e.to))),
        Event::RunAdopted(_) => ("run_adopted", Value::Null),
        Event::RunEnded(e) => {
            ("run_ended", json!(format!("{}: {}", e.outcome, e.reason.short(crate::limits::NAME))))
        }
        Event::RecoveryChosen(e) => {
            let target = e.target.as_deref().map_or(String::new(), |target| format!(" {target}"));
            let how = if e.automatic { ", by itself" } else { "" };
            ("recovery_chosen", json!(format!("{}{target}{how}", e.recovery.as_str())))
        }
        Event::ResumeAttempted(e) => {
            let why = e.why.short(crate::limits::NAME);
            ("resume_attempted", json!(format!("attempt {} of {}: {why}", e.attempt, e.of)))
        }
        // Older ones have no such line.
        Event::ErrorRecorded(e) if e.history => {
            ("error_recorded", json!(e.message.short(crate::limits::NAME)))
        }
        Event::GitBranchSet(e) => ("git_branch_set", json!(e.branch)),
        Event::MilestoneReached(e) => ("milestone_reached", json!(e.name)),
        Event::BreakpointReached(e) => ("breakpoint_reached", json!(e.name)),
        Event::BreakpointContinued(e) => ("breakpoint_continued", json!(e.name)),
        Event::CheckpointCreated(e) => ("checkpoint", json!(e.id)),
        Event::HistoryNoted(e) => return Some((e.action.clone(), text(&e.details))),
        _ => return None,
    };
    Some((action.to_owned(), details))
}

fn restore_word(kind: crate::event::RestoreKind) -> &'static str {
    use crate::event::RestoreKind;
    match kind {
        RestoreKind::Restore => "files_restored",
        RestoreKind::Rollback => "rolled_back",
        RestoreKind::Undo => "undone",
        RestoreKind::Redo => "redone",
    }
}

fn unit(unit: crate::event::Unit) -> &'static str {
    match unit {
        crate::event::Unit::Tokens => "tokens",
        crate::event::Unit::Cost => "micro-dollars",
    }
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
