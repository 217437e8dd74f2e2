//! Coming back after an end that nobody wanted.

use serde::Deserialize;
use serde::Serialize;

use crate::text::Text;

/// Where work goes on from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The last checkpoint: files and conversation as they were there.
    Checkpoint,
    /// What is there now.
    #[default]
    Live,
    /// A new session that knows of this one.
    Fresh,
}

impl Recovery {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Live => "live",
            Self::Fresh => "fresh",
        }
    }
}

/// One of the options to resume, with its honest cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionOffered {
    /// Which.
    pub recovery: Recovery,
    /// What it resumes from, such as the id of a checkpoint.
    pub target: Option<String>,
    /// What it is, in words.
    pub text: String,
    /// What it loses, in words.
    pub loses: String,
    /// How many actions are lost.
    pub actions_lost: u64,
    /// How many files would be changed or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_lost: Option<u64>,
    /// Whether it is the one to take.
    pub recommended: bool,
}

/// Somebody chose how to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryChosen {
    /// From where.
    pub recovery: Recovery,
    /// What it resumes from, such as the id of a checkpoint.
    pub target: Option<String>,
    /// The ways there were.
    pub offered: Vec<OptionOffered>,
    /// Whether nobody was asked.
    pub automatic: bool,
}

/// An agent that died is taken up again without anybody asking for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeAttempted {
    /// The how-manieth time, from 1.
    pub attempt: u64,
    /// Of how many that are allowed.
    pub of: u64,
    /// How long was waited before it.
    pub delay_ms: u64,
    /// What the agent died of.
    pub why: Text,
}
