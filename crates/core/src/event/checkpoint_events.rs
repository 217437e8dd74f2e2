//! Signs to go back to.

use serde::Deserialize;
use serde::Serialize;

use crate::id::CheckpointId;

/// Why a checkpoint was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointReason {
    /// Somebody asked for it.
    #[default]
    Asked,
    /// A phase or step ended.
    PhaseComplete,
    /// A milestone was reached.
    Milestone,
    /// Another agent took over.
    AgentSwitch,
    /// Work waits for somebody to look.
    Breakpoint,
    /// The work is done.
    Final,
    /// A run is about to begin: where its first turn can be taken back to.
    RunStart,
    /// A person asks for something in a conversation that goes on: where that turn can be taken back to.
    Turn,
    /// A run ended.
    RunEnd,
    /// So many tool calls were made.
    ToolCount,
    /// A tool call that may destroy something is about to run.
    Risky,
    /// The work was interrupted.
    Interrupt,
    /// Something is about to be restored.
    BeforeRestore,
}

impl CheckpointReason {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::PhaseComplete => "phase_complete",
            Self::Milestone => "milestone",
            Self::AgentSwitch => "agent_switch",
            Self::Breakpoint => "breakpoint",
            Self::Final => "final",
            Self::RunStart => "run_start",
            Self::Turn => "turn",
            Self::RunEnd => "run_end",
            Self::ToolCount => "tool_count",
            Self::Risky => "risky",
            Self::Interrupt => "interrupt",
            Self::BeforeRestore => "before_restore",
        }
    }
}

/// A snapshot of the working tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMark {
    /// Its name.
    pub name: String,
    /// Its commit, which names its content for ever.
    pub commit: String,
    /// The tree of its files: equal trees have equal files.
    pub tree: String,
    /// How many files and links it holds.
    pub files: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// How many were added, changed or removed since the snapshot before.
    pub changed: u64,
    /// How many things were left out.
    pub left_out: u64,
}

/// A place in an agent's conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationMark {
    /// Which agent.
    pub agent: String,
    /// The agent's own id of the conversation.
    pub native_id: String,
    /// The agent's own id of the last message, for agents that can go back to one.
    pub message: Option<String>,
    /// How far its output had been read, in bytes: a hint.
    pub offset: Option<u64>,
    /// False if something was under way, so that the conversation may have been a little further.
    pub exact: bool,
}

/// Where the project's repository stood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadMark {
    /// The commit.
    pub commit: Option<String>,
    /// The branch, such as `refs/heads/main`.
    pub branch: Option<String>,
}

/// All of a checkpoint is on disk: it can be relied on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointReady {
    /// Its number.
    pub ordinal: u64,
    /// The event that set the sign.
    pub seq: u64,
    /// The snapshot; none if the session has no tree.
    pub snapshot: Option<SnapshotMark>,
    /// The checkpoint that the tree was at before.
    pub parent: Option<u64>,
    /// Whether the tree is another one than there.
    #[serde(rename = "moved")]
    pub tree_changed: bool,
    /// Taken only so that a restore can itself be undone: the tree does not stand here.
    #[serde(rename = "aside")]
    pub safety_only: bool,
    /// The conversation.
    pub conversation: Option<ConversationMark>,
    /// The repository.
    pub head: Option<HeadMark>,
    /// A checksum over all of it, in a defined form.
    pub checksum: String,
}

/// A checkpoint has no snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFailed {
    /// Its number.
    pub ordinal: u64,
    /// Why.
    pub why: crate::text::Text,
}

/// A checkpoint is kept whatever the rules say, or not any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointPinned {
    /// Its number.
    pub ordinal: u64,
    /// Whether it is.
    pub pinned: bool,
}

/// The snapshot of a checkpoint was given up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointDropped {
    /// Its number.
    pub ordinal: u64,
    /// Why.
    pub why: String,
}

/// How the tree was brought somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreKind {
    /// To a checkpoint.
    #[default]
    Restore,
    /// To a checkpoint, with everything after it given up.
    Rollback,
    /// Back by what was done.
    Undo,
    /// Forward again.
    Redo,
}

impl RestoreKind {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Rollback => "rollback",
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }
}

/// Files were brought to where a checkpoint has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRestored {
    /// How.
    pub kind: RestoreKind,
    /// The number of the checkpoint.
    pub to: u64,
    /// The number of the checkpoint that holds what was there before.
    pub safety: u64,
    /// Whether all files were meant, or only some.
    pub whole: bool,
    /// How many were written.
    pub written: u64,
    /// How many were removed.
    pub removed: u64,
    /// How many were left as they are, because somebody changed them or they are in no snapshot.
    pub kept: u64,
    /// Where a branch was moved from and to, and the ref that keeps its old position.
    pub branch: Option<String>,
}

/// The session's plan and values are those of a checkpoint again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateRestored {
    /// The number of the checkpoint.
    pub to: u64,
    /// The state it had.
    pub state: Box<crate::state::State>,
}

/// Checkpoints after one that was gone back to count no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointsInvalidated {
    /// Those after this number,
    pub after: u64,
    /// up to this one.
    pub up_to: u64,
}

/// A sign was set: the state at this event can be gone back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointCreated {
    /// Its id.
    pub id: CheckpointId,
    /// Its number in the session, from 1.
    pub ordinal: u64,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: CheckpointReason,
    /// How many tool calls had been made.
    pub tool_count: u64,
    /// How far the work had come, in percent, if known.
    pub progress: Option<u8>,
}
