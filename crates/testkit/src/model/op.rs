//! What the model does in a turn.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::short::string_or_object;

/// One thing the model says or does. Those without a tool's name are portable: they become calls of whatever tool the
/// request declares for it.
///
/// In all texts `${last:REGEX}` stands for the last match of the expression in the conversation (its first group, if
/// it has one), such as an id that a tool gave back; `${last_int:REGEX}` alone stands for a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// Says something.
    Text(String),
    /// Thinks something.
    Thinking(String),
    /// Says this many characters.
    Fill(usize),
    /// Runs a command.
    Sh(Sh),
    /// Writes a file.
    Write {
        /// Which.
        path: String,
        /// What.
        content: String,
    },
    /// Replaces text in a file.
    Edit {
        /// Which.
        path: String,
        /// What is there.
        old: String,
        /// What shall be.
        new: String,
    },
    /// Reads a file.
    Read(String),
    /// Starts a sub-agent.
    Task {
        /// What it shall do.
        prompt: String,
        /// A title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Which kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// More fields of the call.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        extra: serde_json::Map<String, Value>,
    },
    /// Calls a tool by name.
    Tool {
        /// The name.
        name: String,
        /// The input.
        input: Value,
        /// The namespace of the tool, where it has one and the request does not say so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// The id of the call, if not a fresh one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Calls a tool that takes free text.
    Custom {
        /// The name.
        name: String,
        /// The text.
        input: String,
    },
}

/// A command. A bare string is a command without options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Sh {
    /// What to run.
    pub command: String,
    /// How long it may take, for tools that can be told. Some go on without the command when that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Run in the background, for tools that can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

string_or_object!(Sh);

impl From<String> for Sh {
    fn from(command: String) -> Self {
        Self { command, ..Self::default() }
    }
}

impl Op {
    /// Runs a command.
    pub fn sh(command: &str) -> Self {
        Self::Sh(Sh::from(command.to_owned()))
    }

    /// Writes a file.
    pub fn write(path: &str, content: &str) -> Self {
        Self::Write { path: path.to_owned(), content: content.to_owned() }
    }

    /// Starts a sub-agent.
    pub fn task(prompt: &str) -> Self {
        Self::Task {
            prompt: prompt.to_owned(),
            description: None,
            agent: None,
            extra: serde_json::Map::new(),
        }
    }
}
