//! One pass over the text that says which rules are worth a closer look, and where.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::rule::Rule;
use crate::tag;

/// What a keyword stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The opening of a tag that an earlier redaction left.
    Tag,
    /// The exact value with this index.
    Exact(usize),
    /// The rules with these indices.
    Rules(Vec<usize>),
}

/// A keyword found in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit<'p> {
    pub(crate) meaning: &'p Meaning,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The automaton over all keywords and exact values, letter case ignored.
#[derive(Debug)]
pub(crate) struct Prefilter {
    automaton: Option<AhoCorasick>,
    meanings: Vec<Meaning>,
}

impl Prefilter {
    pub(crate) fn new<'r>(rules: impl Iterator<Item = &'r Rule>, exact: &[(String, String)]) -> Self {
        let mut words: Vec<(&str, Meaning)> = vec![(tag::OPENING, Meaning::Tag)];
        let mut places = std::collections::HashMap::new();
        for (index, rule) in rules.enumerate() {
            for keyword in rule.keywords() {
                let place = *places.entry(keyword.as_str()).or_insert_with(|| {
                    words.push((keyword, Meaning::Rules(Vec::new())));
                    words.len() - 1
                });
                if let Meaning::Rules(list) = &mut words[place].1
                    && list.last() != Some(&index)
                {
                    list.push(index);
                }
            }
        }
        words.extend(
            exact.iter().enumerate().map(|(index, (_, value))| (value.as_str(), Meaning::Exact(index))),
        );
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words.iter().map(|(word, _)| word))
            // Only absurd sizes fail, and then the slower automaton still does.
            .or_else(|_| {
                AhoCorasick::builder().ascii_case_insensitive(true).build(words.iter().map(|(word, _)| word))
            })
            .ok();
        Self { automaton, meanings: words.into_iter().map(|(_, meaning)| meaning).collect() }
    }

    /// Every keyword in the text, overlapping ones too, in the order of their ends.
    pub(crate) fn hits<'p>(&'p self, text: &'p str) -> impl Iterator<Item = Hit<'p>> + 'p {
        self.automaton.iter().flat_map(move |automaton| automaton.find_overlapping_iter(text)).map(|found| {
            Hit {
                meaning: &self.meanings[found.pattern().as_usize()],
                start: found.start(),
                end: found.end(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Meaning, Prefilter};
    use crate::rule::{Rule, RuleSpec};

    #[test]
    fn overlapping_keywords_are_all_seen() {
        let rule = |keywords: &[&str]| {
            Rule::new(RuleSpec {
                keywords: keywords.iter().map(|k| (*k).to_owned()).collect(),
                ..RuleSpec::default()
            })
        };
        let rules = [rule(&["key"]), rule(&["api_key", "key"])];
        let filter = Prefilter::new(rules.iter(), &[("N".into(), "Zz9plural".into())]);
        let seen: Vec<_> =
            filter.hits("my API_KEY is zz9plural").map(|h| (h.meaning.clone(), h.start)).collect();
        assert_eq!(seen.len(), 3);
        assert!(seen.contains(&(Meaning::Rules(vec![0, 1]), 7)));
        assert!(seen.contains(&(Meaning::Rules(vec![1]), 3)));
        assert!(seen.contains(&(Meaning::Exact(0), 14)));
    }
}
