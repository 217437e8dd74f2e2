//! Replacing files.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Read as _;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
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

    /// The same, in the place of a file that has the content `known`. If it has another one by then, that one is back in
    /// its place when this returns.
    fn finish_over(self, known: &[u8], ours: &[u8]) -> io::Result<Replaced> {
        // Longer than either, so that what is there cannot be taken for one of them.
        let most = (known.len().max(ours.len()) + 1) as u64;
        let is = |wanted: &[u8], file: &File| -> io::Result<bool> {
            let mut found = Vec::new();
            file.take(most).read_to_end(&mut found)?;
            Ok(found == wanted)
        };
        self.finish_in_place_of(&|file| is(known, file), &|file| is(ours, file))
    }

    /// The same, in the place of a file that `is_known` tells to be the one that was looked at. If another one is there by
    /// then, that one is back in its place when this returns.
    pub fn finish_over_file(self, is_known: &dyn Fn(&File) -> io::Result<bool>) -> io::Result<Replaced> {
        let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino()));
        let ours = identity(&self.file)?;
        self.finish_in_place_of(is_known, &|file| Ok(identity(file)? == ours))
    }

    fn finish_in_place_of(
        self,
        is_known: &dyn Fn(&File) -> io::Result<bool>,
        is_ours: &dyn Fn(&File) -> io::Result<bool>,
    ) -> io::Result<Replaced> {
        const TRIES: u32 = 8;
        self.file.sync_all()?;
        let swap = || {
            rustix::fs::renameat_with(
                &self.dir,
                &self.temporary,
                &self.dir,
                &self.name,
                RenameFlags::EXCHANGE,
            )
        };
        let aside = |is: &dyn Fn(&File) -> io::Result<bool>| -> io::Result<bool> {
            let file = rustix::fs::openat(
                &self.dir,
                &self.temporary,
                OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
                Mode::empty(),
            );
            match file {
                Ok(file) => is(&File::from(file)),
                // A link that somebody put there.
                Err(Errno::LOOP) => Ok(false),
                Err(why) => Err(why.into()),
            }
        };
        match swap() {
            Ok(()) => {}
            // It is gone: then nothing of anybody's is replaced.
            Err(Errno::NOENT) => {
                return match rename_new(&self.dir, &self.temporary, &self.dir, &self.name) {
                    Ok(()) => Ok(rustix::fs::fsync(&self.dir).map(|()| Replaced::Done)?),
                    Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(Replaced::Theirs),
                    Err(why) => Err(why),
                };
            }
            // This file system cannot promise it.
            Err(why) if crate::is_unsupported(why) => {
                rustix::fs::renameat(&self.dir, &self.temporary, &self.dir, &self.name)?;
                rustix::fs::fsync(&self.dir)?;
                return Ok(Replaced::Done);
            }
            Err(why) => return Err(why.into()),
        }
        // What cannot be read is not what was known.
        if aside(is_known).unwrap_or(false) {
            rustix::fs::fsync(&self.dir)?;
            return Ok(Replaced::Done);
        }
        // Theirs goes back. If they wrote once more meanwhile, that comes out, and is the one that counts.
        for _ in 0..TRIES {
            match swap() {
                Ok(()) => {}
                // They removed ours.
                Err(Errno::NOENT) => rename_new(&self.dir, &self.temporary, &self.dir, &self.name)?,
                Err(why) => return Err(why.into()),
            }
            match aside(is_ours) {
                Ok(true) => break,
                Ok(false) => {}
                Err(why) if why.kind() == io::ErrorKind::NotFound => break,
                Err(why) => return Err(why),
            }
        }
        rustix::fs::fsync(&self.dir)?;
        Ok(Replaced::Theirs)
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

/// Makes a private file that can be made again, unless there is one: whole for other processes, but a power cut may spoil
/// it. Of several that try, one succeeds. False if there is one.
pub fn create_lazily(path: &Path, content: &[u8]) -> io::Result<bool> {
    let mut draft = Draft::begin(path, Access::Private)?;
    draft.file.write_all(content)?;
    match rename_new(&draft.dir, &draft.temporary, &draft.dir, &draft.name) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(why) => Err(why),
    }
}

/// Replaces a file inside a directory that is open, durably.
pub fn replace_in(dir: &OwnedFd, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
    crate::directory::single(name)?;
    let mut draft = Draft::begin_in(dir.try_clone()?, OsStr::new(name), Access::Mode(mode))?;
    draft.file.write_all(content)?;
    draft.finish().map(drop)
}

/// What became of a file that was to be replaced only as it was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// It has the new content.
    Done,
    /// Somebody else wrote it meanwhile; theirs is in its place.
    Theirs,
}

/// Replaces a file inside a directory that is open, durably, but only if it still is as it was read; `None` if it was not
/// there. What somebody else put in its place in the same moment stays.
pub fn replace_known(
    dir: &OwnedFd,
    name: &str,
    content: &[u8],
    mode: u32,
    known: Option<&[u8]>,
) -> io::Result<Replaced> {
    crate::directory::single(name)?;
    let mut draft = Draft::begin_in(dir.try_clone()?, OsStr::new(name), Access::Mode(mode))?;
    draft.file.write_all(content)?;
    let Some(known) = known else {
        return match draft.finish_new() {
            Ok(_) => Ok(Replaced::Done),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(Replaced::Theirs),
            Err(why) => Err(why),
        };
    };
    draft.finish_over(known, content)
}

/// Removes what writers left that died before they were done with `name`. Only for who holds the lock.
pub fn sweep(dir: &OwnedFd, name: &str) {
    sweep_of(dir, &[name]);
}

/// The same for several names, with one look at the directory.
pub fn sweep_of(dir: &OwnedFd, names: &[&str]) {
    let Ok(entries) = rustix::fs::Dir::read_from(dir) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name().to_string_lossy();
        let Some(inner) = found.strip_prefix('.').and_then(|rest| rest.strip_suffix(TEMPORARY)) else {
            continue;
        };
        // Ours have 32 hexadecimal digits; whatever else looks similar is somebody's own.
        let Some((name, id)) = inner.rsplit_once('.') else { continue };
        let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
        if is_id && names.contains(&name) {
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
