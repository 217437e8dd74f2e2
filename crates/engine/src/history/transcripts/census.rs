//! Which lines of a transcript are whole.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::io::Read as _;
use std::io::Seek as _;
use std::io::SeekFrom;

use super::frames::Frames;
use super::frames::Version;
use crate::history::lines::Found;
use crate::history::lines::Splitter;

/// What takes the place of a transcript: a state that is kept and, if the file has more than that, its own end.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) version: Version,
    /// From where on the file's own bytes go on.
    pub(super) tail: Option<u64>,
}

impl Candidate {
    pub(super) fn give(
        &self,
        frames: &Frames,
        file: Option<&File>,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        frames.give(&self.version, take)?;
        match (self.tail, file) {
            (Some(tail), Some(file)) => each_block(file, tail, take),
            _ => Ok(()),
        }
    }
}

/// Gives the bytes of a file from some place on.
pub(super) fn each_block(
    file: &File,
    from: u64,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(from))?;
    let mut block = vec![0; 256 << 10];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(()),
            read => take(&block[..read])?,
        }
    }
}

/// The lines of a transcript.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Those that are whole.
    whole: HashSet<u64>,
    /// Those that are too long to be looked into.
    huge: u64,
    /// Something is no line of a transcript.
    pub(super) is_damaged: bool,
}

impl Census {
    /// Counts the lines of whatever gives bytes.
    pub(super) fn of(
        give: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<Self> {
        let (mut census, mut splitter) = (Self::default(), Splitter::default());
        let take = |census: &mut Self, found: Found<'_>| {
            match found {
                Found::TooLong => census.huge += 1,
                Found::Line { bytes, .. } => {
                    match serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
                        true => {
                            let hash = blake3::hash(bytes);
                            let (first, _) = hash.as_bytes().split_at(8);
                            census.whole.insert(first.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)));
                        }
                        false => census.is_damaged = true,
                    }
                }
            }
            Ok(())
        };
        let lost = |why: crate::Error| io::Error::other(why.to_string());
        give(&mut |bytes| splitter.feed(bytes, &mut |found| take(&mut census, found)).map_err(lost))?;
        splitter.end(&mut |found| take(&mut census, found)).map_err(lost)?;
        census.is_damaged |= splitter.shape().holes > 0;
        Ok(census)
    }

    /// How many are whole.
    pub(super) fn lines(&self) -> u64 {
        self.whole.len() as u64 + self.huge
    }

    /// Whether every whole line of another is one of these.
    pub(super) fn has_all_of(&self, other: &Self) -> bool {
        self.huge >= other.huge && other.whole.is_subset(&self.whole)
    }
}
