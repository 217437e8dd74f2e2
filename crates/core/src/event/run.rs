//! Runs: one agent process inside a session, what it said and how it ended.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::budget::TokenUse;
use crate::event::LimitSeen;
use crate::id::SessionId;
use crate::text::Text;
use crate::time::Timestamp;

/// Whether tool calls are known before they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ledger {
    /// A hook reports each call before it runs.
    WriteAhead,
    /// The agent's output tells of calls, maybe late.
    #[default]
    Observed,
}

impl Ledger {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WriteAhead => "write-ahead",
            Self::Observed => "observed",
        }
    }
}

/// An agent was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The run's id.
    pub run: String,
    /// Which agent.
    pub agent: String,
    /// Its version, if it said one.
    pub version: Option<String>,
    /// The agent's own id of the conversation, if it is known beforehand.
    pub native_id: Option<String>,
    /// The conversation it goes on from or is a copy of.
    pub resumed: Option<String>,
    /// The process.
    pub pid: u32,
    /// When that process started, in clock ticks since boot.
    pub process_start: u64,
    /// How far the record of its tool calls can be trusted.
    pub ledger: Ledger,
    /// What it was asked.
    pub prompt: Option<Text>,
    /// The command line, without the prompt.
    pub command: Vec<String>,
    /// What was passed on of the environment, as far as it is known to hold no secrets.
    #[serde(default)]
    pub environment: Value,
    /// Where it works.
    pub directory: String,
    /// A person had its terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    /// Arguments that somebody gave by hand for this run alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The file that says what is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The item of a tracker that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item: Option<WorkItemMark>,
    /// The session whose agent started it: what it uses counts there too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<SessionId>,
    /// The prompt tells where work stands; what is to be done was said before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub briefed: bool,
}

/// An item of a tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkItemMark {
    /// The tracker's id.
    pub id: String,
    /// What it is about.
    pub title: String,
}

/// The agent said who it is. It may do so several times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunNamed {
    /// The run's id.
    pub run: String,
    /// The agent's own id of the conversation.
    pub native_id: String,
    /// The model.
    pub model: Option<String>,
    /// The agent's version.
    pub version: Option<String>,
}

/// Another driver follows a run whose driver died.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAdopted {
    /// The run's id.
    pub run: String,
    /// The fencing number of the new driver; what the agent's hooks still carry counts as this one.
    pub epoch: u64,
}

/// An agent's process ended, and what is known of how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// The run's id.
    pub run: String,
    /// The end in one word: `completed`, `failed`, `interrupted`, `timed_out`, `stopped`, `limit`, `budget`,
    /// `denied`, `max_turns` or `agent_missing`.
    pub outcome: String,
    /// Why, for a person.
    pub reason: Text,
    /// The agent's own id of the conversation.
    pub native_id: Option<String>,
    /// The exit code, if it exited by itself.
    pub exit_code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Turns, in the agent's own counting.
    pub turns: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// Tokens of this run.
    pub tokens: TokenUse,
    /// Whether a part of that is an estimate, or was never told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// What it cost by the agent's reckoning.
    pub cost_micros: Option<u64>,
    /// How many calls were refused.
    pub denials: u64,
    /// How many lines of its output were not understood; they are kept as reports.
    pub unparsed: u64,
    /// How many of its processes were still there and were ended.
    pub swept: u64,
    /// The agent's last words.
    pub text: Option<Text>,
    /// What went wrong, in the agent's words.
    pub error: Option<Text>,
    /// The last of what it wrote to standard error.
    pub stderr: Option<Text>,
    /// When it was last known to live, for one whose end was found out later. None: when that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// How full the context of its conversation was, if the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextFill>,
    /// The limit that it ended for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<LimitSeen>>,
    /// The model that worked, if the agent named it only beside what it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// How full the context of a conversation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextFill {
    /// Tokens in it.
    pub used: u64,
    /// Tokens that fit.
    pub window: u64,
}

impl ContextFill {
    /// In per cent, 100 at most.
    pub fn percent(self) -> Option<u8> {
        let percent = self.used.saturating_mul(100).checked_div(self.window)?;
        u8::try_from(percent.min(100)).ok()
    }
}

/// Where something was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// To everybody.
    Text,
    /// To itself.
    Thinking,
    /// To the agent.
    Input,
}

/// Something was said in the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Where.
    pub channel: Channel,
    /// What.
    pub text: Text,
    /// The agent's own id of the message.
    pub message: Option<String>,
    /// The call of the sub-agent that said it; none for the agent itself.
    pub parent: Option<String>,
}

/// The agent finished with a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCompleted {
    /// Which turn of the run, from 1.
    pub turn: u64,
    /// Model requests in it.
    pub steps: Option<u64>,
    /// How long it took.
    pub duration_ms: Option<u64>,
}

/// Something else that the agent, or whoever watches it, reported; kept as it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// What, such as `retry`, `limit`, `compaction`, `watchdog` or `unknown`.
    pub what: String,
    /// All of it.
    pub body: Value,
}
