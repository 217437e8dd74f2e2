//! Checkpoints.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use super::Patch;
use super::Row;
use super::RowVersion;
use super::row;
use crate::event::CheckpointReason;
use crate::event::ConversationMark;
use crate::event::HeadMark;
use crate::event::SnapshotMark;
use crate::project::List;
use crate::text::Text;
use crate::time::Timestamp;

row! {
    /// One checkpoint.
    Checkpoints: CheckpointRow, CheckpointPatch {
        /// Its id.
        id: String,
        /// Its number.
        ordinal: u64,
        /// Its name.
        name: String,
        /// Why it was made.
        reason: String,
        /// The event that set it.
        seq: u64,
        /// When.
        created_at: Timestamp = Timestamp::EPOCH,
        /// The phase then.
        phase: Option<String>,
        /// The step then.
        step: Option<u32>,
        /// How many steps there were.
        of: Option<u32>,
        /// How many tool calls had been made, if that was counted then.
        tool_count: Option<u64>,
        /// How far the work had come, in percent.
        progress: Option<u8>,
        /// How much had been done in all, if that was counted then.
        actions: Option<u64>,
        /// Whether all of it is on disk.
        ready: bool,
        /// False after a rollback to an earlier one.
        valid: bool = true,
        /// The one that was rolled back to.
        invalidated_by: Option<u64>,
        /// When that was.
        invalidated_at: Option<Timestamp>,
        /// Whether it stays whatever the rules say.
        pinned: bool,
        /// Whether it was made only so that a restore can be undone.
        aside: bool,
        /// The one that the tree was at before.
        parent: Option<u64>,
        /// The files.
        snapshot: Option<SnapshotMark>,
        /// The conversation.
        conversation: Option<ConversationMark>,
        /// The repository.
        head: Option<HeadMark>,
        /// Over all of it.
        checksum: String,
        /// Why it has no files.
        problem: Option<Text>,
        /// Why its files were given up.
        dropped: Option<String>,
    }
}

impl CheckpointRow {
    /// Whether a turn can be taken back to it.
    pub fn begins_a_turn(&self) -> bool {
        self.is_for(CheckpointReason::RunStart) || self.is_for(CheckpointReason::Turn)
    }

    /// The phase that it is of. One at the end of a phase has the name of that, though the next one has begun by then.
    pub fn of_phase(&self) -> Option<&str> {
        if self.is_for(CheckpointReason::PhaseComplete) { Some(&self.name) } else { self.phase.as_deref() }
    }

    /// Whether it came with a session from elsewhere: no event here set it, so there is nothing to go back to.
    pub fn is_from_elsewhere(&self) -> bool {
        self.seq == 0
    }

    /// Whether it was made for this reason. Its own may be a word of a newer program.
    pub fn is_for(&self, reason: CheckpointReason) -> bool {
        self.reason == reason.as_str()
    }
}
