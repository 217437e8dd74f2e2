//! Why a command was not carried out. Nothing was written when one of these comes back.

use crate::budget::dollars;
use crate::event::Request;
use crate::event::Unit;
use crate::id::SessionId;
use crate::status::Status;

/// A command that the rules do not allow now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The status machine has no such step.
    #[error("Cannot transition from {from} to {to}.")]
    InvalidTransition {
        /// The present status.
        from: Status,
        /// The status asked for.
        to: Status,
    },
    /// Phases move only while a session is active.
    #[error("a session that is {status} cannot change phase")]
    InvalidForPhaseAdvance {
        /// The present status.
        status: Status,
    },
    /// The command needs an active session.
    #[error("a session that is {status} cannot {doing}")]
    NotActive {
        /// The present status.
        status: Status,
        /// What was asked for, as a verb.
        doing: &'static str,
    },
    /// The session has ended.
    #[error("a session that is {status} has ended and cannot {doing}")]
    Ended {
        /// The terminal status.
        status: Status,
        /// What was asked for, as a verb.
        doing: &'static str,
    },
    /// The breaker is open and was not reset.
    #[error("the session was halted by its circuit breaker; it resumes only with a breaker reset")]
    BreakerOpen,
    /// Only a driven session can be interrupted.
    #[error("no driver holds the session, so nothing was interrupted")]
    NoDriver,
    /// The journal holds kinds of events that this program does not know.
    #[error("the journal holds {count} event(s) from a newer segno; this one may record but not drive")]
    NewerEvents {
        /// How many.
        count: u64,
    },
    /// A value that cannot be kept.
    #[error("bad {field}: {reason}")]
    BadValue {
        /// Which value.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A bounded list is full.
    #[error("too many {what}: the limit is {limit}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
    },
    /// No such thing in this session.
    #[error("no {what} {id} in this session")]
    Unknown {
        /// What kind of thing.
        what: &'static str,
        /// Its id as asked for.
        id: String,
    },
    /// Somebody is to look before work goes on.
    #[error("the session waits at breakpoint {name} and cannot {doing} before somebody has looked")]
    AtBreakpoint {
        /// Which.
        name: String,
        /// What was asked for, as a verb.
        doing: &'static str,
    },
    /// The workflow lists its phases, and this is none of them.
    #[error("workflow {workflow} has no phase {phase}; its phases are {phases}")]
    UnknownPhase {
        /// The phase asked for.
        phase: String,
        /// The workflow.
        workflow: String,
        /// Those it has, joined by commas.
        phases: String,
    },
    /// The driver was asked for another end before.
    #[error("the session's driver was asked to {} before, and does that first", request.as_str())]
    AskedBefore {
        /// What it was asked for.
        request: Request,
    },
    /// Loops of one account go on one after the other.
    #[error("{session} tries first whether the account is open again")]
    AnotherFirst {
        /// Which one tries.
        session: crate::id::SessionId,
    },
    /// All sessions of the project together have used up a cap on the day.
    #[error("{} of today is used up in this project", cap_words(*unit, *used, *total))]
    DayCap {
        /// Tokens or money.
        unit: Unit,
        /// Used so far today.
        used: u64,
        /// The allowance.
        total: u64,
    },
    /// Sessions that go on with one cap have used it up together.
    #[error("{}, which session {session} began with, is used up", cap_words(*unit, *used, *total))]
    SharedCap {
        /// The session whose cap it is.
        session: SessionId,
        /// Tokens or money.
        unit: Unit,
        /// Used so far by all of them.
        used: u64,
        /// The allowance.
        total: u64,
    },
    /// The thing is there already, or is what it should become.
    #[error("{0}")]
    Already(String),
}

impl Refusal {
    /// A value that cannot be kept.
    pub fn bad(field: &'static str, reason: impl Into<String>) -> Self {
        Self::BadValue { field, reason: reason.into() }
    }

    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidTransition { .. } => "invalid_state_transition",
            Self::InvalidForPhaseAdvance { .. } => "invalid_state_for_phase_advance",
            Self::NotActive { .. } => "not_active",
            Self::Ended { .. } => "session_ended",
            Self::BreakerOpen => "breaker_open",
            Self::NoDriver => "no_driver",
            Self::NewerEvents { .. } => "newer_events",
            Self::BadValue { .. } => "bad_value",
            Self::TooMany { .. } => "too_many",
            Self::Unknown { .. } => "unknown_item",
            Self::AtBreakpoint { .. } => "at_breakpoint",
            Self::UnknownPhase { .. } => "unknown_phase",
            Self::AskedBefore { .. } => "asked_before",
            Self::AnotherFirst { .. } => "another_first",
            Self::DayCap { .. } => "day_cap_reached",
            Self::SharedCap { .. } => "cap_reached",
            Self::Already(_) => "already",
        }
    }
}

/// A cap and what was used of it, for a sentence.
pub fn cap_words(unit: Unit, used: u64, total: u64) -> String {
    match unit {
        Unit::Tokens => format!("the token budget ({used} of {total})"),
        Unit::Cost => format!("the cost budget ({} of {})", dollars(used), dollars(total)),
    }
}
