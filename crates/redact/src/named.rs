//! Values that only their name gives away: what is assigned to it, and how much that says.

use std::ops::Range;

use crate::assign;
use crate::assign::Sign;
use crate::guess;
use crate::names;
use crate::rule::Rule;
use crate::spec::Guess;

/// The value assigned to the name around the keyword, when the rule wants it.
pub(crate) fn value(rule: &Rule, text: &str, keyword: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if !rule.terms.inside && !starts_word(bytes, keyword.start) {
        return None;
    }
    let found = assign::assigned(bytes, keyword)?;
    let value = text.get(found.value.clone())?;
    let wanted = match rule.terms.guess {
        None => rule.is_whole(value.as_bytes()),
        Some(guess) => {
            let name = text.get(found.name.clone())?;
            let promise = names::promise(name).or_else(|| names::promise(&two_words(text, &found)?))?;
            let password = |setting: bool| guess::password(value, found.quoted, setting);
            match (guess, promise) {
                (Guess::Password, names::Promise::Password) => match found.sign {
                    Sign::Equals | Sign::Colon => {
                        password(setting(bytes, &found)) || found.quoted && guess::plain_word(value)
                    }
                    // An option, an element, or the argument of a call named so.
                    Sign::Space => {
                        password(false)
                            || guess::given(value)
                            || found.quoted && name.ends_with("phrase") && guess::spoken(value)
                    }
                    Sign::Angle => password(false) || element(bytes, &found) && guess::given(value),
                    Sign::Call => {
                        password(false) || found.quoted && !value.contains('/') && guess::given(value)
                    }
                    // Two arguments of a call say less.
                    Sign::Comma => password(false) || found.quoted && loud(name) && guess::given(value),
                    Sign::Word => {
                        guess::told_password(value, found.quoted)
                            || found.quoted && name.ends_with("phrase") && guess::spoken(value)
                    }
                },
                (Guess::Password, names::Promise::Short) => {
                    let loud = matches!(name, "PW" | "PASS" | "PSW") && found.sign == Sign::Equals;
                    guess::told_password(value, found.quoted)
                        || loud && setting(bytes, &found) && guess::given(value)
                }
                (Guess::Token, names::Promise::Token | names::Promise::Key) => match found.sign {
                    Sign::Word => {
                        guess::random(value, found.quoted)
                            || promise == names::Promise::Token && guess::hex(value)
                    }
                    // `APP_SECRET=value`: somebody may have thought of it.
                    Sign::Equals
                        if (name.ends_with("SECRET") || name.ends_with("TOKEN"))
                            && setting(bytes, &found) =>
                    {
                        password(true)
                    }
                    Sign::Equals | Sign::Colon if found.quoted && name.ends_with("ecret") => {
                        guess::token(value, true)
                            || password(false) && !guess::wordy_phrase(value)
                            || guess::spoken(value)
                    }
                    Sign::Equals if name.ends_with("AUTH") && guess::login_words(value) => true,
                    _ => guess::token(value, found.quoted) || guess::login_pair(value),
                },
                (Guess::Token, names::Promise::Perhaps) => {
                    let generated = guess::random(value, found.quoted) || guess::hex(value);
                    matches!(found.sign, Sign::Equals | Sign::Colon) && generated
                }
                _ => false,
            }
        }
    };
    (wanted && rule.accepts(value.as_bytes())).then_some(found.value)
}

/// The name of a constant.
fn loud(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// `<password>value</password>`, and no comparison.
fn element(text: &[u8], found: &assign::Assigned) -> bool {
    let before = text[..found.name.start].iter().rev().take(40);
    let prefix = before.take_while(|b| b.is_ascii_alphanumeric() || b"_.:-".contains(b)).count();
    found.name.start.checked_sub(prefix + 1).is_some_and(|at| text[at] == b'<')
}

/// The name with the word before it, where it is one word of two: `Access Key: value`.
fn two_words(text: &str, found: &assign::Assigned) -> Option<String> {
    let before = text[..found.name.start].strip_suffix(' ')?;
    let length = before.bytes().rev().take(16).take_while(u8::is_ascii_alphabetic).count();
    (length > 1 && found.sign != Sign::Word && text[found.name.clone()].eq_ignore_ascii_case("key"))
        .then(|| format!("{} {}", &before[before.len() - length..], &text[found.name.clone()]))
}

/// `DB_PASSWORD=value`, as in a file of settings.
fn setting(text: &[u8], found: &assign::Assigned) -> bool {
    let name = &text[found.name.clone()];
    let loud = std::str::from_utf8(name).is_ok_and(loud);
    // `spring.datasource.password=value`, and nothing else on the line.
    let starts = found
        .name
        .start
        .checked_sub(1)
        .is_none_or(|before| matches!(text[before], b'\n' | b':' | b'\t' | b'+' | b'"'));
    let ends = matches!(text.get(found.value.end), None | Some(b'\n' | b'\r' | b'"'));
    let dotted = name.contains(&b'.') && starts && ends;
    let between = &text[found.name.end..found.value.start];
    // `vault write x password=value`: a word of a command line.
    let alone = found.name.start.checked_sub(1).is_none_or(|before| text[before] == b' ')
        && matches!(text.get(found.value.end), None | Some(b' ' | b'\n' | b'\r' | b'"'))
        && between == b"=";
    match found.sign {
        Sign::Equals if alone && !loud => true,
        Sign::Equals => (loud || dotted) && between.iter().all(|b| b"=\"'".contains(b)),
        // `DB_PASSWORD: value`, and nothing else on the line.
        Sign::Colon => loud && ends && name.contains(&b'_') && between.iter().all(|b| b": \"'".contains(b)),
        _ => false,
    }
}

/// Whether a word starts here: after a sign, or with a capital after a small letter.
fn starts_word(text: &[u8], at: usize) -> bool {
    let Some(&before) = at.checked_sub(1).and_then(|i| text.get(i)) else { return true };
    !before.is_ascii_alphanumeric() || (!before.is_ascii_uppercase() && text[at].is_ascii_uppercase())
}
