//! Going back beside an agent that lives: its next call waits until the files are where they should be, and is refused
//! once, with the word what was taken back. What the agent was about to do it thought of before.

use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use segno_core::Fact;
use segno_core::RunId;
use segno_core::SessionId;
use segno_core::State;
use segno_core::text::shorten;
use segno_workspace::Applied;

use super::project::ShadowDirectory;
use crate::Engine;
use crate::Error;
use crate::file_lock::wait_for_lock;

/// How long a call waits, within the ten seconds that agents give a hook.
const HOLD: Duration = Duration::from_secs(6);
/// How long whoever goes back waits for others who do.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many files the agent is told of.
const TOLD: usize = 20;
/// What a hook says when it has waited long enough.
const UNDER_WAY: &str =
    "segno: files of this project are being taken back just now; wait a moment and try again";

/// A living agent that lets files go back, because its next call can be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldAgent {
    pub(super) session: SessionId,
    pub(super) run: String,
}

/// Held while files are brought somewhere. The system lets go of it when the process dies.
pub(super) struct RestoreLock {
    tell: PathBuf,
    _file: File,
}

impl RestoreLock {
    /// From now on no call begins in the tree without waiting.
    pub(super) fn begin(shadow: &Path) -> Result<Self, Error> {
        let path = lock_of(shadow);
        let failed = |why| Error::file(&path, why);
        let file = File::options().read(true).append(true).create(true).open(&path).map_err(failed)?;
        if !wait_for_lock(PATIENCE, || file.try_lock()).map_err(failed)? {
            let why = format!("somebody else is restoring files, for {} s", PATIENCE.as_secs());
            return Err(Error::NoTree(why));
        }
        Ok(Self { tell: shadow.join("tell"), _file: file })
    }

    /// Leaves word for the agents beside. One that cannot be told is no reason to fail: it is done.
    pub(super) fn tell(&self, agents: &[HeldAgent], to: &str, applied: &Applied) {
        let text = words(to, applied);
        // What was meant for agents that made no further call is of no use any more.
        let _ = std::fs::remove_dir_all(&self.tell).or_else(|_| std::fs::remove_file(&self.tell));
        let runs = agents.iter().filter_map(|agent| agent.run.parse::<RunId>().ok());
        for run in runs.filter(|_| !applied.written.is_empty() || !applied.removed.is_empty()) {
            let path = self.tell.join(run.as_str());
            let _ = segno_files::private_directory(&self.tell)
                .and_then(|()| segno_files::replace(&path, text.as_bytes(), segno_files::Access::Private));
        }
    }
}

fn lock_of(shadow: &Path) -> PathBuf {
    shadow.join("going")
}

fn words(to: &str, applied: &Applied) -> String {
    let one =
        |word: &str, path: &PathBuf| format!("{word} {}", crate::resume::one_line(&path.to_string_lossy()));
    let written = applied.written.iter().map(|path| one("put back", path));
    let mut files: Vec<String> =
        written.chain(applied.removed.iter().map(|path| one("removed", path))).collect();
    let more = files.len().saturating_sub(TOLD);
    files.truncate(TOLD);
    if more > 0 {
        files.push(format!("and {more} more"));
    }
    let files = shorten(&files.join("; "), 2_000);
    format!(
        "segno: somebody took files of this project back, to checkpoint {to}: {files}. This call was not run. Look at \
         these files again before you go on, and do not bring back what was taken back unless you are asked to."
    )
}

impl Engine {
    /// Before a call runs: waits while files are taken back, and says why it may not run as it was thought of.
    pub(crate) fn hold_call(&self, state: &State, facts: &[Fact], run: Option<&str>) -> Option<String> {
        let begins = facts.iter().any(|fact| matches!(fact, Fact::ToolStarted { write_ahead: true, .. }));
        let options = self.options.tree.as_ref().filter(|_| begins)?;
        let root = Path::new(&state.project.path).canonicalize().ok()?;
        let shadow = ShadowDirectory::find(options, &root, Some(state.session_id)).ok()?.shadow;
        // Nobody ever went back here.
        let file = File::open(lock_of(&shadow)).ok()?;
        if !wait_for_lock(HOLD, || file.try_lock_shared()).ok()? {
            return Some(UNDER_WAY.to_owned());
        }
        let run: RunId = run?.parse().ok()?;
        let path = shadow.join("tell").join(run.as_str());
        let text = std::fs::read_to_string(&path).ok()?;
        // Of two calls at once, one is told.
        std::fs::remove_file(&path).ok().map(|()| text)
    }
}
