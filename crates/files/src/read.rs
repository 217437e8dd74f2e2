//! Reading files that may be anybody's: bounded, never through a link that is not wanted, never waiting.

use std::fs;
use std::io;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

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

/// Opens a regular file for reading; `None` if there is none. A pipe in its place cannot make us wait.
pub fn open_regular(path: &Path, links: Links) -> Result<Option<fs::File>, ReadError> {
    let mut flags = OFlags::NONBLOCK;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // This is how the system says that the last part is a link.
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(ReadError::NotRegular);
        }
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(ReadError::NotRegular);
    }
    Ok(Some(file))
}

/// Reads a regular file of bounded size; `None` if there is none. A pipe in its place cannot make us wait.
pub fn read_bounded(path: &Path, limit: u64, links: Links) -> Result<Option<Vec<u8>>, ReadError> {
    let Some(file) = open_regular(path, links)? else { return Ok(None) };
    let meta = file.metadata()?;
    // Room for all of it and one more: read in one go instead of in many small ones.
    let mut content = Vec::with_capacity(usize::try_from(meta.len().min(limit) + 1).unwrap_or_default());
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(ReadError::TooLarge(limit));
    }
    Ok(Some(content))
}

/// Opens a regular file inside a directory for reading, not through a symbolic link. None if it is not there.
pub fn open_in(dir: &OwnedFd, name: &str) -> io::Result<Option<fs::File>> {
    crate::directory::single(name)?;
    // A pipe in the file's place must not make us wait for somebody to write into it.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => fs::File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(io::Error::other("it is a symbolic link")),
        Err(why) => return Err(why.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(Some(file))
}

/// Reads a file inside a directory, at most `most` bytes, not through a symbolic link. None if it is not there.
pub fn read_in(dir: &OwnedFd, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_in(dir, name)? else { return Ok(None) };
    let meta = file.metadata()?;
    let too_large = |bytes: u64| {
        let why = format!("it has {bytes} bytes, more than {most}");
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    };
    if meta.len() > most {
        return Err(too_large(meta.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len() + 1).unwrap_or_default());
    // It may have grown since.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(Some(bytes))
}
