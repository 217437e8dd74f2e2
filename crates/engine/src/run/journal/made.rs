//! Which files are new. Not every agent knows whether what it wrote was there before: Gemini CLI calls every file that it
//! wrote a changed one.

use std::borrow::Cow;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::AgentEvent;
use segno_agents::ChangeKind;
use segno_core::Timestamp;
use segno_workspace::Snapshot;
use segno_workspace::Workspace;

use super::Recorder;
use crate::inside::born_after;
use crate::inside::inside;
use crate::run::changes::start_of_run;

/// Most files of one run that are looked at; of more the agent is believed.
const FILES: usize = 10_000;

/// The files as they were when the run began.
pub(super) struct Before {
    workspace: Workspace,
    snapshot: Snapshot,
    /// When they were looked at. The run itself is recorded only after its agent was started, which may be quicker.
    taken_at: Timestamp,
}

impl Before {
    /// Whether a file was there. What cannot be told was.
    fn held(&self, path: &Path) -> bool {
        self.workspace.holds(&self.snapshot, path).unwrap_or(true)
    }
}

impl Recorder<'_> {
    /// What an agent says of a file, with a file that the run made called new: one that is told of for the first time,
    /// was not in the project when the run began, and has come to be since.
    pub(super) fn with_true_change<'e>(&mut self, event: &'e AgentEvent) -> Cow<'e, AgentEvent> {
        let AgentEvent::FileChanged { path, change, call_id, moved_to } = event else {
            return Cow::Borrowed(event);
        };
        if !self.is_new(path, *change) {
            return Cow::Borrowed(event);
        }
        Cow::Owned(AgentEvent::FileChanged {
            path: path.clone(),
            change: ChangeKind::Created,
            call_id: call_id.clone(),
            moved_to: moved_to.clone(),
        })
    }

    fn is_new(&mut self, path: &str, change: ChangeKind) -> bool {
        let Some(run) = self.state.run.as_ref().filter(|run| run.id == self.run) else { return false };
        let root = PathBuf::from(&self.state.project.path);
        let Some(relative) = inside(&root, Path::new(&run.directory), Path::new(path)) else { return false };
        let is_first = self.told_files.len() < FILES && self.told_files.insert(relative.clone());
        if !is_first || change != ChangeKind::Modified {
            return false;
        }
        if self.before.is_none() {
            self.before = Some(self.before());
        }
        self.before.as_ref().and_then(Option::as_ref).is_some_and(|before| {
            born_after(&root.join(&relative), before.taken_at) && !before.held(&relative)
        })
    }

    fn before(&self) -> Option<Before> {
        self.engine.options.tree.as_ref()?;
        let checkpoint = start_of_run(self).ok()??;
        let workspace = self.engine.workspace(&self.state).ok()?;
        let snapshot = self.engine.snapshot_of(&workspace, &checkpoint).ok()?;
        Some(Before { workspace, snapshot, taken_at: checkpoint.created_at })
    }
}
