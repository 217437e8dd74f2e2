//! What the work brought about.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::text::Text;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Created,
    /// It is different.
    Modified,
    /// It is gone.
    Deleted,
}

impl Change {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// A file that counts as a result was created or modified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRecorded {
    /// Where, relative to the project.
    pub path: String,
    /// Created or modified.
    pub artifact_type: Change,
    /// In which phase.
    pub phase: Option<String>,
}

/// A file changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChanged {
    /// Where.
    pub path: String,
    /// How.
    pub change: Change,
    /// By which tool call, if known.
    pub call: Option<String>,
}

/// Somebody wrote a line into the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryNoted {
    /// What happened, in a word or a few.
    pub action: String,
    /// In which phase, if not the present one.
    pub phase: Option<String>,
    /// More about it.
    pub details: Option<Text>,
}

/// What an output is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// A document, such as a specification.
    #[default]
    Document,
    /// A list of code files, or one of them.
    Code,
    /// Something unfinished.
    Partial,
}

/// A named output was kept; a second one of the same name replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRecorded {
    /// Its name, such as `architecture`.
    pub name: String,
    /// What it is.
    pub kind: OutputKind,
    /// It.
    pub content: Text,
}

/// A number or a flag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// Such as a test coverage.
    Number(f64),
    /// Such as whether the build passes.
    Flag(bool),
}

impl Serialize for Metric {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            // Whole numbers are written as such: 87, not 87.0.
            Self::Number(n) if n.fract() == 0.0 && n.abs() < 9.0e15 => serializer.serialize_i64(*n as i64),
            Self::Number(n) => serializer.serialize_f64(*n),
        }
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(flag) => Ok(Self::Flag(flag)),
            Value::Number(n) => n
                .as_f64()
                .filter(|n| n.is_finite())
                .map(Self::Number)
                .ok_or_else(|| serde::de::Error::custom("a metric wants a finite number")),
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err(serde::de::Error::custom("a metric wants a number, true or false"))
            }
        }
    }
}

/// A metric has a new value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSet {
    /// Its name, such as `test_coverage`.
    pub name: String,
    /// Its value.
    pub value: Metric,
}

/// Something is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAdded {
    /// Its number in the session, from 1.
    pub task: u64,
    /// What.
    pub text: Text,
}

/// A task is off the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnded {
    /// Its number.
    pub task: u64,
    /// Done, or dropped undone.
    pub done: bool,
}

/// Another agent works on the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSwitched {
    /// Who worked before.
    pub from: Option<String>,
    /// Who works now.
    pub to: String,
}

/// An agent keeps something of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentStateSet {
    /// Which agent.
    pub agent: String,
    /// Whether it is one of the active ones.
    pub active: bool,
    /// Whatever it keeps.
    pub state: Value,
}

/// Work went to a place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionSet {
    /// The file; none when work left it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u64>,
}

/// A milestone was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MilestoneReached {
    /// Its name.
    pub name: String,
    /// More about it.
    pub details: Option<Text>,
}

/// Work waits for somebody to look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointReached {
    /// Its name.
    pub name: String,
    /// What to look at.
    pub details: Option<Text>,
}

/// Somebody looked, and work goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointContinued {
    /// Its name.
    pub name: String,
    /// What they said.
    pub details: Option<Text>,
}

/// A decision was made: a node of the tree of decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionMade {
    /// Its number in the session, from 1.
    pub decision: u64,
    /// The decision it follows from.
    pub parent: Option<u64>,
    /// The branch it is on.
    pub branch: String,
    /// What was to be decided.
    pub question: Text,
    /// What was chosen.
    pub choice: Text,
    /// Why.
    pub reason: Option<Text>,
    /// What was not chosen.
    pub alternatives: Vec<Text>,
}

/// Work goes on along another branch of decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchSwitched {
    /// Which.
    pub branch: String,
    /// The decision it grows from, for a new branch.
    pub from: Option<u64>,
}

/// How a memory was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryUse {
    /// A question to a long-term memory.
    Query,
    /// A look-up in documentation.
    Lookup,
}

/// A memory was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUsed {
    /// How.
    pub usage: MemoryUse,
    /// Which memory, such as a bank or a library.
    pub source: Option<String>,
    /// What was asked.
    pub query: Text,
    /// What came back.
    pub result: Option<Text>,
}

/// Something was put into the session's own cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheSet {
    /// Under which key.
    pub key: String,
    /// What.
    pub value: Value,
}

/// Something was taken out of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheRemoved {
    /// Which key.
    pub key: String,
}

/// Something went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecorded {
    /// What was said.
    pub message: Text,
    /// What kind of error, such as `tool` or `api`.
    pub error_kind: Option<String>,
    /// In which phase.
    pub phase: Option<String>,
    /// In which iteration.
    pub iteration: u64,
    /// The same for the same error, whatever its line numbers, addresses, times, paths and ids.
    pub fingerprint: String,
    /// Whether it is a line of the history too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub history: bool,
}
