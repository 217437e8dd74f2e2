//! The lines of a file that somebody else writes, in bounded memory, read around whatever damaged it.

use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read as _;
use std::path::Path;

use crate::Error;

/// Lines beyond this are not looked into.
pub(super) const LONGEST: usize = 16 << 20;
/// How much is read at once.
const BLOCK: usize = 256 << 10;

/// A line as found, without its line feed.
pub(super) enum Found<'a> {
    /// A line; the last one may have no line feed.
    Line { offset: u64, bytes: &'a [u8], ended: bool },
    /// One that is too long to be looked into.
    TooLong,
}

/// What was found out about the file as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Runs of zero bytes, which a crash leaves in place of what was written.
    pub(super) holes: u64,
    /// Where the last line that has a line feed ends.
    pub(super) end: u64,
}

/// Gives every line. Zero bytes end a line: no text has any.
pub(super) fn each_line(
    path: &Path,
    take: &mut dyn FnMut(Found<'_>) -> Result<(), Error>,
) -> Result<Shape, Error> {
    let file = File::open(path).map_err(|why| Error::file(path, why))?;
    let mut reader = BufReader::with_capacity(BLOCK, file);
    let mut splitter = Splitter::default();
    loop {
        let block = reader.fill_buf().map_err(|why| Error::file(path, why))?;
        if block.is_empty() {
            break;
        }
        let length = block.len();
        splitter.feed(block, take)?;
        reader.consume(length);
    }
    splitter.end(take)?;
    Ok(splitter.shape())
}

/// Takes blocks of a file and gives its lines.
#[derive(Default)]
pub(super) struct Splitter {
    line: Vec<u8>,
    too_long: u64,
    start: u64,
    position: u64,
    in_hole: bool,
    shape: Shape,
}

impl Splitter {
    /// Gives the last line, which has no end.
    pub(super) fn end(&mut self, take: &mut dyn FnMut(Found<'_>) -> Result<(), Error>) -> Result<(), Error> {
        self.give(take, false)
    }

    /// What was found out so far.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn feed(
        &mut self,
        mut block: &[u8],
        take: &mut dyn FnMut(Found<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while !block.is_empty() {
            let Some(at) = memchr::memchr2(b'\n', 0, block) else {
                self.collect(block);
                self.position += block.len() as u64;
                return Ok(());
            };
            let (part, rest) = (&block[..at], &block[at + 1..]);
            let is_hole = block[at] == 0;
            if !part.is_empty() {
                self.in_hole = false;
            }
            if is_hole && !self.in_hole {
                self.shape.holes += 1;
            }
            self.collect(part);
            self.position += part.len() as u64 + 1;
            self.give(take, !is_hole)?;
            if !is_hole {
                self.shape.end = self.position;
            }
            (self.start, self.in_hole) = (self.position, is_hole);
            block = rest;
        }
        Ok(())
    }

    fn collect(&mut self, part: &[u8]) {
        if self.too_long > 0 || self.line.len() + part.len() > LONGEST {
            self.too_long += (self.line.len() + part.len()) as u64;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn give(
        &mut self,
        take: &mut dyn FnMut(Found<'_>) -> Result<(), Error>,
        ended: bool,
    ) -> Result<(), Error> {
        if self.too_long > 0 {
            self.too_long = 0;
            return take(Found::TooLong);
        }
        let bytes = self.line.trim_ascii();
        if !bytes.is_empty() {
            take(Found::Line { offset: self.start, bytes, ended })?;
        }
        self.line.clear();
        self.line.shrink_to(1 << 20);
        Ok(())
    }
}

/// The hash of the first bytes of a file; none if it has fewer.
pub(super) fn hash_of(path: &Path, bytes: u64) -> Option<[u8; 32]> {
    let mut file = File::open(path).ok()?.take(bytes);
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; BLOCK];
    let mut read = 0;
    loop {
        match file.read(&mut block).ok()? {
            0 => break,
            length => {
                hasher.update(&block[..length]);
                read += length as u64;
            }
        }
    }
    (read == bytes).then(|| *hasher.finalize().as_bytes())
}

/// The beginning of a file.
pub(super) fn head_of(path: &Path) -> Vec<u8> {
    const HEAD: u64 = 512 << 10;
    let mut head = Vec::new();
    if let Ok(file) = File::open(path) {
        // Less of it tells less.
        let _ = file.take(HEAD).read_to_end(&mut head);
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &[u8]) -> (Vec<(u64, String, bool)>, Shape) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, content).unwrap();
        let mut found = Vec::new();
        let shape = each_line(&path, &mut |line| {
            found.push(match line {
                Found::Line { offset, bytes, ended } => {
                    (offset, String::from_utf8_lossy(bytes).into_owned(), ended)
                }
                Found::TooLong => (0, "too long".to_owned(), true),
            });
            Ok(())
        });
        (found, shape.unwrap())
    }

    #[test]
    fn lines_holes_and_a_torn_end() {
        let line = |offset, text: &str, ended| (offset, text.to_owned(), ended);
        let (found, shape) = lines(b"one\r\n\ntwo\0\0\0\0ree\nfo");
        assert_eq!(
            found,
            [line(0, "one", true), line(6, "two", false), line(13, "ree", true), line(17, "fo", false)]
        );
        assert_eq!(shape, Shape { holes: 1, end: 17 });
        assert_eq!(lines(b"").1, Shape::default());
    }

    #[test]
    fn a_huge_line_is_measured_and_passed_over() {
        let mut content = vec![b'x'; LONGEST + 10];
        content.extend_from_slice(b"\nafter\n");
        let (found, _) = lines(&content);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].1.as_str(), found[1].1.as_str()), ("too long", "after"));
    }
}
