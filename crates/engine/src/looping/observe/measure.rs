//! What the working tree of a session is like, and what a run did to it.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::rows::RunRow;
use segno_store::Page;

use crate::Engine;
use crate::Error;
use crate::tree::Checkpoint;

/// How far back the checkpoints of one run are looked for; it may have made one after every few calls.
const FAR: usize = 5_000;
/// How many are read at once.
const PAGE: usize = 20;
/// How often an iteration may have been begun again.
const AGAIN: usize = 50;

/// What a run did to the working tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeDelta {
    /// The tree of files before the run; none if it could not be captured.
    pub before: Option<String>,
    /// The tree of files after it.
    pub after: Option<String>,
    /// How many files and links were added, changed or removed.
    pub files: u64,
    /// How many commits the project's repository has more.
    pub commits: u64,
}

impl TreeDelta {
    /// Whether it did anything to it.
    pub fn is_change(&self) -> bool {
        self.files > 0 || self.commits > 0 || (self.before.is_some() && self.before != self.after)
    }
}

impl Engine {
    /// What the files of a session's project are now, as one name: equal trees have equal files. Ignored files do not
    /// count, and so neither does what segno itself keeps there. Nothing if no snapshots can be made of it.
    ///
    /// # Errors
    /// If it should be possible and fails.
    pub fn present_tree(&self, state: &State) -> Result<Option<String>, Error> {
        self.tree_at(Path::new(&state.project.path), Some(state.session_id))
    }

    /// The tree at a path as it is, for a session or for none.
    pub(crate) fn tree_at(&self, root: &Path, session: Option<SessionId>) -> Result<Option<String>, Error> {
        if self.options.tree.is_none() {
            return Ok(None);
        }
        match self.workspace_at(root, session, None) {
            Ok(workspace) => Ok(Some(workspace.present_tree()?.to_string())),
            // Such as a home directory, or a machine without git: the loop goes by its tests alone.
            Err(Error::NoTree(_)) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Which files of a session's project are not as its newest run left them; none if no checkpoint tells.
    pub(crate) fn changed_since_run(&self, state: &State) -> Result<BTreeSet<PathBuf>, Error> {
        let ready = |checkpoint: &Checkpoint| checkpoint.ready && checkpoint.snapshot.is_some();
        let Some(last) = self.newest_checkpoint(state.session_id, FAR, PAGE, ready)? else {
            return Ok(BTreeSet::new());
        };
        let workspace = self.workspace(state)?;
        let snapshot = self.snapshot_of(&workspace, &last)?;
        Ok(workspace.files_changed_since(&snapshot)?)
    }

    /// Those of some files that the project's repository tracks: what a command writes for itself it does not write there.
    pub(crate) fn tracked_among(
        &self,
        state: &State,
        files: &BTreeSet<PathBuf>,
    ) -> Result<BTreeSet<PathBuf>, Error> {
        let workspace = self.workspace(state)?;
        let head = workspace.head()?;
        Ok(head.map(|head| workspace.tracked_among(&head, files)).unwrap_or_default())
    }

    /// What the newest run of a session did to the tree, by the checkpoints before and after it. Of an iteration that was
    /// begun again, all its runs: what one that was cut short wrote is work of that iteration too.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn tree_delta(&self, state: &State) -> Result<TreeDelta, Error> {
        let session = state.session_id;
        let ready = |checkpoint: &Checkpoint| checkpoint.ready && checkpoint.snapshot.is_some();
        let began = self.iteration_began(session)?;
        let begins = |it: &Checkpoint| it.begins_a_turn() && began.is_none_or(|began| it.seq < began);
        let first = self.newest_checkpoint(session, FAR, PAGE, begins)?;
        let Some(first) = first.filter(ready) else { return Ok(TreeDelta::default()) };
        let last = self.newest_checkpoint(session, FAR, PAGE, |it| ready(it) || it.seq <= first.seq)?;
        let last = last.filter(|it| it.seq > first.seq);
        let mut delta = TreeDelta { before: tree_of(&first), ..TreeDelta::default() };
        let Some(last) = last else { return Ok(delta) };
        delta.after = tree_of(&last);
        if delta.before != delta.after {
            let changes = self.files_between(state, &first, &last)?;
            delta.files = changes.iter().filter(|change| !change.directory).count() as u64;
        }
        let commit = |checkpoint: &Checkpoint| checkpoint.head.as_ref().and_then(|head| head.commit.clone());
        if let Some(to) = commit(&last).filter(|to| Some(to) != commit(&first).as_ref()) {
            delta.commits = self.workspace(state)?.commits_between(commit(&first).as_deref(), &to)?;
        }
        Ok(delta)
    }

    /// Where the first run of the newest run's iteration began.
    fn iteration_began(&self, session: SessionId) -> Result<Option<u64>, Error> {
        let page = Page { after: None, limit: AGAIN, newest_first: true };
        let rows = self.store().page(session, List::Runs, &page)?;
        let runs = rows.iter().map(|row| (row.seq, row.row::<RunRow>()));
        let mut iterations = runs.map(|(seq, run)| (seq, (run.phase, run.iteration)));
        let Some((newest, iteration)) = iterations.next() else { return Ok(None) };
        let same = iterations.take_while(|(_, other)| iteration.1 > 0 && *other == iteration);
        Ok(Some(same.last().map_or(newest, |(seq, _)| seq)))
    }
}

fn tree_of(checkpoint: &Checkpoint) -> Option<String> {
    checkpoint.snapshot.as_ref().map(|snapshot| snapshot.tree.clone())
}
