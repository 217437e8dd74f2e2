//! Judging a value that only its name gives away.

use crate::entropy;
use crate::spec::Guess;
use crate::tables;
use crate::tag;

/// Whether the value stands for one that is not there: a variable, a template, an example, a mask.
pub(crate) fn placeholder(value: &str) -> bool {
    let value = value.trim();
    let lower = value.to_ascii_lowercase();
    if tag::present(value) || lower.starts_with("arn:") || tables::SAMPLES.contains(&lower.as_str()) {
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
    if tables::MARKS.iter().any(|mark| lower.contains(mark)) {
        return true;
    }
    // Masks: one character over and over.
    let most = value.bytes().map(|b| value.bytes().filter(|x| *x == b).count()).max();
    value.len() > 64 && entropy::bits(value.as_bytes()) < 2.0
        || value.len() <= 64 && most.is_some_and(|most| most * 10 >= value.len() * 6)
}

/// Whether what a pattern found, quoted or not, can be a secret of this kind.
pub(crate) fn fits(guess: Guess, value: &str) -> bool {
    match guess {
        Guess::Password => password(value, true, false),
        Guess::Token => token(value, true),
        Guess::Word => word(value),
        Guess::Said => said(value),
    }
}

/// Whether a value with a password's name can be a password.
///
/// `setting` says that it was written as in a file of settings (`DB_PASSWORD=value`), where even a plain word counts.
pub(crate) fn password(value: &str, quoted: bool, setting: bool) -> bool {
    if value.len() < 6 || value.len() > 256 || placeholder(value) {
        return false;
    }
    if setting && quoted && spoken(value) {
        return true;
    }
    if code(value, quoted || setting) {
        return false;
    }
    let bytes = value.as_bytes();
    let digit = bytes.iter().any(u8::is_ascii_digit);
    let letter = bytes.iter().any(u8::is_ascii_alphabetic);
    let sign = bytes.iter().any(|b| b.is_ascii_punctuation() && !b"_-./:".contains(b));
    // A single plain word in quotes is as often a label as a password; without quotes, in code, it is a variable.
    if setting && !(wordy_phrase(value) && about_secrets(value)) {
        return letter || digit;
    }
    // Signs that no label, rule or expression has in the middle of a word.
    let odd = bytes.iter().any(|b| b"$!#~^".contains(b));
    let unlikely = digit || sign && (odd || !wordy(value)) || jumbled(value);
    letter && unlikely && entropy::bits(bytes) >= 2.2 && !algorithm(value)
}

/// Whether the value can be a password where all around it says that it is one: a plain word will do, names of things
/// and messages will not.
pub(crate) fn word(value: &str) -> bool {
    let lower = value.to_lowercase();
    (6..=128).contains(&value.len())
        && value.bytes().any(|b| b.is_ascii_alphabetic() || !b.is_ascii())
        && !value.starts_with(['/', '.', '-'])
        && !placeholder(value)
        && !code(value, false)
        && !tables::LABELS.contains(&lower.as_str())
        && (value.bytes().any(|b| b.is_ascii_digit())
            || !crate::names::words(value).iter().any(|word| is_talk(word)))
}

/// Whether a word is made of what names of variables, fields and messages are made of: `passwordField`, `username`,
/// but not `tulipfield`.
fn is_talk(word: &str) -> bool {
    const LONG: usize = 6;
    const SHORT_REST: usize = 4;
    let known = |part: &str| tables::TALK_PARTS.iter().any(|talk| part.starts_with(talk));
    tables::TALK_PARTS.iter().any(|part| {
        let rest = word.strip_prefix(part).or_else(|| word.strip_suffix(part));
        part.len() >= LONG && word.contains(part)
            || rest.is_some_and(|rest| rest.len() <= SHORT_REST || known(rest))
    })
}

/// The same where a name is given the value by a blank, as an option is: words that go on with a sentence are none.
pub(crate) fn given(value: &str) -> bool {
    word(value) && !tables::SAID.contains(&value.to_lowercase().as_str())
}

/// Whether the value can be a password that somebody tells in a sentence: a plain word that is nothing one says of
/// passwords ("stored", "required", "wrong"), or something that is no word at all.
pub(crate) fn said(value: &str) -> bool {
    let value = value.trim_end_matches(['.', '!', '?', ':', '-']);
    let lower = value.to_lowercase();
    let talk = || {
        tables::SAID.contains(&lower.as_str()) || tables::SAID_ENDINGS.iter().any(|end| lower.ends_with(end))
    };
    let plain = value.bytes().all(|b| b.is_ascii_alphabetic() || b"-_'".contains(&b)) && !jumbled(value);
    if plain { word(value) && !talk() } else { password(value, true, false) || spotted(value) }
}

/// Words with signs between them: `Walnut#Creek`.
fn spotted(value: &str) -> bool {
    value.bytes().any(|b| b"!#$@%^&*+~".contains(&b)) && word(value)
}

/// Whether letters of both cases follow each other without making words.
fn jumbled(value: &str) -> bool {
    let bytes = value.as_bytes();
    let rises =
        bytes.windows(2).filter(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase()).count();
    (8..=64).contains(&value.len())
        && bytes.iter().all(u8::is_ascii_alphabetic)
        && rises >= 2
        && !wordy(value)
        && entropy::bits(bytes) >= 2.8
}

/// Whether a word in quotes that a password's name is given can be a password: long, and no label.
pub(crate) fn plain_word(value: &str) -> bool {
    let bytes = value.as_bytes();
    let title = bytes[0].is_ascii_uppercase() && bytes[1..].iter().all(u8::is_ascii_lowercase);
    (6..=64).contains(&value.len())
        && bytes.iter().all(|b| b.is_ascii_alphabetic() || b"-_&+@".contains(b))
        && !title
        && given(value)
}

/// Whether a word that only stands beside a password's name can be one: of more than small letters and a number.
pub(crate) fn told_password(value: &str, quoted: bool) -> bool {
    let bytes = value.as_bytes();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let mixed = bytes.iter().any(|b| b.is_ascii_uppercase() || b"!#$@%^&*+~".contains(b));
    (digits > 0 && (mixed || digits >= 3 || quoted) || jumbled(value))
        && !value.contains(['/', '\\', '=', '('])
        && password(value, quoted, false)
}

/// `user:password`, as settings about logging in have it.
pub(crate) fn login_pair(value: &str) -> bool {
    let simple = |user: &str| {
        (1..=64).contains(&user.len())
            && user.bytes().all(|b| b.is_ascii_alphanumeric() || b"._@+-".contains(&b))
    };
    let is_pair =
        |(user, secret): (&str, &str)| simple(user) && !secret.contains(':') && password(secret, true, false);
    !code(value, true) && value.split_once(':').is_some_and(is_pair)
}

/// The same where the setting is about nothing else, so that a plain word will do.
pub(crate) fn login_words(value: &str) -> bool {
    value
        .split_once([':', '/'])
        .is_some_and(|(user, secret)| user.len() > 1 && !code(value, true) && word(secret))
}

/// Whether the value is several words that somebody thought of, and no label or request.
pub(crate) fn spoken(value: &str) -> bool {
    let words: Vec<&str> = value.split(' ').collect();
    let word =
        |word: &&str| (2..=16).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric());
    (2..=12).contains(&words.len()) && value.len() >= 10 && words.iter().all(word) && !about_secrets(value)
}

/// Whether words of the value talk of secrets and forms, as names and labels do.
fn about_secrets(value: &str) -> bool {
    value
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| tables::TALK.contains(&word.to_ascii_lowercase().as_str()))
}

/// `sha256`, `ed25519`, `base64`, `md5-crypt`, `utf8`: words with a number that mean a way of doing things.
fn algorithm(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let known = |prefix: &str| {
        lower.strip_prefix(prefix).is_some_and(|rest| {
            let rest = rest.trim_start_matches(['-', '_']);
            let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            after.len() < rest.len()
                && after.len() <= 12
                && (after.is_empty() || after.starts_with(['-', '_']))
        })
    };
    tables::ALGORITHMS.iter().any(|prefix| known(prefix))
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
    // Letters only are a token where there are many of both cases that make no words.
    let shuffled = || {
        let mixed = bytes.iter().any(u8::is_ascii_uppercase) && bytes.iter().any(u8::is_ascii_lowercase);
        bytes.len() >= 24 && letters == bytes.len() && mixed && entropy::bits(bytes) >= 4.0
    };
    if !alphabet || digits == 0 && !shuffled() || letters == 0 || wordy(value) || placeholder(value) {
        return false;
    }
    let least = if bytes.len() < 20 { 3.0 } else { 3.3 };
    entropy::bits(bytes) >= least || bytes.iter().all(u8::is_ascii_hexdigit) && entropy::bits(bytes) >= 2.8
}

/// Whether the value is a longer number to the base of sixteen, as keys and hashes are.
pub(crate) fn hex(value: &str) -> bool {
    let bytes = value.as_bytes();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    (32..=128).contains(&value.len())
        && bytes.iter().all(u8::is_ascii_hexdigit)
        && (4..value.len() - 3).contains(&digits)
        && entropy::bits(bytes) >= 3.0
        && !placeholder(value)
}

/// Whether the value looks generated whatever it is called: long, of letters and digits that follow no rule. Hashes and
/// ids look so too, and are left to names that promise more.
pub(crate) fn random(value: &str, quoted: bool) -> bool {
    let bytes = value.as_bytes();
    let upper = bytes.iter().any(u8::is_ascii_uppercase);
    let lower = bytes.iter().any(u8::is_ascii_lowercase);
    let hex = bytes.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    value.len() >= 20
        && !hex
        && (upper && lower || value.len() >= 28)
        && !value.contains(['/', ':', '@', '%'])
        && token(value, quoted)
        && entropy::bits(bytes) >= 3.6
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
    !quoted && (bytes.iter().any(|b| b"([{".contains(b)) || number(value) || constant(value))
}

/// Whether the value is the name of a constant or a type in C: `D3DKMT_PRESENT_TOKEN`.
fn constant(value: &str) -> bool {
    let long = |word: &str| {
        word.len() >= 5 && word.bytes().all(|b| b.is_ascii_uppercase()) && sayable(word.as_bytes())
    };
    value.contains('_')
        && value.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && value.split('_').any(long)
}

/// Whether the value is a number as programs write it: `0x8052_0303u32`, `1001u32`, `1_000`.
fn number(value: &str) -> bool {
    let value = value.strip_prefix('-').unwrap_or(value);
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
pub(crate) fn wordy_phrase(value: &str) -> bool {
    wordy(value) && value.contains(['_', '-', '.', '/'])
}

/// Whether the value mostly consists of words, as identifiers, file names and sentences do.
fn wordy(value: &str) -> bool {
    let bytes = value.as_bytes();
    let mixed = bytes.iter().any(u8::is_ascii_lowercase) && bytes.iter().any(u8::is_ascii_digit);
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
        // Capitals in the middle of a word of both cases are no word of their own.
        let apart = |byte: Option<&u8>| byte.is_none_or(|b| !b.is_ascii_alphanumeric());
        let shout = lower == 0
            && mixed
            && !(apart(at.checked_sub(1).map(|i| &bytes[i])) && apart(bytes.get(at + run)));
        // Nobody has words of so many capitals.
        let long = lower == 0 && run > 12;
        if run >= 3 && !shout && !long && sayable(&bytes[at..at + run]) {
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
