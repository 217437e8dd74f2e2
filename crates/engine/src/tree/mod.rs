//! The working tree of a session: snapshots at its checkpoints, and going back to them without destroying anything.

mod ask;
mod attribution;
mod busy;
mod checkpoint;
mod hold;
mod inspect;
mod memory;
mod needed;
mod outputs;
mod pending;
mod project;
mod restore;
mod retention;
pub mod risky;
pub(crate) mod snapshot;
mod undo;

pub use attribution::Whose;
pub(crate) use attribution::calls_sort;
pub use checkpoint::Checkpoint;
pub(crate) use checkpoint::refuse_from_elsewhere;
pub use inspect::Compared;
pub use inspect::Validation;
pub(crate) use memory::TreeMemory;
pub use pending::Decision;
pub use pending::tell as tell_pending;
pub use restore::Preview;
pub use restore::RestoreRequest;
pub use restore::RestoreTarget;
pub use restore::Restored;
pub use retention::Collected;
pub use snapshot::At;
pub(crate) use snapshot::mark;

use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::State;
use segno_workspace::Workspace;
use serde::Deserialize;
use serde::Serialize;

use crate::Engine;
use crate::Error;

/// How snapshots are made and kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TreeOptions {
    /// Where the shadow directories are, one for each project.
    pub shadows: PathBuf,
    /// The git program; none if there is none.
    pub git: Option<PathBuf>,
    /// The user's home directory, of which no snapshots are made.
    pub home: Option<PathBuf>,
    /// The user's ignore file for all repositories.
    pub global_excludes: Option<PathBuf>,
    /// Larger files are left out.
    pub largest_file: u64,
    /// How many bytes the snapshots of a project may take.
    pub quota: Option<u64>,
    /// Ignored files to capture all the same.
    pub include_ignored: Vec<String>,
    /// Paths that are never captured.
    pub never: Vec<PathBuf>,
    /// A checkpoint after so many tool calls of a run; 0 is none.
    pub every_calls: u64,
    /// Most checkpoints with a snapshot in one session; the oldest go first.
    pub most: u64,
    /// How many stay when a session is completed; 0 is all.
    pub keep_on_success: u64,
    /// How many stay when a session was aborted or failed; 0 is all.
    pub keep_on_failure: u64,
    /// Patterns of commands before which a checkpoint is made.
    pub risky: Vec<String>,
    /// Whether a run stops when its checkpoint cannot be made.
    pub stop_on_failure: bool,
}

impl TreeOptions {
    /// The usual ones.
    pub fn new(shadows: impl Into<PathBuf>, git: Option<PathBuf>) -> Self {
        Self {
            shadows: shadows.into(),
            git,
            home: None,
            global_excludes: None,
            largest_file: segno_workspace::LARGEST_FILE,
            quota: None,
            include_ignored: Vec::new(),
            never: Vec::new(),
            every_calls: 20,
            most: 100,
            keep_on_success: 0,
            keep_on_failure: 0,
            risky: Vec::new(),
            stop_on_failure: false,
        }
    }

    /// The shadow directory of the first project at a path: recognisable by people, and another one for every path.
    pub(crate) fn shadow(&self, root: &Path) -> PathBuf {
        let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
        let name: String = root
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
            .take(40)
            .collect();
        self.shadows.join(format!("{name}-{}", &hash[..16]))
    }
}

impl Engine {
    /// The tree options, or that snapshots are switched off.
    pub(crate) fn tree_options(&self) -> Result<&TreeOptions, Error> {
        self.options.tree.as_ref().ok_or_else(|| Error::NoTree("snapshots are switched off".to_owned()))
    }

    /// The working tree of a session.
    ///
    /// # Errors
    /// If there is none, or no snapshots of it can be made.
    pub fn workspace(&self, state: &State) -> Result<Workspace, Error> {
        self.workspace_until(state, None)
    }

    /// The same, for whoever may not want it any more before it is done.
    pub(crate) fn workspace_until(
        &self,
        state: &State,
        cancel: Option<std::sync::Arc<std::sync::atomic::AtomicBool>>,
    ) -> Result<Workspace, Error> {
        self.workspace_at(Path::new(&state.project.path), Some(state.session_id), cancel)
    }

    /// The tree at a path, for a session or for none.
    pub(crate) fn workspace_at(
        &self,
        root: &Path,
        session: Option<SessionId>,
        cancel: Option<std::sync::Arc<std::sync::atomic::AtomicBool>>,
    ) -> Result<Workspace, Error> {
        let options = self.tree_options()?;
        let root = root.canonicalize().map_err(|why| Error::file(root, why))?;
        let git = options.git.clone().ok_or_else(|| {
            Error::NoTree(format!(
                "git was not found: snapshots need git {} or newer",
                segno_workspace::git::OLDEST
            ))
        })?;
        let directory = project::ShadowDirectory::find(options, &root, session)?;
        let workspace = Workspace::open(&segno_workspace::Options {
            home: options.home.clone(),
            largest_file: options.largest_file,
            quota: options.quota,
            include_ignored: options.include_ignored.clone(),
            global_excludes: options.global_excludes.clone(),
            never: options.never.clone(),
            cancel,
            ..segno_workspace::Options::new(&root, &directory.shadow, git)
        })?;
        directory.keep(&root)?;
        Ok(workspace)
    }
}
