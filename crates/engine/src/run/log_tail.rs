//! Reads a conversation log while the agent writes it.
//!
//! The same in both modes: beside the agent's output what is read is understood at once; as the only source of a run it
//! is first copied into the capture.

use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

/// How much is read at once.
pub(super) const CHUNK: usize = 256 * 1024;
/// How often it is made sure that a log is still there.
const CHECK: Duration = Duration::from_secs(1);

/// An open log.
#[derive(Debug)]
pub(super) struct LogTail {
    path: PathBuf,
    file: File,
    /// How far it was read.
    offset: u64,
    checked: Instant,
}

impl LogTail {
    /// From a place on that an earlier reader, or an earlier run, got to.
    pub(super) fn open(path: &Path, from: u64) -> std::io::Result<Self> {
        let bad = |why: &str| std::io::Error::other(why.to_owned());
        // Asked by its name first: opening what is no file could wait for ever.
        if !std::fs::metadata(path)?.is_file() {
            return Err(bad("not a file"));
        }
        let file = File::open(path)?;
        if file.metadata()?.len() < from {
            return Err(bad("shorter than it was"));
        }
        Ok(Self { path: path.to_owned(), file, offset: from, checked: Instant::now() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is new, as much as the buffer holds; 0 if there is nothing.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.read_at(self.offset, buffer)?;
        if count == 0 && self.checked.elapsed() >= CHECK {
            self.checked = Instant::now();
            self.check()?;
        }
        Ok(count)
    }

    /// What stands at a place.
    pub(super) fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.file.seek(SeekFrom::Start(offset))?;
        let count = self.file.read(buffer)?;
        self.offset = offset + count as u64;
        Ok(count)
    }

    /// How long it is now.
    pub(super) fn length(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// What stands at a place, all of it; how far it was read stays.
    pub(super) fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset)
    }

    /// A file that was removed or replaced stays open and never grows again.
    fn check(&self) -> std::io::Result<()> {
        let there = std::fs::metadata(&self.path)?;
        let ours = self.file.metadata()?;
        match (there.dev(), there.ino()) == (ours.dev(), ours.ino()) {
            false => Err(std::io::Error::other("it was replaced")),
            true if ours.len() < self.offset => Err(std::io::Error::other("it was cut")),
            true => Ok(()),
        }
    }
}
