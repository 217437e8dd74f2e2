//! The shadow directory of a project: an ordinary bare git repository, a lock, a cache and, sometimes, an intent.

use std::fs::File;
use std::fs::TryLockError;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::durable;
use crate::durable::TEMPORARY;
use crate::error::Context as _;
use crate::error::Error;
use crate::id::ObjectId;

/// Where everything of a project is kept.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    directory: PathBuf,
    cancel: Option<Arc<AtomicBool>>,
}

/// Held as long as it lives. The system lets go of it when the process dies.
pub(crate) struct Lock {
    _file: File,
}

const CONFIG: &str = "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = true\n\tsymlinks = true\n\
[extensions]\n\tobjectformat = sha256\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n";

/// Nothing in a tree can have content converted, filtered or shown by a program.
const ATTRIBUTES: &str = "* -text -eol -ident -filter !working-tree-encoding !diff !merge\n";

impl Shadow {
    /// Makes the directory if it is not there, whole or not at all.
    pub(crate) fn open(
        directory: &Path,
        patience: Duration,
        cancel: Option<Arc<AtomicBool>>,
    ) -> Result<Self, Error> {
        let shadow = Self { directory: directory.to_owned(), cancel };
        if !shadow.git().join("HEAD").is_file() {
            durable::make_dirs(directory)?;
            let _lock = shadow.lock(patience)?;
            if !shadow.git().join("HEAD").is_file() {
                shadow.create()?;
            }
        }
        Ok(shadow)
    }

    pub(crate) fn git(&self) -> PathBuf {
        self.directory.join("git")
    }

    pub(crate) fn packs(&self) -> PathBuf {
        self.git().join("objects/pack")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.directory.join("cache")
    }

    pub(crate) fn intent(&self) -> PathBuf {
        self.directory.join("intent")
    }

    /// Which paths of the intent were begun. Not synced: it only helps to tell whether somebody worked on since.
    pub(crate) fn progress(&self) -> PathBuf {
        self.directory.join("progress")
    }

    /// A place for objects that are needed only while the lock is held.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.directory.join(format!("{TEMPORARY}objects"))
    }

    /// A repository of our own for looking at the user's objects and index.
    pub(crate) fn probe(&self) -> PathBuf {
        self.directory.join(format!("{TEMPORARY}probe"))
    }

    fn create(&self) -> Result<(), Error> {
        let new = self.directory.join(format!("{TEMPORARY}git"));
        remove_all(&new)?;
        for part in ["objects/info", "objects/pack", "refs/heads", "refs/snapshots", "info"] {
            durable::make_dirs(&new.join(part))?;
        }
        durable::replace(&new.join("config"), CONFIG.as_bytes())?;
        durable::replace(&new.join("info/attributes"), ATTRIBUTES.as_bytes())?;
        durable::replace(&new.join("HEAD"), b"ref: refs/heads/none\n")?;
        durable::rename(&new, &self.git())?;
        durable::sync_dir(&self.directory)
    }

    /// Waits for whoever works here, but not for ever. What a dead process left half done is removed.
    pub(crate) fn lock(&self, patience: Duration) -> Result<Lock, Error> {
        let lock = self.wait(patience, File::try_lock)?;
        for directory in [self.directory.clone(), self.packs()] {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                // The second and the third are git's own, from repacking.
                if name.starts_with(TEMPORARY) || name.starts_with("tmp_") || name.starts_with(".tmp-") {
                    remove_all(&entry.path())?;
                }
            }
        }
        Ok(lock)
    }

    /// Keeps others from removing objects while we read.
    pub(crate) fn lock_shared(&self, patience: Duration) -> Result<Lock, Error> {
        self.wait(patience, File::try_lock_shared)
    }

    /// Fails when nobody wants what is being done any more.
    pub(crate) fn check_wanted(&self) -> Result<(), Error> {
        let cancelled = self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        if cancelled { Err(Error::Cancelled) } else { Ok(()) }
    }

    fn wait(
        &self,
        patience: Duration,
        attempt: fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Lock, Error> {
        let path = self.directory.join("lock");
        let file =
            File::options().read(true).append(true).create(true).open(&path).context("cannot open", &path)?;
        let began = Instant::now();
        loop {
            self.check_wanted()?;
            match attempt(&file) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::WouldBlock) if began.elapsed() < patience => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => return Err(Error::Busy),
                Err(TryLockError::Error(why)) => return Err(why).context("cannot lock", &path),
            }
        }
    }

    /// The commit that a name stands for.
    pub(crate) fn read_ref(&self, name: &str) -> Result<Option<ObjectId>, Error> {
        let path = self.refs().join(checked(name)?);
        match std::fs::read_to_string(&path) {
            Ok(text) => match ObjectId::parse(text.trim_end()) {
                Some(id) => Ok(Some(id)),
                None => Err(Error::damaged(format!("the name {name}"), "it stands for nothing")),
            },
            // A name may lead through another name, or be the first part of others.
            Err(why) if path.is_dir() || is_absence(&why) => Ok(None),
            Err(why) => Err(why).context("cannot read", &path),
        }
    }

    /// When a name was given.
    pub(crate) fn named_at(&self, name: &str) -> Option<std::time::SystemTime> {
        std::fs::metadata(self.refs().join(checked(name).ok()?)).and_then(|meta| meta.modified()).ok()
    }

    /// Gives a commit a name, durably. The name must be free.
    pub(crate) fn write_ref(&self, name: &str, commit: ObjectId) -> Result<(), Error> {
        let path = self.refs().join(checked(name)?);
        let taken = path.ancestors().take_while(|above| *above != self.refs()).any(Path::is_file);
        if taken || path.exists() {
            return Err(Error::NameTaken(name.to_owned()));
        }
        if let Some(parent) = path.parent() {
            durable::make_dirs(parent)?;
        }
        // Git would take a temporary file among the refs for one.
        durable::replace_through(&self.directory, &path, format!("{commit}\n").as_bytes())
    }

    /// Takes a name away. False if there is none.
    pub(crate) fn remove_ref(&self, name: &str) -> Result<bool, Error> {
        let path = self.refs().join(checked(name)?);
        if !path.is_file() {
            return Ok(false);
        }
        durable::remove(&path)?;
        // Directories that are empty now go too, or the name of one could not be used.
        let mut above = path.parent();
        while let Some(parent) =
            above.filter(|parent| *parent != self.refs() && parent.starts_with(self.refs()))
        {
            if std::fs::remove_dir(parent).is_err() {
                break;
            }
            above = parent.parent();
        }
        durable::sync_dir(above.unwrap_or(&self.refs()))?;
        Ok(true)
    }

    /// Every name with its commit, in order.
    pub(crate) fn refs_in_order(&self) -> Result<Vec<(String, ObjectId)>, Error> {
        let mut found = Vec::new();
        let mut directories = vec![self.refs()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(&directory).context("cannot list", &directory)? {
                let path = entry.context("cannot list", &directory)?.path();
                if path.is_dir() {
                    directories.push(path);
                } else if let Some(name) = path.strip_prefix(self.refs()).ok().and_then(Path::to_str)
                    && is_name(name)
                    && let Some(commit) = self.read_ref(name)?
                {
                    found.push((name.to_owned(), commit));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn refs(&self) -> PathBuf {
        self.git().join("refs/snapshots")
    }

    /// How many bytes the objects take.
    pub(crate) fn size(&self) -> Result<u64, Error> {
        let mut size = 0;
        let mut directories = vec![self.git().join("objects")];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(&directory).context("cannot list", &directory)? {
                let entry = entry.context("cannot list", &directory)?;
                match entry.metadata() {
                    Ok(meta) if meta.is_dir() => directories.push(entry.path()),
                    Ok(meta) => size += meta.len(),
                    Err(_) => {}
                }
            }
        }
        Ok(size)
    }
}

fn is_absence(why: &std::io::Error) -> bool {
    matches!(why.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// The full name of a snapshot for git.
pub(crate) fn full_ref(name: &str) -> String {
    format!("refs/snapshots/{name}")
}

fn checked(name: &str) -> Result<&str, Error> {
    if is_name(name) { Ok(name) } else { Err(Error::BadName(name.to_owned())) }
}

/// Whether a name can be a file's and a ref's.
pub(crate) fn is_name(name: &str) -> bool {
    let sound = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
            && !part.starts_with(['.', '-'])
            && !part.starts_with(TEMPORARY)
            && !part.ends_with(['.'])
            && !part.ends_with(".lock")
            && !part.contains("..")
    };
    name.len() <= 200 && name.split('/').all(sound)
}

/// Removes a file or a directory with everything in it, if it is there.
pub(crate) fn remove_all(path: &Path) -> Result<(), Error> {
    crate::fault::step();
    let removed = match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(why) => Err(why),
    };
    match removed {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.context("cannot remove", path),
    }
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_are_those_of_files_and_refs() {
        for good in ["a", "cp-01-start", "session_20260101_000000_1/cp-02", "a/b.c/D_e"] {
            assert!(is_name(good), "{good}");
        }
        for bad in
            ["", "/a", "a/", "a//b", "../a", "a/..", ".a", "-a", "a b", "a.lock", "a.", "a..b", "é", "a\n"]
        {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
