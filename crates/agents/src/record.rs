//! An agent's own record of a conversation, where it is written while the agent works and tells what the output of the
//! agent does not.

use crate::event::AgentEvent;

/// Where such records are: one file for each conversation, somewhere below one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPlace {
    /// The variable that names the agent's home.
    pub home_variable: &'static str,
    /// The agent's home below that of the person, without the variable.
    pub home: &'static str,
    /// The directory of the records in the agent's home.
    pub directory: &'static str,
    /// How deep below it the files lie. The names of the directories on the way sort by their age.
    pub depth: usize,
    /// How the name of a record begins.
    pub prefix: &'static str,
    /// How it ends, after the id of the conversation.
    pub suffix: &'static str,
}

impl RecordPlace {
    /// Whether a file of this name is the record of that conversation.
    pub fn is_of(&self, file_name: &str, native_id: &str) -> bool {
        let stem = file_name.strip_prefix(self.prefix).and_then(|name| name.strip_suffix(self.suffix));
        stem.and_then(|stem| stem.strip_suffix(native_id)).is_some_and(|rest| rest.ends_with('-'))
    }
}

/// Whether what an event says is said in the record too, better: whoever follows the record passes it over in the
/// output.
pub fn is_told_by_record(event: &AgentEvent) -> bool {
    matches!(
        event,
        AgentEvent::ToolStarted { .. }
            | AgentEvent::ToolFinished { .. }
            | AgentEvent::ToolFailed { .. }
            | AgentEvent::ToolDenied { .. }
            | AgentEvent::FileChanged { .. }
            | AgentEvent::Tokens { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let place = RecordPlace {
            home_variable: "H",
            home: ".h",
            directory: "s",
            depth: 0,
            prefix: "rollout-",
            suffix: ".jsonl",
        };
        assert!(place.is_of("rollout-2026-11-16T01-50-58-0a-1b.jsonl", "0a-1b"));
        for other in
            ["rollout-2026-0a-1c.jsonl", "rollout-0a-1b.jsonl.tmp", "rollout-x0a-1b.jsonl", "0a-1b.jsonl"]
        {
            assert!(!place.is_of(other, "0a-1b"), "{other}");
        }
    }
}
