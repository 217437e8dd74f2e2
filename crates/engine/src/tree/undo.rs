//! Which checkpoint is a turn back, or one forward.

use segno_core::State;

use super::checkpoint::Checkpoint;
use super::restore::RestoreRequest;
use super::restore::RestoreTarget;
use crate::Engine;
use crate::Error;

impl Engine {
    /// The checkpoint to go to and, for an undo or redo, the one that what is taken back goes up to.
    pub(super) fn target(
        &self,
        state: &State,
        request: &RestoreRequest,
        notices: &mut Vec<String>,
    ) -> Result<(Checkpoint, Option<Checkpoint>), Error> {
        let session = state.session_id;
        match request.target {
            RestoreTarget::Checkpoint(ordinal) => Ok((self.checkpoint_number(session, ordinal)?, None)),
            RestoreTarget::Undo(turns) => {
                let all = self.checkpoints(session)?;
                let (target, from, lost) = back(&all, state.tree.at, turns.max(1))?;
                if lost {
                    let id = &target.id;
                    notices.push(format!(
                        "the files at the beginning of a turn were given up: this is about {id} and what came after"
                    ));
                }
                Ok((target, Some(from)))
            }
            RestoreTarget::UndoTo(ordinal) => {
                let at = state.tree.at.filter(|at| *at >= ordinal);
                let from = at.map(|at| self.checkpoint_number(session, at)).transpose()?;
                Ok((self.checkpoint_number(session, ordinal)?, from))
            }
            RestoreTarget::Redo(turns) => {
                let redo = &state.tree.redo;
                let nothing = || Error::NoTree("there is nothing to redo".to_owned());
                let index = redo.len().checked_sub(usize::try_from(turns.max(1)).unwrap_or(usize::MAX));
                let ordinal = *redo.get(index.ok_or_else(nothing)?).ok_or_else(nothing)?;
                let at = state.tree.at.ok_or_else(nothing)?;
                let from = self.checkpoint_number(session, at)?;
                Ok((self.checkpoint_number(session, ordinal)?, Some(from)))
            }
        }
    }
}

/// So many turns back from where the tree stands: to the beginning of a turn in which files changed. The last says
/// whether the beginning of a turn was passed whose files were given up.
fn back(all: &[Checkpoint], at: Option<u64>, turns: u64) -> Result<(Checkpoint, Checkpoint, bool), Error> {
    let nothing = || Error::NoTree("there is nothing to undo".to_owned());
    let find = |ordinal: u64| all.iter().find(|checkpoint| checkpoint.ordinal == ordinal);
    let tree = |checkpoint: &Checkpoint| checkpoint.snapshot.as_ref().map(|snapshot| snapshot.tree.clone());
    let from = at.and_then(find).ok_or_else(nothing)?;
    let (mut here, mut target, mut lost) = (from, None, false);
    for _ in 0..turns {
        let start = here;
        let (mut step, mut passed) = (here, false);
        while let Some(parent) = step.parent.and_then(find) {
            step = parent;
            if step.snapshot.is_none() {
                passed |= step.begins_a_turn();
                continue;
            }
            here = step;
            lost |= passed;
            // A turn without changes is passed over: taking nothing back would not be what was asked for.
            if here.begins_a_turn() && tree(here) != tree(start) {
                break;
            }
        }
        lost |= passed;
        if tree(here) == tree(start) {
            break;
        }
        target = Some(here);
    }
    Ok((target.ok_or_else(nothing)?.clone(), from.clone(), lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(ordinal: u64, reason: &str, parent: Option<u64>, tree: &str) -> Checkpoint {
        serde_json::from_value(serde_json::json!({
            "id": format!("cp-{ordinal:02}"), "ordinal": ordinal, "name": "x", "reason": reason, "seq": ordinal,
            "created_at": "2026-11-15T00:00:00Z", "ready": true, "parent": parent,
            "snapshot": { "name": "n", "commit": "c", "tree": tree, "files": 1, "bytes": 1, "changed": 0, "left_out": 0 },
        }))
        .unwrap()
    }

    fn to(all: &[Checkpoint], at: u64, turns: u64) -> Option<u64> {
        back(all, Some(at), turns).ok().map(|(target, ..)| target.ordinal)
    }

    #[test]
    fn turns_back() {
        let all = [
            checkpoint(1, "run_start", None, "a"),
            checkpoint(2, "tool_count", Some(1), "b"),
            checkpoint(3, "run_end", Some(2), "c"),
            checkpoint(4, "run_start", Some(3), "c"),
            checkpoint(5, "run_end", Some(4), "c"),
            checkpoint(6, "run_start", Some(5), "c"),
            checkpoint(7, "run_end", Some(6), "d"),
        ];
        assert_eq!(to(&all, 7, 1), Some(6));
        assert_eq!(to(&all, 6, 1), Some(1), "a turn without changes is passed over");
        assert_eq!(to(&all, 7, 2), Some(1));
        assert_eq!(to(&all, 7, 9), Some(1));
        assert_eq!(to(&all, 1, 1), None);
        assert_eq!(to(&all, 2, 1), Some(1));
    }

    #[test]
    fn checkpoints_that_were_given_up_are_passed_over_and_told() {
        let mut all = [
            checkpoint(1, "run_start", None, "a"),
            checkpoint(2, "tool_count", Some(1), "b"),
            checkpoint(3, "run_start", Some(2), "c"),
            checkpoint(4, "tool_count", Some(3), "d"),
            checkpoint(5, "run_end", Some(4), "e"),
        ];
        all[3].snapshot = None;
        assert!(matches!(back(&all, Some(5), 1), Ok((target, _, false)) if target.ordinal == 3));
        all[2].snapshot = None;
        assert!(matches!(back(&all, Some(5), 1), Ok((target, _, true)) if target.ordinal == 1));
    }

    #[test]
    fn a_session_without_runs_goes_back_to_its_first_checkpoint() {
        let all = [checkpoint(1, "asked", None, "a"), checkpoint(2, "phase_complete", Some(1), "b")];
        assert_eq!(to(&all, 2, 1), Some(1));
        assert!(back(&all, None, 1).is_err());
    }
}
