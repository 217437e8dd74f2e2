//! Writing files so that they are there whole or not at all, never through a symbolic link.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::AtFlags;
use rustix::fs::FlockOperation;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// How a directory inside another is opened: itself, not what a link in its place points to.
const INSIDE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory that must be a real one.
pub fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a directory inside another, making it if it is not there. A symbolic link in its place is refused.
pub fn dir_in(parent: &OwnedFd, name: &str, mode: u32) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat(parent, name, INSIDE, Mode::empty()) {
        Err(Errno::NOENT) => {
            match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(mode)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(why) => return Err(why),
            }
            // A file in a directory that a power cut takes away is gone with it.
            rustix::fs::fsync(parent)?;
            rustix::fs::openat(parent, name, INSIDE, Mode::empty())
        }
        other => other,
    }
}

/// Opens a directory some way below another, if it is there. No symbolic link is followed on the way.
pub fn dir_below(root: &OwnedFd, names: &[&str]) -> Result<Option<OwnedFd>, Errno> {
    let mut dir = root.try_clone().map_err(|why| Errno::from_io_error(&why).unwrap_or(Errno::IO))?;
    for name in names {
        dir = match rustix::fs::openat(&dir, *name, INSIDE, Mode::empty()) {
            Ok(inner) => inner,
            Err(Errno::NOENT) => return Ok(None),
            Err(why) => return Err(why),
        };
    }
    Ok(Some(dir))
}

/// Reads a file inside a directory, at most `most` bytes, not through a symbolic link. None if it is not there.
pub fn read_in(dir: &OwnedFd, name: &str, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    use std::io::Read;
    // A pipe in the file's place must not make us wait for somebody to write into it.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => std::fs::File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(std::io::Error::other("it is a symbolic link")),
        Err(why) => return Err(why.into()),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let too_large = |bytes: u64| {
        let why = format!("it has {bytes} bytes, more than {most}");
        std::io::Error::new(std::io::ErrorKind::FileTooLarge, why)
    };
    if meta.len() > most {
        return Err(too_large(meta.len()));
    }
    let mut bytes = Vec::new();
    // It may have grown since.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(Some(bytes))
}

/// Replaces a file inside a directory: temporary file, sync, rename, sync of the directory.
pub fn replace_in(dir: &OwnedFd, name: &str, content: &[u8], mode: u32) -> std::io::Result<()> {
    let temporary = format!(".{name}.{}{TEMPORARY}", uuid::Uuid::now_v7().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, temporary.as_str(), flags, Mode::from_raw_mode(mode))?;
    let mut file = std::fs::File::from(fd);
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(rustix::fs::renameat(dir, temporary.as_str(), dir, name)?));
    if let Err(why) = written {
        let _ = rustix::fs::unlinkat(dir, temporary.as_str(), AtFlags::empty());
        return Err(why);
    }
    // The rename itself must survive a power cut.
    rustix::fs::fsync(dir)?;
    Ok(())
}

/// A file in the making. It takes its place when it is finished; until then, and if it never is, whatever was there
/// before is untouched.
pub struct Draft {
    dir: OwnedFd,
    temporary: String,
    name: std::ffi::OsString,
    file: std::fs::File,
}

impl Draft {
    /// Begins a file that will be at `path`.
    pub fn begin(path: &Path, mode: u32) -> std::io::Result<Self> {
        let name = path.file_name().ok_or_else(|| std::io::Error::other("it has no name"))?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let dir = open_dir(parent.unwrap_or(Path::new(".")))?;
        let temporary = format!(".segno.{}{TEMPORARY}", uuid::Uuid::now_v7().simple());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&dir, temporary.as_str(), flags, Mode::from_raw_mode(mode))?;
        Ok(Self { dir, temporary, name, file: std::fs::File::from(fd) })
    }

    /// Where to write it.
    pub fn file(&mut self) -> &mut std::fs::File {
        &mut self.file
    }

    /// Puts it in its place: the bytes are on the disk first, then the name is. Answers with its size.
    pub fn finish(self) -> std::io::Result<u64> {
        self.file.sync_all()?;
        let bytes = self.file.metadata()?.len();
        rustix::fs::renameat(&self.dir, self.temporary.as_str(), &self.dir, &self.name)?;
        rustix::fs::fsync(&self.dir)?;
        Ok(bytes)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is gone already if it took its place.
        let _ = rustix::fs::unlinkat(&self.dir, self.temporary.as_str(), AtFlags::empty());
    }
}

/// Gives a file another name in its directory, durably, unless that name is taken.
pub fn rename_to_free(from: &Path, to: &Path) -> std::io::Result<()> {
    use rustix::fs::CWD;
    match rustix::fs::renameat_with(CWD, from, CWD, to, rustix::fs::RenameFlags::NOREPLACE) {
        // This file system cannot promise it. Names here are ours, so that a look will do.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if std::fs::symlink_metadata(to).is_ok() {
                return Err(std::io::ErrorKind::AlreadyExists.into());
            }
            std::fs::rename(from, to)?;
        }
        renamed => renamed?,
    }
    std::fs::File::open(to.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Makes a private directory and those above it, each durable in its parent.
pub fn private_dirs(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        private_dirs(parent)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(why) if why.kind() != std::io::ErrorKind::AlreadyExists => return Err(why),
        _ => {}
    }
    std::fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// How the names of files that are not yet whole end.
const TEMPORARY: &str = ".tmp";

/// Removes what writers left that died before they were done with `name`. Only for who holds the lock.
pub(crate) fn sweep(dir: &OwnedFd, name: &str) {
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
pub(crate) fn also_as(dir: &OwnedFd, name: &str, other: &str) -> Result<bool, Errno> {
    match rustix::fs::linkat(dir, name, dir, other, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(why) => Err(why),
    }
}

/// Waits a little for the lock of a directory; it goes with the descriptor. False if another keeps it: a stopped
/// process must not stop everybody else.
pub(crate) fn lock(dir: impl AsFd) -> bool {
    const TRIES: u32 = 400;
    for tried in 0..TRIES {
        match rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return true,
            Err(Errno::WOULDBLOCK | Errno::INTR) if tried + 1 < TRIES => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(_) => return false,
        }
    }
    false
}
