//! Judging a value that only its name gives away.

use crate::entropy;
use crate::spec::Guess;
use crate::tag;

/// Whether the value stands for one that is not there: a variable, a template, an example, a mask.
pub(crate) fn placeholder(value: &str) -> bool {
    let value = value.trim();
    let lower = value.to_ascii_lowercase();
    if tag::present(value) || lower.starts_with("arn:") || SAMPLES.contains(&lower.as_str()) {
        return true;
    }
    // `$NAME`, `%NAME%`, `<name>`, `{name}`, `[name]`, `@name@`: somebody fills it in later.
    let first = value.as_bytes().first().copied().unwrap_or(b' ');
    let last = value.as_bytes().last().copied().unwrap_or(b' ');
    if matches!(
        (first, last),
        (b'<', b'>') | (b'{', b'}') | (b'[', b']') | (b'%', b'%') | (b'@', b'@') | (b'(', b')')
    ) {
        return true;
    }
    let variable = |s: &str| {
        !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.->:[]'\"{}()".contains(&b))
    };
    if first == b'$' && variable(&value[1..]) {
        return true;
    }
    if MARKS.iter().any(|mark| lower.contains(mark)) {
        return true;
    }
    // Masks: one character over and over.
    let most = value.bytes().map(|b| value.bytes().filter(|x| *x == b).count()).max();
    value.len() > 64 && entropy::bits(value.as_bytes()) < 2.0
        || value.len() <= 64 && most.is_some_and(|most| most * 10 >= value.len() * 6)
}

static SAMPLES: &[&str] = &[
    "",
    "true",
    "false",
    "null",
    "none",
    "nil",
    "undefined",
    "string",
    "str",
    "number",
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "bearer",
    "basic",
    "redacted",
    "hidden",
    "test",
    "user",
    "username",
    "root",
    "admin",
    "foobar",
    "foo",
    "bar",
    "default",
    "empty",
    "unset",
    "not-set",
    "required",
    "optional",
    "n/a",
    "bytes",
    "text",
    "varchar",
    "boolean",
    "object",
    "any",
    "unknown",
    "todo",
    "tbd",
    "value",
    "key",
    "yes",
    "no",
    "on",
    "off",
    "credentials",
    "include",
    "omit",
    "same-origin",
    "self",
    "this",
    "new",
    "await",
    "function",
    "let",
    "const",
    "var",
    "current-password",
    "new-password",
    "one-time-code",
];

static MARKS: &[&str] = &[
    "${",
    "$(",
    "{{",
    "}}",
    "<%",
    "#{",
    "%(",
    "%s",
    "%{",
    "...",
    "…",
    "****",
    "xxxx",
    "####",
    "____",
    "process.env",
    "os.environ",
    "getenv",
    "env[",
    "env.",
    "environ[",
    "secrets.",
    "example",
    "changeme",
    "change_me",
    "change-me",
    "change_in",
    "placeholder",
    "your_",
    "your-",
    "yourpass",
    "yourtoken",
    "yourkey",
    "yoursecret",
    "your api",
    "your_api",
    "replace_",
    "replace-",
    "replaceme",
    "insert_",
    "insert-",
    "dummy",
    "redacted",
    "masked",
    "removed",
    "notreal",
    "not_real",
    "not-a-real",
    "notasecret",
    "sample",
    "&lt;",
    "_here",
    "-here",
    "my_secret",
    "my-secret",
    "mysecret",
    "mypassword",
    "my_password",
    "my-password",
    "secret-name",
    "secret_name",
    "123456789",
    "abcdefg",
];

/// Whether what a pattern found, quoted or not, can be a secret of this kind.
pub(crate) fn fits(guess: Guess, value: &str) -> bool {
    match guess {
        Guess::Password => password(value, true, false),
        Guess::Token => token(value, true),
    }
}

/// Whether a value with a password's name can be a password.
///
/// `setting` says that it was written as in a file of settings (`DB_PASSWORD=value`), where even a plain word counts.
pub(crate) fn password(value: &str, quoted: bool, setting: bool) -> bool {
    if value.len() < 6 || value.len() > 256 || code(value, quoted) || placeholder(value) {
        return false;
    }
    let bytes = value.as_bytes();
    let digit = bytes.iter().any(u8::is_ascii_digit);
    let letter = bytes.iter().any(u8::is_ascii_alphabetic);
    let sign = bytes.iter().any(|b| b.is_ascii_punctuation() && !b"_-./:".contains(b));
    // A single plain word in quotes is as often a label as a password; without quotes, in code, it is a variable.
    if setting && !wordy_phrase(value) {
        return letter || digit;
    }
    // Signs that no label, rule or expression has in the middle of a word.
    let odd = bytes.iter().any(|b| b"$!#~^".contains(b));
    letter && (digit || sign && (odd || !wordy(value))) && entropy::bits(bytes) >= 2.2
}

/// Whether a value with a token's name can be a generated token.
pub(crate) fn token(value: &str, quoted: bool) -> bool {
    let bytes = value.as_bytes();
    if bytes.len() < 10 || bytes.len() > 2048 || code(value, quoted) {
        return false;
    }
    let alphabet = bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"_-.+/=~:!@#$%^&*|".contains(b));
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|b| b.is_ascii_alphabetic()).count();
    if !alphabet || digits == 0 || letters == 0 || wordy(value) || placeholder(value) {
        return false;
    }
    let least = if bytes.len() < 20 { 3.0 } else { 3.3 };
    entropy::bits(bytes) >= least || bytes.iter().all(u8::is_ascii_hexdigit) && entropy::bits(bytes) >= 2.8
}

/// Whether the value is an expression, a path or an address rather than a value.
fn code(value: &str, quoted: bool) -> bool {
    let bytes = value.as_bytes();
    if value.contains("://") || value.contains("::") || value.contains("->") || value.contains("=>") {
        return true;
    }
    if bytes.iter().any(|b| b.is_ascii_whitespace()) {
        return true;
    }
    let path =
        |s: &str| s.starts_with('/') || s.starts_with("./") || s.starts_with("../") || s.starts_with("~/");
    if path(value) && wordy(value) {
        return true;
    }
    !quoted && (bytes.iter().any(|b| b"([{".contains(b)) || number(value))
}

/// Whether the value is a number as programs write it: `0x8052_0303u32`, `1001u32`, `1_000`.
fn number(value: &str) -> bool {
    let digits = value.strip_prefix("0x").unwrap_or(value);
    let based = digits.len() < value.len();
    let digits = ["u8", "u16", "u32", "u64", "i32", "i64", "usize", "UL", "L"]
        .iter()
        .find_map(|s| digits.strip_suffix(s))
        .unwrap_or(digits);
    digits.bytes().all(|b| b == b'_' || b.is_ascii_digit() || based && b.is_ascii_hexdigit())
        && value.len() <= 24
}

/// Whether the value is several words joined, as the name of something is.
fn wordy_phrase(value: &str) -> bool {
    wordy(value) && value.contains(['_', '-', '.', '/'])
}

/// Whether the value mostly consists of words, as identifiers, file names and sentences do.
fn wordy(value: &str) -> bool {
    let bytes = value.as_bytes();
    let mut in_words = 0;
    let mut at = 0;
    while at < bytes.len() {
        let capital = usize::from(bytes[at].is_ascii_uppercase());
        let lower = bytes[at + capital..].iter().take_while(|b| b.is_ascii_lowercase()).count();
        let upper = bytes[at..].iter().take_while(|b| b.is_ascii_uppercase()).count();
        let run = if lower > 0 { capital + lower } else { upper };
        // Parts of a version number.
        let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let dotted = at > 0 && bytes[at - 1] == b'.' || bytes.get(at + digits) == Some(&b'.');
        if (1..=3).contains(&digits) && dotted {
            in_words += digits;
            at += digits;
            continue;
        }
        let run = run.max(1);
        if run >= 3 && sayable(&bytes[at..at + run]) {
            in_words += run;
        } else if matches!(bytes[at], b'_' | b'-' | b'.' | b'/' | b' ' | b':') {
            in_words += 1;
        }
        at += run;
    }
    in_words * 10 >= bytes.len() * 7
}

/// Whether a run of letters could be a word: vowels in it, and never many consonants together.
fn sayable(word: &[u8]) -> bool {
    let mut consonants = 0;
    let mut vowels = 0;
    for byte in word {
        if b"aeiouyAEIOUY".contains(byte) {
            vowels += 1;
            consonants = 0;
        } else {
            consonants += 1;
            if consonants > 4 {
                return false;
            }
        }
    }
    vowels > 0
}

#[cfg(test)]
mod tests {
    use super::password;
    use super::placeholder;
    use super::token;

    #[test]
    fn placeholders() {
        for value in [
            "${SECRET}",
            "{{ token }}",
            "<token>",
            "$API_KEY",
            "xxxxxxxxxxxx",
            "***",
            "process.env.KEY",
            "changeme",
            "[redacted:github-pat:7f3a]",
            "your-api-key",
            "%PASSWORD%",
            "EXAMPLEKEY1",
            "00000000000000",
            "<%= x %>",
        ] {
            assert!(placeholder(value), "{value}");
        }
        assert!(!placeholder("q8Zt4Lm2Pw7Rk1"));
    }

    #[test]
    fn tokens_and_code() {
        assert!(token("q8Zt4Lm2Pw7Rk1xv", true));
        for value in [
            "parser.next_token()",
            "NEXUS-GPT4-API-KEY",
            "jjwt-jackson-0.11.2",
            "Ed25519.BlindKeySignatures",
            "String",
        ] {
            assert!(!token(value, false), "{value}");
        }
        assert!(password("h0pk1ns~21s", true, false));
        assert!(!password("forgot_password", true, true));
        assert!(!password("String", false, false));
    }
}
