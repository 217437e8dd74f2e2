//! How many snapshots are kept, and giving space back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::time::Duration;
use std::time::SystemTime;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;

use super::checkpoint::Checkpoint;
use super::needed::Needed;
use super::snapshot::At;
use crate::Acted;
use crate::Engine;
use crate::Error;
use crate::act::Acting;
use crate::fault::Guard;
use crate::fault::broken;

/// What is younger is never collected: somebody may be about to need it.
const YOUNG: Duration = Duration::from_secs(24 * 60 * 60);

/// What collecting garbage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Names that nothing needs any more.
    pub dropped: u64,
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
    /// How many bytes are allowed.
    pub quota: Option<u64>,
}

impl Engine {
    /// Gives up the oldest snapshots beyond what is kept. Never a pinned one, never the one the tree is at.
    pub(crate) fn thin_out(&self, state: &mut State, at: &At) {
        // A session that keeps too many is not worth failing a checkpoint for.
        let _ = self.try_thin_out(state, at);
    }

    fn try_thin_out(&self, state: &mut State, at: &At) -> Result<(), Error> {
        let options = self.tree_options()?;
        // None of the numbers is a limit if it is zero.
        let within = |kept: u64| if options.most == 0 { kept } else { kept.min(options.most) };
        let most = match state.status {
            Status::Completed if options.keep_on_success > 0 => within(options.keep_on_success),
            Status::Aborted | Status::Failed if options.keep_on_failure > 0 => {
                within(options.keep_on_failure)
            }
            _ => options.most,
        };
        if most == 0 || state.counts.checkpoints <= most {
            return Ok(());
        }
        let all = self.kept_checkpoints(state.session_id)?;
        let ready: Vec<&Checkpoint> =
            all.iter().filter(|checkpoint| checkpoint.ready && checkpoint.snapshot.is_some()).collect();
        let surplus = ready.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        let spare = |checkpoint: &&&Checkpoint| {
            !checkpoint.pinned
                && state.tree.at != Some(checkpoint.ordinal)
                && !state.tree.redo.contains(&checkpoint.ordinal)
        };
        // Where turns begin goes last, and where the newest begins never: it could not be taken back any more.
        let newest_turn = ready.iter().rfind(|checkpoint| checkpoint.begins_a_turn());
        let newest_turn = newest_turn.map(|checkpoint| checkpoint.ordinal);
        let mut old: Vec<&&Checkpoint> = ready.iter().filter(spare).collect();
        old.retain(|checkpoint| Some(checkpoint.ordinal) != newest_turn);
        old.sort_by_key(|checkpoint| (checkpoint.begins_a_turn(), checkpoint.ordinal));
        let drop: Vec<Checkpoint> = old.into_iter().take(surplus).map(|c| (**c).clone()).collect();
        if drop.is_empty() {
            return Ok(());
        }
        let workspace = self.workspace(state)?;
        for checkpoint in drop {
            let command =
                Command::DropCheckpoint { ordinal: checkpoint.ordinal, why: format!("more than {most}") };
            // First the journal: a checkpoint that is called ready must have its files.
            *state = self.act_as(state.session_id, vec![command], Acting::step(at))?.state;
            if let Some(snapshot) = &checkpoint.snapshot {
                workspace.drop_snapshot(&snapshot.name)?;
            }
        }
        Ok(())
    }

    /// Drops snapshots that no checkpoint of this store speaks of, and gives their space back.
    pub fn collect_snapshots(&self, state: &State) -> Result<Collected, Error> {
        let workspace = self.workspace(state)?;
        let mut collected = Collected { quota: self.tree_options()?.quota, ..Collected::default() };
        // The journal is asked, not the list of checkpoints: a row that is wrong must not cost files.
        let mut needed: HashMap<SessionId, Needed> = HashMap::new();
        let pending = workspace.pending()?;
        let is_pending = |name: &str| {
            pending.as_ref().is_some_and(|pending| pending.target.name == name || pending.safety.name == name)
        };
        for listed in workspace.list()? {
            // One whose age cannot be told, or that comes from the future, is young.
            let age = listed.named.and_then(|named| SystemTime::now().duration_since(named).ok());
            let broken = broken(Guard::Collect);
            if !broken && (age.is_none_or(|age| age < YOUNG) || is_pending(&listed.name)) {
                continue;
            }
            let Some((session, _)) = listed.name.split_once('/') else { continue };
            let Ok(session) = session.parse::<SessionId>() else { continue };
            let ours = match super::snapshot::store_of(&listed.name) {
                Some(store) => store == self.store_id(),
                // Earlier versions did not say: it is ours if the session is.
                None => self.store().known(session)?.is_some(),
            };
            if !ours {
                continue;
            }
            let known = match needed.entry(session) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(free) => free.insert(self.needed_snapshots(session)?),
            };
            let needed = known.may_need(&listed.name);
            if (!needed || broken) && workspace.drop_snapshot(&listed.name)? {
                collected.dropped += 1;
            }
        }
        let age = if broken(Guard::Collect) { Duration::ZERO } else { YOUNG };
        let garbage = workspace.collect_garbage(age)?;
        (collected.before, collected.after) = (garbage.before, garbage.after);
        Ok(collected)
    }

    /// Writes a checkpoint's files to a bundle that another store can take in.
    pub fn export_checkpoint(
        &self,
        session: SessionId,
        checkpoint: &Checkpoint,
        to: &Path,
    ) -> Result<u64, Error> {
        let state = self.load(session)?.state;
        let workspace = self.workspace(&state)?;
        let snapshot = self.snapshot_of(&workspace, checkpoint)?;
        Ok(workspace.export(&snapshot, to)?)
    }

    /// Takes the files of a bundle in as a new checkpoint. The tree itself is not touched.
    pub fn import_checkpoint(&self, session: SessionId, from: &Path, name: &str) -> Result<Acted, Error> {
        let state = self.load(session)?.state;
        let workspace = self.workspace(&state)?;
        let create = Command::CreateCheckpoint {
            name: Some(name.to_owned()),
            reason: segno_core::event::CheckpointReason::Asked,
        };
        let created = self.act_as(session, vec![create], Acting::by_itself())?;
        let ordinal = created.state.counts.checkpoints;
        let seq = created.state.checkpoint.as_ref().map_or(created.seq, |mark| mark.seq);
        let snapshot =
            workspace.import(from, &super::snapshot::snapshot_name(self.store_id(), session, ordinal))?;
        let mark = super::snapshot::mark(&snapshot);
        let mut ready = self.ready(&created.state, ordinal, seq, Some(mark), None, &At::default())?;
        ready.safety_only = true;
        self.act_as(session, vec![Command::ReadyCheckpoint(Box::new(ready))], Acting::by_itself())
    }
}
