//! Whose a change was: what a session did while it had a call open, what others did, and what may be either.
//!
//! A call that names a file did what happened to it. What else changed while a shell call was open was the shell's; a
//! plain command is one such call. When a file changed is told by its own marks and by the checkpoints around it. See
//! `docs/design/012-going-back-with-a-right.md`.

mod calls;
mod judge;
mod window;

use std::collections::BTreeMap;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::State;
use segno_core::rows::RunRow;
use segno_core::text::shorten;
use segno_store::EventRow;
use segno_store::Filter;
use segno_workspace::Side;
use segno_workspace::Workspace;

use super::busy::overlap;
use super::busy::real;
use super::checkpoint::Checkpoint;
use crate::Engine;
use crate::Error;

use self::calls::Reader;
use self::calls::Work;
use self::judge::Judge;

/// How much of a command is said of it.
const COMMAND: usize = 40;

/// What a tool may change.
pub(crate) mod calls_sort {
    pub(crate) use super::calls::Sort;
    pub(crate) use super::calls::sort;
}

/// Whose a change was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The session's.
    Session,
    /// Somebody else's: a person's, or another session's.
    Others,
    /// One of both.
    Unsure,
}

impl Whose {
    fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Unsure }
    }
}

impl Engine {
    /// For everything that changed from one checkpoint to a later one: whose it was.
    pub(super) fn whose(
        &self,
        state: &State,
        workspace: &Workspace,
        target: &Checkpoint,
        from: &Checkpoint,
    ) -> Result<BTreeMap<PathBuf, Whose>, Error> {
        let root = workspace.root();
        let ours = self.work(state.session_id, target.seq.saturating_sub(1), Reader::new(root))?;
        let mut theirs = Work::default();
        // Also of projects inside this one, and of one around it.
        let filter = Filter { since: Some(target.created_at), ..Filter::default() };
        for other in self.list(&filter)? {
            let Some(project) = Some(&other.project).filter(|path| overlap(path, &state.project.path)) else {
                continue;
            };
            if other.session_id != state.session_id && other.created_at <= from.created_at {
                let reader = Reader { project: real(project), ..Reader::new(root) };
                // One that cannot be read might have done anything, but nothing tells so.
                let work = self.work(other.session_id, 0, reader).unwrap_or_default();
                theirs.shell.extend(work.shell);
                theirs.named.extend(work.named);
            }
        }
        let judge = Judge { root, ours: &ours, theirs: &theirs };
        let mut found: BTreeMap<PathBuf, Whose> = BTreeMap::new();
        let chain = self.chain(state.session_id, target, from)?;
        for pair in chain.windows(2) {
            let [first, second] = pair else { continue };
            let between = (first.created_at.as_micros(), second.created_at.as_micros());
            let (before, after) = (self.snapshot_of(workspace, first)?, self.snapshot_of(workspace, second)?);
            for change in workspace.diff(&before, Side::Snapshot(&after), false)? {
                let whose = judge.whose(&change, between);
                found.entry(change.path).and_modify(|before| *before = before.and(whose)).or_insert(whose);
            }
        }
        Ok(found)
    }

    /// The newest run of a session in words, if it counts as one call: a plain command, or an agent that told of none. All
    /// that changed while it ran counts as its work.
    pub(super) fn one_call(&self, session: SessionId) -> Result<Option<String>, Error> {
        let Some(run) = self.newest_run(session)?.map(|run| run.row::<RunRow>()) else { return Ok(None) };
        let told = self.load(session)?.state.calls.total > 0;
        let is_command = segno_agents::is_command(&run.agent) && !run.command.is_empty();
        let words = if is_command { run.command.join(" ") } else { run.agent.clone() };
        Ok((calls::is_one_call(&run.agent) && !told).then(|| shorten(&words, COMMAND)))
    }

    /// The checkpoints with files from one to a later one, both included.
    fn chain(
        &self,
        session: SessionId,
        target: &Checkpoint,
        from: &Checkpoint,
    ) -> Result<Vec<Checkpoint>, Error> {
        let all = self.checkpoints(session)?;
        let mut chain = vec![from.clone()];
        let mut here = from.parent;
        while let Some(ordinal) = here.filter(|ordinal| *ordinal > target.ordinal) {
            let Some(checkpoint) = all.iter().find(|checkpoint| checkpoint.ordinal == ordinal) else { break };
            here = checkpoint.parent;
            if checkpoint.ready && checkpoint.snapshot.is_some() {
                chain.push(checkpoint.clone());
            }
        }
        chain.push(target.clone());
        chain.reverse();
        Ok(chain)
    }

    /// Reads what a session's calls did from its journal.
    fn work(&self, session: SessionId, after: u64, mut reader: Reader<'_>) -> Result<Work, Error> {
        let mut after = after;
        loop {
            let rows = self.store().events(session, after, 1000)?;
            let Some(last) = rows.last() else { break };
            after = match last {
                EventRow::Whole(event) => event.seq,
                EventRow::Damaged { seq, .. } => *seq,
            };
            for row in &rows {
                if let EventRow::Whole(stored) = row
                    && let Ok(event) = stored.event()
                {
                    reader.take(&event, stored.at.as_micros());
                }
            }
        }
        Ok(reader.finish())
    }
}
