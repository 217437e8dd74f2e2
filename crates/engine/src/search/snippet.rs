//! The words around what was found.

use super::query::Term;

/// How many letters are shown, about.
const AROUND: usize = 160;

/// A piece of a text, and where what was looked for stands in it, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Snippet {
    pub(super) text: String,
    pub(super) marks: Vec<(usize, usize)>,
}

/// The piece of a text with the most of what was looked for. Lines are joined.
pub(super) fn around(text: &str, terms: &[Term]) -> Snippet {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let wanted: Vec<(String, bool)> = terms
        .iter()
        .flat_map(|term| {
            let words: Vec<&str> = split(&term.text).map(|(_, word)| word).collect();
            let last = words.len().saturating_sub(1);
            words
                .into_iter()
                .enumerate()
                .map(|(index, word)| (word.to_lowercase(), term.is_prefix && index == last))
                .collect::<Vec<_>>()
        })
        .collect();
    let fits = |word: &str| {
        let word = word.to_lowercase();
        wanted.iter().any(|(wanted, prefix)| if *prefix { word.starts_with(wanted) } else { word == *wanted })
    };
    let found: Vec<(usize, usize)> = split(&flat)
        .filter(|(_, word)| fits(word))
        .map(|(at, word)| (at, at + word.len()))
        .take(10_000)
        .collect();
    // The window that begins at a hit and has the most of them.
    let mut best = (0, 0);
    for (index, (from, _)) in found.iter().enumerate() {
        let count = found[index..].iter().take_while(|(at, _)| *at < from + AROUND).count();
        if count > best.1 {
            best = (*from, count);
        }
    }
    let begin = flat.floor_char_boundary(best.0.saturating_sub(AROUND / 4));
    let end = flat.ceil_char_boundary((begin + AROUND).min(flat.len()));
    let (before, after) = (if begin > 0 { "…" } else { "" }, if end < flat.len() { "…" } else { "" });
    let shift = |at: usize| at - begin + before.len();
    let marks = found
        .iter()
        .filter(|(from, to)| *from >= begin && *to <= end)
        .map(|(from, to)| (shift(*from), shift(*to)))
        .collect();
    Snippet { text: format!("{before}{}{after}", &flat[begin..end]), marks }
}

/// The words of a text, with where they begin.
fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let begin = rest + text[rest..].find(char::is_alphanumeric)?;
        let length = text[begin..].find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len() - begin);
        rest = begin + length;
        Some((begin, &text[begin..rest]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::query::Wanted;

    fn marked(text: &str, query: &str) -> (String, Vec<String>) {
        let terms = Wanted::parse(query, segno_core::Timestamp::from_micros(0)).unwrap().terms();
        let found = around(text, &terms);
        let marks = found.marks.iter().map(|(from, to)| found.text[*from..*to].to_owned()).collect();
        (found.text, marks)
    }

    #[test]
    fn hits_are_marked() {
        assert_eq!(marked("We drop Redis.", "redis").1, ["Redis"]);
        assert_eq!(marked("configure it", "conf*").1, ["configure"]);
        assert_eq!(marked("drop it, drop redis", "\"drop redis\"").1, ["drop", "drop", "redis"]);
        assert_eq!(marked("nothing", "redis"), ("nothing".to_owned(), Vec::new()));
        let long = format!("{} the größe of redis\nhere {}", "word ".repeat(200), "ü".repeat(400));
        let (text, marks) = marked(&long, "redis");
        assert_eq!(marks, ["redis"]);
        assert!(text.starts_with('…') && text.ends_with('…') && text.len() < 400, "{text}");
    }
}
