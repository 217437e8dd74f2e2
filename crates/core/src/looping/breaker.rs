//! The circuit breaker of a loop: what it counts, and when it opens.

use serde::Deserialize;
use serde::Serialize;

use super::observation::line;
use super::observation::name;
use crate::time::Timestamp;

/// Where a breaker stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerState {
    /// Work goes on.
    #[default]
    Closed,
    /// Work goes on, but the next iteration without progress may be the last.
    HalfOpen,
    /// Work stands still.
    Open,
}

impl BreakerState {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::HalfOpen => "HALF_OPEN",
            Self::Open => "OPEN",
        }
    }
}

/// What opened a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerCause {
    /// Nothing that can be measured moved.
    NoProgress,
    /// The same error again and again.
    SameError,
    /// The agent could not be started.
    StartFailures,
    /// The agent only asked.
    Questions,
    /// The agent made the same call again and again.
    IdenticalCalls,
    /// The agent went round in a circle.
    Cycles,
    /// Iterations that were much dearer than usual brought nothing.
    Spend,
}

/// What a breaker has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Breaker {
    /// Where it stands.
    pub state: BreakerState,
    /// Iterations without progress since there was some.
    pub no_progress: u32,
    /// Iterations in a row with the same error.
    pub same_error: u32,
    /// The fingerprint of that error.
    pub last_error: Option<String>,
    /// Iterations since there was progress in which all was denied.
    pub denials: u32,
    /// Starts in a row that failed.
    pub start_failures: u32,
    /// Iterations since there was progress that ended with a question.
    pub questions: u32,
    /// Iterations since there was progress with too many identical calls.
    pub identical: u32,
    /// Iterations since there was progress that went round in a circle.
    pub cycles: u32,
    /// Iterations since there was progress that were much dearer than usual.
    pub spend: u32,
    /// When it opened.
    pub opened_at: Option<Timestamp>,
    /// Why, in words.
    pub reason: Option<String>,
    /// Why, for programs.
    pub cause: Option<BreakerCause>,
    /// How often it has opened since there was progress or a person reset it.
    pub opens: u32,
    /// Whether one iteration is being tried after it was open.
    pub probing: bool,
    /// What was compared last, in words.
    pub compared: Option<String>,
}

impl Breaker {
    /// The same within bounds, whoever made it.
    pub(crate) fn bounded(mut self) -> Self {
        self.last_error.iter_mut().for_each(name);
        self.reason.iter_mut().for_each(line);
        self.compared.iter_mut().for_each(line);
        self
    }
}

/// Who moved a breaker outside an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerBy {
    /// A person.
    #[default]
    Person,
    /// The cool-down was over.
    Cooldown,
    /// What had opened it is gone.
    CauseGone,
}

impl BreakerBy {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "a person",
            Self::Cooldown => "the cool-down is over",
            Self::CauseGone => "its cause is gone",
        }
    }
}

/// One change of a breaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerChange {
    /// When.
    pub at: Timestamp,
    /// The iteration, counted over all phases.
    pub iteration: u64,
    /// From where.
    pub from: BreakerState,
    /// To where.
    pub to: BreakerState,
    /// Why.
    pub reason: String,
}
