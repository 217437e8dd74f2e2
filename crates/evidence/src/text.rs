//! Terminal text as plain lines, and the small pieces that every reader needs.

/// The text without colours and other terminal controls, with `\n` at the end of each line. Where a line was written
/// over by a carriage return, what was written last stays.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut line = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            // One byte for "escape and bracket".
            '\u{9b}' => skip_sequence(&mut chars),
            '\r' => match chars.peek() {
                // The last line may end in a carriage return alone, and one more may stand before the line's end.
                None | Some('\n' | '\r') => {}
                Some(_) => plain.truncate(line),
            },
            '\n' => {
                plain.push('\n');
                line = plain.len();
            }
            '\t' => plain.push('\t'),
            c if c.is_control() => {}
            // A mark that some programs put at the beginning of a file.
            '\u{feff}' => {}
            c => plain.push(c),
        }
    }
    plain
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_sequence(chars);
        }
        // A title or a link, up to a bell or another escape. Without either, the line is all that is lost.
        Some(']' | 'P' | '_' | '^') => {
            while let Some(c) = chars.peek() {
                match c {
                    '\u{7}' => {
                        chars.next();
                        break;
                    }
                    '\u{1b}' => {
                        chars.next();
                        chars.next_if_eq(&'\\');
                        break;
                    }
                    '\n' => break,
                    _ => {
                        chars.next();
                    }
                }
            }
        }
        // A character set: one more character.
        Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
            chars.next();
            chars.next_if(|c| *c != '\n');
        }
        Some('\n') | None => {}
        Some(_) => {
            chars.next();
        }
    }
}

fn skip_sequence(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| ('\u{20}'..='\u{7e}').contains(c)) {
        if ('\u{40}'..='\u{7e}').contains(&c) {
            break;
        }
    }
}

/// A whole number of decimal digits, nothing else.
pub(crate) fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `3 passed` as its two parts.
pub(crate) fn counted(text: &str) -> Option<(u64, &str)> {
    let (count, what) = text.trim().split_once(' ')?;
    Some((number(count)?, what.trim()))
}

/// How far a line is indented by spaces.
pub(crate) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A time such as `0.01s`, `12ms`, `1.2 s` or `1m`, and nothing else.
pub(crate) fn is_time(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',');
    unit.len() < text.len()
        && text.starts_with(|c: char| c.is_ascii_digit())
        && ["s", "ms", "m", "h", "μs", "µs", "ns", "min"].contains(&unit.trim_start())
}

/// A name without the time in brackets behind it.
pub(crate) fn without_time(name: &str) -> &str {
    match name.trim_end().strip_suffix(')').and_then(|name| name.rsplit_once(" (")) {
        Some((name, time)) if is_time(time) => name.trim_end(),
        _ => name.trim_end(),
    }
}

/// The text between a run of `mark` at both ends: `=== title ===`.
pub(crate) fn between_rules(line: &str, mark: char) -> Option<&str> {
    let inner = line.trim_start_matches(mark);
    let inside = inner.trim_end_matches(mark);
    if inner.len() == line.len() || inside.len() == inner.len() {
        return None;
    }
    let title = inside.strip_prefix(' ')?.strip_suffix(' ')?;
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_text_becomes_lines() {
        for (text, expected) in [
            ("\u{1b}[32mok\u{1b}(B\u{1b}[m\r\n", "ok\n"),
            ("10%\r20%\rdone\r\r\n", "done\n"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b\n", "ab\n"),
            ("\u{1b}]never closed\nnext\n", "\nnext\n"),
            ("a\u{8}\u{0}b\tc", "ab\tc"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}[3\nx", "\nx"),
            ("\u{feff}x\r", "x"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn times_and_rules() {
        for time in ["0.01s", "12ms", "1.2 s", "4.7ms", "5 ms"] {
            assert!(is_time(time), "{time}");
        }
        for other in ["", "s", "ms", "12", "12 apples", "-1s"] {
            assert!(!is_time(other), "{other}");
        }
        assert_eq!(without_time("adds (5 ms)"), "adds");
        assert_eq!(without_time("adds (twice)"), "adds (twice)");
        assert_eq!(between_rules("=== a b ===", '='), Some("a b"));
        for no in ["=====", "== a", "a ==", "==a==", "", "== =="] {
            assert_eq!(between_rules(no, '='), None, "{no}");
        }
    }
}
