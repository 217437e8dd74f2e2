//! The same error has the same fingerprint, whatever its line numbers, addresses, times, paths and ids.

use crate::fnv;

/// A stable name for an error message: 16 hexadecimal digits.
pub fn fingerprint(message: &str) -> String {
    digits_of(&normalise(message))
}

/// 16 hexadecimal digits that stand for a text as it is. Not made against somebody who looks for two equal ones.
pub(crate) fn digits_of(text: &str) -> String {
    // Twice with different beginnings is plenty to tell a session's errors apart.
    let other = fnv::hash_from(0x9e37_79b9_7f4a_7c15, text.as_bytes());
    format!("{:016x}", fnv::hash(text.as_bytes()) ^ other.rotate_left(32))
}

/// The message with everything replaced that changes from one occurrence to the next.
pub fn normalise(message: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let plain = strip_escapes(message);
    for word in
        plain.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | '<' | '>'))
    {
        // Split at what joins a path to its line number or a key to its value, but keep paths and URLs whole.
        if word.is_empty() {
            continue;
        }
        let normal = normalise_word(word);
        // Runs of variable parts (a date, its time, its zone) count once.
        if normal == "#" && words.last().is_some_and(|last| last == "#") {
            continue;
        }
        words.push(normal);
    }
    words.join(" ")
}

fn normalise_word(word: &str) -> String {
    let trimmed =
        word.trim_matches(|c: char| matches!(c, ',' | ';' | ':' | '.' | '[' | ']' | '{' | '}' | '!'));
    if is_path(trimmed) {
        return file_name(trimmed);
    }
    let mut out = String::new();
    let mut token = String::new();
    for c in trimmed.chars() {
        if c.is_alphanumeric() || c == '_' || c == '-' {
            token.push(c);
        } else {
            out.push_str(&normalise_token(&token));
            token.clear();
            out.push(c);
        }
    }
    out.push_str(&normalise_token(&token));
    squeeze(&out)
}

/// A token that holds a digit is a number, an address, an id or a time; words such as `utf8` or `sha256` stay.
fn normalise_token(token: &str) -> String {
    if token.is_empty() {
        return String::new();
    }
    let digits = token.chars().filter(char::is_ascii_digit).count();
    let letters = token.chars().filter(char::is_ascii_alphabetic).count();
    if digits == 0 {
        // A long run of hexadecimal letters only, such as `deadbeef`, is an id too.
        let hex = token.len() >= 8 && token.chars().all(|c| c.is_ascii_hexdigit());
        return if hex { "#".into() } else { token.to_lowercase() };
    }
    let is_hex =
        token.trim_start_matches("0x").chars().all(|c| c.is_ascii_hexdigit() || c == '-' || c == '_');
    let known_word = letters >= 3 && digits <= 3 && token.starts_with(|c: char| c.is_ascii_alphabetic());
    // Error codes such as E0308 or TS2345 say which error it is, so they stay.
    let code = letters <= 4
        && token.chars().take(letters).all(|c| c.is_ascii_uppercase())
        && digits <= 5
        && letters > 0;
    if code || (known_word && !(is_hex && token.len() >= 8)) { token.to_lowercase() } else { "#".into() }
}

/// Neighbouring variable parts joined by punctuation are one: `12:30:01` and `7:02` are both a time.
fn squeeze(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c == '#' && out.ends_with('#') {
            continue;
        }
        if c == '#' && out.len() >= 2 {
            let mut back = out.chars().rev();
            if let (Some(joint), Some('#')) = (back.next(), back.next())
                && matches!(joint, ':' | '.' | ',' | '/' | '+' | '-')
            {
                out.pop();
                continue;
            }
        }
        out.push(c);
    }
    out.trim_end_matches([':', '.', ',']).to_owned()
}

fn is_path(word: &str) -> bool {
    let slashes = word.chars().filter(|c| matches!(c, '/' | '\\')).count();
    word.starts_with('/')
        || word.starts_with("./")
        || word.starts_with("../")
        || word.starts_with("~/")
        || word.starts_with("file://")
        || (word.len() > 2 && word.as_bytes()[1] == b':' && matches!(word.as_bytes()[2], b'\\' | b'/'))
        || (slashes >= 1
            && !word.contains("://")
            && word.rsplit(['/', '\\']).next().is_some_and(|n| n.contains('.')))
}

/// Of a path only the last part says what went wrong; its line and column do not.
fn file_name(path: &str) -> String {
    let last = path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or("");
    let name = last.split([':', '#', '?']).next().unwrap_or("");
    let stem_is_id = !name.is_empty() && normalise_token(name.split('.').next().unwrap_or("")) == "#";
    if name.is_empty() || stem_is_id { "@".into() } else { format!("@{}", name.to_lowercase()) }
}

fn strip_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            if chars.next_if_eq(&'[').is_some() {
                for c in chars.by_ref() {
                    if ('\u{40}'..='\u{7e}').contains(&c) {
                        break;
                    }
                }
            }
            continue;
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_does_not_matter() {
        let same = [
            (
                "panicked at src/main.rs:12:5: index 7 out of bounds",
                "panicked at src/main.rs:981:33: index 12 out of bounds",
            ),
            ("error in /home/ann/p/src/lib.rs:4", "error in /tmp/x9/src/lib.rs:77"),
            ("segfault at 0x7ffe12ab", "segfault at 0x55d0c0ffee00"),
            ("2026-11-15T10:00:00Z timeout after 30s", "2025-01-02T23:59:59.123Z timeout after 45s"),
            (
                "request 3f2504e0-4f89-11d3-9a0c-0305e82c3301 failed",
                "request 9b2d6c1e-77aa-4c0e-8d53-1f2a3b4c5d6e failed",
            ),
            ("commit deadbeefcafe not found", "commit 0123abcd4567 not found"),
            ("\u{1b}[31merror\u{1b}[0m: pid 4121 died", "error: pid 9 died"),
            (r"C:\Users\ann\a.py:3 SyntaxError", r"D:\b\a.py:9 SyntaxError"),
        ];
        for (a, b) in same {
            assert_eq!(normalise(a), normalise(b));
            assert_eq!(fingerprint(a), fingerprint(b));
        }
    }

    #[test]
    fn what_says_which_error_it_is_does_matter() {
        let different = [
            ("error[E0308]: mismatched types", "error[E0425]: cannot find value"),
            ("error TS2345", "error TS2322"),
            ("test login failed", "test logout failed"),
            ("cannot open a.toml", "cannot open b.toml"),
            ("invalid utf8", "invalid utf16"),
        ];
        for (a, b) in different {
            assert_ne!(fingerprint(a), fingerprint(b), "{} / {}", normalise(a), normalise(b));
        }
    }

    #[test]
    fn anything_goes_in() {
        for text in ["", " ", "::::", "ü:1", "/", "\\", "a\0b"] {
            assert_eq!(fingerprint(text).len(), 16);
        }
    }
}
