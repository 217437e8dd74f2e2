//! A project is known by more than its path: another one at the same place has snapshots of its own.
//!
//! Beside the snapshots of a project it is noted which directory it was. After a fresh clone, or when something else was
//! put in its place, that is another one, and what was kept of the first is left alone. One that was copied back from a
//! backup, or lies on a file system that numbers directories anew, is told by the mark that lies in `.segno`.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use segno_core::SessionId;
use segno_core::State;
use serde::Deserialize;
use serde::Serialize;
use uuid::Uuid;

use super::TreeOptions;
use crate::Engine;
use crate::Error;

/// Where it is noted in a shadow directory.
const NOTE: &str = "project.json";
/// The folder of ours in a project, and the folder in it that only we make.
const FOLDER: &str = ".segno";
const SESSIONS: &str = "sessions";
/// Where a project carries its mark, beside the views of its sessions.
const MARK: &str = "project";
/// A mark is shorter; whatever is longer is none.
const MOST_MARK: u64 = 100;
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
        let Some(dir) = folder_of(root) else { return };
        let is_ours = segno_files::dir_below(&dir, &[SESSIONS]).is_ok_and(|found| found.is_some());
        let Ok(present) = segno_files::read_in(&dir, MARK, MOST_MARK) else { return };
        let known = present.as_deref().map(parse);
        // What is there and is no mark is somebody's, and stays.
        if is_ours && known != Some(None) && known != Some(Some(self.mark)) {
            let text = format!("{}\n", self.mark);
            let _ = segno_files::replace_known(&dir, MARK, text.as_bytes(), 0o600, present.as_deref());
        }
    }
}

/// Snapshots of a session.
fn of_session(shadow: &Path, session: &str) -> PathBuf {
    shadow.join("git/refs/snapshots").join(session)
}

/// The mark that a project carries: it goes with the directory, however it is moved or copied.
fn mark_of(root: &Path) -> Option<Uuid> {
    parse(&segno_files::read_in(&folder_of(root)?, MARK, MOST_MARK).ok()??)
}

/// The folder of ours in a project. A project comes from anywhere: a link in its place leads nowhere.
fn folder_of(root: &Path) -> Option<OwnedFd> {
    segno_files::dir_below(&segno_files::open_dir(root).ok()?, &[FOLDER]).ok()?
}

fn parse(text: &[u8]) -> Option<Uuid> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
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
    /// Finds the shadow directory of the project at a path, for a session if it is for one. Fails if the session's snapshots are of
    /// another project that was there.
    pub(super) fn find(
        options: &TreeOptions,
        root: &Path,
        session: Option<SessionId>,
    ) -> Result<Self, Error> {
        let present = Directory::of(root)?;
        let session = session.map(|session| session.to_string());
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
            } else if let Some(session) = &session
                && of_session(&shadow, session).is_dir()
            {
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

    #[test]
    fn a_project_gets_its_mark_and_keeps_it() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(".segno/sessions")).unwrap();
        let directory = Directory::of(root.path()).unwrap();
        directory.mark(root.path());
        assert_eq!(mark_of(root.path()), Some(directory.mark));
        // One that was copied gets the mark of the project that it is taken for.
        let other = Directory { mark: Uuid::max(), ..directory };
        other.mark(root.path());
        assert_eq!(mark_of(root.path()), Some(Uuid::max()));
    }

    #[test]
    fn what_lies_in_the_place_of_a_mark_is_neither_followed_nor_waited_for_nor_replaced() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::create_dir(outside.path().join("sessions")).unwrap();
        std::fs::write(outside.path().join("project"), "a person's words").unwrap();
        let marked = |root: &Path| {
            let directory = Directory::of(root).unwrap();
            directory.mark(root);
            mark_of(root)
        };

        // The folder is a link to a folder of somebody else's.
        let linked = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), linked.path().join(".segno")).unwrap();
        assert_eq!(marked(linked.path()), None);
        assert_eq!(std::fs::read(outside.path().join("project")).unwrap(), b"a person's words");

        let ours = || {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(root.path().join(".segno/sessions")).unwrap();
            let mark = root.path().join(".segno/project");
            (root, mark)
        };
        // A text of somebody's.
        let (root, mark) = ours();
        std::fs::write(&mark, "a person's words").unwrap();
        assert_eq!(marked(root.path()), None);
        assert_eq!(std::fs::read(&mark).unwrap(), b"a person's words");
        // A file without an end, and a pipe that nobody writes into.
        let (root, mark) = ours();
        std::os::unix::fs::symlink("/dev/zero", &mark).unwrap();
        assert_eq!(marked(root.path()), None);
        assert!(mark.symlink_metadata().unwrap().is_symlink());
        let (root, mark) = ours();
        rustix::fs::mkfifoat(rustix::fs::CWD, &mark, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
        assert_eq!(marked(root.path()), None);
    }
}
