//! Where the project's files stand among the checkpoints.

use super::RestoreMark;
use super::State;
use super::apply::Mark;
use super::apply::count;
use crate::event::FilesRestored;
use crate::event::RestoreKind;
use crate::limits;

impl State {
    /// The tree was brought to a checkpoint, wholly or in part.
    pub(super) fn went(&mut self, mark: &Mark, restored: &FilesRestored) {
        count(&mut self.tree.restores);
        if self.tree.restored.len() >= limits::RESTORES {
            self.tree.restored.pop_front();
        }
        let FilesRestored { to, kind, whole, .. } = *restored;
        self.tree.restored.push_back(RestoreMark { to, seq: mark.seq, at: mark.at, kind, whole });
        if !restored.whole {
            return;
        }
        match (restored.kind, self.tree.at) {
            (RestoreKind::Undo, Some(at)) => {
                if self.tree.redo.len() >= limits::ENTRIES {
                    self.tree.redo.remove(0);
                }
                self.tree.redo.push(at);
            }
            (RestoreKind::Redo, _) => {
                self.tree.redo.pop();
            }
            _ => self.tree.redo.clear(),
        }
        self.tree.at = Some(restored.to);
        // What was kept makes it another tree than the checkpoint's; the next snapshot tells.
        self.tree.tree = None;
    }
}
