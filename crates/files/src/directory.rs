//! Directories: private ones, durable ones, ones that are no links.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// How a directory inside another is opened: itself, not what a link in its place points to.
const INSIDE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The directory of a file; a bare name is in the current one.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a directory durable: files that were made, renamed or removed in it.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

/// Makes a file's own name durable.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    sync_dir(parent(path))
}

/// Makes a directory and those above it, each durable in its parent. The directory itself is 0700 whatever the umask,
/// also if it existed; one that belongs to another user is refused.
pub fn private_directory(path: &Path) -> io::Result<()> {
    make_directory(path)?;
    let metadata = fs::metadata(path)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the directory belongs to another user"));
    }
    if metadata.mode() & 0o777 != 0o700 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Refuses a directory that others may have put something into: one of another user, or one that others may write. One
/// that is not there is fine.
pub fn check_ours(path: &Path) -> io::Result<()> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    match fs::metadata(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(why) => Err(why),
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            refuse(format!("it belongs to another user (uid {})", found.uid()))
        }
        Ok(found) if found.mode() & 0o022 != 0 => {
            refuse(format!("others may write to it (mode {:03o})", found.mode() & 0o777))
        }
        Ok(_) => Ok(()),
    }
}

/// Makes a directory and those above it, each private and durable in its parent. One that is there is left as it is.
pub fn make_directory(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {}
        Err(why) => return Err(why),
    }
    let parent = parent(path);
    if parent != path && parent != Path::new(".") {
        make_directory(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        // An odd umask may have taken more than it should.
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(0o700))?,
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
        Err(why) => return Err(why),
    }
    sync_dir(parent)
}

/// Opens a directory.
pub fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Whether a name is that of something right inside a directory. Names come from outside: one that leads elsewhere is
/// refused by everything here that takes an open directory.
pub(crate) fn single(name: &str) -> Result<(), Errno> {
    match name {
        "" | "." | ".." => Err(Errno::INVAL),
        _ if name.contains(['/', '\0']) => Err(Errno::INVAL),
        _ => Ok(()),
    }
}

/// Opens a directory inside another, making it if it is not there. A symbolic link in its place is refused, and so is a
/// name of more than one part.
pub fn dir_in(parent: &OwnedFd, name: &str, mode: u32) -> Result<OwnedFd, Errno> {
    single(name)?;
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
        single(name)?;
        dir = match rustix::fs::openat(&dir, *name, INSIDE, Mode::empty()) {
            Ok(inner) => inner,
            Err(Errno::NOENT) => return Ok(None),
            Err(why) => return Err(why),
        };
    }
    Ok(Some(dir))
}

/// Waits a little for the lock of a directory; it goes with the descriptor. False if another keeps it: a stopped
/// process must not stop everybody else.
pub fn lock(dir: impl AsFd) -> bool {
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
