//! Snapshots, diffs and restores a working tree.
//!
//! Everything is kept in a *shadow directory* outside the tree: an ordinary bare git repository with SHA-256 ids. The
//! project's own `.git` is never written (but for [`Workspace::move_branch`]), and need not exist. Nothing that the tree or
//! the user has configured can run: we list and read the files ourselves, write the pack ourselves, and start git
//! only to read that repository, with an empty environment.
//!
//! Calls block. What changes the shadow directory waits for its lock, so several processes may use one project.

mod apply;
mod batch;
mod beneath;
mod bundle;
mod cache;
mod capture;
mod changes;
mod content;
mod diff;
mod durable;
mod error;
mod fault;
mod forget;
pub mod git;
mod historic_ignore;
mod id;
mod intent;
mod manifest;
mod needed;
mod objects;
mod pack;
mod past;
mod pending;
mod plan;
mod record;
mod retention;
mod rules;
mod shadow;
mod snapshot;
mod stat;
mod tracked;
mod tree_writer;
pub mod user;
mod walk;

pub use apply::Applied;
pub use apply::Hold;
pub use diff::Change;
pub use diff::ChangeKind;
pub use diff::Lines;
pub use diff::Side;
pub use error::Error;
#[doc(hidden)]
pub use fault::steps_passed;
pub use forget::Holding;
pub use forget::Snapshots;
pub use id::ObjectId;
pub use intent::Pending;
pub use manifest::Exception;
pub use manifest::Reason;
pub use past::Commit;
pub use past::PastContent;
pub use pending::Settled;
pub use pending::Waiting;
pub use plan::Kept;
pub use plan::Plan;
pub use plan::Selection;
pub use plan::Why;
pub use record::Snapshot;
pub use record::Taken;
pub use retention::Garbage;
pub use retention::Listed;
pub use retention::Verified;

use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use beneath::Root;
use beneath::as_bytes;
use error::Context as _;
use git::Git;
use rules::Wanted;
use shadow::Shadow;

/// Files up to this size are captured unless the options say otherwise.
pub const LARGEST_FILE: u64 = 64 << 20;

/// How a workspace is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The top of the working tree.
    pub root: PathBuf,
    /// The shadow directory, one per project. It is made if it is not there.
    pub shadow: PathBuf,
    /// The git program, absolute. [`git::find`] looks for it.
    pub git: PathBuf,
    /// The user's home directory, of which no snapshots are made.
    pub home: Option<PathBuf>,
    /// Larger files are left out.
    pub largest_file: u64,
    /// How many bytes all snapshots of the project may take.
    pub quota: Option<u64>,
    /// Ignored files to capture all the same, as patterns of an ignore file. To reach into an ignored directory a
    /// pattern must name it.
    pub include_ignored: Vec<String>,
    /// The user's ignore file for all repositories.
    pub global_excludes: Option<PathBuf>,
    /// Absolute paths that are never captured and never touched. The shadow directory always is one.
    pub never: Vec<PathBuf>,
    /// How long to wait for another process.
    pub patience: Duration,
    /// Set by whoever does not want it any more: what waits or reads ends soon after.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl Options {
    /// The usual limits.
    pub fn new(root: impl Into<PathBuf>, shadow: impl Into<PathBuf>, git: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            shadow: shadow.into(),
            git: git.into(),
            home: None,
            largest_file: LARGEST_FILE,
            quota: None,
            include_ignored: Vec::new(),
            global_excludes: None,
            never: Vec::new(),
            patience: Duration::from_secs(60),
            cancel: None,
        }
    }
}

/// A working tree and its snapshots.
#[derive(Debug)]
pub struct Workspace {
    options: Options,
    root: Root,
    shadow: Shadow,
    git: Git,
    wanted: Wanted,
    never: HashSet<Vec<u8>>,
}

impl Workspace {
    /// Opens a working tree. Fails if git is missing or too old, and for trees that are no project.
    pub fn open(options: &Options) -> Result<Self, Error> {
        let mut options = options.clone();
        let root = options.root.canonicalize().context("cannot open", &options.root)?;
        if !root.is_dir() {
            return Err(Error::NotADirectory(root));
        }
        options.home = options.home.map(|home| home.canonicalize().unwrap_or(home));
        refuse_wide(&root, options.home.as_deref())?;
        options.root = root;
        options.shadow = std::path::absolute(&options.shadow).context("cannot open", &options.shadow)?;
        let git = Git::new(&options.git, &options.shadow.join("git"))?;
        let shadow = Shadow::open(&options.shadow, options.patience, options.cancel.clone())?;
        let root = Root::open(&options.root)?;
        let beneath = options.never.iter().chain([&options.shadow]).filter_map(|path| {
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            path.strip_prefix(&options.root).ok().map(|inside| as_bytes(inside).to_vec())
        });
        let never = beneath.filter(|inside| !inside.is_empty()).collect();
        let wanted = Wanted::new(&options.include_ignored);
        Ok(Self { options, root, shadow, git, wanted, never })
    }

    /// The top of the working tree, with links resolved.
    pub fn root(&self) -> &Path {
        &self.options.root
    }

    /// The shadow directory.
    pub fn shadow(&self) -> &Path {
        &self.options.shadow
    }
}

fn refuse_wide(root: &Path, home: Option<&Path>) -> Result<(), Error> {
    let refuse = |what| Err(Error::TooWide { root: root.to_owned(), what });
    if root.parent().is_none() {
        return refuse("the whole file system");
    }
    let Some(home) = home else { return Ok(()) };
    if root == home {
        return refuse("a home directory");
    }
    if home.starts_with(root) { refuse("what is above a home directory") } else { Ok(()) }
}
