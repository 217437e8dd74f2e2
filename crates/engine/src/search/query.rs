//! What somebody types to find something.

use segno_core::Summary;
use segno_core::Timestamp;

/// The kinds of texts that there are.
const KINDS: &[&str] = &[
    "prompt", "said", "thinking", "call", "output", "file", "error", "note", "topic", "decision", "task",
    "artifact",
];

/// Why a query is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    /// Nothing is looked for.
    #[error("say what to look for: words, \"a phrase\", begin*, path:NAME or tool:NAME")]
    Nothing,
    /// A filter that does not say what it means.
    #[error("{0} says nothing that can be looked for")]
    Filter(String),
}

/// A word, or several that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// As typed.
    pub(super) text: String,
    /// More may follow the last letter.
    pub(super) is_prefix: bool,
    /// Where it has to stand; anywhere if empty.
    column: &'static str,
}

impl Term {
    fn expression(&self) -> String {
        let star = if self.is_prefix { "*" } else { "" };
        let quoted = format!("\"{}\"{star}", self.text.replace('"', "\"\""));
        match self.column {
            "" => quoted,
            column => format!("{column} : {quoted}"),
        }
    }
}

/// A query that was understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wanted {
    terms: Vec<Term>,
    agents: Vec<String>,
    projects: Vec<String>,
    statuses: Vec<String>,
    pub(super) kinds: Vec<String>,
    pub(super) since: Option<Timestamp>,
}

impl Wanted {
    pub(super) fn parse(text: &str, now: Timestamp) -> Result<Self, BadQuery> {
        let mut wanted = Self::default();
        for (word, quoted) in words(text) {
            let filter = word.split_once(':').filter(|(name, _)| !quoted && is_filter(name));
            let Some((name, value)) = filter else {
                wanted.term("", &word, quoted);
                continue;
            };
            let bad = || BadQuery::Filter(word.clone());
            let value = value.trim_matches('"');
            if value.is_empty() {
                return Err(bad());
            }
            match name {
                "path" => wanted.term("path", value, false),
                "tool" => wanted.term("tool", value, false),
                "agent" => wanted.agents.push(value.to_lowercase()),
                "project" => wanted.projects.push(value.to_lowercase()),
                "status" => wanted.statuses.push(value.to_lowercase()),
                "kind" => {
                    let kind = value.to_lowercase();
                    wanted
                        .kinds
                        .push(KINDS.iter().find(|known| **known == kind).ok_or_else(bad)?.to_string());
                }
                _ => wanted.since = Some(since(value, now).ok_or_else(bad)?),
            }
        }
        // What has no letter or digit is no word.
        wanted.terms.retain(|term| term.text.chars().any(char::is_alphanumeric));
        if wanted.terms.is_empty() { Err(BadQuery::Nothing) } else { Ok(wanted) }
    }

    fn term(&mut self, column: &'static str, word: &str, quoted: bool) {
        let is_prefix = !quoted && word.ends_with('*');
        let text = if is_prefix { word.trim_end_matches('*') } else { word }.to_owned();
        self.terms.push(Term { text, is_prefix, column });
    }

    pub(super) fn all(&self) -> String {
        self.terms.iter().map(Term::expression).collect::<Vec<_>>().join(" AND ")
    }

    /// For a text that has some of the words, where none has all.
    pub(super) fn any(&self) -> Option<String> {
        let plain: Vec<String> =
            self.terms.iter().filter(|term| term.column.is_empty()).map(Term::expression).collect();
        let fixed: Vec<String> =
            self.terms.iter().filter(|term| !term.column.is_empty()).map(Term::expression).collect();
        if plain.len() < 2 {
            return None;
        }
        let any = format!("({})", plain.join(" OR "));
        Some(std::iter::once(any).chain(fixed).collect::<Vec<_>>().join(" AND "))
    }

    pub(super) fn terms(&self) -> Vec<Term> {
        self.terms.iter().filter(|term| term.column.is_empty()).cloned().collect()
    }

    pub(super) fn narrows(&self) -> bool {
        !(self.agents.is_empty() && self.projects.is_empty() && self.statuses.is_empty())
    }

    /// Whether a session is one of those that are looked through.
    pub(super) fn fits(&self, summary: &Summary) -> bool {
        let any = |wanted: &[String], fits: &dyn Fn(&str) -> bool| {
            wanted.is_empty() || wanted.iter().any(|value| fits(value))
        };
        let agent = summary.agent.as_deref().unwrap_or_default().to_lowercase();
        let project = summary.project.to_lowercase();
        any(&self.agents, &|value| agent == value)
            && any(&self.projects, &|value| project.contains(value))
            && any(&self.statuses, &|value| summary.status.as_str() == value)
    }
}

fn is_filter(name: &str) -> bool {
    matches!(name, "path" | "tool" | "agent" | "project" | "status" | "kind" | "since")
}

/// The words of a query, and whether each stood in quotes.
fn words(text: &str) -> Vec<(String, bool)> {
    let mut words = Vec::new();
    let (mut word, mut inside, mut quoted) = (String::new(), false, false);
    let mut end = |word: &mut String, quoted: &mut bool| {
        if !word.trim().is_empty() {
            words.push((std::mem::take(word), *quoted));
        }
        word.clear();
        *quoted = false;
    };
    for letter in text.chars() {
        match letter {
            '"' if inside => {
                inside = false;
                end(&mut word, &mut quoted);
            }
            '"' => {
                inside = true;
                // path:"a b" is one word.
                quoted = word.is_empty();
            }
            letter if letter.is_whitespace() && !inside => end(&mut word, &mut quoted),
            letter => word.push(letter),
        }
    }
    end(&mut word, &mut quoted);
    words
}

/// `7d`, `12h` or a date.
fn since(value: &str, now: Timestamp) -> Option<Timestamp> {
    let (number, unit) = value.split_at(value.len().checked_sub(1).filter(|at| value.is_char_boundary(*at))?);
    let seconds = match unit {
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "m" => 30 * 86_400,
        "y" => 365 * 86_400,
        _ => return format!("{value}T00:00:00Z").parse().ok().or_else(|| value.parse().ok()),
    };
    let number: i64 = number.parse().ok()?;
    Some(now.plus_seconds(-number.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> Wanted {
        Wanted::parse(text, Timestamp::from_micros(1_795_000_000_000_000)).unwrap()
    }

    #[test]
    fn words_phrases_prefixes_and_filters() {
        assert_eq!(wanted("drop redis").all(), "\"drop\" AND \"redis\"");
        assert_eq!(wanted("\"drop redis\" conf*").all(), "\"drop redis\" AND \"conf\"*");
        assert_eq!(
            wanted("x path:src/main.rs tool:Bash").all(),
            "\"x\" AND path : \"src/main.rs\" AND tool : \"Bash\""
        );
        assert_eq!(wanted("when did we drop redis?").all().matches("AND").count(), 4);
        assert_eq!(wanted("http://x").all(), "\"http://x\"", "only known names are filters");
        let narrow = wanted("x agent:Codex project:shop status:paused since:7d kind:said");
        assert_eq!((narrow.agents.len(), narrow.projects.len(), narrow.statuses.len()), (1, 1, 1));
        assert_eq!(narrow.since, Some(Timestamp::from_micros(1_794_395_200_000_000)));
        assert_eq!(narrow.kinds, ["said"]);
        assert_eq!(wanted("a b path:c").any().as_deref(), Some("(\"a\" OR \"b\") AND path : \"c\""));
        assert_eq!(wanted("a").any(), None);
        assert!(wanted("x since:2026-01-31").since.is_some());
    }

    #[test]
    fn what_is_no_query() {
        let parse = |text: &str| Wanted::parse(text, Timestamp::from_micros(0));
        for text in ["", "  ", "agent:claude", "\"\"", "*", "?!"] {
            assert_eq!(parse(text), Err(BadQuery::Nothing), "{text}");
        }
        for text in ["x since:soon", "x kind:nothing", "x path:"] {
            assert!(matches!(parse(text), Err(BadQuery::Filter(_))), "{text}");
        }
    }
}
