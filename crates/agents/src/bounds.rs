//! What is remembered of names that agents make up is bounded, so that a run of any length fits in memory.

/// The longest name that is remembered from line to line, in bytes. Real ones have some tens.
const NAME: usize = 1024;

/// The most of a text that is kept until the end of a run, in bytes.
const EXCERPT: usize = 4096;

/// Whether a name is short enough to be remembered.
pub(crate) fn is_short(name: &str) -> bool {
    name.len() <= NAME
}

/// The beginning of a text, in whole words: half of a secret is not known as one when the text is recorded. What has no
/// words is no text.
pub(crate) fn excerpt(text: &str) -> &str {
    if text.len() <= EXCERPT {
        return text;
    }
    let head = &text[..text.floor_char_boundary(EXCERPT)];
    head.rfind(char::is_whitespace).map_or("", |end| head[..end].trim_end())
}

/// The beginning of a name or id.
pub(crate) fn short_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME)]
}

#[cfg(test)]
mod tests {
    use super::EXCERPT;
    use super::excerpt;

    #[test]
    fn no_word_is_cut_in_two() {
        let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
        for before in EXCERPT - secret.len()..EXCERPT {
            let text = format!("{} {secret} and more", "a".repeat(before));
            assert_eq!(excerpt(&text), "a".repeat(before), "{before}");
        }
        assert_eq!(excerpt("short"), "short");
        assert_eq!(excerpt(&"b".repeat(EXCERPT + 1)), "");
    }
}
