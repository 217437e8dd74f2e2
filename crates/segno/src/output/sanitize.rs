//! The one sanitizer for text that came from outside: agents, projects, file names, other programs.
//!
//! A terminal obeys control characters: they set titles, fill the clipboard, hide or reorder what is shown. Here every
//! such character is made visible instead of being dropped, so the reader sees that something was there:
//!
//! | character | shown as |
//! |---|---|
//! | escape (the start of CSI, OSC, DCS, APC) | `\e` |
//! | other C0 controls and delete | `\r`, `\x07` … |
//! | C1 controls (8-bit CSI and friends), bidirectional marks, zero-width and other invisible characters | `<U+202E>` |
//!
//! Newline and tab stay as they are in blocks of text; in single lines they are shown too.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A block of text made harmless: newlines and tabs stay, `\r\n` becomes a newline.
pub fn block(text: &str) -> Cow<'_, str> {
    clean(text, Shape::Block, ("", ""))
}

/// Text made harmless and kept on one line, for table cells and messages.
pub fn line(text: &str) -> Cow<'_, str> {
    clean(text, Shape::Line, ("", ""))
}

/// Like [`block()`], with every made-visible character between two strings of ours, for example a dim style.
pub fn block_marked<'a>(text: &'a str, marks: (&str, &str)) -> Cow<'a, str> {
    clean(text, Shape::Block, marks)
}

/// Like [`line()`], with every made-visible character between two strings of ours.
pub fn line_marked<'a>(text: &'a str, marks: (&str, &str)) -> Cow<'a, str> {
    clean(text, Shape::Line, marks)
}

/// Bytes of unknown encoding made harmless as a block; what is not UTF-8 becomes U+FFFD.
pub fn block_bytes(bytes: &[u8]) -> String {
    block(&String::from_utf8_lossy(bytes)).into_owned()
}

/// Whether a character must not reach a terminal as it is.
pub fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        _ => is_invisible(c),
    }
}

/// Characters that are not seen, or that change how their neighbours are seen.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}'                        // soft hyphen
        | '\u{34f}'                     // combining grapheme joiner
        | '\u{61c}'                     // Arabic letter mark
        | '\u{115f}' | '\u{1160}'       // Hangul fillers
        | '\u{17b4}' | '\u{17b5}'       // Khmer inherent vowels
        | '\u{180b}'..='\u{180f}'       // Mongolian selectors
        | '\u{200b}'..='\u{200f}'       // zero-width space and joiners, direction marks
        | '\u{2028}'..='\u{202e}'       // line and paragraph separators, bidirectional embeddings and overrides
        | '\u{2060}'..='\u{206f}'       // word joiner, invisible operators, bidirectional isolates
        | '\u{3164}'                    // Hangul filler
        | '\u{feff}'                    // byte order mark
        | '\u{ffa0}'                    // halfwidth Hangul filler
        | '\u{fff0}'..='\u{fffb}'       // specials, interlinear annotation
        | '\u{1d173}'..='\u{1d17a}'     // musical formatting
        | '\u{e0000}'..='\u{e0fff}'     // tags and supplementary variation selectors
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Block,
    Line,
}

fn clean<'a>(text: &'a str, shape: Shape, (before, after): (&str, &str)) -> Cow<'a, str> {
    let offends = |c: char| is_unsafe(c) || (shape == Shape::Line && matches!(c, '\n' | '\t'));
    let Some(first) = text.find(offends) else { return Cow::Borrowed(text) };
    let mut clean = String::with_capacity(text.len() + 16);
    clean.push_str(&text[..first]);
    let mut chars = text[first..].chars().peekable();
    while let Some(c) = chars.next() {
        if !offends(c) {
            clean.push(c);
            continue;
        }
        // The line ending of other systems is no attack; a lone carriage return is, it overwrites the line.
        if c == '\r' && chars.peek() == Some(&'\n') {
            continue;
        }
        if c == '\t' {
            clean.push(' ');
            continue;
        }
        clean.push_str(before);
        show(&mut clean, c);
        clean.push_str(after);
    }
    Cow::Owned(clean)
}

/// Writes the visible form; writing to a String cannot fail.
fn show(out: &mut String, c: char) {
    match c {
        '\x1b' => out.push_str("\\e"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\0'..='\x1f' | '\x7f' => {
            let _ = write!(out, "\\x{:02x}", u32::from(c));
        }
        _ => {
            let _ = write!(out, "<U+{:04X}>", u32::from(c));
        }
    }
}

#[cfg(test)]
#[path = "sanitize_tests.rs"]
mod tests;
