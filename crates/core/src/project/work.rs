//! Rows of what a session did and made.

use serde_json::Value;

use super::Changes;
use super::ItemChange;
use super::List;
use super::ledger::word;
use super::numbered;
use crate::event::ArtifactRecorded;
use crate::event::DecisionMade;
use crate::event::ErrorRecorded;
use crate::event::FileChanged;
use crate::event::ItemsImported;
use crate::event::MemoryUsed;
use crate::event::MilestoneReached;
use crate::event::OutputRecorded;
use crate::event::PhaseVerified;
use crate::event::TaskAdded;
use crate::event::TaskEnded;
use crate::rows::ArtifactPatch;
use crate::rows::DecisionPatch;
use crate::rows::ErrorPatch;
use crate::rows::FilePatch;
use crate::rows::MemoryPatch;
use crate::rows::MilestonePatch;
use crate::rows::OutputPatch;
use crate::rows::TaskPatch;
use crate::rows::VerificationPatch;

impl Changes<'_> {
    /// Rows from elsewhere are taken as they are: another program made them.
    pub(super) fn items_imported(&mut self, e: &ItemsImported) {
        for item in &e.items {
            let Value::Object(mut fields) = item.body.clone() else { continue };
            // Rows of a log came before all of ours, and must not meet a key that we give.
            let key = if e.list.is_log() { format!("-{}", item.key) } else { item.key.clone() };
            // As in the state: nobody here will hear how the call ended.
            if e.list == List::Tools && fields.get("state").and_then(Value::as_str) == Some("open") {
                fields.insert("state".to_owned(), Value::from("in_doubt"));
            }
            self.list.push(ItemChange { list: e.list, key, fields });
        }
    }

    pub(super) fn artifact_recorded(&mut self, e: &ArtifactRecorded) {
        self.log(&ArtifactPatch {
            path: Some(e.path.clone()),
            artifact_type: Some(e.artifact_type.as_str().to_owned()),
            timestamp: Some(Some(self.mark.at)),
            phase: Some(e.phase.clone()),
        });
    }

    pub(super) fn file_changed(&mut self, e: &FileChanged) {
        let patch = FilePatch {
            path: Some(e.path.clone()),
            change: Some(e.change.as_str().to_owned()),
            changed_at: Some(Some(self.mark.at)),
            call: Some(e.call.as_ref().map(|call| self.state.calls.name_of(call).to_owned())),
            phase: Some(self.state.phase.clone()),
        };
        self.put(e.path.clone(), &patch);
    }

    pub(super) fn output_recorded(&mut self, e: &OutputRecorded) {
        let patch = OutputPatch {
            name: Some(e.name.clone()),
            kind: word(&e.kind),
            content: Some(Some(e.content.clone())),
            recorded_at: Some(Some(self.mark.at)),
            phase: Some(self.state.phase.clone()),
        };
        self.put(e.name.clone(), &patch);
    }

    pub(super) fn task_added(&mut self, e: &TaskAdded) {
        let patch = TaskPatch {
            task: Some(e.task),
            text: Some(Some(e.text.clone())),
            state: Some("open".to_owned()),
            added_at: Some(Some(self.mark.at)),
            ended_at: None,
        };
        self.put(numbered(e.task), &patch);
    }

    pub(super) fn task_ended(&mut self, e: &TaskEnded) {
        let state = if e.done { "done" } else { "dropped" };
        let patch = TaskPatch {
            state: Some(state.to_owned()),
            ended_at: Some(Some(self.mark.at)),
            ..TaskPatch::default()
        };
        self.put(numbered(e.task), &patch);
    }

    pub(super) fn decision_made(&mut self, e: &DecisionMade) {
        let patch = DecisionPatch {
            decision: Some(e.decision),
            parent: Some(e.parent),
            branch: Some(e.branch.clone()),
            question: Some(Some(e.question.clone())),
            choice: Some(Some(e.choice.clone())),
            reason: Some(e.reason.clone()),
            alternatives: Some(e.alternatives.clone()),
            decided_at: Some(Some(self.mark.at)),
            phase: Some(self.state.phase.clone()),
        };
        self.put(numbered(e.decision), &patch);
    }

    pub(super) fn error_recorded(&mut self, e: &ErrorRecorded) {
        self.log(&ErrorPatch {
            timestamp: Some(Some(self.mark.at)),
            message: Some(Some(e.message.clone())),
            error_kind: Some(e.error_kind.clone()),
            phase: Some(e.phase.clone()),
            iteration: Some(e.iteration),
            fingerprint: Some(e.fingerprint.clone()),
        });
    }

    pub(super) fn memory_used(&mut self, e: &MemoryUsed) {
        self.log(&MemoryPatch {
            timestamp: Some(Some(self.mark.at)),
            usage: word(&e.usage),
            source: Some(e.source.clone()),
            query: Some(Some(e.query.clone())),
            result: Some(e.result.clone()),
        });
    }

    pub(super) fn milestone_reached(&mut self, e: &MilestoneReached) {
        self.log(&MilestonePatch {
            name: Some(e.name.clone()),
            details: Some(e.details.clone()),
            reached_at: Some(Some(self.mark.at)),
            phase: Some(self.state.phase.clone()),
        });
    }

    pub(super) fn phase_verified(&mut self, e: &PhaseVerified) {
        self.log(&VerificationPatch {
            phase: Some(e.phase.clone()),
            check: Some(e.check.clone()),
            verdict: Some(e.verdict.as_str().to_owned()),
            details: Some(e.details.clone()),
            verified_at: Some(Some(self.mark.at)),
            iteration: Some(self.state.iteration),
            attempt: Some(self.state.attempt),
        });
    }
}
