//! What a process remembers of the checkpoints it made, so that the next one costs what the first one did: which of them still
//! have their files, and how the newest two compare. All of it can be read again.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::PoisonError;

use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_workspace::Change;
use segno_workspace::Side;

use super::checkpoint::Checkpoint;
use super::checkpoint::read_row;
use super::checkpoint::row_key;
use crate::Engine;
use crate::Error;

/// More changes than this are not kept in memory.
const MOST_CHANGES: usize = 10_000;

/// What this process knows of trees.
#[derive(Debug, Default)]
pub(crate) struct TreeMemory {
    kept: Mutex<BTreeMap<SessionId, Kept>>,
    compared: Mutex<Option<Compared>>,
}

/// The checkpoints of a session that were not given up. Nobody takes that back, so only these have to be looked at again.
#[derive(Clone, Debug, Default)]
struct Kept {
    /// The newest one that was looked at.
    newest: u64,
    /// Those up to it.
    ordinals: BTreeSet<u64>,
}

/// What is different in one snapshot and another. Their commits name them for ever.
#[derive(Clone, Debug)]
struct Compared {
    before: String,
    after: String,
    changes: Vec<Change>,
}

impl Engine {
    /// The checkpoints of a session that were not given up, the oldest first, as they are now. The first time all are read,
    /// afterwards those that are left and those that are new: looking through all of them at each new one would cost the
    /// more the longer the session lasts.
    pub(super) fn kept_checkpoints(&self, session: SessionId) -> Result<Vec<Checkpoint>, Error> {
        let known = self.trees.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&session).cloned();
        let before = known.as_ref().map_or(0, |known| known.newest);
        let mut all = match known {
            None => self.checkpoints(session)?,
            Some(known) => {
                let keys: Vec<String> = known.ordinals.iter().copied().map(row_key).collect();
                let mut rows = self.store().rows(session, List::Checkpoints, &keys)?;
                let newest = row_key(known.newest);
                rows.extend(self.newest_while(session, List::Checkpoints, |row| row.key > newest)?);
                match rows.iter().map(|row| read_row(&row.body)).collect::<Option<Vec<_>>>() {
                    Some(read) => read,
                    // A damaged row is read from the journal, which takes as long as it takes.
                    None => self.checkpoints(session)?,
                }
            }
        };
        all.sort_by_key(|checkpoint| checkpoint.ordinal);
        let newest = all.last().map_or(before, |last| last.ordinal.max(before));
        all.retain(|checkpoint| checkpoint.dropped.is_none());
        let kept = Kept { newest, ordinals: all.iter().map(|checkpoint| checkpoint.ordinal).collect() };
        self.trees.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(session, kept);
        Ok(all)
    }

    /// The files that are different in one checkpoint and another. The record is not read for it, however long it is, and
    /// who asks for the same two again is told at once.
    pub(crate) fn files_between(
        &self,
        state: &State,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<Vec<Change>, Error> {
        let commit = |of: &Checkpoint| of.snapshot.as_ref().map(|mark| mark.commit.clone());
        let asked = commit(before).zip(commit(after)).filter(|_| before.ready && after.ready);
        if let Some((before, after)) = &asked {
            let compared = self.trees.compared.lock().unwrap_or_else(PoisonError::into_inner);
            let same = compared.as_ref().filter(|it| it.before == *before && it.after == *after);
            if let Some(same) = same {
                return Ok(same.changes.clone());
            }
        }
        let workspace = self.workspace(state)?;
        let (first, second) = (self.snapshot_of(&workspace, before)?, self.snapshot_of(&workspace, after)?);
        let changes = workspace.diff(&first, Side::Snapshot(&second), false)?;
        if let Some((before, after)) = asked.filter(|_| changes.len() <= MOST_CHANGES) {
            let compared = Compared { before, after, changes: changes.clone() };
            *self.trees.compared.lock().unwrap_or_else(PoisonError::into_inner) = Some(compared);
        }
        Ok(changes)
    }
}
