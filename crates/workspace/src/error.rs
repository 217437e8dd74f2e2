//! What can go wrong with a workspace.

use std::path::Path;
use std::path::PathBuf;

/// A workspace that could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Git is not there.
    #[error("git was not found at {}: snapshots need git {} or newer", .0.display(), crate::git::OLDEST)]
    NoGit(PathBuf),
    /// Git is there, and too old.
    #[error("git {found} is too old: snapshots need git {} or newer", crate::git::OLDEST)]
    OldGit {
        /// What it says of itself.
        found: String,
    },
    /// A git command failed.
    #[error("git {command} failed: {said}")]
    Git {
        /// Which command.
        command: String,
        /// What it said.
        said: String,
    },
    /// The root is `/`, the home directory, or holds the home directory.
    #[error("{} is not a project: snapshots of {what} are refused", .root.display())]
    TooWide {
        /// The directory.
        root: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The root is no directory.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// A name that cannot name a snapshot.
    #[error("{0:?} cannot name a snapshot: use letters, digits, '.', '_', '-' and '/'")]
    BadName(String),
    /// The name is taken.
    #[error("there is a snapshot {0} already")]
    NameTaken(String),
    /// No such snapshot.
    #[error("there is no snapshot {0}")]
    NotFound(String),
    /// The snapshots use more room than they may.
    #[error("snapshots use {used} bytes, {quota} are allowed: remove some and collect garbage")]
    OverQuota {
        /// How much is used, or would be.
        used: u64,
        /// How much is allowed.
        quota: u64,
    },
    /// Whoever wanted it does not want it any more.
    #[error("it was cancelled")]
    Cancelled,
    /// Another process works on this project's snapshots.
    #[error("another process works on the snapshots of this project")]
    Busy,
    /// A restore was cut short: finish it or take it back first.
    #[error("a restore was cut short: finish it or take it back first")]
    Pending,
    /// A restore failed on the way, and everything is as it was before.
    #[error("{0}; what was done so far is taken back, and everything is as before")]
    GivenUp(Box<Error>),
    /// A restore failed on the way, and could not be taken back either.
    #[error("{0}; the restore stopped half-way")]
    Halfway(Box<Error>),
    /// There is no restore to finish or to take back.
    #[error("no restore was interrupted")]
    NothingPending,
    /// What is kept is damaged.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// Which part.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The project's own repository is not as it must be for this.
    #[error("the project's repository: {0}")]
    Repository(String),
    /// A file could not be read or written.
    #[error("{what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn damaged(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), why: why.into() }
    }
}

/// Names the file and the attempt in an I/O error.
pub(crate) trait Context<T> {
    /// `what` is a verb in the form "cannot read".
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T, E: Into<std::io::Error>> Context<T> for Result<T, E> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { what, path: path.to_owned(), source: source.into() })
    }
}
