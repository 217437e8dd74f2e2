//! Status blocks: what an agent says of its own work, in a form that was asked for.
//!
//! Two families are known, `PRP_PHASE_STATUS` and `RALPH_STATUS`, each in two forms:
//!
//! ```text
//! ---RALPH_STATUS---            RALPH_STATUS:
//! STATUS: IN_PROGRESS             STATUS: IN_PROGRESS
//! EXIT_SIGNAL: false              EXIT_SIGNAL: false
//! ---END_RALPH_STATUS---
//! ```
//!
//! Keys may come in any order and in any case; those that nobody knows are kept. A key in a sentence is no block, and
//! neither is what stands behind `>`: that is somebody else's text. A block in a code fence is one, because agents like
//! to put their own there. Of several blocks the last complete one counts. Nothing is inferred: a block without
//! `EXIT_SIGNAL` gives no signal, whatever its status says; one that contradicts itself (blocked, and done) says so in
//! [`StatusBlock::contradictions`]. And the signal never decides alone that work is complete.

mod fields;
mod parse;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

pub use parse::status_blocks;

/// Which kind of block it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// `PRP_PHASE_STATUS`.
    Prp,
    /// `RALPH_STATUS`.
    Ralph,
}

impl Family {
    /// Its name in the text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prp => "PRP_PHASE_STATUS",
            Self::Ralph => "RALPH_STATUS",
        }
    }
}

/// How the agent says that it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkStatus {
    /// There is more to do.
    InProgress,
    /// It cannot go on.
    Blocked,
    /// It says that it is done.
    Complete,
}

/// What the agent says of the tests, where it tells no numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestsStatus {
    /// They pass.
    Passing,
    /// Some fail.
    Failing,
    /// They were not run.
    NotRun,
}

/// The agent's numbers of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedTests {
    /// All of them.
    pub total: Option<u64>,
    /// Those that pass.
    pub passing: Option<u64>,
    /// Those that fail.
    pub failing: Option<u64>,
    /// Those that are skipped.
    pub skipped: Option<u64>,
}

/// The agent's numbers of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedFiles {
    /// New ones.
    pub created: Option<u64>,
    /// Changed ones.
    pub modified: Option<u64>,
    /// Removed ones.
    pub deleted: Option<u64>,
}

/// A status block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusBlock {
    /// Which kind it is.
    pub family: Family,
    /// Whether its end is there, and at least its status or its signal.
    pub complete: bool,
    /// The phase, in upper case.
    pub phase: Option<String>,
    /// How the work stands.
    pub status: Option<WorkStatus>,
    /// Which iteration the agent thinks it is.
    pub iteration: Option<u64>,
    /// How far it is, in per cent.
    pub progress: Option<u64>,
    /// Numbers of tests.
    pub tests: ClaimedTests,
    /// The tests in a word.
    pub tests_status: Option<TestsStatus>,
    /// Numbers of files.
    pub files: ClaimedFiles,
    /// Whether the agent asks to end the phase or the work. Only what is said in so many words.
    pub exit_signal: Option<bool>,
    /// What keeps it from going on.
    pub blockers: Vec<String>,
    /// What it would do next.
    pub recommendation: Option<String>,
    /// The verdict of a quality check, in upper case.
    pub verdict: Option<String>,
    /// What kind of work it was, in upper case.
    pub work_type: Option<String>,
    /// How many tasks it finished in this iteration.
    pub tasks_completed: Option<u64>,
    /// Everything that is a number, by its key in lower case, such as `tests.total` or `docs_generated`.
    pub metrics: BTreeMap<String, f64>,
    /// Every key with its value as it stands there, in lower case, those within a group as `group.key`.
    pub fields: BTreeMap<String, String>,
    /// What is wrong with it, in words for people.
    pub problems: Vec<String>,
    /// Those of the problems by which it contradicts itself: nothing in it can be taken at its word then.
    pub contradictions: Vec<String>,
}

impl StatusBlock {
    /// A value that is `true` or `false`, by its key in lower case.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.fields.get(key).and_then(|value| fields::truth(value))
    }
}

/// The last complete block of a text.
pub fn last_complete(text: &str) -> Option<StatusBlock> {
    status_blocks(text).into_iter().rev().find(|block| block.complete)
}
