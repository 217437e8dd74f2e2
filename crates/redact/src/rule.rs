//! Rules at work: those of `rules.toml`, which the build script turned into tables, and those that callers add.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::bytes::Regex;
use regex::bytes::RegexSet;

use crate::entropy;
use crate::guess;
use crate::shape::Shape;
use crate::spec::Guess;
use crate::spec::Reason;
use crate::spec::RuleSpec;
use crate::spec::{self};
use crate::tables;

/// How far after a keyword a pattern is searched unless the rule says otherwise.
pub(crate) const AFTER: usize = 256;

/// A rule that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("redaction rule `{id}`: {reason}")]
pub struct RuleError {
    /// The id as given.
    pub id: String,
    /// What is wrong with it.
    #[source]
    pub reason: Reason,
}

/// What a rule says, in a form that can be a constant of the program: a process that records one event has no time
/// to read rules. The words that call for the rule are not here, see [`crate::prefilter`].
#[derive(Debug, PartialEq)]
pub(crate) struct Terms {
    pub(crate) id: Cow<'static, str>,
    /// Whether the rule is about the value of a name, and not a pattern near a keyword.
    pub(crate) named: bool,
    pub(crate) regex: Cow<'static, str>,
    pub(crate) group: usize,
    pub(crate) each: Option<Cow<'static, str>>,
    pub(crate) entropy: Option<f32>,
    pub(crate) allow: Cow<'static, [Cow<'static, str>]>,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) guess: Option<Guess>,
    pub(crate) inside: bool,
    pub(crate) column: bool,
    /// All ways in which a match of the pattern begins; empty where they are not known.
    pub(crate) shapes: &'static [Shape],
}

impl From<RuleSpec> for Terms {
    fn from(spec: RuleSpec) -> Self {
        Self {
            named: !spec.near.is_empty(),
            id: spec.id.into(),
            regex: spec.regex.into(),
            group: spec.group,
            each: spec.each.map(Cow::from),
            entropy: spec.entropy,
            allow: spec.allow.into_iter().map(Cow::from).collect(),
            before: spec.before,
            after: if spec.after == 0 { AFTER } else { spec.after },
            guess: spec.guess,
            inside: spec.inside,
            column: spec.column,
            shapes: &[],
        }
    }
}

/// A rule whose patterns compile when they are first needed: most sessions meet a handful of them.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) terms: Terms,
    regex: OnceLock<Option<Regex>>,
    each: OnceLock<Option<Regex>>,
    allow: OnceLock<Option<RegexSet>>,
}

impl Rule {
    pub(crate) const fn new(terms: Terms) -> Self {
        Self { terms, regex: OnceLock::new(), each: OnceLock::new(), allow: OnceLock::new() }
    }

    /// The compiled pattern; `None` for a guess and for a rule that was never valid.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| spec::pattern(&self.terms.regex, self.terms.named).ok()).as_ref()
    }

    /// The pattern for the parts of a match, where a rule has one.
    pub(crate) fn each(&self) -> Option<&Regex> {
        let pattern = self.terms.each.as_ref()?;
        self.each.get_or_init(|| spec::pattern(pattern, false).ok()).as_ref()
    }

    /// Whether a match may begin where the keyword at `keyword` is part of its beginning. When this is so for no
    /// keyword of a text, the pattern matches nowhere in it.
    ///
    /// Compiling a pattern takes longer than all the rest of a short text, and most keywords are there by chance.
    pub(crate) fn may_match(&self, text: &[u8], keyword: usize) -> bool {
        let shapes = self.terms.shapes;
        shapes.is_empty() || shapes.iter().any(|shape| shape.fits_around(text, keyword))
    }

    /// Whether the pattern matches the whole value.
    pub(crate) fn is_whole(&self, value: &[u8]) -> bool {
        let shapes = self.terms.shapes;
        (shapes.is_empty() || shapes.iter().any(|shape| shape.fits(value, 0)))
            && self.regex().is_some_and(|regex| regex.is_match(value))
    }

    /// The tests every found value has to pass besides its pattern.
    pub(crate) fn accepts(&self, secret: &[u8]) -> bool {
        if self.terms.entropy.is_some_and(|least| entropy::bits(secret) < least) {
            return false;
        }
        if !self.terms.named
            && let (Some(guess), Ok(value)) = (self.terms.guess, std::str::from_utf8(secret))
            && !guess::fits(guess, value)
        {
            return false;
        }
        if self.terms.allow.is_empty() {
            return true;
        }
        let allow = self.allow.get_or_init(|| spec::look_alikes(&self.terms.allow).ok());
        !allow.as_ref().is_some_and(|set| set.is_match(secret))
    }
}

/// The built-in rules, shared by all redactors of the process together with their compiled patterns.
pub(crate) fn builtin() -> &'static [Rule] {
    &tables::RULES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::strategy::Strategy;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use serde::Deserialize;

    use super::Terms;
    use super::builtin;
    use crate::spec::RuleSpec;
    use crate::tables;

    #[derive(Deserialize)]
    struct File {
        rule: Vec<RuleSpec>,
    }

    fn specs() -> Vec<RuleSpec> {
        toml::from_str::<File>(include_str!("../rules.toml")).unwrap().rule
    }

    #[test]
    fn the_tables_say_what_the_file_says() {
        let specs = specs();
        assert!(specs.len() > 150);
        assert_eq!(builtin().len(), specs.len());
        let mut words: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        words.insert(crate::table::TAG_OPENING.to_owned(), Vec::new());
        for (index, (rule, spec)) in builtin().iter().zip(specs).enumerate() {
            assert!(spec.check().is_ok(), "{}", spec.id);
            for word in spec.words() {
                let list = words.entry(word.clone()).or_default();
                if list.last() != Some(&index) {
                    list.push(index);
                }
            }
            assert_eq!(rule.terms, Terms { shapes: rule.terms.shapes, ..Terms::from(spec) });
        }
        let table = tables::KEYWORDS.iter().map(|k| (k.word().to_owned(), k.rules().to_vec()));
        assert_eq!(table.clone().count(), words.len(), "each keyword is there once");
        assert_eq!(table.collect::<BTreeMap<_, _>>(), words);
    }

    /// The pattern as one to make texts with: nothing about their surroundings, and repetitions that are not long.
    fn generator(regex: &str) -> String {
        let mut made = format!("(?-u){regex}");
        for (what, with) in [(r"\b", ""), ("|$)", ")"), ("(?:^|", "(?:"), ("(?:$|", "(?:"), ("(?:|-)", "-?")]
        {
            made = made.replace(what, with);
        }
        let number = |text: &str| text.parse().unwrap_or(usize::MAX);
        regex::Regex::new(r"\{([0-9]+),([0-9]*)\}")
            .unwrap()
            .replace_all(&made, |found: &regex::Captures<'_>| {
                let least = number(&found[1]);
                format!("{{{least},{}}}", number(&found[2]).min(least + 6))
            })
            .into_owned()
    }

    /// Texts made by the patterns themselves: a shape that does not fit one of them would hide a secret.
    #[test]
    fn shapes_fit_whatever_the_pattern_matches() {
        let mut runner = TestRunner::deterministic();
        for (rule, spec) in builtin().iter().zip(specs()) {
            if rule.terms.shapes.is_empty() {
                continue;
            }
            let strategy = proptest::string::bytes_regex(&generator(&spec.regex))
                .unwrap_or_else(|error| panic!("{}: {error}", spec.id));
            let regex = rule.regex().unwrap();
            let mut matches = 0;
            for round in 0..36 {
                let made = strategy.new_tree(&mut runner).unwrap().current();
                let around: [&[u8]; 2] =
                    [[&b""[..], b" ", b"x", b"\""][round % 4], [&b""[..], b" ", b"7"][round % 3]];
                let text = [around[0], made.as_slice(), around[1]].concat();
                if rule.terms.named {
                    matches += usize::from(regex.is_match(&made));
                    assert_eq!(rule.is_whole(&made), regex.is_match(&made), "{}: {made:?}", spec.id);
                    continue;
                }
                let lower = text.to_ascii_lowercase();
                for found in regex.find_iter(&text) {
                    matches += 1;
                    let keyword =
                        |at: usize| spec.keywords.iter().any(|k| lower[at..].starts_with(k.as_bytes()));
                    let seen = found.range().any(|at| keyword(at) && rule.may_match(&text, at));
                    assert!(seen, "{}: {:?}", spec.id, String::from_utf8_lossy(&text));
                }
            }
            assert!(matches > 3, "{} matched {matches} of its own texts", spec.id);
        }
    }

    #[test]
    fn common_words_compile_nothing() {
        let compiled = |id: &str, text: &str| {
            let rule = builtin().iter().find(|rule| rule.terms.id == id).unwrap();
            (0..text.len()).any(|at| rule.may_match(text.as_bytes(), at))
        };
        assert!(!compiled("url-credentials", "see https://host.example/path:7 and http://a.b:80/ for more"));
        assert!(!compiled("jwt", "they obey; key, money, eyebrows, eye.eyes"));
        assert!(!compiled("kubernetes-secret", "kind: Deployment, kind: string"));
        assert!(!compiled("airtable-pat", "path pattern patch pat."));
        assert!(compiled("url-credentials", "see https://me:sesame9@host.example/"));
    }
}
