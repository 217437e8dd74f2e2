//! Seeing through wrappings: terminal colours, escapes of strings inside strings, percent-encoding, base64.
//!
//! A [`View`] is the text as its final reader would see it, with a map back to the bytes it came from. Because a
//! decoded character maps to its whole escape, a range of a view never cuts an escape in two, and a JSON text whose
//! secrets are replaced stays a JSON text.

use std::borrow::Cow;
use std::ops::Range;

/// From `view` on, positions of the view correspond to positions of the source from `source` on.
#[derive(Debug, Clone, Copy)]
struct Mark {
    view: usize,
    source: usize,
    /// The bytes up to the next mark came from one escape and cannot be told apart.
    whole: bool,
}

/// Decoded text and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct View<'a> {
    pub(crate) text: Cow<'a, str>,
    marks: Vec<Mark>,
}

impl<'a> View<'a> {
    /// The text as it is.
    pub(crate) fn plain(text: &'a str) -> Self {
        Self { text: Cow::Borrowed(text), marks: Vec::new() }
    }

    /// The text without colours and with all levels of backslash escapes taken away.
    pub(crate) fn unescaped(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let Some(first) = next_special(bytes, 0) else { return Self::plain(text) };
        let mut view = Builder::new(text.len());
        let mut from = 0;
        let mut next = Some(first);
        while let Some(at) = next {
            let end = match bytes[at] {
                ESC => colour_end(bytes, at + 1).unwrap_or(at),
                _ => {
                    let (end, decoded) = escape(bytes, at);
                    match decoded {
                        Decoded::Char('\u{1b}') if colour_end(bytes, end).is_some() => {
                            view.copy(text, from..at);
                            let end = colour_end(bytes, end).unwrap_or(end);
                            view.skip(end);
                            from = end;
                            next = next_special(bytes, end);
                            continue;
                        }
                        Decoded::Char(c) => {
                            view.copy(text, from..at);
                            view.put(c, at..end);
                            from = end;
                            next = next_special(bytes, end);
                            continue;
                        }
                        Decoded::Continuation => {
                            view.copy(text, from..at);
                            view.put_str("\\\n", at..end);
                            from = end;
                            next = next_special(bytes, end);
                            continue;
                        }
                        Decoded::Literal => {
                            next = next_special(bytes, end);
                            continue;
                        }
                    }
                }
            };
            if end > at {
                view.copy(text, from..at);
                view.skip(end);
                from = end;
            }
            next = next_special(bytes, end.max(at + 1));
        }
        view.copy(text, from..text.len());
        view.finish()
    }

    /// The text with percent-encoded ASCII characters decoded.
    pub(crate) fn percent_decoded(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut view = Builder::new(text.len());
        let mut from = 0;
        for (at, _) in text.match_indices('%') {
            if let Some(c) = hex(bytes.get(at + 1..at + 3)).and_then(char::from_u32).filter(char::is_ascii) {
                view.copy(text, from..at);
                view.put(c, at..at + 3);
                from = at + 3;
            }
        }
        view.copy(text, from..text.len());
        view.finish()
    }

    /// The text with each of the ranges (in order, apart from each other) replaced.
    pub(crate) fn replaced(text: &'a str, parts: impl Iterator<Item = (Range<usize>, String)>) -> Self {
        let mut view = Builder::new(text.len());
        let mut from = 0;
        for (range, with) in parts {
            view.copy(text, from..range.start);
            view.put_str(&with, range.clone());
            from = range.end;
        }
        view.copy(text, from..text.len());
        view.finish()
    }

    /// The range of the source that a non-empty range of the view came from.
    pub(crate) fn source(&self, range: Range<usize>) -> Range<usize> {
        if self.marks.is_empty() || range.is_empty() {
            return range;
        }
        let (mark, _) = self.mark(range.start);
        let start = if mark.whole { mark.source } else { mark.source + (range.start - mark.view) };
        let (mark, next) = self.mark(range.end - 1);
        let end = match next {
            Some(next) if mark.whole => next.source,
            _ => mark.source + (range.end - mark.view),
        };
        start..end
    }

    fn mark(&self, at: usize) -> (Mark, Option<Mark>) {
        let after = self.marks.partition_point(|mark| mark.view <= at);
        (self.marks[after.saturating_sub(1)], self.marks.get(after).copied())
    }
}

struct Builder {
    text: String,
    marks: Vec<Mark>,
}

impl Builder {
    fn new(capacity: usize) -> Self {
        Self { text: String::with_capacity(capacity), marks: vec![Mark { view: 0, source: 0, whole: false }] }
    }

    fn copy(&mut self, text: &str, range: Range<usize>) {
        self.text.push_str(&text[range]);
    }

    /// The source goes on at `source`; what lies before has no place in the view.
    fn skip(&mut self, source: usize) {
        self.marks.push(Mark { view: self.text.len(), source, whole: false });
    }

    fn put(&mut self, c: char, source: Range<usize>) {
        self.put_str(c.encode_utf8(&mut [0; 4]), source);
    }

    fn put_str(&mut self, text: &str, source: Range<usize>) {
        self.marks.push(Mark { view: self.text.len(), source: source.start, whole: true });
        self.text.push_str(text);
        self.skip(source.end);
    }

    fn finish(self) -> View<'static> {
        View { text: Cow::Owned(self.text), marks: self.marks }
    }
}

const ESC: u8 = 0x1b;

fn next_special(bytes: &[u8], from: usize) -> Option<usize> {
    let special = |b: &u8| *b == b'\\' || *b == ESC;
    // Looking at many bytes without a decision between them lets the compiler compare them all at once.
    let dull = |chunk: &&[u8; 32]| !chunk.iter().fold(false, |any, b| any | special(b));
    let skipped = 32 * bytes[from..].as_chunks().0.iter().take_while(dull).count();
    bytes[from + skipped..].iter().position(special).map(|offset| from + skipped + offset)
}

/// The end of the control sequence whose introducer (the escape character) ends at `at`.
fn colour_end(bytes: &[u8], at: usize) -> Option<usize> {
    if *bytes.get(at)? != b'[' {
        return None;
    }
    let rest = &bytes[at + 1..];
    let length = rest.iter().take(32).take_while(|b| (0x20..0x40).contains(*b)).count();
    matches!(rest.get(length), Some(0x40..=0x7e)).then_some(at + 1 + length + 1)
}

enum Decoded {
    Char(char),
    /// A backslash before a line break.
    Continuation,
    /// Not an escape we know: it stays as it is.
    Literal,
}

/// The escape that begins with the run of backslashes at `at`: its end and its meaning.
///
/// Every level of nesting doubles the backslashes, so a run of any length before `n` is a line break for the
/// innermost reader; treating the run as one escape undoes all levels at once.
fn escape(bytes: &[u8], at: usize) -> (usize, Decoded) {
    let run = bytes[at..].iter().take_while(|&&b| b == b'\\').count();
    let letter = at + run;
    let Some(&byte) = bytes.get(letter) else { return (letter, Decoded::Literal) };
    let simple = |c| (letter + 1, Decoded::Char(c));
    match byte {
        // Doubling makes the run of a plain line break a power of two at every level; any other length has a literal
        // backslash in it, as shells end a line that goes on.
        b'n' if !run.is_power_of_two() => (letter + 1, Decoded::Continuation),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'"' | b'\'' | b'/' | b'`' => simple(char::from(byte)),
        b'e' if bytes.get(letter + 1) == Some(&b'[') => simple('\u{1b}'),
        b'0' if bytes.get(letter + 1..letter + 3) == Some(b"33") => (letter + 3, Decoded::Char('\u{1b}')),
        b'x' => code(bytes, letter + 1, 2),
        b'u' => code(bytes, letter + 1, 4),
        _ => (letter, Decoded::Literal),
    }
}

fn code(bytes: &[u8], at: usize, digits: usize) -> (usize, Decoded) {
    match hex(bytes.get(at..at + digits)).and_then(char::from_u32) {
        Some(c) => (at + digits, Decoded::Char(c)),
        None => (at, Decoded::Literal),
    }
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let digits = digits?;
    digits.iter().try_fold(0, |sum, &b| Some(sum * 16 + char::from(b).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::View;

    fn seen(text: &str) -> String {
        View::unescaped(text).text.into_owned()
    }

    #[test]
    fn all_levels_of_escapes_are_undone() {
        assert_eq!(seen(r#"a\nb\"c\/d\u0041"#), "a\nb\"c/dA");
        assert_eq!(seen(r#"a\\nb\\\"c\\\\u0041"#), "a\nb\"cA");
        assert_eq!(seen(r"\d+ \q \"), r"\d+ \q \");
        assert_eq!(seen(r"a \\\n b \\\\\\n c"), "a \\\n b \\\n c");
    }

    #[test]
    fn colours_vanish_in_every_spelling() {
        for colour in ["\u{1b}[01;31m\u{1b}[K", r"\u001b[31m", r"\\x1b[0m", r"\033[1m", r"\e[m"] {
            assert_eq!(seen(&format!("to{colour}ken")), "token", "{colour:?}");
        }
    }

    #[test]
    fn ranges_map_back_to_whole_escapes() {
        let text = "x\\\"ab\u{1b}[31mcd\\ny";
        let view = View::unescaped(text);
        assert_eq!(view.text, "x\"abcd\ny");
        assert_eq!(&text[view.source(2..6)], "ab\u{1b}[31mcd");
        assert_eq!(&text[view.source(1..2)], "\\\"");
        assert_eq!(&text[view.source(4..7)], "cd\\n");
        assert_eq!(view.source(7..8), text.len() - 1..text.len());
    }

    #[test]
    fn percent_encoding_is_decoded() {
        let text = "a%3Ab%zz%2";
        let view = View::percent_decoded(text);
        assert_eq!(view.text, "a:b%zz%2");
        assert_eq!(&text[view.source(1..3)], "%3Ab");
    }
}
