//! Runs inside a text that may hold another text: percent-encoded words and base64.

use std::ops::Range;

/// Shorter base64 cannot hold a secret together with anything that gives it away.
const BASE64_LEAST: usize = 24;
/// A percent-encoded word is looked at this far around its first escape.
const WORD_MOST: usize = 8 * 1024;

/// The words of the text that contain a percent escape.
pub(crate) fn percent_words(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`');
    let mut words = Vec::new();
    let mut done = 0;
    for (at, _) in text.match_indices('%') {
        let escape = bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
        if at < done || !escape {
            continue;
        }
        let back = bytes[done..at].iter().rev().take(WORD_MOST).take_while(|b| !ends(b)).count();
        let ahead = bytes[at..].iter().take(WORD_MOST).take_while(|b| !ends(b)).count();
        let start = ceil(text, at - back);
        done = ceil(text, at + ahead);
        words.push(start..done);
    }
    words
}

fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len())
}

/// The longer runs of base64 digits in the text, without their padding.
pub(crate) fn base64_runs(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        // Looking first at every 24th byte skips ordinary prose without touching most of it.
        let probe = at + BASE64_LEAST - 1;
        if probe >= bytes.len() {
            break;
        }
        if SEXTETS[usize::from(bytes[probe])] == NONE {
            at = probe + 1;
            continue;
        }
        let back = bytes[at..probe].iter().rev().take_while(|b| SEXTETS[usize::from(**b)] != NONE).count();
        let start = probe - back;
        let end = run_end(bytes, probe);
        at = end;
        if end - start >= BASE64_LEAST {
            found.push(start..end);
        }
    }
    found
}

/// The run together with the padding after it.
pub(crate) fn padded(text: &str, run: &Range<usize>) -> Range<usize> {
    let padding = text.as_bytes()[run.end..].iter().take(2).take_while(|&&b| b == b'=').count();
    run.start..run.end + padding
}

/// Base64 is often broken into lines of equal length; such lines are one run.
fn run_end(bytes: &[u8], from: usize) -> usize {
    let mut end = from;
    let mut line = from;
    loop {
        end += bytes[end..].iter().take_while(|b| SEXTETS[usize::from(**b)] != NONE).count();
        let full = (60..=76).contains(&(end - line)) || line == from && end - line >= 60 - BASE64_LEAST;
        let more = bytes.get(end) == Some(&b'\n')
            && bytes.get(end + 1).is_some_and(|b| SEXTETS[usize::from(*b)] != NONE);
        if !(full && more) {
            return end;
        }
        end += 1;
        line = end;
    }
}

/// What the run says, when it is a text.
pub(crate) fn decode(run: &[u8]) -> Option<String> {
    let mut out = Vec::with_capacity(run.len() * 3 / 4 + 3);
    let mut bits = 0u32;
    let mut count = 0u32;
    for &byte in run {
        if byte == b'\n' {
            continue;
        }
        bits = bits << 6 | u32::from(SEXTETS[usize::from(byte)]);
        count += 6;
        if count >= 8 {
            count -= 8;
            let byte = (bits >> count) as u8;
            // Images, archives and hashes show themselves within the first bytes.
            if out.len() < 32 && !(byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
                return None;
            }
            out.push(byte);
        }
    }
    Some(match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

const NONE: u8 = 0xff;

/// The value of each base64 digit, standard and URL-safe.
static SEXTETS: [u8; 256] = {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut table = [NONE; 256];
    let mut i = 0;
    while i < 64 {
        table[digits[i] as usize] = i as u8;
        i += 1;
    }
    table[b'-' as usize] = 62;
    table[b'_' as usize] = 63;
    table
};

#[cfg(test)]
#[path = "../tests/common/base64.rs"]
mod base64_for_tests;
#[cfg(test)]
pub(crate) use base64_for_tests::base64 as encode;

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::base64_runs;
    use super::decode;
    use super::encode;
    use super::padded;
    use super::percent_words;

    fn base64_texts(text: &str) -> Vec<(Range<usize>, String)> {
        let inner = |run: Range<usize>| Some((padded(text, &run), decode(&text.as_bytes()[run])?));
        base64_runs(text).into_iter().filter_map(inner).collect()
    }

    #[test]
    fn base64_of_text_is_found_wherever_it_stands() {
        let inner = "user: someone, colour: blue, number: 17";
        let run = encode(inner.as_bytes());
        for before in ["", "x ", "data: ", "a longer text before the run = "] {
            let text = format!("{before}{run}, and more");
            let found = base64_texts(&text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(&text[found[0].0.clone()], run);
            assert_eq!(found[0].1, inner);
        }
    }

    #[test]
    fn broken_lines_are_joined_and_pictures_left() {
        let inner = "word ".repeat(40);
        let run = encode(inner.as_bytes());
        let lines: Vec<&str> = run.as_bytes().chunks(76).map(|c| std::str::from_utf8(c).unwrap()).collect();
        let text = lines.join("\n");
        assert_eq!(base64_texts(&text)[0].1, inner);
        assert!(base64_texts(&encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10")).is_empty());
        assert!(base64_texts("/usr/local/share/some/long/path/to/nowhere").is_empty());
    }

    #[test]
    fn percent_words_end_at_spaces() {
        let text = "see a%3Db and 100% of c%20d";
        let words: Vec<&str> = percent_words(text).into_iter().map(|r| &text[r]).collect();
        assert_eq!(words, ["a%3Db", "c%20d"]);
    }
}
