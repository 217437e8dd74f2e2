//! The smaller parts of a session's state.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::budget::TokenUse;
use crate::event::Holder;
use crate::event::Ledger;
use crate::event::LimitSeen;
use crate::event::OptionOffered;
use crate::event::OutputKind;
use crate::event::Recovery;
use crate::event::Request;
use crate::event::RestoreKind;
use crate::event::Source;
use crate::id::CheckpointId;
use crate::id::SessionId;
use crate::time::Timestamp;

pub use super::ledger::SeenId;

/// Why a session stands where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// In a few words of ours, such as `budget reached`.
    pub what: String,
    /// In somebody's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// Which warnings were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warned {
    /// That the tokens run low.
    #[serde(default)]
    pub tokens: bool,
    /// That they ran out.
    #[serde(default)]
    pub tokens_over: bool,
    /// That the money runs low.
    #[serde(default)]
    pub cost: bool,
    /// That it ran out.
    #[serde(default)]
    pub cost_over: bool,
}

/// One window of an agent's plan, as it was last told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowMark {
    /// The agent.
    pub agent: String,
    /// The vendor's name of the window.
    pub window: String,
    /// `allowed`, `warning` or `rejected`, if that was said of this window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// How much of it is used; 1 is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// When it opens again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// The one model that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When this was told.
    pub at: Timestamp,
}

/// Tokens of one run are taken from one source, so that they are never summed twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSource {
    /// The run.
    pub run: String,
    /// The source that spoke first.
    pub source: Source,
}

/// Whose cap a session goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapFrom {
    /// The session that had it first.
    pub session: SessionId,
    /// What had been spent of it when this session began, in millionths of a dollar.
    pub micros: u64,
}

/// What a run of another session, or a session that goes on with a cap, has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BelowMark {
    /// Tokens by kind.
    #[serde(default)]
    pub tokens: TokenUse,
    /// Money, in millionths of a dollar.
    #[serde(default)]
    pub micros: u64,
}

/// That there is an output, and how large it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputMark {
    /// What it is.
    pub kind: OutputKind,
    /// Its size in bytes.
    pub bytes: u64,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    /// How many there ever were.
    #[serde(default)]
    pub added: u64,
    /// How many are done.
    #[serde(default)]
    pub done: u64,
    /// How many were dropped.
    #[serde(default)]
    pub dropped: u64,
    /// The open ones by number, each shortened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub open: BTreeMap<u64, String>,
}

/// What is known of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentMark {
    /// Whether it is one of the active ones.
    pub active: bool,
    /// Whatever it keeps.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub state: Value,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The file.
    pub file: String,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// A place where work waits for somebody to look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakpoint {
    /// Its name.
    pub name: String,
    /// Since when.
    pub since: Timestamp,
}

/// The name of the branch that decisions start on.
pub const FIRST_BRANCH: &str = "main";

/// The tree of decisions in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// How many there are.
    pub count: u64,
    /// The branch that work is on.
    pub branch: String,
    /// The newest decision of each branch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub heads: BTreeMap<String, u64>,
}

impl Default for Decisions {
    fn default() -> Self {
        Self { count: 0, branch: FIRST_BRANCH.to_owned(), heads: BTreeMap::new() }
    }
}

/// The ledger in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// How many calls there were.
    #[serde(default)]
    pub total: u64,
    /// How many ended with a result.
    #[serde(default)]
    pub completed: u64,
    /// How many ended with an error.
    #[serde(default)]
    pub failed: u64,
    /// How many were not allowed to run.
    #[serde(default)]
    pub denied: u64,
    /// The open ones by the agent's id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub open: BTreeMap<String, OpenCall>,
    /// Those that nobody knows the end of.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub in_doubt: BTreeMap<String, OpenCall>,
    /// Calls without a known end past the number that is kept here; they are in the ledger's list.
    #[serde(default)]
    pub open_beyond: u64,
    /// Short hashes of the ids of calls that ended not long ago: a late second report must not open them again.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub closed: VecDeque<u32>,
    /// Those of them that a hook said were done, and the agent's own record has not spoken of yet: some hooks tell that a
    /// call is over, but not whether it failed.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub done_by_hook: VecDeque<u32>,
    /// How often ids came, of those that came not long ago.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub seen: VecDeque<SeenId>,
    /// The name in the ledger of the call that was told of last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
}

/// A tool call without an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    /// Which tool.
    pub tool: String,
    /// The event that opened it.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// Whether it was reported before it ran.
    pub write_ahead: bool,
    /// With what, shortened.
    pub input: String,
}

/// The errors in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// How many there were.
    #[serde(default)]
    pub count: u64,
    /// The newest one's fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// How often that one came in a row.
    #[serde(default)]
    pub in_a_row: u64,
    /// What it says, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How much was recorded of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is a number of recorded things of that name")]
pub struct Counts {
    #[serde(default)]
    pub history: u64,
    #[serde(default)]
    pub artifacts: u64,
    #[serde(default)]
    pub files_created: u64,
    #[serde(default)]
    pub files_modified: u64,
    #[serde(default)]
    pub files_deleted: u64,
    #[serde(default)]
    pub milestones: u64,
    #[serde(default)]
    pub memory_queries: u64,
    #[serde(default)]
    pub memory_lookups: u64,
    #[serde(default)]
    pub checkpoints: u64,
    #[serde(default)]
    pub runs: u64,
    #[serde(default)]
    pub turns: u64,
}

/// The newest checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointMark {
    /// Its id.
    pub id: CheckpointId,
    /// The event that made it.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
}

/// Where the working tree stands among the checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMark {
    /// The checkpoint whose files the tree has, or had before what was done since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The tree of its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// Checkpoints that were undone and can be gone forward to, the next one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redo: Vec<u64>,
    /// How often something was restored.
    #[serde(default)]
    pub restores: u64,
    /// The newest restores, the last one last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub restored: VecDeque<RestoreMark>,
}

/// A restore of files: what was done between the checkpoint and it is done no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreMark {
    /// The checkpoint that was gone to.
    pub to: u64,
    /// The event that says so.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// How.
    pub kind: RestoreKind,
    /// Whether all files were meant.
    pub whole: bool,
}

/// The newest run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMark {
    /// Its id.
    pub id: String,
    /// Which agent.
    pub agent: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's own id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    /// The process.
    pub pid: u32,
    /// When that process started, in clock ticks since boot.
    pub process_start: u64,
    /// The fencing number of the driver that adopted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<u64>,
    /// How far the record of its tool calls can be trusted.
    #[serde(default)]
    pub ledger: Ledger,
    /// Where it works.
    #[serde(default)]
    pub directory: String,
    /// A person has its terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    /// The event that started it.
    pub seq: u64,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Turns it completed.
    #[serde(default)]
    pub turns: u64,
    /// The session whose agent started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<SessionId>,
    /// What its session had used before it.
    #[serde(default)]
    pub before: BelowMark,
    /// Tokens of it whose cost nobody has told and no price list was asked for.
    #[serde(default)]
    pub unpriced: TokenUse,
    /// What was reckoned of its cost by a price list, in millionths of a dollar, and not told by the agent since.
    #[serde(default)]
    pub list_micros: u64,
    /// It was in another store, before the session was imported: its conversation may be on another machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// The limit that it ended for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<LimitSeen>>,
}

impl RunMark {
    /// The conversation that can be opened again. An earlier version wrote `?` for one that the agent did not name.
    pub fn conversation(&self) -> Option<&str> {
        self.native_id.as_deref().filter(|id| !id.is_empty() && *id != "?")
    }

    /// Whether all this is known of it already.
    pub fn is_named(&self, native_id: &str, model: Option<&str>, version: Option<&str>) -> bool {
        self.native_id.as_deref() == Some(native_id)
            && (model.is_none() || self.model.as_deref() == model)
            && (version.is_none() || self.version.as_deref() == version)
    }

    /// Whether its end was not recorded yet.
    pub fn is_running(&self) -> bool {
        self.ended_at.is_none()
    }
}

/// The newest stop that work can be taken up after, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryMark {
    /// When it stopped.
    pub interrupted_at: Timestamp,
    /// Why, in a few words of ours.
    pub interrupt_reason: String,
    /// Where work was then.
    pub last_known_state: LastKnown,
    /// How many calls nobody knew the end of.
    #[serde(default)]
    pub in_doubt: u64,
    /// How many of those were found out about since.
    #[serde(default)]
    pub settled: u64,
    /// The ways to go on that were offered when one was chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<OptionOffered>,
    /// Which one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_type: Option<Recovery>,
    /// What was gone on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_at: Option<Timestamp>,
    /// How often it was taken up again without anybody asking for it.
    #[serde(default)]
    pub attempts: u64,
}

/// Where work was when it stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastKnown {
    /// The phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The turn of the loop.
    #[serde(default)]
    pub iteration: u64,
    /// Who worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What was last done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What last went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Who drives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// The fencing number.
    pub epoch: u64,
    /// Who.
    pub holder: Holder,
    /// Since when.
    pub since: Timestamp,
}

/// What was asked of the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRequest {
    /// The event that asked.
    pub seq: u64,
    /// What.
    pub request: Request,
    /// In their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// A question that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Its name: a hash of the whole input, among others.
    pub id: String,
    /// The event that asked.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// When the run gives up waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The tool.
    pub tool: String,
    /// The beginning of its input.
    pub input: String,
    /// The answer, until the run has heard it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<GivenAnswer>,
}

/// What a person said to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAnswer {
    /// Whether the call may run.
    pub allow: bool,
    /// What the agent is told along with a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// From where it was answered.
    pub by: String,
}
