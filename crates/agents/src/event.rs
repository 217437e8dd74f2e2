//! What a coding agent did, in words that belong to no vendor.
//!
//! The JSON of [`AgentEvent`] is stable: a `"kind"` in snake_case, fields only added, absent when unknown. No field may
//! be called like one of [`Envelope`](crate::Envelope): both are written into one object.

use serde::Serialize;

use crate::limit::Limit;
use crate::limit::LimitClass;
use crate::outcome::ErrorClass;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::tokens::TokenCounts;

pub(crate) use crate::event_parts::By;
pub(crate) use crate::event_parts::ChangeKind;
pub(crate) use crate::event_parts::CompactionPhase;
pub(crate) use crate::event_parts::HookPhase;
pub(crate) use crate::event_parts::InputSource;
pub(crate) use crate::event_parts::LimitStatus;
pub(crate) use crate::event_parts::LimitWindow;
pub(crate) use crate::event_parts::PartialPart;
pub(crate) use crate::event_parts::PlanItem;

/// One thing that happened in an agent.
///
/// `parent` is the call id of the sub-agent call an event belongs to; absent for the main conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "the fields are named after what they hold; the variants say what is not plain"
)]
pub enum AgentEvent {
    /// A conversation was opened. An agent may say so several times in one process.
    SessionStarted {
        native_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        permission_mode: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
    },
    /// The agent began to work on a prompt.
    TurnStarted,
    /// The agent wrote text.
    Text {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The agent reasoned in the open.
    Thinking {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A piece of a message still being written. The whole follows as its own event: never append both.
    Partial {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        part: PartialPart,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// Text that reached the model from outside it: an echoed prompt, the harness, a sub-agent's task.
    Input {
        source: InputSource,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool call was announced. It may still be refused.
    ToolStarted {
        call_id: String,
        tool: String,
        input: Raw,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool call ended well. `background` names the task that goes on after it.
    ToolFinished {
        call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        output: Raw,
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        background: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool call ended badly. When `interrupted`, it was cut off while it ran and may have had effects.
    ToolFailed {
        call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        error: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        interrupted: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool call was refused and did not run.
    ToolDenied {
        call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        reason: String,
        by: By,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The agent asks whether a call may run.
    PermissionRequested {
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        tool: String,
        input: Raw,
    },
    /// A file was changed by a tool of the agent (not by commands it ran: those nobody reports).
    FileChanged {
        path: String,
        change: ChangeKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        moved_to: Option<String>,
    },
    /// A sub-agent began.
    SubAgentStarted {
        agent_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        background: bool,
    },
    /// A sub-agent ended.
    SubAgentStopped {
        agent_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        status: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// A command became a task of its own; in the background it outlives its call and the turn.
    TaskStarted {
        task_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        task_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        background: bool,
    },
    /// A task ended.
    TaskStopped {
        task_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        status: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// All that runs in the background from now on.
    Background { tasks: Vec<String> },
    /// The agent ran a hook.
    Hook {
        event: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        hook_id: Option<String>,
        phase: HookPhase,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    /// The conversation was shortened to fit the context window.
    Compaction {
        phase: CompactionPhase,
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens_before: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens_after: Option<u64>,
    },
    /// A request to the model failed and is tried again.
    Retry {
        attempt: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        api_status: Option<u16>,
        error: String,
    },
    /// The state of the plan's usage limits. Times are epoch seconds.
    Limit {
        status: LimitStatus,
        /// What kind of limit refuses, where requests are refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<LimitClass>,
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        utilization: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        resets_at: Option<i64>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        windows: Vec<LimitWindow>,
        /// The one model whose window it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        overage: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        overage_disabled_reason: Option<String>,
        /// Money is spent beyond the plan.
        #[serde(skip_serializing_if = "Option::is_none")]
        using_overage: Option<bool>,
    },
    /// A sign of life: a heartbeat of a long call, thinking that goes on, a task's progress.
    Progress {
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        what: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        elapsed_seconds: Option<f64>,
        heartbeat: bool,
    },
    /// The agent says what it is doing: `running`, `idle`, `requesting`…
    State { state: String },
    /// The agent's list of steps.
    Plan { items: Vec<PlanItem> },
    /// A message for the person, not for the record of the work: warnings, hints.
    Notice { level: String, text: String },
    /// What one message cost, as far as known while it streams. An estimate for a run that dies before its result:
    /// never add it to [`AgentEvent::Tokens`].
    MessageUsage { message_id: String, tokens: TokenCounts },
    /// How full the conversation's context is: tokens of the last request and its answer, and how many fit.
    Context {
        #[serde(skip_serializing_if = "Option::is_none")]
        used: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
    },
    /// Tokens used. `delta` is what is new since the last such event of this run and model: sum it, or take the last
    /// `total`, never both. No `delta` means that only the conversation's total is known.
    Tokens {
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        delta: Option<TokenCounts>,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<TokenCounts>,
    },
    /// Money spent by the agent's own reckoning; `delta_usd` and `total_usd` as for tokens.
    Cost {
        #[serde(skip_serializing_if = "Option::is_none")]
        delta_usd: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        total_usd: Option<f64>,
    },
    /// Something went wrong. Whether it ended the run is said by the result.
    Error {
        message: String,
        class: ErrorClass,
        #[serde(skip_serializing_if = "Option::is_none")]
        api_status: Option<u16>,
        #[serde(skip_serializing_if = "Option::is_none")]
        limit: Option<Box<Limit>>,
    },
    /// The agent finished with a prompt, well or badly. More turns may follow in the same process.
    TurnCompleted {
        turn: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        steps: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        api_duration_ms: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<String>,
    },
    /// The agent's own verdict on a turn.
    Result {
        verdict: OutcomeKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        api_status: Option<u16>,
    },
    /// The agent's control protocol, for whoever speaks it; kept as it came.
    Control { raw: Raw },
    /// A line that is no event of the agent.
    Noise { text: String },
    /// A line longer than the reader's limit; only its ends are kept.
    Oversized { bytes: u64, head: String, tail: String },
    /// A well-formed event nobody here understands, kept as it came.
    Unknown { raw: Raw },
}

impl AgentEvent {
    /// A call of the main conversation is about to run.
    pub(crate) fn call_started(call_id: String, tool: String, input: Raw) -> Self {
        Self::ToolStarted { call_id, tool, input, message_id: None, parent: None }
    }

    /// Whether the line behind this event was not understood.
    pub fn is_unparsed(&self) -> bool {
        matches!(self, Self::Noise { .. } | Self::Oversized { .. } | Self::Unknown { .. })
    }
}
