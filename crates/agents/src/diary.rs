//! Where agents keep their own record of a conversation while it goes on.
//!
//! An agent that has the terminal for itself prints for a person, not for us. Its record says the same in lines.

use crate::event::AgentEvent;
use crate::reader::{Machine, Stamp};

/// Where the records of an agent are and what they are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiaryPlace {
    /// The variable that names the agent's own directory.
    pub variable: &'static str,
    /// That directory in the person's home, when the variable is not set.
    pub home: &'static str,
    /// The directory of the records in it.
    pub below: &'static str,
    /// How many directories there are between that one and a record.
    pub depth: usize,
    /// What a record's name begins with; it ends with the conversation's id and `.jsonl`.
    pub before: &'static str,
    /// The agent keeps the record open while it writes it, and does not tell beforehand which it will be.
    pub kept_open: bool,
}

impl DiaryPlace {
    /// Whether a file of this name is the record of the conversation.
    pub fn is_of(&self, file: &str, id: &str) -> bool {
        !id.is_empty()
            && self.is_record(file)
            && file.strip_suffix(".jsonl").is_some_and(|name| {
                name.strip_suffix(id).is_some_and(|rest| rest.is_empty() || rest.ends_with('-'))
            })
    }

    /// Whether a file of this name is a record at all.
    pub fn is_record(&self, file: &str) -> bool {
        file.starts_with(self.before) && file.ends_with(".jsonl")
    }
}

/// Reads nothing: this agent's record cannot be followed.
#[derive(Debug)]
pub(crate) struct Untold;

impl Machine for Untold {
    fn object(&mut self, _json: &str, _out: &mut Vec<AgentEvent>) -> Stamp {
        Stamp::default()
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

    #[test]
    fn names() {
        let place = DiaryPlace {
            variable: "X",
            home: ".x",
            below: "sessions",
            depth: 3,
            before: "rollout-",
            kept_open: true,
        };
        assert!(place.is_of("rollout-2026-11-16T01-55-30-01a1-e2.jsonl", "01a1-e2"));
        assert!(!place.is_of("rollout-2026-11-16T01-55-30-01a1-e2.jsonl", "1a1-e2"), "half an id is none");
        assert!(!place.is_of("rollout-2026-11-16T01-55-30-01a1-e2.jsonl", ""));
        assert!(!place.is_of("other-01a1-e2.jsonl", "01a1-e2"));
        let plain = DiaryPlace { before: "", ..place };
        assert!(plain.is_of("01a1-e2.jsonl", "01a1-e2") && !plain.is_of("01a1-e2.json", "01a1-e2"));
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
