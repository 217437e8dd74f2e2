//! How a rule is written down, and what makes it usable.
//!
//! The build script reads this file too: what `rules.toml` may say and what callers may add is one and the same.
//!
//! A rule comes in one of three shapes:
//!
//! * a *pattern*: `keywords` and a `regex` that is searched near them;
//! * a *named value*: `near` and a `regex` that the whole value assigned to a name containing one of them must match;
//! * a *guess*: `near` and `guess`, for values that only their name gives away.
//!
//! A pattern may have a `guess` too: what it found is then judged by the same tests.

use regex::bytes::Regex;
use regex::bytes::RegexBuilder;
use regex::bytes::RegexSet;
use regex::bytes::RegexSetBuilder;
use serde::Deserialize;

/// How a rule is written down.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleSpec {
    /// Name of the rule, shown in the tag: lower-case letters, digits and dashes.
    pub id: String,
    /// Literal strings, lower-case, one of which every match of `regex` contains. Letter case is ignored. Without any,
    /// the pattern is looked for everywhere, which takes its time.
    pub keywords: Vec<String>,
    /// Replacements of `keywords`: parts of the name to which the secret is assigned (`name = "secret"`).
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
    /// Judge the value by general tests: instead of a pattern, or, with `keywords`, beside it.
    pub guess: Option<Guess>,
    /// With `near`: the name may also stand inside a longer word (`PGPASSWORD`).
    pub inside: bool,
    /// With `near` and `guess`: the name may also be that of a column, and what stands below it is judged.
    pub column: bool,
}

/// Which general tests a guessed value has to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guess {
    /// Something a person may have chosen.
    Password,
    /// Something a machine has generated.
    Token,
    /// Whatever is no label, no variable and no message: where all around it says that it is a password.
    Word,
    /// The same in a sentence, where most words say something of a password instead of being one.
    Said,
}

/// Why a rule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The id is empty or has other characters than lower-case letters, digits and dashes.
    #[error("the id must be lower-case letters, digits and dashes")]
    Id,
    /// A keyword is empty, or a guess has none.
    #[error("a keyword must not be empty, and a guess needs one")]
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

impl RuleSpec {
    /// The strings that call for a closer look, whichever shape the rule has.
    pub(crate) fn words(&self) -> &[String] {
        if self.near.is_empty() { &self.keywords } else { &self.near }
    }

    /// Checks everything that is otherwise found out only on use.
    pub(crate) fn check(&self) -> Result<(), Reason> {
        let id = &self.id;
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return Err(Reason::Id);
        }
        if self.words().iter().any(String::is_empty) || self.words().is_empty() && self.guess.is_some() {
            return Err(Reason::Keywords);
        }
        if self.guess.is_none() || self.near.is_empty() {
            if self.regex.is_empty() {
                return Err(Reason::Empty);
            }
            let groups = pattern(&self.regex, !self.near.is_empty())?.captures_len();
            if self.group >= groups {
                return Err(Reason::Group(self.group));
            }
        }
        if let Some(each) = &self.each
            && pattern(each, false)?.captures_len() < 2
        {
            return Err(Reason::Group(1));
        }
        look_alikes(&self.allow)?;
        Ok(())
    }
}

/// The compiled pattern. Tokens are ASCII; Unicode classes would make the automata many times larger for nothing.
pub(crate) fn pattern(regex: &str, whole: bool) -> Result<Regex, regex::Error> {
    let anchored;
    let regex = if whole {
        anchored = format!(r"\A(?:{regex})\z");
        &anchored
    } else {
        regex
    };
    RegexBuilder::new(regex).unicode(false).build()
}

pub(crate) fn look_alikes<S: AsRef<str>>(patterns: &[S]) -> Result<RegexSet, regex::Error> {
    RegexSetBuilder::new(patterns).unicode(false).build()
}

#[cfg(test)]
mod tests {
    use super::Reason;
    use super::RuleSpec;

    #[test]
    fn broken_rules_are_named() {
        let good = RuleSpec {
            id: "x".into(),
            keywords: vec!["x".into()],
            regex: "x+".into(),
            ..RuleSpec::default()
        };
        assert!(good.check().is_ok());
        let check = |spec: RuleSpec| spec.check();
        assert!(matches!(check(RuleSpec { id: "A b".into(), ..good.clone() }), Err(Reason::Id)));
        assert!(check(RuleSpec { keywords: vec![], ..good.clone() }).is_ok());
        assert!(matches!(
            check(RuleSpec { keywords: vec![String::new()], ..good.clone() }),
            Err(Reason::Keywords)
        ));
        assert!(matches!(check(RuleSpec { regex: "(".into(), ..good.clone() }), Err(Reason::Pattern(_))));
        assert!(matches!(check(RuleSpec { group: 3, ..good }), Err(Reason::Group(3))));
    }
}
