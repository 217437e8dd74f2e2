//! What a session did and made.
//!
//! Words such as `created` stay words here: a newer program may have another one.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use super::Patch;
use super::Row;
use super::RowVersion;
use super::row;
use crate::event::Change;
use crate::project::List;
use crate::text::Text;
use crate::time::Timestamp;

row! {
    /// One line of what happened, for people.
    History: HistoryRow, HistoryPatch {
        /// When.
        timestamp: Option<Timestamp>,
        /// What.
        action: String,
        /// The phase then.
        phase: Option<String>,
        /// More about it.
        details: Option<Text>,
    }
}

row! {
    /// One file that counts as a result.
    Artifacts: ArtifactRow, ArtifactPatch {
        /// Its path.
        path: String,
        /// Whether it was created or modified.
        artifact_type: String,
        /// When.
        timestamp: Option<Timestamp>,
        /// The phase that it belongs to.
        phase: Option<String>,
    }
}

row! {
    /// One file that changed.
    Files: FileRow, FilePatch {
        /// Its path.
        path: String,
        /// How it changed last.
        change: String,
        /// When.
        changed_at: Option<Timestamp>,
        /// By which call.
        call: Option<String>,
        /// The phase then.
        phase: Option<String>,
    }
}

impl FileRow {
    /// Whether this is how it changed last. Its own may be a word of a newer program.
    pub fn was(&self, change: Change) -> bool {
        self.change == change.as_str()
    }
}

row! {
    /// One named output.
    Outputs: OutputRow, OutputPatch {
        /// Its name.
        name: String,
        /// What it is.
        kind: String,
        /// It.
        content: Option<Text>,
        /// When it was kept.
        recorded_at: Option<Timestamp>,
        /// The phase then.
        phase: Option<String>,
    }
}

row! {
    /// One thing to do.
    Tasks: TaskRow, TaskPatch {
        /// Its number.
        task: u64,
        /// What is to be done.
        text: Option<Text>,
        /// Open, done or dropped.
        state: String,
        /// When it was added.
        added_at: Option<Timestamp>,
        /// When it ended.
        ended_at: Option<Timestamp>,
    }
}

row! {
    /// One decision.
    Decisions: DecisionRow, DecisionPatch {
        /// Its number.
        decision: u64,
        /// The one that it follows.
        parent: Option<u64>,
        /// The branch of decisions.
        branch: String,
        /// What was asked.
        question: Option<Text>,
        /// What was chosen.
        choice: Option<Text>,
        /// Why.
        reason: Option<Text>,
        /// What else there was.
        alternatives: Vec<Text>,
        /// When.
        decided_at: Option<Timestamp>,
        /// The phase then.
        phase: Option<String>,
    }
}

row! {
    /// One thing that went wrong.
    Errors: ErrorRow, ErrorPatch {
        /// When.
        timestamp: Option<Timestamp>,
        /// What was said.
        message: Option<Text>,
        /// What kind of error.
        error_kind: Option<String>,
        /// The phase then.
        phase: Option<String>,
        /// The iteration then.
        iteration: u64,
        /// The same for the same error.
        fingerprint: String,
    }
}

row! {
    /// One question to a memory.
    Memory: MemoryRow, MemoryPatch {
        /// When.
        timestamp: Option<Timestamp>,
        /// How it was asked.
        usage: String,
        /// Which memory.
        source: Option<String>,
        /// The question.
        query: Option<Text>,
        /// What came of it.
        result: Option<Text>,
    }
}

row! {
    /// One milestone.
    Milestones: MilestoneRow, MilestonePatch {
        /// Its name.
        name: String,
        /// More about it.
        details: Option<Text>,
        /// When it was reached.
        reached_at: Option<Timestamp>,
        /// The phase then.
        phase: Option<String>,
    }
}

row! {
    /// One check of a phase.
    Verifications: VerificationRow, VerificationPatch {
        /// The phase.
        phase: Option<String>,
        /// What was checked.
        check: String,
        /// How it came out.
        verdict: String,
        /// More about it.
        details: Option<Text>,
        /// When.
        verified_at: Option<Timestamp>,
        /// The iteration then.
        iteration: u64,
        /// The attempt then.
        attempt: u64,
    }
}
