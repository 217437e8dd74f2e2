//! The long lists of a session: rows that follow from events, kept by the store beside the journal.
//!
//! A row is a JSON object under a key. The store lays the fields of a patch over the row that is there, so
//! that the end of a tool call completes the row its start made. What the fields are, [`crate::rows`] says.

mod checkpoint;
mod history;
mod ledger;
mod work;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use crate::event::Event;
use crate::event::history_only;
use crate::event::passing;
use crate::event::state_only;
use crate::rows::Patch;
use crate::state::Applied;
use crate::state::Mark;
use crate::state::State;

pub use self::history::is_history;

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

/// The changes that follow from one event.
struct Changes<'a> {
    state: &'a State,
    mark: &'a Mark,
    list: Vec<ItemChange>,
}

impl Changes<'_> {
    /// Lays a patch over a row.
    fn put<P: Patch>(&mut self, key: String, patch: &P) {
        self.list.push(ItemChange { list: P::LIST, key, fields: patch.fields() });
    }

    /// Adds a row to a log.
    fn log<P: Patch>(&mut self, patch: &P) {
        self.put(numbered(self.mark.seq), patch);
    }
}

/// A key that sorts as its number does.
fn numbered(number: u64) -> String {
    format!("{number:020}")
}

/// The rows that change because of an event that was folded in; `state` is the state after it.
pub fn project(state: &State, mark: &Mark, event: &Event, applied: Applied) -> Vec<ItemChange> {
    let mut changes = Changes { state, mark, list: Vec::new() };
    match applied {
        Applied::Skipped => {}
        Applied::Repeated => {
            // Whoever tells of a call again may know more of it.
            if let Event::ToolStarted(e) = event {
                changes.tool_started(e, applied);
            }
        }
        Applied::Corrected => {
            if let Event::ToolEnded(e) = event {
                changes.tool_ended(e, applied);
            }
        }
        Applied::Counted => {
            changes.rows(event);
            changes.history(event);
        }
    }
    changes.list
}

impl Changes<'_> {
    /// The rows other than those of the history.
    fn rows(&mut self, event: &Event) {
        match event {
            Event::ToolStarted(e) => self.tool_started(e, Applied::Counted),
            Event::ToolEnded(e) => self.tool_ended(e, Applied::Counted),
            Event::RunStarted(e) => self.run_started(e),
            Event::RunNamed(e) => self.run_named(e),
            Event::RunEnded(e) => self.run_ended(e),
            Event::CostRecorded(_) => self.cost_recorded(),
            Event::ItemsImported(e) => self.items_imported(e),
            Event::JournalImported(_) => self.calls_in_doubt(),
            Event::ArtifactRecorded(e) => self.artifact_recorded(e),
            Event::FileChanged(e) => self.file_changed(e),
            Event::OutputRecorded(e) => self.output_recorded(e),
            Event::TaskAdded(e) => self.task_added(e),
            Event::TaskEnded(e) => self.task_ended(e),
            Event::DecisionMade(e) => self.decision_made(e),
            Event::ErrorRecorded(e) => self.error_recorded(e),
            Event::MemoryUsed(e) => self.memory_used(e),
            Event::MilestoneReached(e) => self.milestone_reached(e),
            Event::PhaseVerified(e) => self.phase_verified(e),
            Event::CheckpointCreated(e) => self.checkpoint_created(e),
            Event::CheckpointReady(e) => self.checkpoint_ready(e),
            Event::CheckpointFailed(e) => self.checkpoint_failed(e),
            Event::CheckpointPinned(e) => self.checkpoint_pinned(e),
            Event::CheckpointDropped(e) => self.checkpoint_dropped(e),
            Event::CheckpointsInvalidated(e) => self.checkpoints_invalidated(e),
            history_only!()
            | state_only!()
            | passing!()
            | Event::HistoryNoted(_)
            | Event::QuestionAsked(_)
            | Event::QuestionAnswered(_)
            | Event::QuestionClosed(_)
            | Event::PhaseAdvanced(_)
            | Event::AgentSwitched(_)
            | Event::BreakpointReached(_)
            | Event::BreakpointContinued(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
