//! A project is known by more than its path: another one at the same place has snapshots of its own.
//!
//! Beside the snapshots of a project it is noted which directory it was. After a fresh clone, or when something else was
//! put in its place, that is another one, and what was kept of the first is left alone. One that was copied back from a
//! backup, or lies on a file system that numbers directories anew, is told by the mark that lies in `.segno`.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use segno_core::State;
use serde::Deserialize;
use serde::Serialize;
use uuid::Uuid;

use super::TreeOptions;
use crate::Engine;
use crate::Error;

/// Where it is noted in a shadow directory.
const NOTE: &str = "project.json";
/// Where a project carries its mark, beside the views of its sessions.
const MARK: &str = ".segno/project";
/// Most projects that were at one path, one after the other.
const MOST: usize = 64;

/// Which directory a project is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Directory {
    /// The mark that it was given.
    mark: Uuid,
    inode: u64,
    /// When it was made, in microseconds, where the file system tells. Numbers are given again to others.
    born: Option<u64>,
}

impl Directory {
    fn of(root: &Path) -> Result<Self, Error> {
        let meta = std::fs::metadata(root).map_err(|why| Error::file(root, why))?;
        let born = meta.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born = born.and_then(|born| u64::try_from(born.as_micros()).ok());
        Ok(Self { mark: mark_of(root).unwrap_or_else(Uuid::now_v7), inode: meta.ino(), born })
    }

    fn is(&self, other: &Self) -> bool {
        let as_old = self.born.is_none() || other.born.is_none() || self.born == other.born;
        self.mark == other.mark || (self.inode == other.inode && as_old)
    }

    /// What is noted; nothing for snapshots of earlier versions, and a note that cannot be read says nothing either.
    fn noted(shadow: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(shadow.join(NOTE)).ok()?).ok()
    }

    fn note(&self, shadow: &Path) -> Result<(), Error> {
        let path = shadow.join(NOTE);
        let text = serde_json::to_vec(self).unwrap_or_default();
        segno_files::replace(&path, &text, segno_files::Access::Private)
            .map_err(|why| Error::file(&path, why))
    }

    /// Gives the directory its mark, where there is already something of ours. Without one it is known all the same.
    fn mark(&self, root: &Path) {
        let is_ours = root.join(".segno/sessions").symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if is_ours && mark_of(root) != Some(self.mark) {
            let text = format!("{}\n", self.mark);
            let _ = segno_files::replace(&root.join(MARK), text.as_bytes(), segno_files::Access::Private);
        }
    }
}

/// Snapshots of a session.
fn of_session(shadow: &Path, session: &str) -> PathBuf {
    shadow.join("git/refs/snapshots").join(session)
}

/// The mark that a project carries: it goes with the directory, however it is moved or copied.
fn mark_of(root: &Path) -> Option<Uuid> {
    let text = std::fs::read(root.join(MARK)).ok().filter(|text| text.len() < 100)?;
    String::from_utf8(text).ok()?.trim().parse().ok()
}

impl TreeOptions {
    /// The shadow directories of all projects that were at a path, one after the other.
    pub fn shadows_at(&self, root: &Path) -> Vec<PathBuf> {
        self.shadow_paths(root).take_while(|path| path.is_dir()).collect()
    }

    fn shadow_paths(&self, root: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        let first = self.shadow(root);
        (1..=MOST).map(move |nth| match nth {
            1 => first.clone(),
            nth => {
                let mut name = first.clone().into_os_string();
                name.push(format!("-{nth}"));
                PathBuf::from(name)
            }
        })
    }
}

/// The shadow directory that is meant, and whether what it is of must be noted there.
pub(super) struct ShadowDirectory {
    pub(super) shadow: PathBuf,
    directory: Directory,
    is_new: bool,
}

impl ShadowDirectory {
    /// Finds the shadow directory of the project at a path, for a session. Fails if the session's snapshots are of
    /// another project that was there.
    pub(super) fn find(options: &TreeOptions, root: &Path, state: &State) -> Result<Self, Error> {
        let present = Directory::of(root)?;
        let session = state.session_id.to_string();
        let mut found = None;
        for shadow in options.shadow_paths(root) {
            if !shadow.is_dir() {
                return Ok(found.unwrap_or(Self { shadow, directory: present, is_new: true }));
            }
            let noted = Directory::noted(&shadow);
            if noted.is_none_or(|noted| noted.is(&present)) {
                let directory = Directory { mark: noted.map_or(present.mark, |noted| noted.mark), ..present };
                let is_new = noted != Some(directory);
                found = found.or(Some(Self { shadow, directory, is_new }));
            } else if of_session(&shadow, &session).is_dir() {
                return Err(Error::NoTree(format!(
                    "another directory is at {} now: what was kept of this session is of the one that was there \
                     before, and is left alone. If it is the same project after all: segno checkpoint claim \
                     --session {session}",
                    root.display()
                )));
            }
        }
        found.ok_or_else(|| Error::NoTree(format!("too many projects were at {}", root.display())))
    }

    /// Notes which directory it is, once there is a place for it.
    pub(super) fn keep(&self, root: &Path) -> Result<(), Error> {
        self.directory.mark(root);
        if self.is_new { self.directory.note(&self.shadow) } else { Ok(()) }
    }
}

impl Engine {
    /// Takes the directory at a session's path for the project it was, though it is another one. Only a person knows.
    ///
    /// # Errors
    /// If nothing was kept of the session, or it cannot be noted.
    pub fn claim_project(&self, state: &State) -> Result<(), Error> {
        let options = self.tree_options()?;
        let root = PathBuf::from(&state.project.path);
        let root = root.canonicalize().map_err(|why| Error::file(&root, why))?;
        let session = state.session_id.to_string();
        let shadows = options.shadows_at(&root);
        let present = Directory::of(&root)?;
        let Some(shadow) = shadows.iter().find(|shadow| of_session(shadow, &session).is_dir()) else {
            return Err(Error::NoTree("no files were kept of this session".to_owned()));
        };
        let mark = Directory::noted(shadow).map_or(present.mark, |noted| noted.mark);
        let directory = Directory { mark, ..present };
        directory.mark(&root);
        directory.note(shadow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_again_is_another_directory() {
        let one = Directory { mark: Uuid::nil(), inode: 7, born: Some(1) };
        let unmarked = Directory { mark: Uuid::max(), ..one };
        assert!(one.is(&unmarked) && one.is(&Directory { born: None, ..unmarked }));
        assert!(!one.is(&Directory { born: Some(2), ..unmarked }));
        assert!(!one.is(&Directory { inode: 8, ..unmarked }));
        assert!(one.is(&Directory { inode: 8, born: Some(2), ..one }), "it carries the mark");
    }
}
