//! Bytes to lines, in bounded memory.

/// How much of both ends of an oversized line is kept: more than anybody shows, so that a secret that stands where it is
/// cut can be seen whole before.
pub(crate) const EXCERPT: usize = 64 * 1024;

/// One line as found, without its line feed.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    /// A line within the limit.
    Whole { offset: u64, number: u64, bytes: &'a [u8] },
    /// A line beyond it.
    Oversized { offset: u64, number: u64, length: u64, head: &'a [u8], tail: &'a [u8] },
}

/// Cuts a stream into lines. What it gives depends on the bytes alone, never on how they were chunked.
#[derive(Debug)]
pub(crate) struct Lines {
    limit: usize,
    /// Offset of the next byte to come.
    position: u64,
    /// Offset of the first byte of the line being collected.
    start: u64,
    number: u64,
    buffer: Vec<u8>,
    over: Option<Over>,
}

#[derive(Debug)]
struct Over {
    length: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(limit: usize, offset: u64) -> Self {
        Self {
            limit: limit.max(1),
            position: offset,
            start: offset,
            number: 0,
            buffer: Vec::new(),
            over: None,
        }
    }

    /// Where the line being collected begins: all before it has been given out.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn feed(&mut self, mut bytes: &[u8], out: &mut impl FnMut(Line<'_>)) {
        while !bytes.is_empty() {
            if self.at_line_start() {
                // A hole punched behind what was already read comes back as zeros; it is no part of any line.
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                self.position += zeros as u64;
                self.start = self.position;
                bytes = &bytes[zeros..];
                if bytes.is_empty() {
                    return;
                }
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (part, rest) = match end {
                Some(end) => (&bytes[..end], &bytes[end + 1..]),
                None => (bytes, &bytes[bytes.len()..]),
            };
            self.position += part.len() as u64;
            match end {
                Some(_) => {
                    self.complete(part, out);
                    self.position += 1;
                    self.start = self.position;
                }
                None => self.collect(part),
            }
            bytes = rest;
        }
    }

    /// Gives out a last line that has no line feed.
    pub(crate) fn finish(&mut self, out: &mut impl FnMut(Line<'_>)) {
        if !self.at_line_start() {
            self.complete(&[], out);
            self.start = self.position;
        }
    }

    fn at_line_start(&self) -> bool {
        self.buffer.is_empty() && self.over.is_none()
    }

    fn complete(&mut self, part: &[u8], out: &mut impl FnMut(Line<'_>)) {
        self.number += 1;
        let (offset, number) = (self.start, self.number);
        if self.at_line_start() && part.len() <= self.limit {
            // The common case: the whole line is in this chunk, nothing is copied.
            out(Line::Whole { offset, number, bytes: part });
            return;
        }
        self.collect(part);
        match self.over.take() {
            Some(Over { length, head, tail }) => {
                let tail = &tail[tail.len().saturating_sub(self.excerpt())..];
                out(Line::Oversized { offset, number, length, head: &head, tail });
            }
            None => out(Line::Whole { offset, number, bytes: &self.buffer }),
        }
        self.buffer.clear();
        // One huge line must not keep its memory for the rest of the run.
        self.buffer.shrink_to(64 * 1024);
    }

    fn collect(&mut self, part: &[u8]) {
        let excerpt = self.excerpt();
        if self.over.is_none() {
            if self.buffer.len() + part.len() <= self.limit {
                self.buffer.extend_from_slice(part);
                return;
            }
            let mut head: Vec<u8> = self.buffer.iter().take(excerpt).copied().collect();
            head.extend_from_slice(&part[..part.len().min(excerpt - head.len())]);
            let keep = self.buffer.len().saturating_sub(excerpt);
            let tail = self.buffer[keep..].to_vec();
            self.over = Some(Over { length: self.buffer.len() as u64, head, tail });
            self.buffer = Vec::new();
        }
        if let Some(over) = &mut self.over {
            over.length += part.len() as u64;
            over.tail.extend_from_slice(&part[part.len().saturating_sub(excerpt)..]);
            if over.tail.len() > 2 * excerpt {
                over.tail.drain(..over.tail.len() - excerpt);
            }
        }
    }

    fn excerpt(&self) -> usize {
        EXCERPT.min(self.limit)
    }
}
