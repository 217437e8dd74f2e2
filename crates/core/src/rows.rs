//! Rows of the long lists as values.
//!
//! A row is laid together by the events of years and of programs of different ages, so every field has a value that
//! stands for "not written then", and what a newer program added is carried along in `more`. Reading a row never fails
//! for a field that is missing; adding a field is safe.

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;
use serde_json::Value;

use crate::budget::TokenUse;
use crate::event::ConversationMark;
use crate::event::HeadMark;
use crate::event::SnapshotMark;
use crate::project::List;
use crate::text::Text;
use crate::time::Timestamp;

/// A row of a list, as a value.
pub trait Row: DeserializeOwned {
    /// The list that it is of.
    const LIST: List;

    /// A row as it is kept, of whatever age. None if it is damaged: no object, or a field that is not what it should be.
    fn read(body: &Value) -> Option<Self> {
        body.as_object()?;
        serde_json::from_value(body.clone()).ok()
    }
}

/// One tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolRow {
    /// Its id.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// What it was given.
    pub input: Value,
    /// Where it stands: open, completed, failed, denied or in doubt.
    pub state: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Whether it was recorded before it ran.
    pub write_ahead: bool,
    /// The run it belongs to.
    pub run: Option<String>,
    /// The phase then.
    pub phase: Option<String>,
    /// The beginning of what it put out.
    pub output: Option<Text>,
    /// How much that was.
    pub output_bytes: Option<u64>,
    /// How its end was found out, if it was found out later.
    pub evidence: Option<String>,
    /// What a newer program added.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One agent process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRow {
    /// Its id.
    pub run: String,
    /// The agent.
    pub agent: String,
    /// The agent's version.
    pub version: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The agent's own id of the conversation.
    pub native_id: Option<String>,
    /// Running or ended.
    pub state: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The arguments that were given to the agent.
    pub args: Vec<String>,
    /// The variables that the agent had.
    pub environment: Value,
    /// How it ended.
    pub outcome: Option<String>,
    /// What it used.
    pub tokens: Option<TokenUse>,
    /// The rest of what is known of its start and end.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One file that changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileRow {
    /// Its path.
    pub path: String,
    /// How it changed last.
    pub change: String,
    /// When.
    pub changed_at: Option<Timestamp>,
    /// By which call.
    pub call: Option<String>,
    /// The phase then.
    pub phase: Option<String>,
    /// What a newer program added.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One thing to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRow {
    /// Its number.
    pub task: u64,
    /// What is to be done.
    pub text: Option<Text>,
    /// Open, done or dropped.
    pub state: String,
    /// When it was added.
    pub added_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What a newer program added.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointRow {
    /// Its id.
    pub id: String,
    /// Its number.
    pub ordinal: u64,
    /// Its name.
    pub name: String,
    /// Why it was made.
    pub reason: String,
    /// The event that set it.
    pub seq: u64,
    /// When.
    pub created_at: Timestamp,
    /// The phase then.
    pub phase: Option<String>,
    /// The step then.
    pub step: Option<u32>,
    /// How much had been done in all, if that was counted then.
    pub actions: Option<u64>,
    /// Whether all of it is on disk.
    pub ready: bool,
    /// False after a rollback to an earlier one.
    pub valid: bool,
    /// The one that was rolled back to.
    pub invalidated_by: Option<u64>,
    /// Whether it stays whatever the rules say.
    pub pinned: bool,
    /// Whether it was made only so that a restore can be undone.
    pub aside: bool,
    /// The one that the tree was at before.
    pub parent: Option<u64>,
    /// The files.
    pub snapshot: Option<SnapshotMark>,
    /// The conversation.
    pub conversation: Option<ConversationMark>,
    /// The repository.
    pub head: Option<HeadMark>,
    /// Over all of it.
    pub checksum: String,
    /// Why it has no files.
    pub problem: Option<Text>,
    /// Why its files were given up.
    pub dropped: Option<String>,
}

impl CheckpointRow {
    /// Whether a turn can be taken back to it.
    pub fn begins_a_turn(&self) -> bool {
        self.reason == "run_start"
    }
}

impl Default for CheckpointRow {
    fn default() -> Self {
        Self {
            id: String::new(),
            ordinal: 0,
            name: String::new(),
            reason: String::new(),
            seq: 0,
            created_at: Timestamp::from_micros(0),
            phase: None,
            step: None,
            actions: None,
            ready: false,
            // Only a rollback makes it otherwise.
            valid: true,
            invalidated_by: None,
            pinned: false,
            aside: false,
            parent: None,
            snapshot: None,
            conversation: None,
            head: None,
            checksum: String::new(),
            problem: None,
            dropped: None,
        }
    }
}

macro_rules! rows {
    ($($row:ty = $list:ident),* $(,)?) => {
        $(impl Row for $row {
            const LIST: List = List::$list;
        })*
    };
}

rows! {
    ToolRow = Tools,
    RunRow = Runs,
    FileRow = Files,
    TaskRow = Tasks,
    CheckpointRow = Checkpoints,
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
