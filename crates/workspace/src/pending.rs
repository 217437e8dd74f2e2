//! What becomes of a restore that was cut short.
//!
//! It is finished by itself only if the tree is exactly as it left it. Else somebody has worked on since, and what was
//! right then may be wrong now: it is told, and whoever asked decides.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rustix::fs::FileType;

use crate::Workspace;
use crate::apply::Applied;
use crate::beneath::as_path;
use crate::changes::Difference;
use crate::changes::Differences;
use crate::changes::differences;
use crate::error::Error;
use crate::intent::Intent;
use crate::intent::Pending;
use crate::plan::Plan;
use crate::plan::captive;
use crate::tree_writer::TreeWriter;

/// What became of a restore that was cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// There was none.
    Nothing,
    /// The tree was as it had left it, and is where it was going now.
    Finished(Applied),
    /// It could not be finished, and everything is as before.
    TakenBack {
        /// What was done for that.
        applied: Applied,
        /// Why it could not be finished.
        why: String,
    },
    /// Somebody worked on since: nothing was done.
    Waiting(Box<Waiting>),
}

/// A restore that was cut short in a tree that moved on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The restore.
    pub pending: Pending,
    /// What is not as it left it, as far as that can be told.
    pub changed: Vec<PathBuf>,
    /// Whether the project's repository has another commit or branch now.
    pub committed: bool,
}

impl Workspace {
    /// Finishes a restore that was cut short if the tree is as it left it, and takes it back if it cannot be finished.
    pub fn settle_pending(&self) -> Result<Settled, Error> {
        let _lock = self.shadow.lock(self.options.patience)?;
        let Some(intent) = self.read_intent()? else { return Ok(Settled::Nothing) };
        let plan = self.plan_of(&intent)?;
        let committed = intent.head.as_ref().is_none_or(|head| *head != self.head_line());
        let changed = self.changed_since(&plan)?;
        if committed || !changed.is_empty() {
            let pending = Pending { target: plan.target, safety: plan.safety, paths: intent.paths.len() };
            return Ok(Settled::Waiting(Box::new(Waiting { pending, changed, committed })));
        }
        let finished = self.verify_needed(&plan).and_then(|()| self.carry_out(&plan.steps, true));
        match finished {
            Ok(applied) => {
                self.remove_intent()?;
                Ok(Settled::Finished(applied))
            }
            Err(why) => {
                let applied = self.take_back(&plan)?;
                Ok(Settled::TakenBack { applied, why: why.to_string() })
            }
        }
    }

    /// Finishes a restore that was cut short, whatever happened since. What somebody changed since is kept.
    pub fn finish_pending(&self) -> Result<Applied, Error> {
        let _lock = self.shadow.lock(self.options.patience)?;
        let intent = self.read_intent()?.ok_or(Error::NothingPending)?;
        let plan = self.plan_of(&intent)?;
        self.verify_needed(&plan)?;
        let applied = self.carry_out(&plan.steps, true)?;
        self.remove_intent()?;
        Ok(applied)
    }

    /// Takes a restore back that was cut short. What somebody changed since is kept.
    pub fn undo_pending(&self) -> Result<Applied, Error> {
        let _lock = self.shadow.lock(self.options.patience)?;
        let intent = self.read_intent()?.ok_or(Error::NothingPending)?;
        self.take_back(&self.plan_of(&intent)?)
    }

    /// Leaves the tree as it is and forgets the restore that was cut short. Only files that were about to be put in
    /// place go; the snapshots of both sides stay.
    pub fn leave_pending(&self) -> Result<(), Error> {
        let _lock = self.shadow.lock(self.options.patience)?;
        if !self.shadow.intent().exists() {
            return Err(Error::NothingPending);
        }
        // A note that cannot be read any more must not stand in the way for ever.
        if let Ok(Some(intent)) = self.read_intent()
            && let Ok(plan) = self.plan_of(&intent)
        {
            let writer = TreeWriter::new(&self.root);
            for (path, step) in &plan.steps {
                // What the system refuses here stays beside its place; nothing is lost by that.
                let _ = writer.settle(path, step);
            }
        }
        self.remove_intent()
    }

    /// Does the opposite of a plan, and forgets the note of it.
    pub(crate) fn take_back(&self, plan: &Plan) -> Result<Applied, Error> {
        let back: Differences =
            plan.steps.iter().map(|(path, step)| (path.clone(), step.reversed())).collect();
        let applied = self.carry_out(&back, true)?;
        self.remove_intent()?;
        Ok(applied)
    }

    fn plan_of(&self, intent: &Intent) -> Result<Plan, Error> {
        let (target, safety) = (self.snapshot_of(&intent.target)?, self.snapshot_of(&intent.safety)?);
        self.plan_again(&target, &safety, &intent.paths)
    }

    /// Paths that are not as a restore left them when it was cut short. The lock must be held.
    fn changed_since(&self, plan: &Plan) -> Result<Vec<PathBuf>, Error> {
        let begun = self.read_progress();
        let writer = TreeWriter::new(&self.root);
        let mut changed = BTreeSet::new();
        for (path, step) in &plan.steps {
            let is_last = begun.last() == Some(path);
            if !is_last && !is_as_left(&writer, path, step, begun.contains(path)) {
                changed.insert(as_path(path).to_owned());
            }
        }
        // The rest of the tree must be what was there when it began.
        let now = self.present()?;
        let then = self.manifest(&plan.safety)?;
        let others = differences(&now.git, captive(&plan.safety, &then), now.captive())?;
        let is_directory =
            |step: &Difference| step.from.iter().chain(&step.to).all(|node| node.is_directory());
        let others =
            others.iter().filter(|(path, step)| !plan.steps.contains_key(*path) && !is_directory(step));
        changed.extend(others.map(|(path, _)| as_path(path).to_owned()));
        Ok(changed.into_iter().collect())
    }

    /// The paths that a restore had begun to change, in that order.
    fn read_progress(&self) -> Vec<Vec<u8>> {
        let bytes = std::fs::read(self.shadow.progress()).unwrap_or_default();
        // A last line without its end was being written.
        let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        lines.pop();
        lines
    }
}

/// Whether a path is as a restore left it that had begun to change it or not. Directories come and go with their files.
fn is_as_left(writer: &TreeWriter<'_>, path: &[u8], step: &Difference, begun: bool) -> bool {
    let node = if begun { step.to } else { step.from };
    let has_directory = step.from.iter().chain(&step.to).any(|node| node.is_directory());
    match (writer.look(path), node) {
        (Ok(None), None) => true,
        (Ok(Some(stat)), Some(node)) => writer.is(path, &stat, &node),
        // What was there made way, and what comes was not made yet.
        (Ok(None), Some(_)) => has_directory,
        (Ok(Some(stat)), None) => has_directory && stat.kind() == FileType::Directory,
        // A file where a directory was.
        (Err(_), None) => true,
        (Err(_), Some(_)) => false,
    }
}
