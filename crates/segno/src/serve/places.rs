//! Where the page is served: each server says so for as long as it lives, so that a link leads to one that answers.

use std::fs::File;
use std::fs::TryLockError;
use std::path::Path;
use std::path::PathBuf;
use std::time::SystemTime;

use segno_files::Access;
use segno_files::Links;
use serde::Deserialize;
use serde::Serialize;

use super::keys::Mode;
use super::keys::random;
use crate::error::CommandError;
use crate::error::Outcome;

/// What a server says of itself is no longer.
const LARGEST: u64 = 4 << 10;

/// How the name of one ends that is not there yet.
const NEW: &str = "new";

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Places(PathBuf);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// How browsers reach it.
    pub(super) address: String,
    /// Whether it only shows.
    pub(super) read_only: bool,
}

impl Place {
    /// What a link to it signs in for.
    pub(super) fn mode(&self) -> Mode {
        if self.read_only { Mode::Shows } else { Mode::Acts }
    }
}

/// Kept for as long as a server is there. However its process ends, the lock is gone with it.
#[derive(Debug)]
pub(super) struct Kept {
    file: PathBuf,
    _lock: File,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Places {
    pub(super) fn below(directory: &Path) -> Self {
        Self(directory.join("served"))
    }

    /// Says that a server is here.
    pub(super) fn keep(&self, place: &Place) -> Outcome<Kept> {
        let failed = |why: std::io::Error| CommandError::io("cannot write where the page is", why);
        segno_files::private_directory(&self.0).map_err(failed)?;
        let file = self.0.join(&random()?[..16]);
        let text = serde_json::to_vec(place).map_err(|why| failed(why.into()))?;
        // It is there when it is locked: nobody takes it for one that a dead server has left.
        let new = file.with_extension(NEW);
        segno_files::replace(&new, &text, Access::Private).map_err(failed)?;
        let lock = File::open(&new).map_err(failed)?;
        lock.lock_shared().map_err(failed)?;
        std::fs::rename(&new, &file).map_err(failed)?;
        Ok(Kept { file, _lock: lock })
    }

    /// The servers that are there, the newest first. What dead ones have left is removed.
    pub(super) fn living(&self) -> Vec<Place> {
        let mut all: Vec<(SystemTime, Place)> = Vec::new();
        for entry in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == NEW) {
                continue;
            }
            let Ok(file) = File::open(&path) else { continue };
            match file.try_lock() {
                Ok(()) => {
                    let _ = std::fs::remove_file(&path);
                }
                Err(TryLockError::WouldBlock) => {
                    let bytes = segno_files::read_bounded(&path, LARGEST, Links::Refuse).ok().flatten();
                    let place = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                    let made = entry.metadata().and_then(|meta| meta.modified());
                    all.extend(place.map(|place| (made.unwrap_or(SystemTime::UNIX_EPOCH), place)));
                }
                // Whether somebody is there cannot be told: it stays.
                Err(TryLockError::Error(_)) => {}
            }
        }
        all.sort_by_key(|(made, _)| std::cmp::Reverse(*made));
        all.into_iter().map(|(_, place)| place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_living_servers_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places::below(dir.path());
        assert_eq!(places.living(), []);
        let place = |address: &str| Place { address: address.to_owned(), read_only: false };
        let first = places.keep(&place("http://127.0.0.1:1")).unwrap();
        let second = places.keep(&place("http://127.0.0.1:2")).unwrap();
        let named = |places: &Places| {
            let mut all: Vec<String> = places.living().into_iter().map(|place| place.address).collect();
            all.sort();
            all
        };
        assert_eq!(named(&places), ["http://127.0.0.1:1", "http://127.0.0.1:2"]);
        drop(first);
        assert_eq!(named(&places), ["http://127.0.0.1:2"]);
        // One that was killed has left its file, and no lock.
        let left = second.file.clone();
        std::fs::copy(&left, left.with_extension("dead")).unwrap();
        assert_eq!(named(&places), ["http://127.0.0.1:2"]);
        assert_eq!(std::fs::read_dir(dir.path().join("served")).unwrap().count(), 1);
    }
}
