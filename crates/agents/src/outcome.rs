//! How a run ended.

use serde::Serialize;

use crate::event::AgentEvent;
use crate::limit::Limit;
use crate::limit::LimitClass;
use crate::limit::Windows;
use crate::raw::Raw;
use crate::tokens::TokenCounts;

/// The end of a run in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// The agent says it is done, and nothing contradicts it.
    Completed,
    /// The agent says it could not, or ended with an error after all.
    Failed,
    /// The work was cut off: no final event, or one that says so. The exit code has no say in this.
    Interrupted,
    /// Ended by us because it took too long.
    TimedOut,
    /// Ended because somebody asked for it.
    Stopped,
    /// A usage limit of the provider.
    Limit,
    /// A cap on money or tokens.
    Budget,
    /// A call was refused, and nothing worked afterwards: the agent gave up on it.
    Denied,
    /// The cap on turns.
    MaxTurns,
    /// The program is not there.
    AgentMissing,
}

/// What kind of trouble an error is, as far as it decides what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Not logged in, wrong key, no right to the model.
    Authentication,
    /// Nothing left to pay with.
    Billing,
    /// A usage limit or too many requests.
    Limit,
    /// The provider is too busy.
    Overloaded,
    /// The request itself was refused.
    InvalidRequest,
    /// The conversation does not fit the context window.
    Context,
    /// The provider failed.
    Server,
    /// The connection failed.
    Network,
    /// A cap that the agent itself was given.
    Budget,
    /// Wrong arguments, configuration or session id.
    Setup,
    /// None of these, or not said.
    Unknown,
}

impl ErrorClass {
    /// Whether the same attempt may succeed soon without anybody changing anything. Of a limit only
    /// [`Limit::is_transient`] can tell: a plan's window opens at its time and not before.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Overloaded | Self::Server | Self::Network)
    }

    /// The kind of limit that an error of this class is, if nothing tells more.
    pub(crate) fn limit_class(self) -> Option<LimitClass> {
        match self {
            Self::Authentication => Some(LimitClass::Auth),
            Self::Billing => Some(LimitClass::Pay),
            Self::Limit => Some(LimitClass::Transient),
            Self::Overloaded => Some(LimitClass::Overload),
            Self::Budget => Some(LimitClass::Budget),
            Self::Setup => Some(LimitClass::Setup),
            Self::InvalidRequest | Self::Context | Self::Server | Self::Network | Self::Unknown => None,
        }
    }
}

/// Why the process ended, as the one who ran it knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// By itself, or for a reason nobody here knows.
    #[default]
    Own,
    /// It was asked to stop.
    Stopped,
    /// It ran out of time.
    TimedOut,
    /// A budget of ours was used up.
    Budget,
    /// It could not be started because the program is not there.
    Missing,
}

/// How the process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ExitInfo {
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal, if one killed it.
    pub signal: Option<i32>,
    /// Why.
    pub cause: EndCause,
    /// The last of what it wrote to stderr; often the only explanation there is.
    pub stderr: Option<String>,
}

impl ExitInfo {
    /// An exit with a code.
    pub fn code(code: i32) -> Self {
        Self { code: Some(code), ..Self::default() }
    }

    /// A death by a signal.
    pub fn signal(signal: i32) -> Self {
        Self { signal: Some(signal), ..Self::default() }
    }

    /// The program was not found.
    pub fn missing() -> Self {
        Self { cause: EndCause::Missing, ..Self::default() }
    }

    /// The same exit with another cause.
    #[must_use]
    pub fn because(mut self, cause: EndCause) -> Self {
        self.cause = cause;
        self
    }

    /// The same exit with the tail of stderr.
    #[must_use]
    pub fn with_stderr(mut self, stderr: impl Into<String>) -> Self {
        self.stderr = Some(stderr.into());
        self
    }

    /// Whether a signal ended it, directly or through a handler that exits with 128 and the signal.
    pub fn by_signal(&self) -> bool {
        self.signal.is_some() || matches!(self.code, Some(129..=159))
    }

    /// Whether it exited with 0.
    pub fn is_success(&self) -> bool {
        self.code == Some(0) && self.signal.is_none()
    }
}

/// How full the context of a conversation was at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ContextFill {
    /// Tokens of the last request and its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// How many fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Denial {
    /// The native id of the call.
    pub call_id: String,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Its input, so that a person can see what to allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Raw>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A call that was announced and never reported as ended: after a crash nobody knows what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenCall {
    /// The native id of the call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The agent's own words.
    pub text: String,
    /// What kind of trouble it is.
    pub class: ErrorClass,
    /// The HTTP status of the provider's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_status: Option<u16>,
}

impl Outcome {
    /// Adds what the agent's own log says of the windows that it ran into, where its output has only words.
    pub fn learn_windows(&mut self, told: &AgentEvent) {
        let Some(limit) = self.limit.take() else { return };
        let mut windows = Windows::default();
        windows.saw(told);
        let limit = windows.complete(limit);
        self.outcome = limit.kind_of(self.outcome).unwrap_or(self.outcome);
        self.error.iter_mut().for_each(|error| error.class = limit.class.into());
        self.limit = Some(limit);
    }
}

/// How a run ended, and what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The end in one word.
    pub outcome: OutcomeKind,
    /// Why, for a person.
    pub reason: String,
    /// The native session id, from any line that carried it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    /// Set when the agent opened another conversation than the one it was told to resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_native_id: Option<String>,
    /// The model of the main conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's last words: its result, or the last text of the main conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Final events seen.
    pub results: u64,
    /// Model turns of this run, in the agent's own counting.
    pub turns: u64,
    /// Time at work as the agent counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Time spent waiting for the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_duration_ms: Option<u64>,
    /// Tokens of this run.
    pub tokens: TokenCounts,
    /// False when a part of `tokens` is an estimate, or missing because the agent never said.
    pub tokens_exact: bool,
    /// Tokens of the whole native conversation, if the agent counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_total: Option<TokenCounts>,
    /// How full the context was, as far as the agent tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextFill>,
    /// Money of this run, by the agent's reckoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Money of the whole native conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_total_usd: Option<f64>,
    /// Tool calls announced.
    pub tool_calls: u64,
    /// Refused calls, also in a run that completed.
    pub denials: Vec<Denial>,
    /// Calls without an end.
    pub open_calls: Vec<OpenCall>,
    /// Tasks still in the background at the end.
    pub background: Vec<String>,
    /// The last error, if the run did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The limit that it ended for, of whatever kind: also one that only a person can end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Lines read, blank ones included.
    pub lines: u64,
    /// Events that were not understood (noise, oversized, unknown).
    pub unparsed: u64,
    /// The exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<i32>,
}
