//! The verdict on an iteration: exactly one, in a fixed order.

use serde::Deserialize;
use serde::Serialize;

use super::observation::Asked;
use super::state::ParkReason;
use crate::time::Timestamp;

/// What follows from an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum LoopVerdict {
    /// One more iteration of the same phase.
    Continue {
        /// Why the phase is not done.
        why: String,
    },
    /// The phase is done; the next one begins.
    NextPhase {
        /// Which.
        to: String,
    },
    /// The last phase is done, and with it the work.
    Complete,
    /// The work was rejected and goes back.
    BackTo {
        /// The phase.
        phase: String,
        /// Why.
        why: String,
        /// The how-manieth time, from 1.
        attempt: u32,
    },
    /// Somebody asked for it.
    Stopped {
        /// What they asked for.
        how: Asked,
    },
    /// A cap is reached.
    Cap {
        /// Which.
        which: CapKind,
        /// In words.
        why: String,
    },
    /// The breaker is open.
    Halt {
        /// Why.
        why: String,
    },
    /// The loop waits without a process.
    Park {
        /// Until when.
        until: Timestamp,
        /// What it waits for.
        class: ParkReason,
        /// Why, in words.
        why: String,
    },
    /// The loop tries again soon.
    BackOff {
        /// When.
        until: Timestamp,
        /// Why, in words.
        why: String,
    },
    /// Only a person can help.
    NeedsPerson {
        /// With what.
        need: PersonNeed,
        /// In words.
        why: String,
    },
    /// Another agent goes on.
    HandOver {
        /// Which.
        to: String,
        /// Why.
        why: String,
    },
}

/// Which cap was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapKind {
    /// Iterations of the loop.
    Iterations,
    /// Iterations of the phase.
    PhaseIterations,
    /// Time of the loop.
    Seconds,
    /// Time of the phase.
    PhaseSeconds,
    /// Tokens of one iteration.
    IterationTokens,
    /// Money of one iteration.
    IterationMoney,
    /// Tokens of the day.
    DayTokens,
    /// Money of the day.
    DayMoney,
    /// A budget of the session.
    Budget,
    /// A share of the account's plan that is to be left.
    Plan,
}

impl CapKind {
    /// Whether more iterations or time would help, not more tokens or money.
    pub fn is_count(self) -> bool {
        match self {
            Self::Iterations | Self::PhaseIterations | Self::Seconds | Self::PhaseSeconds => true,
            Self::IterationTokens
            | Self::IterationMoney
            | Self::DayTokens
            | Self::DayMoney
            | Self::Budget
            | Self::Plan => false,
        }
    }
}

/// What a person is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonNeed {
    /// Money.
    Pay,
    /// A login or a key.
    Auth,
    /// The agent has to be set up.
    Setup,
    /// Rights: all that the agent tried was denied.
    CannotAct,
    /// A look before the next phase.
    Breakpoint,
    /// An answer.
    Question,
    /// The work was rejected too often.
    Escalated,
    /// A limit that did not end, or whose end nobody knows.
    Limit,
}

impl PersonNeed {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pay => "payment",
            Self::Auth => "login",
            Self::Setup => "setup",
            Self::CannotAct => "rights",
            Self::Breakpoint => "a look",
            Self::Question => "an answer",
            Self::Escalated => "a decision",
            Self::Limit => "a limit",
        }
    }
}

impl LoopVerdict {
    /// The word that is shown, such as `goes on`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Continue { .. } => "goes on",
            Self::NextPhase { .. } => "next phase",
            Self::Complete => "completed",
            Self::BackTo { .. } => "goes back",
            Self::Stopped { .. } => "stopped",
            Self::Cap { .. } => "cap reached",
            Self::Halt { .. } => "halted",
            Self::Park { .. } => "parked",
            Self::BackOff { .. } => "backs off",
            Self::NeedsPerson { .. } => "needs you",
            Self::HandOver { .. } => "hands over",
        }
    }

    /// Whether the loop takes another iteration without anybody doing anything or time passing.
    pub fn goes_on(&self) -> bool {
        match self {
            Self::Continue { .. } | Self::NextPhase { .. } | Self::BackTo { .. } | Self::HandOver { .. } => {
                true
            }
            Self::Complete
            | Self::Stopped { .. }
            | Self::Cap { .. }
            | Self::Halt { .. }
            | Self::Park { .. }
            | Self::BackOff { .. }
            | Self::NeedsPerson { .. } => false,
        }
    }
}
