//! The exit codes of the program: a public, documented table.
//!
//! Scripts depend on these numbers, so a number never changes its meaning; new causes get new numbers.

use std::fmt::Write as _;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// The command did what it was asked.
    Ok = 0,
    /// The command failed for a reason that has no code of its own.
    Failure = 1,
    /// The command line was not understood.
    Usage = 2,
    /// No session answers to the id that was given, or there is no session at all.
    SessionNotFound = 3,
    /// More than one session fits, or a choice has to be made and nobody can be asked.
    Ambiguous = 4,
    /// The state of the session does not allow this.
    Refused = 5,
    /// A session is already active here.
    AlreadyActive = 6,
    /// Another process drives the session, or this one was replaced.
    HeldElsewhere = 7,
    /// A budget is used up.
    BudgetExhausted = 8,
    /// The store was busy for too long.
    StoreBusy = 9,
    /// The store or a session in it is damaged.
    StoreDamaged = 10,
    /// The store was written by a newer version of the program.
    StoreNewer = 11,
    /// A permission is missing, or the environment is not usable.
    Environment = 12,
    /// A configuration file, variable or key is wrong.
    Config = 13,
    /// The person said no or pressed Ctrl-C, or a yes is needed and nobody can be asked.
    Cancelled = 14,
    /// The agent failed.
    RunFailed = 20,
    /// The agent was cut off.
    RunInterrupted = 21,
    /// The run took too long.
    RunTimedOut = 22,
    /// The run was stopped because somebody asked for it.
    RunStopped = 23,
    /// A usage limit of the provider.
    RunLimit = 24,
    /// The agent gave up because it was not allowed to do something.
    RunDenied = 25,
    /// The cap on turns.
    RunMaxTurns = 26,
    /// The agent's program is not there or cannot be started.
    AgentMissing = 27,
    /// The circuit breaker of a loop is open.
    LoopHalted = 28,
    /// A loop waits for a person.
    NeedsPerson = 29,
    /// A defect of the program itself.
    Internal = 70,
}

impl ExitCode {
    /// Every code, in numeric order.
    pub const ALL: &[Self] = &[
        Self::Ok,
        Self::Failure,
        Self::Usage,
        Self::SessionNotFound,
        Self::Ambiguous,
        Self::Refused,
        Self::AlreadyActive,
        Self::HeldElsewhere,
        Self::BudgetExhausted,
        Self::StoreBusy,
        Self::StoreDamaged,
        Self::StoreNewer,
        Self::Environment,
        Self::Config,
        Self::Cancelled,
        Self::RunFailed,
        Self::RunInterrupted,
        Self::RunTimedOut,
        Self::RunStopped,
        Self::RunLimit,
        Self::RunDenied,
        Self::RunMaxTurns,
        Self::AgentMissing,
        Self::LoopHalted,
        Self::NeedsPerson,
        Self::Internal,
    ];

    /// The number given to the operating system.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// A stable word for the code, as used in documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failure => "failure",
            Self::Usage => "usage",
            Self::SessionNotFound => "session-not-found",
            Self::Ambiguous => "ambiguous",
            Self::Refused => "refused",
            Self::AlreadyActive => "already-active",
            Self::HeldElsewhere => "held-elsewhere",
            Self::BudgetExhausted => "budget-exhausted",
            Self::StoreBusy => "store-busy",
            Self::StoreDamaged => "store-damaged",
            Self::StoreNewer => "store-newer",
            Self::Environment => "environment",
            Self::Config => "config",
            Self::Cancelled => "cancelled",
            Self::RunFailed => "run-failed",
            Self::RunInterrupted => "run-interrupted",
            Self::RunTimedOut => "run-timed-out",
            Self::RunStopped => "run-stopped",
            Self::RunLimit => "run-limit",
            Self::RunDenied => "run-denied",
            Self::RunMaxTurns => "run-max-turns",
            Self::AgentMissing => "agent-missing",
            Self::LoopHalted => "loop-halted",
            Self::NeedsPerson => "needs-person",
            Self::Internal => "internal",
        }
    }

    /// What the code means, in one sentence for the reader of a script's log.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => {
                "The command did what it was asked. Also when the reader of a pipe went away: that is the reader's choice, not a failure."
            }
            Self::Failure => "The command failed for a reason that has no code of its own.",
            Self::Usage => "The command line was not understood.",
            Self::SessionNotFound => {
                "No session answers to the id that was given, or there is no session at all."
            }
            Self::Ambiguous => {
                "More than one session fits, or a choice has to be made and nobody can be asked."
            }
            Self::Refused => {
                "The state of the session does not allow this, for example a phase change while it is paused."
            }
            Self::AlreadyActive => "A session is already active here.",
            Self::HeldElsewhere => {
                "Another process drives the session, this one was replaced by a newer one, or another loop works in the tree."
            }
            Self::BudgetExhausted => "A budget is used up; the session can be resumed with a larger one.",
            Self::StoreBusy => "The store was busy for longer than `store.busy_timeout_ms`.",
            Self::StoreDamaged => {
                "The store or a session in it is damaged; nothing was reset, `segno doctor` says more."
            }
            Self::StoreNewer => "The store was written by a newer version of the program.",
            Self::Environment => {
                "A permission is missing, or the environment is not usable (no home directory, a directory open to others)."
            }
            Self::Config => "A configuration file, variable or key is wrong.",
            Self::Cancelled => {
                "The person said no or pressed Ctrl-C, or a yes is needed and nobody can be asked."
            }
            Self::RunFailed => {
                "The agent says that it could not do it; the session is paused and can be resumed."
            }
            Self::RunInterrupted => {
                "The agent ended without a final word, for example because it was killed; the session is interrupted."
            }
            Self::RunTimedOut => "The run was stopped because it was silent or took too long.",
            Self::RunStopped => "The run was stopped by Ctrl-C, a signal, `segno stop` or `segno kill`.",
            Self::RunLimit => "A usage limit of the provider ended the run.",
            Self::RunDenied => "The agent was not allowed to do something and gave up.",
            Self::RunMaxTurns => "The run used all its turns.",
            Self::AgentMissing => "The agent's program is not there or cannot be started.",
            Self::LoopHalted => "The circuit breaker of a loop is open; `segno breaker status` says why.",
            Self::NeedsPerson => {
                "A loop waits for a person: to pay, to log in, to allow something, to look or to decide."
            }
            Self::Internal => "A defect of the program itself.",
        }
    }

    /// The whole table as Markdown, for the documentation.
    pub fn markdown() -> String {
        let mut text = String::from("| code | name | meaning |\n|---:|---|---|\n");
        for code in Self::ALL {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {} | `{}` | {} |", code.number(), code.name(), code.meaning());
        }
        text
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}

#[cfg(test)]
#[path = "exit_tests.rs"]
mod tests;
