//! The stand-in for a secret: `[redacted:RULE-ID:7f3a]`.
//!
//! The four digits come from a keyed hash of the secret, so that equal secrets can be told from different ones
//! within one installation, while nobody can test a guess against a published transcript without the key.

use std::ops::Range;

use crate::table::TAG_OPENING as OPENING;

/// The tag for a secret found by the rule `id`.
pub(crate) fn tag(key: &[u8; 32], id: &str, secret: &[u8]) -> String {
    let hash = blake3::keyed_hash(key, secret);
    let bytes = hash.as_bytes();
    format!("{OPENING}{id}:{:02x}{:02x}]", bytes[0], bytes[1])
}

/// A number that stands for a secret: whoever has the key can tell whether it is the one he knows.
pub fn fingerprint(key: &[u8; 32], secret: &str) -> u64 {
    let hash = blake3::keyed_hash(key, secret.as_bytes());
    hash.as_bytes().iter().skip(8).take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The range of the tag whose [`OPENING`] starts at `start`, when it is a complete one.
pub(crate) fn at(text: &[u8], start: usize) -> Option<Range<usize>> {
    let rest = text.get(start + OPENING.len()..)?;
    let id = rest
        .iter()
        .take(80)
        .take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || **b == b'-')
        .count();
    let tail = rest.get(id..id + 6)?;
    let digits = tail[1..5].iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    (id > 0 && tail[0] == b':' && digits && tail[5] == b']').then(|| start..start + OPENING.len() + id + 6)
}

/// Whether the text holds a complete tag anywhere.
pub(crate) fn present(text: &str) -> bool {
    text.match_indices(OPENING).any(|(start, _)| at(text.as_bytes(), start).is_some())
}

#[cfg(test)]
mod tests {
    use super::at;
    use super::present;
    use super::tag;

    #[test]
    fn equal_secrets_share_a_tag_and_keys_matter() {
        let one = tag(&[1; 32], "github-pat", b"abc");
        assert_eq!(one, tag(&[1; 32], "github-pat", b"abc"));
        assert_ne!(one, tag(&[2; 32], "github-pat", b"abc"));
        assert_eq!(at(one.as_bytes(), 0), Some(0..one.len()));
        assert!(present(&format!("x {one} y")));
    }

    #[test]
    fn almost_tags_are_not_tags() {
        for text in
            ["[redacted:", "[redacted::7f3a]", "[redacted:a:7f3]", "[redacted:a:7F3A]", "[redacted:a:7f3a"]
        {
            assert_eq!(at(text.as_bytes(), 0), None, "{text}");
        }
    }
}
