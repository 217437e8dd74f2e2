//! Rules are data: `rules.toml` holds the built-in ones, callers may add their own.
//!
//! A rule comes in one of three shapes:
//!
//! * a *pattern*: `keywords` and a `regex` that is searched near them;
//! * a *named value*: `near` and a `regex` that the whole value assigned to a name containing one of them must match;
//! * a *guess*: `near` and `guess`, for values that only their name gives away.

use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::Deserialize;

use crate::entropy;

/// How a rule is written down.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleSpec {
    /// Name of the rule, shown in the tag: lower-case letters, digits and dashes.
    pub id: String,
    /// Literal strings, lower-case, one of which every match of `regex` contains. Letter case is ignored.
    pub keywords: Vec<String>,
    /// Instead of `keywords`: parts of the name to which the secret is assigned (`name = "secret"`).
    pub near: Vec<String>,
    /// The pattern; with `near` the form of the whole value. Classes are ASCII.
    pub regex: String,
    /// The capture group that is the secret; 0 is the whole match.
    pub group: usize,
    /// With a group: only group 1 of each match of this pattern within the group is secret.
    pub each: Option<String>,
    /// Least Shannon entropy of the secret in bits per byte.
    pub entropy: Option<f32>,
    /// A secret matching one of these is a known look-alike and stays.
    pub allow: Vec<String>,
    /// How many bytes before a keyword a match may start.
    pub before: usize,
    /// How many bytes after a keyword are searched; 0 means the default of 256. A match that reaches the end of
    /// this window is followed further.
    pub after: usize,
    /// Judge the value by general tests instead of a pattern.
    pub guess: Option<Guess>,
    /// With `near`: the name may also stand inside a longer word (`PGPASSWORD`).
    pub inside: bool,
}

/// Which general tests a guessed value has to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guess {
    /// Something a person may have chosen.
    Password,
    /// Something a machine has generated.
    Token,
}

/// Why a rule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The id is empty or has other characters than lower-case letters, digits and dashes.
    #[error("the id must be lower-case letters, digits and dashes")]
    Id,
    /// Neither `keywords` nor `near` is given, or one of them is empty.
    #[error("at least one non-empty keyword is needed")]
    Keywords,
    /// There is neither a pattern nor a guess.
    #[error("a regex is needed")]
    Empty,
    /// The pattern or one of the allowed look-alikes does not compile.
    #[error("the pattern is not valid: {0}")]
    Pattern(#[from] regex::Error),
    /// The group does not exist in the pattern.
    #[error("the pattern has no group {0}")]
    Group(usize),
}

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

/// A rule whose patterns compile when they are first needed: most sessions meet a handful of them.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) spec: RuleSpec,
    regex: OnceLock<Option<Regex>>,
    each: OnceLock<Option<Regex>>,
    allow: OnceLock<Option<RegexSet>>,
}

impl Rule {
    pub(crate) fn new(spec: RuleSpec) -> Self {
        Self { spec, regex: OnceLock::new(), each: OnceLock::new(), allow: OnceLock::new() }
    }

    /// The compiled pattern; `None` for a guess and for a rule that was never valid.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| self.compile().ok()).as_ref()
    }

    /// The pattern for the parts of a match, where a rule has one.
    pub(crate) fn each(&self) -> Option<&Regex> {
        let pattern = self.spec.each.as_ref()?;
        self.each.get_or_init(|| ascii(pattern).ok()).as_ref()
    }

    pub(crate) fn keywords(&self) -> &[String] {
        if self.spec.near.is_empty() { &self.spec.keywords } else { &self.spec.near }
    }

    pub(crate) fn after(&self) -> usize {
        if self.spec.after == 0 { 256 } else { self.spec.after }
    }

    /// The tests every found value has to pass besides its pattern.
    pub(crate) fn accepts(&self, secret: &[u8]) -> bool {
        if self.spec.entropy.is_some_and(|least| entropy::bits(secret) < least) {
            return false;
        }
        if self.spec.allow.is_empty() {
            return true;
        }
        let allow = self.allow.get_or_init(|| look_alikes(&self.spec.allow).ok());
        !allow.as_ref().is_some_and(|set| set.is_match(secret))
    }

    /// Checks everything that is otherwise found out only on use.
    pub(crate) fn check(&self) -> Result<(), Reason> {
        let id = &self.spec.id;
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return Err(Reason::Id);
        }
        if self.keywords().is_empty() || self.keywords().iter().any(String::is_empty) {
            return Err(Reason::Keywords);
        }
        if self.spec.guess.is_none() {
            if self.spec.regex.is_empty() {
                return Err(Reason::Empty);
            }
            let groups = self.compile()?.captures_len();
            if self.spec.group >= groups {
                return Err(Reason::Group(self.spec.group));
            }
        }
        if let Some(each) = &self.spec.each
            && ascii(each)?.captures_len() < 2
        {
            return Err(Reason::Group(1));
        }
        look_alikes(&self.spec.allow)?;
        Ok(())
    }

    fn compile(&self) -> Result<Regex, regex::Error> {
        let anchored;
        let pattern = if self.spec.near.is_empty() {
            &self.spec.regex
        } else {
            anchored = format!(r"\A(?:{})\z", self.spec.regex);
            &anchored
        };
        ascii(pattern)
    }
}

/// Tokens are ASCII; Unicode classes would make the automata many times larger for nothing.
fn ascii(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).unicode(false).build()
}

fn look_alikes(patterns: &[String]) -> Result<RegexSet, regex::Error> {
    RegexSetBuilder::new(patterns).unicode(false).build()
}

#[derive(Deserialize)]
struct File {
    rule: Vec<RuleSpec>,
}

/// The built-in rules, shared by all redactors of the process together with their compiled patterns.
pub(crate) fn builtin() -> &'static [Rule] {
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        // A test reads the same file, so an error cannot leave the build.
        parse(include_str!("../rules.toml")).unwrap_or_default().into_iter().map(Rule::new).collect()
    });
    &RULES
}

fn parse(text: &str) -> Result<Vec<RuleSpec>, toml::de::Error> {
    Ok(toml::from_str::<File>(text)?.rule)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Reason, Rule, RuleSpec, parse};

    #[test]
    fn every_builtin_rule_is_valid_and_unique() {
        let specs = parse(include_str!("../rules.toml")).unwrap();
        let mut ids = BTreeSet::new();
        for spec in specs {
            assert!(ids.insert(spec.id.clone()), "{} is there twice", spec.id);
            assert!(spec.keywords.iter().chain(&spec.near).all(|k| *k == k.to_lowercase()), "{}", spec.id);
            let rule = Rule::new(spec);
            if let Err(reason) = rule.check() {
                panic!("{}: {reason}", rule.spec.id);
            }
        }
        assert!(ids.len() > 150);
    }

    #[test]
    fn broken_rules_are_named() {
        let good = RuleSpec {
            id: "x".into(),
            keywords: vec!["x".into()],
            regex: "x+".into(),
            ..RuleSpec::default()
        };
        let check = |spec: RuleSpec| Rule::new(spec).check();
        assert!(check(good.clone()).is_ok());
        assert!(matches!(check(RuleSpec { id: "A b".into(), ..good.clone() }), Err(Reason::Id)));
        assert!(matches!(check(RuleSpec { keywords: vec![], ..good.clone() }), Err(Reason::Keywords)));
        assert!(matches!(check(RuleSpec { regex: "(".into(), ..good.clone() }), Err(Reason::Pattern(_))));
        assert!(matches!(check(RuleSpec { group: 3, ..good }), Err(Reason::Group(3))));
    }
}
