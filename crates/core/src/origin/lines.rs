//! Texts of lines, each kept once.

use std::collections::HashMap;

/// A text by its number.
pub(super) type Id = u32;

/// Texts of lines.
#[derive(Debug, Default)]
pub(super) struct Texts {
    ids: HashMap<String, Id>,
    all: Vec<(String, Option<Id>)>,
}

impl Texts {
    /// The number of a text.
    pub(super) fn id(&mut self, text: &str) -> Id {
        let text = text.strip_suffix('\r').unwrap_or(text);
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = Id::try_from(self.all.len()).unwrap_or(Id::MAX);
        self.ids.insert(text.to_owned(), id);
        self.all.push((text.to_owned(), None));
        let words = text.trim();
        let words = words.chars().any(char::is_alphanumeric).then(|| self.id(words));
        if let Some(entry) = self.all.get_mut(id as usize) {
            entry.1 = words;
        }
        id
    }

    /// The numbers of the lines of a text; the last is what follows the last line end.
    pub(super) fn split(&mut self, text: &str) -> Vec<Id> {
        text.split('\n').map(|line| self.id(line)).collect()
    }

    /// A text.
    pub(super) fn text(&self, id: Id) -> &str {
        self.all.get(id as usize).map_or("", |(text, _)| text)
    }

    /// What a line says, without the space around it; none for one of signs alone.
    pub(super) fn words(&self, id: Id) -> Option<Id> {
        self.all.get(id as usize).and_then(|(_, words)| *words)
    }
}

/// The lines of something that was shown, as they stood in the file: without numbers and marks in front of them.
pub(super) fn without_marks(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim_end_matches('\r');
    let trimmed = line.trim();
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = trimmed.get(digits..).unwrap_or_default();
    let numbered = (digits > 0)
        .then(|| rest.strip_prefix(['→', '\t', ':', '|', '-']).or_else(|| rest.strip_prefix("  ")))
        .flatten();
    let marked = trimmed.strip_prefix(['+', '-', '>', '<', '|']);
    let quoted = trimmed.strip_prefix(['`', '"', '\'']).map(|rest| rest.trim_end_matches(['`', '"', '\'']));
    [Some(trimmed), numbered, marked, quoted].into_iter().flatten().map(str::trim)
}

/// Whether a text has these words: on a line of their own, or, if they are more than one word, inside of one.
pub(super) fn says(text: &str, words: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_one_word = words.chars().all(is_part);
    text.match_indices(words).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + words.len()..).and_then(|after| after.chars().next());
        let is_apart = |c: Option<char>| match c {
            None => true,
            Some(c) if is_one_word => c == '\n' || matches!(c, '`' | '"' | '\'' | '\r'),
            Some(c) => !is_part(c),
        };
        let (before, after) = match is_one_word {
            // On a line of its own: the space around it does not count.
            true => (last_beyond_space(text, at), first_beyond_space(text, at + words.len())),
            false => (before, after),
        };
        is_apart(before) && is_apart(after)
    })
}

fn last_beyond_space(text: &str, at: usize) -> Option<char> {
    text.get(..at)?.chars().rev().find(|c| !matches!(c, ' ' | '\t'))
}

fn first_beyond_space(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().find(|c| !matches!(c, ' ' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("put `x = 1` there", "x = 1", true)]
    #[case("put max = 10 there", "x = 1", false)]
    #[case("return it", "return", false)]
    #[case("first\n  return\nlast", "return", true)]
    #[case("say `done`", "done", true)]
    fn words_in_a_text(#[case] text: &str, #[case] words: &str, #[case] found: bool) {
        assert_eq!(says(text, words), found);
    }

    #[rstest::rstest]
    #[case("     7→    let x = 1;", "let x = 1;")]
    #[case("00012| let x = 1;", "let x = 1;")]
    #[case("12:let x = 1;", "let x = 1;")]
    #[case("+let x = 1;", "let x = 1;")]
    fn a_shown_line_without_its_number(#[case] line: &str, #[case] words: &str) {
        assert!(without_marks(line).any(|found| found == words));
    }
}
