//! Tokens of services that no rule knows: `acme_live_…`, `xy-pat-…`. What stands before the random part says what it is.

use std::ops::Range;

use crate::entropy;
use crate::guess;

/// Shown in the tag.
pub(crate) const ID: &str = "announced-token";

/// Words by which tokens announce themselves. Ids (`msg_…`, `req_…`, `user_…`) have others.
static WORDS: &[&str] = &[
    "sk",
    "rk",
    "ak",
    "key",
    "keys",
    "apikey",
    "token",
    "tok",
    "tkn",
    "pat",
    "secret",
    "sec",
    "api",
    "live",
    "auth",
    "oauth",
    "access",
    "refresh",
    "bot",
    "priv",
    "private",
    "svc",
    "service",
    "deploy",
    "master",
    "admin",
    "root",
    "apitoken",
    "accesstoken",
    "whsec",
    "pwd",
    "pass",
    "cred",
    "creds",
    "signkey",
    "sign",
];

/// Longer than the longest token that one would call by such words.
const MOST: usize = 400;

/// The token that the run of base64 digits is, or ends with.
pub(crate) fn token(text: &str, run: Range<usize>) -> Option<Range<usize>> {
    if run.len() > MOST {
        return None;
    }
    // What follows a slash is a part of a path, or of plain base64.
    let from = text[run.clone()].rfind(['/', '+']).map_or(run.start, |at| run.start + at + 1);
    let value = &text[from..run.end];
    let mut announced = false;
    let mut body = 0;
    for (at, _) in value.match_indices(['_', '-']) {
        let word = &value[body..at];
        let short = (1..=10).contains(&word.len())
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && word.bytes().filter(u8::is_ascii_digit).count() <= 2;
        if !short {
            break;
        }
        announced |= WORDS.contains(&word);
        body = at + 1;
    }
    (announced && body > 0 && is_random(&value[body..])).then_some(from..run.end)
}

/// Whether nothing but chance has made this.
fn is_random(body: &str) -> bool {
    let bytes = body.as_bytes();
    let count = |wanted: fn(&u8) -> bool| bytes.iter().filter(|b| wanted(b)).count();
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let digits = count(u8::is_ascii_digit);
    let both = upper >= 2 && lower >= 2 && body.len() >= 16;
    let hex = bytes.iter().all(u8::is_ascii_hexdigit) && body.len() >= 32;
    digits >= 2
        && (both || hex || body.len() >= 24 && upper + lower + digits == body.len())
        && upper + lower + digits + 3 >= body.len()
        && entropy::bits(bytes) >= if hex { 3.0 } else { 3.5 }
        && guess::token(body, true)
}

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn what_announces_itself_is_known() {
        let body = "q8Zt4Lm2Pw7Rk1xvB3nC9dHs";
        for prefix in ["acme_sk_", "acme_live_", "xy-pat-", "sk_", "tok-", "zz_api_v2_"] {
            let text = format!("{prefix}{body}");
            assert_eq!(token(&text, 0..text.len()), Some(0..text.len()), "{text}");
        }
        for prefix in ["msg_", "toolu_", "req-", "session_01", "call_", "sha256-", ""] {
            let text = format!("{prefix}{body}");
            assert_eq!(token(&text, 0..text.len()), None, "{text}");
        }
        for text in ["api-reference-for-the-whole-of-it", "key_of_the_first_item_in_a_list_2"] {
            assert_eq!(token(text, 0..text.len()), None, "{text}");
        }
    }
}
