//! Files written so that they are either the old or the new content, never half of one.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the user, whatever the umask: 0600.
    Private,
    /// Whoever the umask lets, for files that belong to a project.
    Ordinary,
}

/// Creates a directory and its parents; the directory itself becomes 0700 whatever the umask, also if it existed.
///
/// # Errors
/// If it cannot be made, or if it belongs to another user.
pub fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let metadata = fs::metadata(path)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the directory belongs to another user"));
    }
    if metadata.mode() & 0o777 != 0o700 {
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Replaces a file as a whole: temporary file in the same directory, flushed to disk, renamed over the old one, the
/// directory flushed. After a crash or loss of power the file is the old or the new one. An existing file keeps its
/// permissions unless the new one is private.
///
/// # Errors
/// If any step fails; the old file is then untouched.
pub fn replace(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| io::Error::other("the path has no directory"))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".segno-").suffix(".tmp");
    if access == Access::Ordinary {
        // Given at creation, so the umask is applied by the system.
        builder.permissions(Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(content)?;
    match (access, fs::metadata(path)) {
        (Access::Private, _) => file.as_file().set_permissions(Permissions::from_mode(0o600))?,
        (Access::Ordinary, Ok(old)) => file.as_file().set_permissions(old.permissions())?,
        (Access::Ordinary, Err(_)) => {}
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is a link, a device, a pipe or a directory.
    #[error("it is not a regular file")]
    NotRegular,
    /// It is larger than allowed.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
}

/// Whether the last part of a path may be a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Links are followed: the user's own files.
    Follow,
    /// A link is refused: files of a project.
    Refuse,
}

/// Reads a regular file of bounded size; `None` if there is none. A pipe in its place cannot make us wait.
///
/// # Errors
/// See [`ReadError`].
pub fn read_bounded(path: &Path, limit: u64, links: Links) -> Result<Option<Vec<u8>>, ReadError> {
    let mut flags = rustix::fs::OFlags::NONBLOCK;
    if links == Links::Refuse {
        flags |= rustix::fs::OFlags::NOFOLLOW;
    }
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // This is how the system says that the last part is a link.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(ReadError::NotRegular);
        }
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(ReadError::NotRegular);
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(ReadError::TooLarge(limit));
    }
    Ok(Some(content))
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
