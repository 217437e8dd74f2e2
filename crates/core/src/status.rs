//! The life of a session.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Being worked on, or ready to be.
    Active,
    /// Stopped on purpose or by a policy; there is a reason.
    Paused,
    /// Its driver died.
    Interrupted,
    /// The circuit breaker is open.
    Halted,
    /// Done. Terminal.
    Completed,
    /// Given up. Terminal.
    Aborted,
    /// Beyond resuming. Terminal.
    Failed,
}

impl Status {
    /// Every status, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Active,
        Self::Paused,
        Self::Interrupted,
        Self::Halted,
        Self::Completed,
        Self::Aborted,
        Self::Failed,
    ];

    /// Whether nothing follows any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Aborted | Self::Failed)
    }

    /// Whether work may go on from here, now or after a resume.
    pub fn is_open(self) -> bool {
        !self.is_terminal()
    }

    /// The status machine: whether a session may go from this status to `to`.
    pub fn may_become(self, to: Self) -> bool {
        use Status::Aborted;
        use Status::Active;
        use Status::Completed;
        use Status::Failed;
        use Status::Halted;
        use Status::Interrupted;
        use Status::Paused;
        match self {
            Active => matches!(to, Paused | Interrupted | Halted | Completed | Aborted | Failed),
            Paused | Interrupted => matches!(to, Active | Aborted | Failed),
            Halted => matches!(to, Active | Aborted),
            Completed | Aborted | Failed => false,
        }
    }

    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Interrupted => "interrupted",
            Self::Halted => "halted",
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such status: {0} (want active, paused, interrupted, halted, completed, aborted or failed)")]
pub struct BadStatus(pub String);

impl FromStr for Status {
    type Err = BadStatus;

    /// Reads our own words and those of other session managers, which map onto ours.
    fn from_str(text: &str) -> Result<Self, BadStatus> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "active" | "created" | "running" => Self::Active,
            "paused" => Self::Paused,
            "interrupted" | "suspended" | "crashed" => Self::Interrupted,
            "halted" => Self::Halted,
            "completed" => Self::Completed,
            "aborted" | "abandoned" => Self::Aborted,
            "failed" => Self::Failed,
            _ => return Err(BadStatus(text.chars().take(60).collect())),
        })
    }
}
