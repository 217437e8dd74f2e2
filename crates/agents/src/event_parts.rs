//! The small vocabularies inside events.

use serde::Deserialize;
use serde::Serialize;

/// What a piece of a streaming message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartialPart {
    /// Visible text.
    Text,
    /// Reasoning.
    Thinking,
    /// The JSON of a tool's input.
    ToolInput,
}

/// Who put text in front of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InputSource {
    /// The person or program that drives the agent.
    User,
    /// The agent's own machinery: hook feedback, summaries, notices of interruption.
    Harness,
    /// An echo of what was sent on stdin.
    Replay,
    /// The task a sub-agent was given.
    SubAgent,
}

/// Who refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The permission rules of the agent, for lack of an approval.
    Rules,
    /// A hook.
    Hook,
    /// A person who was asked.
    User,
    /// The agent did not say.
    Unknown,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Created,
    /// Its content changed, or it was written without knowing whether it was there before.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Moved,
}

/// Where in its life a hook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPhase {
    /// It was started.
    Started,
    /// It says it is still running.
    Running,
    /// It ended.
    Finished,
    /// It is the payload itself, received by us.
    Received,
}

/// Where a compaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionPhase {
    /// It began.
    Started,
    /// The conversation is shorter now.
    Finished,
    /// It did not work.
    Failed,
}

/// How a usage limit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitStatus {
    /// Far from the limit.
    Allowed,
    /// Near it.
    Warning,
    /// Over it: requests are refused until it resets.
    Rejected,
    /// A word of the vendor's that is not known here.
    Unknown,
}

/// One usage window of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitWindow {
    /// The vendor's name, such as `five_hour`.
    pub name: String,
    /// Used share, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Epoch seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
}

/// One step of an agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanItem {
    /// What is to be done.
    #[serde(default)]
    pub text: String,
    /// Whether it is done.
    #[serde(default, alias = "completed")]
    pub done: bool,
}
