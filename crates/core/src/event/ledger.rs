//! Tool calls: each is open until its end is known, and in doubt if it never will be.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use super::Source;
use crate::text::Text;

/// A tool call began, or was about to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolStarted {
    /// The agent's own id of the call.
    pub call: String,
    /// Which tool.
    pub tool: String,
    /// With what.
    pub input: Value,
    /// Whether this was reported before the call ran.
    pub write_ahead: bool,
    /// Who says so.
    pub source: Source,
    /// Ids may come again: a second start from the same source is a second call. Journals of earlier versions do not
    /// say so, and there an id is one call for ever.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recurs: bool,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// With a result.
    Completed,
    /// With an error.
    Failed,
    /// It was not allowed to run.
    Denied,
    /// Nobody knows whether it ran to its end.
    InDoubt,
}

impl CallEnd {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::InDoubt => "in_doubt",
        }
    }
}

/// A tool call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEnded {
    /// The agent's own id of the call.
    pub call: String,
    /// Which tool, for a call whose start was never seen.
    pub tool: Option<String>,
    /// How.
    pub end: CallEnd,
    /// What came back.
    pub output: Option<Text>,
    /// Who says so.
    pub source: Source,
    /// Where it is written that it ended so, if it was found out afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// As for the start: of calls with the same id it is the one that this source tells of now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recurs: bool,
}
