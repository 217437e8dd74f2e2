//! An agent's own log of a conversation: where it lies, and how it reads.
//!
//! Each agent that keeps one has one type that knows both, with one parser into [`AgentEvent`]s. Everything else is a use
//! of it: followed beside the agent's output, as the only source while a person has the agent's terminal, or read
//! whole for what became of calls and tokens after a crash.

use std::fmt::Debug;

use crate::agent::Agent;
use crate::event::AgentEvent;
use crate::keeping::Keeping;
use crate::reader::LineMeta;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::reader::StreamParser;
use crate::tally::Ending;
use crate::tally::Tally;
use crate::tokens::TokenCounts;
use crate::transcript::Transcript;
use crate::transcript::{self};

/// What a log is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogUse<'a> {
    /// Beside the agent's output, from where a run begins in it: only what [`is_told_by_log`], the rest is in the output.
    BesideOutput,
    /// As the only source of a run with a person at the agent's terminal. What is older than `since` (RFC 3339, UTC) is
    /// no part of the run.
    Alone {
        /// When the run began.
        since: Option<&'a str>,
    },
    /// All of it, sub-agents too.
    Whole,
    /// The same for somebody who takes it into another record: tokens come with their model, and what the agent itself
    /// says of the whole conversation is told as a total, for what sub-agents used stands in logs of their own.
    History,
    /// The log of a sub-agent, for what it used itself: a copy of the conversation that it began with is not of it.
    SubAgent {
        /// The sub-agent's own conversation.
        id: &'a str,
    },
}

/// Where the logs of an agent lie: one file for each conversation, somewhere below one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLocation {
    /// The variable that names the agent's own directory.
    pub variable: &'static str,
    /// That directory in the person's home, when the variable is not set.
    pub home: &'static str,
    /// The directory of the logs in it.
    pub below: &'static str,
    /// How many directories there are between that one and a log. Where there are several, their names sort by age.
    pub depth: usize,
    /// How the name of a log begins; it ends with the conversation's id and `.jsonl`. Without it the id is the name.
    pub prefix: &'static str,
    /// The agent keeps the log open while it writes it, and does not tell beforehand which it will be.
    pub kept_open: bool,
    /// The directory with the logs of sub-agents, in one that is named like the conversation, beside its log.
    pub sub_agents: Option<&'static str>,
}

impl LogLocation {
    /// The directory that all logs are below, given the variables that the agent was started with.
    pub fn root(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let own = set(self.variable).or_else(|| Some(format!("{}/{}", set("HOME")?, self.home)))?;
        Some(format!("{}/{}", own.trim_end_matches('/'), self.below))
    }

    /// Whether a file of this name is a log at all.
    pub fn is_log(&self, file: &str) -> bool {
        file.starts_with(self.prefix) && file.ends_with(".jsonl")
    }

    /// Whether a file of this name is the log of that conversation. An id comes from outside: one that could lead
    /// elsewhere names nothing.
    pub fn is_of(&self, file: &str, id: &str) -> bool {
        let plain = |id: &str| {
            let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
            !id.is_empty() && id.len() <= 128 && id.bytes().all(fits)
        };
        let stem = file.strip_prefix(self.prefix).and_then(|name| name.strip_suffix(".jsonl"));
        let rest = stem.filter(|_| plain(id)).and_then(|stem| stem.strip_suffix(id));
        rest.is_some_and(|rest| if self.prefix.is_empty() { rest.is_empty() } else { rest.ends_with('-') })
    }
}

/// What the beginning of a log says of where it comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The conversation.
    pub id: Option<String>,
    /// The conversation whose sub-agent it is.
    pub sub_agent_of: Option<String>,
    /// The conversation that it is a copy of, if it says so.
    pub copy_of: Option<String>,
    /// The id of its first message. A copy repeats the messages of its origin with their ids.
    pub root: Option<String>,
    /// Where the agent worked.
    pub cwd: Option<String>,
}

/// An agent's own log of its conversations.
pub trait ConversationLog: Debug + Send + Sync {
    /// Where logs lie, if they are files that somebody can find.
    fn location(&self) -> Option<LogLocation> {
        None
    }

    /// How conversations are kept, if somebody knows.
    fn keeping(&self) -> Option<Keeping> {
        None
    }

    /// A reader for a log, if it can be followed line by line.
    fn reader(&self, _options: &ReaderOptions, _usage: LogUse<'_>) -> Option<Reader> {
        None
    }

    /// Which conversation a log that begins like this is of, and what it goes back to.
    fn lineage(&self, _head: &[u8]) -> Lineage {
        Lineage::default()
    }

    /// Whether a log that begins like this is that of the conversation with the person.
    fn is_main(&self, _head: &[u8]) -> bool {
        true
    }

    /// The conversation of a sub-agent that an event of a log tells of, if that has a log of its own among the others.
    fn sub_agent_of(&self, _event: &AgentEvent) -> Option<String> {
        None
    }

    /// What a whole log says, or one that was cut off anywhere.
    fn transcript(&self, bytes: &[u8]) -> Transcript {
        transcript::of_events(&|options, usage| self.reader(options, usage), bytes)
    }

    /// What was used since a moment (RFC 3339, UTC), if the log tells.
    fn used_since(&self, bytes: &[u8], since: &str) -> Option<TokenCounts> {
        let mut reader = self.reader(&ReaderOptions::default(), LogUse::Alone { since: Some(since) })?;
        let mut used = None;
        let mut add = |event: &AgentEvent| {
            if let AgentEvent::Tokens { delta: Some(delta), .. } = event {
                used = Some(used.unwrap_or(TokenCounts::default()).plus(*delta));
            }
        };
        reader.feed(bytes, &mut |envelope| add(&envelope.event));
        reader.flush(&mut |envelope| add(&envelope.event));
        used
    }
}

/// A reader for a run with a person at the agent's terminal. Without a log that can be followed it judges the end, and
/// that is all.
pub fn interactive_reader(agent: &dyn Agent, options: &ReaderOptions, since: Option<&str>) -> Reader {
    let log = agent.conversation_log().and_then(|log| log.reader(options, LogUse::Alone { since }));
    log.unwrap_or_else(|| Reader::new(Box::new(Nothing), options, Tally::new(Ending::Interactive, options)))
}

/// Whether what an event says is said in a log that is followed beside the output, and better: it is passed over in the
/// output then.
pub fn is_told_by_log(event: &AgentEvent) -> bool {
    matches!(
        event,
        AgentEvent::ToolStarted { .. }
            | AgentEvent::ToolFinished { .. }
            | AgentEvent::ToolFailed { .. }
            | AgentEvent::ToolDenied { .. }
            | AgentEvent::FileChanged { .. }
            | AgentEvent::Tokens { .. }
            | AgentEvent::Context { .. }
            | AgentEvent::Compaction { .. }
            | AgentEvent::Limit { .. }
    )
}

/// Reads nothing: this agent has no log that can be followed.
#[derive(Debug)]
struct Nothing;

impl StreamParser for Nothing {
    fn object(&mut self, _json: &str, _out: &mut Vec<AgentEvent>) -> LineMeta {
        LineMeta::default()
    }

    fn text(&mut self, _text: &str, _out: &mut Vec<AgentEvent>) {}

    fn knows(&self, _event_type: &str) -> bool {
        false
    }
}

/// What was there before a run is no part of it: lines are live from the first one of that moment on.
#[derive(Debug, Default)]
pub(crate) struct Live {
    since: Option<String>,
    live: bool,
}

impl Live {
    /// `since` is a moment in RFC 3339 in UTC, which is how agents write them too: they compare as texts.
    pub(crate) fn new(since: Option<&str>) -> Self {
        Self { since: since.map(ToOwned::to_owned), live: since.is_none() }
    }

    /// Whether there is anything that is no part of the run.
    pub(crate) fn is_bounded(&self) -> bool {
        self.since.is_some()
    }

    /// Whether this moment is part of the run.
    pub(crate) fn covers(&self, at: &str) -> bool {
        self.since.as_deref().is_none_or(|since| at >= since)
    }

    /// Whether a line with this time, if it has one, is part of the run.
    pub(crate) fn look(&mut self, at: Option<&str>) -> bool {
        self.live = self.live || at.is_some_and(|at| self.covers(at));
        self.live
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATED: LogLocation = LogLocation {
        variable: "X",
        home: ".x",
        below: "sessions",
        depth: 3,
        prefix: "rollout-",
        kept_open: true,
        sub_agents: None,
    };

    #[test]
    fn names() {
        let name = "rollout-2026-11-16T01-55-30-01a1-e2.jsonl";
        assert!(DATED.is_of(name, "01a1-e2"));
        for (file, id) in [
            (name, "1a1-e2"),
            (name, ""),
            ("other-01a1-e2.jsonl", "01a1-e2"),
            ("rollout-01a1-e2.jsonl.tmp", "01a1-e2"),
            ("rollout-x01a1-e2.jsonl", "01a1-e2"),
            ("rollout-a/../b.jsonl", "../b"),
        ] {
            assert!(!DATED.is_of(file, id), "{file} {id}");
        }
        let plain = LogLocation { prefix: "", ..DATED };
        assert!(plain.is_of("01a1-e2.jsonl", "01a1-e2"));
        assert!(!plain.is_of("01a1-e2.json", "01a1-e2") && !plain.is_of("x-01a1-e2.jsonl", "01a1-e2"));
    }

    #[test]
    fn roots() {
        let root = |pairs: &[(&str, &str)]| {
            let all: Vec<(String, String)> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            DATED.root(&move |name| {
                all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            })
        };
        assert_eq!(root(&[("HOME", "/h")]).as_deref(), Some("/h/.x/sessions"));
        assert_eq!(root(&[("HOME", "/h"), ("X", "/own/")]).as_deref(), Some("/own/sessions"));
        assert_eq!(root(&[("HOME", ""), ("X", "")]), None);
    }

    #[test]
    fn what_was_before_is_no_part_of_it() {
        let mut live = Live::new(Some("2026-11-16T01:55:30.804211Z"));
        assert!(!live.look(None) && !live.look(Some("2026-11-16T01:55:30.803Z")));
        assert!(live.look(Some("2026-11-16T01:55:30.805Z")));
        // Lines without a time, or a little out of order, belong to what they stand in.
        assert!(live.look(None) && live.look(Some("2026-11-16T01:55:30.100Z")));
        assert!(Live::new(None).look(None));
    }
}
