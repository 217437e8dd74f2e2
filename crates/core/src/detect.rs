//! What to do about the session that is there already: take it up, begin another one, or offer a reset.
//!
//! A session never expires by age. It counts no more for one of four reasons, asked in this order: its breaker is open,
//! its work has ended, other work is asked for, or its record is damaged.

use serde::Serialize;

use crate::id::SessionId;
use crate::state::State;
use crate::status::Status;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Begin a new session.
    CreateNew,
    /// Take the session up again, if the user likes.
    OfferResume,
    /// Close its breaker, or begin anew, if the user likes.
    OfferReset,
    /// Somebody is at work in it: look on, or wait.
    Attach,
}

impl Action {
    /// The word that is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CreateNew => "create_new",
            Self::OfferResume => "offer_resume",
            Self::OfferReset => "offer_reset",
            Self::Attach => "attach",
        }
    }
}

/// Why a session counts no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expired {
    /// Its circuit breaker is open.
    BreakerOpen,
    /// Its work has ended.
    Ended,
    /// Other work is asked for.
    OtherWork,
    /// Its record is damaged.
    Corrupted,
}

/// The session that is there.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Which.
    pub session: SessionId,
    /// Its state, if it can be read.
    pub state: Option<&'a State>,
    /// What is wrong with its record.
    pub problems: &'a [String],
    /// Whether somebody drives it now.
    pub driven: bool,
}

/// What was found, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Detection {
    /// Whether there is a session at all.
    pub found: bool,
    /// What to do.
    pub action: Action,
    /// Why, unless it can simply be taken up.
    pub reason: Option<String>,
    /// Which of the four reasons it is.
    pub expired: Option<Expired>,
    /// The session.
    pub session: Option<SessionId>,
}

/// What to do about the session that is there; `wanted` is the file with the work that is asked for, if any.
pub fn detect(candidate: Option<Candidate<'_>>, wanted: Option<&str>) -> Detection {
    let Some(candidate) = candidate else {
        return Detection {
            found: false,
            action: Action::CreateNew,
            reason: None,
            expired: None,
            session: None,
        };
    };
    let (action, expired, reason) = judge(&candidate, wanted);
    Detection { found: true, action, reason, expired, session: Some(candidate.session) }
}

fn judge(candidate: &Candidate<'_>, wanted: Option<&str>) -> (Action, Option<Expired>, Option<String>) {
    let expired = |action, why, reason: String| (action, Some(why), Some(reason));
    let Some(state) = candidate.state else {
        let what = candidate.problems.first().map_or("it cannot be read", String::as_str);
        return expired(Action::OfferReset, Expired::Corrupted, format!("State corrupted: {what}"));
    };
    match state.status {
        Status::Halted if state.breaker_holds() => {
            let why = state.reason.as_ref().and_then(|reason| reason.details.as_deref());
            let reason = format!("Circuit Breaker OPEN: {}", why.unwrap_or("no reason is recorded"));
            return expired(Action::OfferReset, Expired::BreakerOpen, reason);
        }
        Status::Completed => {
            let reason = "Session completed successfully".to_owned();
            return expired(Action::CreateNew, Expired::Ended, reason);
        }
        Status::Failed => {
            let reason = "Session failed and cannot be resumed".to_owned();
            return expired(Action::CreateNew, Expired::Ended, reason);
        }
        Status::Aborted => {
            let reason = "Session was abandoned".to_owned();
            return expired(Action::CreateNew, Expired::Ended, reason);
        }
        Status::Active | Status::Paused | Status::Interrupted | Status::Halted => {}
    }
    if let Some(wanted) = wanted
        && state.file.as_deref() != Some(wanted)
    {
        let reason = mismatch(state, wanted);
        return expired(Action::CreateNew, Expired::OtherWork, reason);
    }
    if let Some(what) = candidate.problems.first() {
        return expired(Action::OfferReset, Expired::Corrupted, format!("State corrupted: {what}"));
    }
    if candidate.driven {
        return (Action::Attach, None, Some("somebody is at work in it".to_owned()));
    }
    (Action::OfferResume, None, None)
}

/// That a session is about other work than the one asked for.
pub fn mismatch(state: &State, wanted: &str) -> String {
    format!("PRP mismatch: session={}, requested={wanted}", state.file.as_deref().unwrap_or("(none)"))
}

/// Why a session cannot be resumed; none if it can.
pub fn refusal(state: &State, reset_breaker: bool) -> Option<&'static str> {
    match state.status {
        Status::Completed => Some("Session already completed"),
        Status::Failed => Some("Session failed and cannot be resumed"),
        Status::Aborted => Some("Session was abandoned and cannot be resumed"),
        Status::Halted if !reset_breaker && state.breaker_holds() => {
            Some("Session halted by Circuit Breaker")
        }
        Status::Halted | Status::Active | Status::Paused | Status::Interrupted => None,
    }
}
