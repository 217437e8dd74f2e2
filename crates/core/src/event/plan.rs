//! What the work is, and how far it has come.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use super::Project;
use super::Workflow;
use crate::text::Text;

/// The session was named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicSet {
    /// What it is about.
    pub topic: String,
}

/// Somebody put the session in its place among many. Nothing of the work changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionArranged {
    /// What it is called from now on; as before if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Tags that it has from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags_added: Vec<String>,
    /// Tags that it has no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags_removed: Vec<String>,
    /// Whether it stands first in lists and is never cleaned up; as before if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Whether lists leave it out; as before if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

/// What the user wants was written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentSet {
    /// In their words.
    pub intent: Text,
}

/// What the session works on was corrected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSet {
    /// It.
    pub project: Project,
}

/// The session works on another branch of the project's repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitBranchSet {
    /// Its name; none for a repository whose HEAD is on no branch.
    pub branch: Option<String>,
    /// Where it stood.
    pub commit: Option<String>,
}

/// The session follows a workflow from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowSet {
    /// It.
    pub workflow: Workflow,
}

/// The session went into another phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseAdvanced {
    /// The phase it left.
    pub from: Option<String>,
    /// The phase it is in.
    pub to: String,
    /// The number of the phase among the workflow's, from 1, if known.
    pub step: Option<u32>,
    /// How many there are, if known.
    pub of: Option<u32>,
}

/// The step was counted by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSet {
    /// Which step, from 1.
    pub step: u32,
    /// Of how many.
    pub of: Option<u32>,
}

/// One more turn of the loop inside the phase began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationStarted {
    /// Which, from 1.
    pub iteration: u64,
}

/// The phase is tried once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptStarted {
    /// Which try, from 1.
    pub attempt: u64,
}

/// How a check of a phase came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// It was not checked.
    Skip,
}

impl Verdict {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skip => "skip",
        }
    }
}

/// A phase was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseVerified {
    /// Which phase.
    pub phase: Option<String>,
    /// What was checked, such as `tests`.
    pub check: String,
    /// How it came out.
    pub verdict: Verdict,
    /// More about it.
    pub details: Option<Text>,
}

/// A workflow keeps something of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowStateSet {
    /// Whatever it is.
    pub state: Value,
}

/// How far the work has come was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressSet {
    /// In percent, 0 to 100.
    pub percent: u8,
}
