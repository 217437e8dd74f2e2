//! Rows of checkpoints.

use super::Changes;
use super::numbered;
use crate::event::CheckpointCreated;
use crate::event::CheckpointDropped;
use crate::event::CheckpointFailed;
use crate::event::CheckpointPinned;
use crate::event::CheckpointReady;
use crate::event::CheckpointsInvalidated;
use crate::rows::CheckpointPatch;

impl Changes<'_> {
    pub(super) fn checkpoint_created(&mut self, e: &CheckpointCreated) {
        let patch = CheckpointPatch {
            id: Some(e.id.to_string()),
            ordinal: Some(e.ordinal),
            name: Some(e.name.clone()),
            reason: Some(e.reason.as_str().to_owned()),
            seq: Some(self.mark.seq),
            created_at: Some(self.mark.at),
            phase: Some(self.state.phase.clone()),
            step: Some(self.state.step),
            of: Some(self.state.of),
            tool_count: Some(Some(e.tool_count)),
            progress: Some(e.progress),
            valid: Some(true),
            actions: Some(Some(self.state.actions)),
            ..CheckpointPatch::default()
        };
        self.put(numbered(e.ordinal), &patch);
    }

    pub(super) fn checkpoint_ready(&mut self, e: &CheckpointReady) {
        let patch = CheckpointPatch {
            ready: Some(true),
            aside: Some(e.safety_only),
            checksum: Some(e.checksum.clone()),
            parent: Some(e.parent),
            snapshot: Some(e.snapshot.clone()),
            conversation: Some(e.conversation.clone()),
            head: Some(e.head.clone()),
            ..CheckpointPatch::default()
        };
        self.put(numbered(e.ordinal), &patch);
    }

    pub(super) fn checkpoint_failed(&mut self, e: &CheckpointFailed) {
        let patch = CheckpointPatch {
            ready: Some(false),
            problem: Some(Some(e.why.clone())),
            ..CheckpointPatch::default()
        };
        self.put(numbered(e.ordinal), &patch);
    }

    pub(super) fn checkpoint_pinned(&mut self, e: &CheckpointPinned) {
        let patch = CheckpointPatch { pinned: Some(e.pinned), ..CheckpointPatch::default() };
        self.put(numbered(e.ordinal), &patch);
    }

    pub(super) fn checkpoint_dropped(&mut self, e: &CheckpointDropped) {
        let patch = CheckpointPatch {
            ready: Some(false),
            snapshot: Some(None),
            dropped: Some(Some(e.why.clone())),
            ..CheckpointPatch::default()
        };
        self.put(numbered(e.ordinal), &patch);
    }

    pub(super) fn checkpoints_invalidated(&mut self, e: &CheckpointsInvalidated) {
        let patch = CheckpointPatch {
            valid: Some(false),
            invalidated_by: Some(Some(e.after)),
            invalidated_at: Some(Some(self.mark.at)),
            ..CheckpointPatch::default()
        };
        // Bounded: a session with very many checkpoints says so of the newest.
        for ordinal in (e.after + 1..=e.up_to).rev().take(10_000) {
            self.put(numbered(ordinal), &patch);
        }
    }
}
