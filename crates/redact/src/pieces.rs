//! Redaction of a text that arrives in pieces, cut anywhere, where each piece is recorded on its own.

use std::collections::VecDeque;
use std::ops::Range;

use crate::redactor::Redactor;
use crate::redactor::Span;

/// How much of what was given out stays in sight: a secret's name, or the beginning of a key, may stand there.
const CONTEXT: usize = 16 * 1024;
/// No more than this is held back, whatever the text.
const MOST: usize = 64 * 1024;
/// Lines of one word that are so long may be parts of something that goes on in the next one.
const WRAPPED: std::ops::RangeInclusive<usize> = 40..=128;

/// One stream of text on its way to the record. Each piece comes with something of the caller's, and is given back with
/// it when its text is safe to record.
///
/// A line that is not whole is held back, because the next piece may show that it is part of a secret; so are lines that
/// look like a part of something longer. What was given out stays in sight.
#[derive(Debug)]
pub struct Pieces<T> {
    buffer: String,
    /// The pieces that were not given out yet, and where their texts are in the buffer.
    waiting: VecDeque<(Range<usize>, T)>,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self { buffer: String::new(), waiting: VecDeque::new() }
    }
}

impl<T> Pieces<T> {
    /// A stream of which nothing has come yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece. `joint` is what stands between it and the next one, such as a line break.
    pub fn push(&mut self, piece: &str, joint: &str, what: T) {
        let start = self.buffer.len();
        self.buffer.push_str(piece);
        self.waiting.push_back((start..self.buffer.len(), what));
        self.buffer.push_str(joint);
    }

    /// Whether nothing is held back.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Gives what is safe to record now, often nothing.
    pub fn give(&mut self, redactor: &Redactor) -> Vec<(T, String)> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let cut = self.safe();
        let count = self.waiting.iter().take_while(|(range, _)| range.end <= cut).count();
        self.give_first(count, redactor)
    }

    /// Gives what was held back: nothing more comes that belongs to it.
    pub fn finish(&mut self, redactor: &Redactor) -> Vec<(T, String)> {
        self.give_first(self.waiting.len(), redactor)
    }

    /// Up to here nothing depends on what comes next.
    fn safe(&self) -> usize {
        let done = self.waiting.front().map_or(self.buffer.len(), |(range, _)| range.start);
        let held = &self.buffer[done..];
        if held.len() >= MOST {
            return self.buffer.len();
        }
        let Some(mut cut) = held.rfind('\n').map(|at| done + at + 1) else { return done };
        while cut > done {
            let line_start = self.buffer[done..cut - 1].rfind('\n').map_or(done, |at| done + at + 1);
            if !goes_on(&self.buffer[line_start..cut - 1]) {
                break;
            }
            cut = line_start;
        }
        cut
    }

    fn give_first(&mut self, count: usize, redactor: &Redactor) -> Vec<(T, String)> {
        let Some((last, _)) = count.checked_sub(1).and_then(|at| self.waiting.get(at)) else {
            return Vec::new();
        };
        let done = last.end;
        let spans = redactor.spans(&self.buffer);
        let mut given = Vec::with_capacity(count);
        for (range, what) in self.waiting.drain(..count) {
            given.push((what, render(&self.buffer, range, &spans)));
        }
        let keep = self.waiting.front().map_or(self.buffer.len(), |(range, _)| range.start).min(done);
        let keep = floor(&self.buffer, keep.saturating_sub(CONTEXT));
        self.buffer.drain(..keep);
        for (range, _) in &mut self.waiting {
            *range = range.start - keep..range.end - keep;
        }
        given
    }
}

/// A part of the text, with the tag of each secret that has a part in it.
fn render(text: &str, range: Range<usize>, spans: &[Span]) -> String {
    let mut out = String::with_capacity(range.len());
    let mut from = range.start;
    for span in spans.iter().filter(|span| span.range.end > range.start && span.range.start < range.end) {
        out.push_str(&text[from..span.range.start.max(from)]);
        out.push_str(&span.tag);
        from = span.range.end.min(range.end);
    }
    out.push_str(&text[from..range.end]);
    out
}

/// Whether a line may be part of something that was broken into lines: it ends with a long run of base64 digits.
fn goes_on(line: &str) -> bool {
    let digit = |b: &u8| b.is_ascii_alphanumeric() || b"+/=_-".contains(b);
    let run =
        line.trim_end_matches(['\r', '"', '\'', ',', '\\', ' ']).bytes().rev().take_while(digit).count();
    WRAPPED.contains(&run)
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Pieces;
    use crate::Options;
    use crate::Redactor;

    fn key(count: usize) -> (Vec<String>, String) {
        let line = |n: usize| {
            let bytes: Vec<u8> = (0..48).map(|i| (i * 7 + n * 31 % 251) as u8 ^ 0x5a).collect();
            crate::islands::encode(&bytes)
        };
        let lines: Vec<String> = (0..count).map(line).collect();
        let (begin, end) = ("-----BEGIN RSA PRIVATE", "-----END RSA PRIVATE");
        let text = format!("{begin} KEY-----\n{}\n{end} KEY-----", lines.join("\n"));
        (lines, text)
    }

    #[test]
    fn lines_are_given_at_once_and_a_key_in_them_never() {
        let redactor = Redactor::new(Options::default());
        let (lines, text) = key(30);
        let mut pieces = Pieces::new();
        pieces.push("before", "\n", 0);
        assert_eq!(pieces.give(&redactor), [(0, "before".to_owned())]);
        let mut out = Vec::new();
        for (number, line) in text.lines().enumerate() {
            pieces.push(line, "\n", number + 1);
            out.extend(pieces.give(&redactor));
        }
        pieces.push("after", "\n", 99);
        out.extend(pieces.give(&redactor));
        assert!(pieces.is_empty());
        assert_eq!(
            out.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
            (1..=32).chain([99]).collect::<Vec<_>>()
        );
        assert_eq!(out.last().unwrap().1, "after");
        let joined = out.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        for line in lines {
            assert!(!joined.contains(&line[8..30]), "{joined}");
        }
    }

    #[test]
    fn a_secret_in_pieces_is_found_wherever_it_is_cut() {
        let redactor = Redactor::new(Options::default());
        let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
        let text = format!("first\npush with {secret} and\nDB_PASSWORD=winter-meadow-7\nthen go");
        for size in 1..30 {
            let mut pieces = Pieces::new();
            let mut out = String::new();
            for piece in text.as_bytes().chunks(size) {
                pieces.push(std::str::from_utf8(piece).unwrap(), "", ());
                out.extend(pieces.give(&redactor).into_iter().map(|(_, text)| text));
            }
            out.extend(pieces.finish(&redactor).into_iter().map(|(_, text)| text));
            assert!(out.starts_with("first\npush with [redacted:github-pat:"), "{out}");
            assert!(out.ends_with("\nthen go"), "{out}");
            for part in [&secret[4..12], &secret[30..], "winter", "meadow"] {
                assert!(!out.contains(part), "{size}: {out}");
            }
        }
    }

    #[test]
    fn what_is_held_is_bounded() {
        let redactor = Redactor::new(Options::default());
        let mut pieces = Pieces::new();
        let mut given = 0;
        for number in 0..3_000 {
            pieces.push("word after word without an end, ", "", number);
            given += pieces.give(&redactor).len();
        }
        assert!(given > 1_500, "{given}");
        assert_eq!(given + pieces.finish(&redactor).len(), 3_000);
    }
}
