//! The rules for checkpoints and for going back to them.

use super::no_rule;
use super::one;
use crate::command::Command;
use crate::event as ev;
use crate::event::Event;
use crate::limits;
use crate::refusal::Refusal;
use crate::state::State;

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`decide` sends only these here; a test asks for every rule"
)]
pub(super) fn decide_checkpoint(state: &State, command: Command) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::ReadyCheckpoint(mut ready) => {
            known(state, ready.ordinal)?;
            // Where the tree stood is what the newest state says, whatever was known when the snapshot was begun.
            ready.parent = state.tree.at.filter(|at| *at != ready.ordinal);
            let tree = ready.snapshot.as_ref().map(|snapshot| &snapshot.tree);
            ready.tree_changed = tree.is_some() && tree != state.tree.tree.as_ref();
            one(*ready)
        }
        Command::FailCheckpoint { ordinal, why } => {
            known(state, ordinal)?;
            one(ev::CheckpointFailed { ordinal, why })
        }
        Command::PinCheckpoint { ordinal, pinned } => {
            known(state, ordinal)?;
            one(ev::CheckpointPinned { ordinal, pinned })
        }
        Command::DropCheckpoint { ordinal, why } => {
            known(state, ordinal)?;
            limits::line("reason", &why)?;
            one(ev::CheckpointDropped { ordinal, why })
        }
        Command::InvalidateCheckpoints { after } => {
            known(state, after)?;
            let up_to = state.counts.checkpoints;
            if up_to <= after {
                return Err(Refusal::Already(format!("there is no checkpoint after number {after}")));
            }
            one(ev::CheckpointsInvalidated { after, up_to })
        }
        Command::RecordRestore(restored) => {
            known(state, restored.to)?;
            known(state, restored.safety)?;
            one(restored)
        }
        Command::RestoreState { to, state: then } => {
            known(state, to)?;
            one(ev::StateRestored { to, state: then })
        }
        other => no_rule(&other),
    }
}

fn known(state: &State, ordinal: u64) -> Result<(), Refusal> {
    if (1..=state.counts.checkpoints).contains(&ordinal) {
        Ok(())
    } else {
        Err(Refusal::Unknown { what: "checkpoint", id: ordinal.to_string() })
    }
}
