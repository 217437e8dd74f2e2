//! What agents asked of memories: found in the ledger by the names of the tools, recorded as such, looked up again, and
//! handed to a memory outside.
//!
//! Calls are recorded as calls whoever makes them, so this works for runs and watched agents alike, and costs a hook
//! nothing: it is made up for when a run ends, and whenever somebody wants to know. Each call is named by its key, so
//! nothing is recorded twice.

mod sync;

use segno_core::EventKey;
use segno_core::Fact;
use segno_core::Input;
use segno_core::List;
use segno_core::SessionId;
use segno_core::event::MemoryUse;
use segno_core::rows::MemoryRow;
use segno_core::rows::ToolRow;
use segno_core::text::shorten;
use segno_store::Append;
use segno_store::Filter;
use segno_store::ItemPosition;
use segno_store::Page;
use segno_store::What;
use serde_json::Value;

pub use self::sync::Handing;
pub use self::sync::MemoryCommand;
use crate::Engine;
use crate::Error;
use crate::engine::fresh_key;

/// How many calls are looked at in one go, and how many of the newest at most.
const CALLS: usize = 500;
const MOST_CALLS: usize = 5_000;
/// Members of an input that hold the question, the best first.
const QUESTIONS: &[&str] = &[
    "query",
    "question",
    "q",
    "topic",
    "libraryName",
    "library_name",
    "context7CompatibleLibraryID",
    "text",
];

/// Which tools ask memories, by patterns with `*`, small and capital letters alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTools {
    /// Those that ask a long-term memory.
    pub queries: Vec<String>,
    /// Those that look something up.
    pub lookups: Vec<String>,
}

impl MemoryTools {
    /// How a tool asks a memory; none if it does not.
    pub fn usage(&self, tool: &str) -> Option<MemoryUse> {
        let matches = |patterns: &[String]| patterns.iter().any(|pattern| is_like(pattern, tool));
        match (matches(&self.queries), matches(&self.lookups)) {
            (true, _) => Some(MemoryUse::Query),
            (false, true) => Some(MemoryUse::Lookup),
            (false, false) => None,
        }
    }
}

/// Whether a text is like a pattern in which `*` stands for anything.
fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(*part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(*last)
}

/// The server that a tool belongs to, as agents name them: `mcp__server__tool`.
fn source_of(tool: &str) -> String {
    let server = tool.strip_prefix("mcp__").and_then(|rest| rest.split("__").next());
    shorten(server.unwrap_or(tool), segno_core::limits::NAME)
}

/// What was asked: the member that says so, else all of the input.
fn question_of(input: &Value) -> String {
    let member =
        |name: &&str| input.get(*name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    match QUESTIONS.iter().find_map(member) {
        Some(text) => text.to_owned(),
        None => input.to_string(),
    }
}

/// Something that a memory said before.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Remembered {
    /// In which session.
    pub session_id: SessionId,
    /// When.
    pub at: Option<segno_core::Timestamp>,
    /// Which memory.
    pub source: Option<String>,
    /// What was asked.
    pub query: String,
    /// What it said.
    pub result: String,
}

impl Engine {
    /// Records what calls of a session asked of memories, as far as nobody has yet. Answers with how many were new.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn note_memory(&self, session: SessionId) -> Result<u64, Error> {
        let tools = &self.options.memory;
        if tools.queries.is_empty() && tools.lookups.is_empty() {
            return Ok(0);
        }
        let mut appends = Vec::new();
        let mut after = None;
        let mut seen = 0;
        while seen < MOST_CALLS {
            let page = Page { after, limit: CALLS, newest_first: true };
            let rows = self.store().page(session, List::Tools, &page)?;
            seen += rows.len();
            for item in &rows {
                let row: ToolRow = item.row();
                let (Some(usage), "completed", Some(input)) =
                    (tools.usage(&row.tool), row.state.as_str(), &row.input)
                else {
                    continue;
                };
                let fact = Fact::MemoryUsed {
                    usage,
                    source: Some(source_of(&row.tool)),
                    query: question_of(input).into(),
                    result: row.output.as_ref().map(|output| output.excerpt().into()),
                };
                let Some(facts) = self.ready_facts(&[Input::Fact(fact)]) else { continue };
                let at = row.ended_at.unwrap_or_else(|| self.now());
                let run = row.run.clone();
                appends
                    .push(Append { run, ..Append::new(session, key_of(&item.key), at, What::Facts(facts)) });
            }
            after = rows.last().map(|item| ItemPosition { seq: item.seq, key: item.key.clone() });
            if rows.len() < CALLS {
                break;
            }
        }
        if appends.is_empty() {
            return Ok(0);
        }
        // In the order in which they were made.
        appends.reverse();
        let mut new = 0;
        for result in self.store().append(appends) {
            new += u64::from(!result?.repeated);
        }
        Ok(new)
    }

    /// What memories said to questions that hold all of these words, in the sessions of a project, the newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn remembered(&self, project: &str, words: &str, most: usize) -> Result<Vec<Remembered>, Error> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let filter = Filter { project: Some(project.to_owned()), ..Filter::default() };
        let mut found = Vec::new();
        for summary in self.list(&filter)? {
            let session_id = summary.session_id;
            // What hooks told of calls is made up for by whoever wants to know. A store that is only read says what it has.
            if let Err(why) = self.note_memory(session_id) {
                tracing::warn!(session = %session_id, %why, "what was asked of memories was not looked for");
            }
            for item in self.store().page(session_id, List::Memory, &Page::newest(CALLS))? {
                let row: MemoryRow = item.row();
                let (Some(query), Some(result)) = (row.query, row.result) else { continue };
                let query = self.whole(&query)?;
                let lower = query.to_lowercase();
                if words.iter().all(|word| lower.contains(word)) {
                    let (at, source, result) = (row.timestamp, row.source, self.whole(&result)?);
                    found.push(Remembered { session_id, at, source, query, result });
                }
                if found.len() >= most {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }
}

/// The key under which the memory use of a call is recorded, once.
fn key_of(call: &str) -> EventKey {
    let hash = blake3::hash(call.as_bytes()).to_hex();
    format!("memory-{hash}").parse().unwrap_or_else(|_| fresh_key())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_by_their_names() {
        let tools = MemoryTools {
            queries: vec!["*hindsight*recall*".to_owned()],
            lookups: vec!["*context7*".to_owned(), "docs".to_owned()],
        };
        for (tool, usage) in [
            ("mcp__hindsight__recall", Some(MemoryUse::Query)),
            ("hindsight_recall", Some(MemoryUse::Query)),
            ("mcp__hindsight__retain", None),
            ("mcp__Context7__get-library-docs", Some(MemoryUse::Lookup)),
            ("docs", Some(MemoryUse::Lookup)),
            ("docs2", None),
            ("Bash", None),
        ] {
            assert_eq!(tools.usage(tool), usage, "{tool}");
        }
        assert!(is_like("*", "anything") && is_like("a*b", "ab") && !is_like("a*b", "abc"));
        assert!(!is_like("ab*ba", "aba"), "no letter counts twice");
    }

    #[test]
    fn what_was_asked_and_of_whom() {
        assert_eq!(source_of("mcp__hindsight__recall"), "hindsight");
        assert_eq!(source_of("hindsight_recall"), "hindsight_recall");
        assert_eq!(question_of(&json!({ "bank": "b", "query": "how?" })), "how?");
        assert_eq!(question_of(&json!({ "a": 1 })), "{\"a\":1}");
    }
}
