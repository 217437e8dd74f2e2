//! What many sessions have in common: what held work up, where time and money went, what happens again and again.
//!
//! A [`Gatherer`] is given one session after the other: its calls, its events, what its runs used. It keeps counts, and of
//! each thing that it counts a few places in journals where anybody can look closer; it never keeps a session. What it
//! makes of the counts ([`Insights`]) follows from them alone, so the same record always gives the same findings.

mod advice;
mod findings;
mod gather;
mod groups;
mod lifecycle;
mod repeats;

use serde::Serialize;

use crate::id::SessionId;
use crate::time::Timestamp;

pub use self::gather::Gatherer;
pub use self::gather::Spent;

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The same error, more than once.
    Error,
    /// Calls that were not allowed.
    Denial,
    /// Questions that a person had to answer.
    Question,
    /// The same call with the same result, or a round of calls, again and again.
    Repeat,
    /// Circuit breakers that opened.
    Breaker,
    /// Limits of a plan or a vendor.
    Limit,
    /// Budgets that were used up.
    Budget,
    /// Runs and drivers that died or ended badly.
    Crash,
    /// A kind of call that fails often.
    FailingCall,
    /// A file that is edited again and again.
    File,
    /// A phase that takes many iterations, or is gone into again.
    Phase,
    /// Resumes after which nothing was done.
    Resume,
    /// Sessions that changed files without a checkpoint.
    Checkpoint,
    /// Where much of the money went.
    Money,
}

impl FindingKind {
    /// Every kind, in the order in which findings are shown.
    pub const ALL: [Self; 14] = [
        Self::Error,
        Self::Denial,
        Self::Question,
        Self::Repeat,
        Self::Breaker,
        Self::Limit,
        Self::Budget,
        Self::Crash,
        Self::FailingCall,
        Self::File,
        Self::Phase,
        Self::Resume,
        Self::Checkpoint,
        Self::Money,
    ];

    /// In words, as a heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Error => "Errors that come again",
            Self::Denial => "Calls that were denied",
            Self::Question => "Questions that were asked again and again",
            Self::Repeat => "Calls that repeat themselves",
            Self::Breaker => "Breakers that opened",
            Self::Limit => "Limits that were met",
            Self::Budget => "Budgets that were used up",
            Self::Crash => "Runs that ended badly",
            Self::FailingCall => "Calls that fail most",
            Self::File => "Files that are edited again and again",
            Self::Phase => "Phases that repeat",
            Self::Resume => "Resumes that came to nothing",
            Self::Checkpoint => "Sessions without checkpoints",
            Self::Money => "Where the money went",
        }
    }
}

/// A place in a journal that shows what a finding says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The session.
    pub session_id: SessionId,
    /// The event.
    pub seq: u64,
    /// When.
    pub at: Option<Timestamp>,
    /// What is there, in a few words.
    pub text: String,
    /// The command that shows it.
    pub look: String,
}

/// What kind of thing would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// A rule that lets a call run.
    AllowRule,
    /// A rule that says no at once.
    DenyRule,
    /// A line that tells agents something.
    AgentsMd,
    /// A budget, or a larger one.
    Budget,
    /// Something that is measured.
    Gate,
    /// A setting.
    Setting,
    /// A command to run.
    Command,
}

/// What a person can do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// What kind of thing it is.
    pub kind: Remedy,
    /// What to do, in a sentence.
    pub text: String,
    /// What to write somewhere, or to type.
    pub line: Option<String>,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// The thing itself: an error, a rule, a file, …
    pub what: String,
    /// What was found of it, in a sentence.
    pub words: String,
    /// How often.
    pub count: u64,
    /// Out of how many, where that says something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// In how many sessions.
    pub sessions: u64,
    /// What was waited for it, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// Millionths of a dollar, where it is about money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
    /// Where to see it.
    pub evidence: Vec<Evidence>,
    /// What would help.
    pub suggestion: Option<Suggestion>,
}

/// How calls ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the words say it")]
pub struct CallNumbers {
    pub total: u64,
    pub completed: u64,
    pub failed: u64,
    pub denied: u64,
    pub in_doubt: u64,
}

/// What came of resumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResumeNumbers {
    /// How many sessions were taken up again, each time counted.
    pub total: u64,
    /// After so many of them something was done.
    pub worked: u64,
    /// After so many the session ended, or was interrupted again, before anything was done.
    pub failed: u64,
    /// Somebody ended so many before anything was done, or nothing has happened yet: they say nothing.
    pub undecided: u64,
    /// `worked` out of those that say something, in per cent.
    pub percent: Option<u8>,
}

/// Checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckpointNumbers {
    /// How many can be gone back to.
    pub total: u64,
    /// In how many sessions that segno recorded while they went on.
    pub sessions: u64,
    /// How many of these have none although files were changed.
    pub without: u64,
    /// How many of all are in such sessions.
    #[serde(skip)]
    pub of_own: u64,
    /// How many there are in such a session, in hundredths.
    pub per_session_hundredths: u64,
}

/// Where time went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimeNumbers {
    /// Runs without a person at their terminal, from their beginning to their end.
    pub runs_ms: u64,
    /// Calls, each by itself: those that ran at the same time count each.
    pub calls_ms: u64,
    /// Loops that waited for a limit.
    pub limits_ms: u64,
    /// Questions that waited for a person.
    pub questions_ms: u64,
}

/// Everything in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Numbers {
    /// How many sessions were looked at.
    pub sessions: u64,
    /// How many runs began.
    pub runs: u64,
    /// How many of those that ended did what they were to do.
    pub runs_completed: u64,
    /// How many ended.
    pub runs_ended: u64,
    /// How many ended badly: failed, interrupted, timed out, denied, out of turns, or without an agent.
    pub runs_bad: u64,
    /// How calls ended.
    pub calls: CallNumbers,
    /// How many errors were recorded.
    pub errors: u64,
    /// How many iterations of loops there were.
    pub iterations: u64,
    /// What came of resumes.
    pub resumes: ResumeNumbers,
    /// Checkpoints.
    pub checkpoints: CheckpointNumbers,
    /// Where time went.
    pub time: TimeNumbers,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Money, in millionths of a dollar.
    pub micros: u64,
    /// The part of it that went into runs that ended without doing what they were to do.
    pub micros_of_bad_ends: u64,
    /// Tokens whose price nobody knows.
    pub unpriced_tokens: u64,
}

/// A part of what was used or waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Of what.
    pub name: String,
    /// How many runs, or calls.
    pub count: u64,
    /// Tokens.
    pub tokens: u64,
    /// Money, in millionths of a dollar.
    pub micros: u64,
    /// Time, in milliseconds.
    pub ms: u64,
}

/// Where money and time went: the most first, days by their date.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shares {
    /// Money by project.
    pub projects: Vec<Share>,
    /// Money by model.
    pub models: Vec<Share>,
    /// Money by phase.
    pub phases: Vec<Share>,
    /// Money by how the run ended.
    pub outcomes: Vec<Share>,
    /// Money by day.
    pub days: Vec<Share>,
    /// Time in calls by tool.
    pub tools: Vec<Share>,
}

/// What was found in sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Insights {
    /// Only what happened since then.
    pub since: Option<Timestamp>,
    /// Everything in numbers.
    pub numbers: Numbers,
    /// Where money and time went.
    pub shares: Shares,
    /// What stands out, by kind and then the most frequent first.
    pub findings: Vec<Finding>,
    /// There were so many different things of one kind that rare ones were left out.
    pub left_out: u64,
}

#[cfg(test)]
mod tests;
