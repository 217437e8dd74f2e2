//! Replacing files.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use crate::open_dir;

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the user, whatever the umask: 0600.
    Private,
    /// Whoever the umask lets; a file that is replaced keeps its mode.
    Ordinary,
    /// This mode, as far as the umask lets.
    Mode(u32),
}

/// How the names of files that are not yet whole end.
const TEMPORARY: &str = ".tmp";
/// A name may be this long on every file system that matters.
const LONGEST_NAME: usize = 255;
/// What a temporary name has besides the name of the file: two dots, 32 digits, the ending.
const AROUND: usize = 2 + 32 + TEMPORARY.len();

/// A file in the making. It takes its place when it is finished; until then, and if it never is, whatever was there
/// before is untouched.
#[derive(Debug)]
pub struct Draft {
    dir: OwnedFd,
    temporary: OsString,
    name: OsString,
    file: File,
}

impl Draft {
    /// Begins a file that will be at `path`.
    pub fn begin(path: &Path, access: Access) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::other("the path has no file name"))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Self::begin_in(open_dir(parent.unwrap_or(Path::new(".")))?, name, access)
    }

    /// Begins a file that will be in `dir` under `name`.
    pub fn begin_in(dir: OwnedFd, name: &OsStr, access: Access) -> io::Result<Self> {
        let temporary = temporary_name(name);
        let mode = match access {
            Access::Private => 0o600,
            // Given at creation, so that the system applies the umask.
            Access::Ordinary => 0o666,
            Access::Mode(mode) => mode,
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&dir, &temporary, flags, Mode::from_raw_mode(mode))?;
        let draft = Self { dir, temporary, name: name.to_owned(), file: File::from(fd) };
        match access {
            Access::Private => draft.file.set_permissions(fs::Permissions::from_mode(0o600))?,
            Access::Ordinary => {
                // What a link points to is not replaced, so its mode does not count.
                if let Ok(old) = rustix::fs::statat(&draft.dir, &draft.name, AtFlags::SYMLINK_NOFOLLOW)
                    && rustix::fs::FileType::from_raw_mode(old.st_mode) == rustix::fs::FileType::RegularFile
                {
                    draft.file.set_permissions(fs::Permissions::from_mode(old.st_mode & 0o7777))?;
                }
            }
            Access::Mode(_) => {}
        }
        Ok(draft)
    }

    /// Where to write it.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts it in its place: the bytes are on the disk first, then the name is. Answers with its size.
    pub fn finish(self) -> io::Result<u64> {
        self.file.sync_all()?;
        let bytes = self.file.metadata()?.len();
        rustix::fs::renameat(&self.dir, &self.temporary, &self.dir, &self.name)?;
        // The rename itself must survive a power cut.
        rustix::fs::fsync(&self.dir)?;
        Ok(bytes)
    }

    /// The same, unless the name is taken.
    pub fn finish_new(self) -> io::Result<u64> {
        self.file.sync_all()?;
        let bytes = self.file.metadata()?.len();
        rename_new(&self.dir, &self.temporary, &self.dir, &self.name)?;
        rustix::fs::fsync(&self.dir)?;
        Ok(bytes)
    }

    /// Puts it in its place for other processes; a power cut may spoil it.
    fn finish_lazily(self) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.dir, &self.temporary, &self.dir, &self.name)?)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is gone already if it took its place.
        let _ = rustix::fs::unlinkat(&self.dir, &self.temporary, AtFlags::empty());
    }
}

/// Nobody has it, and it says which file it was to be.
fn temporary_name(name: &OsStr) -> OsString {
    let kept = name.as_bytes().len().min(LONGEST_NAME - AROUND);
    let mut text = vec![b'.'];
    text.extend_from_slice(name.as_bytes().get(..kept).unwrap_or_default());
    text.extend_from_slice(format!(".{}{TEMPORARY}", uuid::Uuid::now_v7().simple()).as_bytes());
    OsString::from_vec(text)
}

/// Replaces a file as a whole, durably.
pub fn replace(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let mut draft = Draft::begin(path, access)?;
    draft.file.write_all(content)?;
    draft.finish().map(drop)
}

/// Replaces a private file that can be made again: whole for other processes, but a power cut may spoil it.
pub fn replace_lazily(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = Draft::begin(path, Access::Private)?;
    draft.file.write_all(content)?;
    draft.finish_lazily()
}

/// Replaces a file inside a directory that is open, durably.
pub fn replace_in(dir: &OwnedFd, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
    crate::directory::single(name)?;
    let mut draft = Draft::begin_in(dir.try_clone()?, OsStr::new(name), Access::Mode(mode))?;
    draft.file.write_all(content)?;
    draft.finish().map(drop)
}

/// Removes what writers left that died before they were done with `name`. Only for who holds the lock.
pub fn sweep(dir: &OwnedFd, name: &str) {
    let prefix = format!(".{name}.");
    let Ok(entries) = rustix::fs::Dir::read_from(dir) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name().to_string_lossy();
        let middle = found.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(TEMPORARY));
        // Ours have 32 hexadecimal digits; whatever else looks similar is somebody's own.
        if middle.is_some_and(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())) {
            // If it is gone already, all the better.
            let _ = rustix::fs::unlinkat(dir, entry.file_name(), AtFlags::empty());
        }
    }
}

/// Gives a file a second name beside the first. False if that name is taken.
pub fn also_as(dir: &OwnedFd, name: &str, other: &str) -> Result<bool, Errno> {
    match rustix::fs::linkat(dir, name, dir, other, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(why) => Err(why),
    }
}

/// Gives a file another name in its directory, durably, unless that name is taken.
pub fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    rename_new(CWD, from.as_os_str(), CWD, to.as_os_str())?;
    crate::sync_parent(to)
}

fn rename_new(
    from_dir: impl std::os::fd::AsFd,
    from: &OsStr,
    to_dir: impl std::os::fd::AsFd,
    to: &OsStr,
) -> io::Result<()> {
    match rustix::fs::renameat_with(&from_dir, from, &to_dir, to, RenameFlags::NOREPLACE) {
        // This file system cannot promise it. Names here are ours, so that a look will do.
        Err(why) if crate::is_unsupported(why) => {
            if rustix::fs::statat(&to_dir, to, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Ok(rustix::fs::renameat(&from_dir, from, &to_dir, to)?)
        }
        renamed => Ok(renamed?),
    }
}
