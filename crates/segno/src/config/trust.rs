//! Which projects the user trusts, and at which content.
//!
//! The list is `trust.json` in the data directory: private, replaced as a whole, changed under a lock. Nothing in a
//! project can influence it, and a damaged list is put aside and reported, never quietly started anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::fs::{self};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;
use serde::Serialize;

use super::content::Content;
use super::content::Unsafe;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::files::Access;
use crate::files::Links;
use crate::files::ReadError;
use crate::files::{self};

const VERSION: u32 = 1;
const MAX_SIZE: u64 = 4 * 1024 * 1024;

/// How a project stands.
#[derive(Debug)]
pub enum Status {
    /// It was never trusted, or its content cannot be trusted for the reason given.
    Untrusted {
        /// What in the project makes trust impossible.
        reason: Option<Unsafe>,
    },
    /// It was trusted with the content it has now.
    Trusted {
        /// When.
        since: Timestamp,
    },
    /// It was trusted, but its content is another one now.
    Changed {
        /// When it was trusted.
        since: Timestamp,
    },
}

impl Status {
    /// Whether the project is trusted as it is now.
    pub const fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted { .. })
    }

    /// One word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Untrusted { .. } => "untrusted",
            Self::Trusted { .. } => "trusted",
            Self::Changed { .. } => "changed",
        }
    }
}

/// How a project stands, with the very content that was judged, if it was read.
#[derive(Debug)]
pub struct Standing {
    /// The judgement.
    pub status: Status,
    /// The content it is about. `None` if the project was never trusted, or cannot be.
    pub content: Option<Content>,
}

/// What is remembered about a trusted project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The hash of the content that was trusted.
    pub hash: String,
    /// When it was trusted.
    pub trusted_at: Timestamp,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    version: u32,
    projects: BTreeMap<String, Record>,
}

/// What can go wrong with the list.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be understood and was put aside.
    #[error("the list of trusted projects was damaged and is now {}; no project is trusted any more", kept.display())]
    Damaged {
        /// Where it was put.
        kept: PathBuf,
    },
    /// Others could have changed it.
    #[error("{} {problem}, so the list of trusted projects is not believed", path.display())]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A newer version of the program wrote it.
    #[error("the list of trusted projects has version {0}; this program knows version 1")]
    Newer(u32),
    /// The path of a project is not text.
    #[error("the path of the project is not UTF-8, so it cannot be trusted")]
    Path,
    /// The content cannot be trusted.
    #[error("this project cannot be trusted: {0}")]
    Unsafe(#[from] Unsafe),
    /// The system said no.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Damaged { .. } => Some("segno trust   (in each project you want to trust again)".into()),
            Self::Exposed { path, .. } => {
                Some(format!("look at it, then: chmod go-w {} (or chown it to you)", path.display()))
            }
            Self::Newer(_) => Some("use the newer segno".into()),
            Self::Unsafe(_) => Some("remove it from .segno, then: segno trust".into()),
            Self::Path | Self::Io { .. } => None,
        }
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        let (exit, code) = match &error {
            Error::Damaged { .. } => (ExitCode::StoreDamaged, "trust_damaged"),
            Error::Exposed { .. } => (ExitCode::Environment, "trust_exposed"),
            Error::Newer(_) => (ExitCode::StoreNewer, "trust_newer"),
            Error::Path | Error::Unsafe(_) => (ExitCode::Refused, "trust_refused"),
            Error::Io { .. } => (ExitCode::Environment, "trust_io"),
        };
        Self::new(exit, code, error.to_string()).maybe_hint(error.hint())
    }
}

/// The list of trusted projects.
#[derive(Clone, Debug)]
pub struct Trust {
    directory: PathBuf,
    file: PathBuf,
}

impl Trust {
    /// The list in a data directory. Nothing is read or created yet.
    pub fn in_directory(data: &Path) -> Self {
        Self { directory: data.to_owned(), file: data.join("trust.json") }
    }

    /// How a project stands now. `now` is used only to name a damaged list.
    ///
    /// # Errors
    /// If the list cannot be used; the project is then to be treated as untrusted.
    pub fn status(&self, root: &Path, now: Timestamp) -> Result<Standing, Error> {
        let record = match root.to_str() {
            Some(root) => self.read(now)?.projects.remove(root),
            None => None,
        };
        let Some(record) = record else {
            return Ok(Standing { status: Status::Untrusted { reason: None }, content: None });
        };
        Ok(match Content::read(root) {
            Err(reason) => Standing { status: Status::Untrusted { reason: Some(reason) }, content: None },
            Ok(content) if content.hash() == record.hash => {
                Standing { status: Status::Trusted { since: record.trusted_at }, content: Some(content) }
            }
            Ok(content) => {
                Standing { status: Status::Changed { since: record.trusted_at }, content: Some(content) }
            }
        })
    }

    /// Trusts a project with exactly this content, which the caller has shown to the user.
    ///
    /// # Errors
    /// If the list cannot be changed.
    pub fn trust(&self, root: &Path, content: &Content, now: Timestamp) -> Result<(), Error> {
        let root = root.to_str().ok_or(Error::Path)?.to_owned();
        let record = Record { hash: content.hash(), trusted_at: now };
        self.change(now, |list| list.projects.insert(root, record)).map(drop)
    }

    /// Forgets a project; says whether it was known.
    ///
    /// # Errors
    /// If the list cannot be changed.
    pub fn revoke(&self, root: &Path, now: Timestamp) -> Result<bool, Error> {
        let root = root.to_str().ok_or(Error::Path)?;
        if !self.read(now)?.projects.contains_key(root) {
            return Ok(false);
        }
        self.change(now, |list| list.projects.remove(root)).map(|removed| removed.is_some())
    }

    /// All trusted projects by path.
    ///
    /// # Errors
    /// If the list cannot be used.
    pub fn list(&self, now: Timestamp) -> Result<BTreeMap<String, Record>, Error> {
        Ok(self.read(now)?.projects)
    }

    fn change<T>(&self, now: Timestamp, change: impl FnOnce(&mut List) -> T) -> Result<T, Error> {
        let _lock = self.lock()?;
        let mut list = self.read_locked(now)?;
        let answer = change(&mut list);
        list.version = VERSION;
        let mut text = serde_json::to_vec_pretty(&list)
            .map_err(|error| self.failed("write", &self.file, io::Error::other(error)))?;
        text.push(b'\n');
        files::replace(&self.file, &text, Access::Private)
            .map_err(|error| self.failed("write", &self.file, error))?;
        Ok(answer)
    }

    fn read(&self, now: Timestamp) -> Result<List, Error> {
        match self.parse()? {
            Some(list) => Ok(list),
            // Looked at again under the lock: another process may have put it aside and begun a new one meanwhile.
            None => {
                let _lock = self.lock()?;
                self.read_locked(now)
            }
        }
    }

    fn read_locked(&self, now: Timestamp) -> Result<List, Error> {
        if let Some(list) = self.parse()? {
            return Ok(list);
        }
        let kept = self.directory.join(format!("trust.json.corrupt-{}", now.as_second()));
        fs::rename(&self.file, &kept).map_err(|error| self.failed("put aside", &self.file, error))?;
        Err(Error::Damaged { kept })
    }

    /// The list as it is on disk; `None` if it cannot be understood.
    fn parse(&self) -> Result<Option<List>, Error> {
        self.refuse_exposed()?;
        let bytes = match files::read_bounded(&self.file, MAX_SIZE, Links::Refuse) {
            Ok(None) => return Ok(Some(List::default())),
            Ok(Some(bytes)) => bytes,
            Err(ReadError::Io(source)) => return Err(self.failed("read", &self.file, source)),
            Err(ReadError::NotRegular | ReadError::TooLarge(_)) => return Ok(None),
        };
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        match serde_json::from_slice::<Versioned>(&bytes) {
            Ok(Versioned { version }) if version > VERSION => Err(Error::Newer(version)),
            Ok(_) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(_) => Ok(None),
        }
    }

    /// A list that others can write says nothing about what the user trusts.
    fn refuse_exposed(&self) -> Result<(), Error> {
        // Without a list there is nothing to believe, and the first change makes the directory private.
        if fs::symlink_metadata(&self.file).is_err() {
            return Ok(());
        }
        for path in [&self.directory, &self.file] {
            let Ok(metadata) = fs::symlink_metadata(path) else { continue };
            let problem = if metadata.uid() != rustix::process::geteuid().as_raw() {
                "belongs to another user"
            } else if !metadata.is_symlink() && metadata.mode() & 0o022 != 0 {
                "can be written by others"
            } else {
                continue;
            };
            return Err(Error::Exposed { path: path.clone(), problem });
        }
        Ok(())
    }

    fn lock(&self) -> Result<File, Error> {
        self.refuse_exposed()?;
        files::private_directory(&self.directory)
            .map_err(|error| self.failed("create", &self.directory, error))?;
        let path = self.directory.join("trust.lock");
        let file = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| self.failed("open", &path, error))?;
        file.lock().map_err(|error| self.failed("lock", &path, error))?;
        Ok(file)
    }

    fn failed(&self, what: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { what, path: path.to_owned(), source }
    }
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
