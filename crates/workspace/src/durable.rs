//! Files that are on the disk when a call returns. They are what `segno_files` makes of them; what is done here in steps
//! of its own is so that a test can kill the process between any two of them, and so that what is left over has a name
//! that is known under the lock of the shadow directory.

use std::fs::File;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;

use crate::error::Context as _;
use crate::error::Error;
use crate::fault::step;

/// What temporary names in the shadow directory begin with. Under the lock, whatever has such a name is left over.
pub(crate) const TEMPORARY: &str = "tmp_segno_";

/// Makes a directory's names durable.
pub(crate) fn sync_dir(path: &Path) -> Result<(), Error> {
    step();
    segno_files::sync_dir(path).context("cannot sync", path)
}

/// Makes a private directory and those above it, each durable in its parent.
pub(crate) fn make_dirs(path: &Path) -> Result<(), Error> {
    step();
    segno_files::make_directory(path).context("cannot make", path)
}

/// A new private file for writing.
pub(crate) fn create(path: &Path) -> Result<File, Error> {
    step();
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .context("cannot create", path)
}

/// Replaces a file by these bytes, all or nothing, durably.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace_through(path.parent().unwrap_or(path), path, bytes)
}

/// The same, with the temporary file in another directory of the same file system.
pub(crate) fn replace_through(directory: &Path, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let temporary = written_in(directory, path, bytes, true)?;
    rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Replaces a file that can be made again: all or nothing for other processes, but a power cut may spoil it.
pub(crate) fn replace_lazily(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let temporary = written_in(path.parent().unwrap_or(path), path, bytes, false)?;
    rename(&temporary, path)
}

fn written_in(directory: &Path, path: &Path, bytes: &[u8], sync: bool) -> Result<PathBuf, Error> {
    let mut name = std::ffi::OsString::from(TEMPORARY);
    name.push(path.file_name().unwrap_or_default());
    let temporary = directory.join(name);
    let mut file = create(&temporary)?;
    step();
    file.write_all(bytes).context("cannot write", &temporary)?;
    if sync {
        step();
        file.sync_all().context("cannot sync", &temporary)?;
    }
    Ok(temporary)
}

/// Renames; the directory still has to be synced.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    step();
    std::fs::rename(from, to).context("cannot rename", from)
}

/// Removes a file if it is there; the directory still has to be synced.
pub(crate) fn remove(path: &Path) -> Result<bool, Error> {
    step();
    match std::fs::remove_file(path) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true).context("cannot remove", path),
    }
}

/// A plain file's bytes. Nothing if it is missing, not a plain file, or larger than `most`: the file may be anybody's,
/// and a pipe in its place must not make us wait.
pub(crate) fn read_plain(path: &Path, most: u64) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > most {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).ok()?);
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
