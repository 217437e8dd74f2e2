//! A branch for each item: begun where the loop began, and gone back to when the item is tried again.

use segno_core::Command;
use segno_core::State;
use segno_core::looping::QueuePlan;

use crate::Engine;
use crate::Error;
use crate::resume::plan::short_branch;

impl Engine {
    /// What loops on the same queue have in common, and the branch that every item's own begins at.
    pub(crate) fn prepare_queue(&self, state: &State, queue: &mut QueuePlan) -> Result<(), Error> {
        let workspace = self.workspace(state);
        let head = workspace.as_ref().ok().and_then(|workspace| workspace.head().ok().flatten());
        let root = match (&workspace, &head) {
            // The tracker is the repository's, whichever of its work trees somebody is in.
            (Ok(workspace), Some(head)) => workspace.shared_dir(head).display().to_string(),
            _ => state.project.path.clone(),
        };
        let source = queue.checklist.as_deref().map_or("tracker".to_owned(), |path| format!("list {path}"));
        queue.id = format!("{source} of {root}");
        if queue.branch.is_some() {
            let branch = head.and_then(|head| head.branch).ok_or_else(|| {
                Error::NoTree("a branch for each item needs a git repository that is on a branch".to_owned())
            })?;
            queue.base = Some(short_branch(&branch).to_owned());
        }
        Ok(())
    }

    /// Brings the project to the branch of an item, if each has its own.
    ///
    /// # Errors
    /// If files that are not committed are in the way: they would be taken along to another item's branch.
    pub(crate) fn enter_branch(&self, state: &State, queue: &QueuePlan, item: &str) -> Result<(), Error> {
        let Some(name) = queue.branch_of(item) else { return Ok(()) };
        let name = name.replace("{id}", &state.session_id.to_string());
        let workspace = self.workspace(state)?;
        let head = workspace.head()?.ok_or_else(|| Error::NoTree("the repository is gone".to_owned()))?;
        let present = head.branch.as_deref().map(short_branch).unwrap_or_default().to_owned();
        if present != name {
            if workspace.has_uncommitted(&head)? {
                let why = format!("files on {present} are not committed, and would go along to {name}");
                return Err(Error::NoTree(why));
            }
            if workspace.checkout_branch(&name).is_err() {
                let base = queue.base.as_deref().unwrap_or(&present);
                if present != base {
                    workspace.checkout_branch(base)?;
                }
                workspace.start_branch(&name)?;
            }
        }
        if state.branch.as_ref() != Some(&name) {
            self.act(state.session_id, Command::SetGitBranch { branch: Some(name), commit: None })?;
        }
        Ok(())
    }

    /// Whether all work on an item's branch is committed; where items have none, nobody asks for it.
    pub(crate) fn is_committed(&self, state: &State, queue: &QueuePlan) -> Result<bool, Error> {
        if queue.branch.is_none() {
            return Ok(true);
        }
        let workspace = self.workspace(state)?;
        let Some(head) = workspace.head()? else { return Ok(true) };
        Ok(!workspace.has_uncommitted(&head)?)
    }

    /// Goes back to where the loop began, if nothing is in the way. What there is to do is read there.
    pub(crate) fn leave_branch(&self, state: &State, queue: &QueuePlan) -> Result<(), Error> {
        let Some(base) = queue.base.as_deref().filter(|_| queue.branch.is_some()) else { return Ok(()) };
        let workspace = self.workspace(state)?;
        let Some(head) = workspace.head()? else { return Ok(()) };
        let present = head.branch.as_deref().map(short_branch).unwrap_or_default();
        if present == base || workspace.has_uncommitted(&head)? {
            return Ok(());
        }
        Ok(workspace.checkout_branch(base)?)
    }
}
