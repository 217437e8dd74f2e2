//! What is remembered of names that agents make up is bounded, so that a run of any length fits in memory.

/// The longest name that is remembered from line to line, in bytes. Real ones have some tens.
const NAME: usize = 1024;

/// The most of a text that is kept until the end of a run, in bytes.
const EXCERPT: usize = 4096;

/// Whether a name is short enough to be remembered.
pub(crate) fn is_short(name: &str) -> bool {
    name.len() <= NAME
}

/// The beginning of a text.
pub(crate) fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(EXCERPT)]
}
