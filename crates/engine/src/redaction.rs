//! What is kept out of the record, as settings say it.

use segno_redact::Options;
use segno_redact::Redactor;
use segno_redact::RuleSpec;
use serde::Deserialize;
use serde::Serialize;

use crate::Error;

/// A rule of somebody's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// A name for the rule.
    pub id: String,
    /// The text must contain one of these; none means always look.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// What the secret looks like.
    pub regex: String,
    /// Which part of the match is the secret; 0 is all of it.
    #[serde(default)]
    pub group: usize,
}

impl Rule {
    /// As the redactor wants it.
    pub fn spec(&self) -> RuleSpec {
        RuleSpec {
            id: self.id.clone(),
            keywords: self.keywords.clone(),
            regex: self.regex.clone(),
            group: self.group,
            ..RuleSpec::default()
        }
    }
}

/// What is kept out of the record beside what every redactor knows.
#[derive(Clone, Default)]
pub struct Redaction {
    /// More rules.
    pub rules: Vec<Rule>,
    /// Whether secrets of the environment are kept out.
    pub keeps_environment: bool,
    /// Names and values of the environment's variables that are secret by their names.
    pub environment: Vec<(String, String)>,
    /// Variables that agents are given by settings: their names, or their values, may say that they are secret.
    pub given: Vec<(String, String)>,
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Redaction").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Redaction {
    /// What is known to be secret.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let mut secrets = if self.keeps_environment { self.environment.clone() } else { Vec::new() };
        let is_secret = |(name, value): &&(String, String)| segno_redact::is_secret_setting(name, value);
        secrets.extend(self.given.iter().filter(is_secret).cloned());
        secrets
    }

    /// What takes these secrets out.
    ///
    /// # Errors
    /// If a rule is not right.
    pub fn redactor(&self, tag_key: [u8; 32]) -> Result<Redactor, Error> {
        let extra_rules = self.rules.iter().map(Rule::spec).collect();
        Redactor::try_new(Options { extra_rules, exact: self.secrets(), tag_key })
            .map_err(|why| Error::BadRule(why.to_string()))
    }
}
