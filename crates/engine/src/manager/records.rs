//! What the work on a session brings, recorded by its manager.

use segno_core::Command;
use segno_core::Fact;
use segno_core::List;
use segno_core::State;
use segno_core::event::Change;
use segno_core::event::MemoryUse;
use segno_core::event::Metric;
use segno_core::event::OutputKind;
use segno_core::event::Verdict;
use serde_json::Value;

use super::Artifact;
use super::HistoryEntry;
use super::SessionManager;
use crate::Error;

impl SessionManager {
    /// Records a file that was `created` or `modified`, in the given phase or the present one.
    pub fn add_artifact(
        &mut self,
        path: &str,
        artifact_type: &str,
        phase: Option<&str>,
    ) -> Result<&State, Error> {
        let artifact_type = match artifact_type {
            "created" => Change::Created,
            "modified" => Change::Modified,
            other => {
                let reason = format!("it is created or modified, not {other}");
                return Err(Error::Refused(segno_core::Refusal::bad("artifact type", reason)));
            }
        };
        let state = self.engine.load(self.id()?)?.state;
        // A path is made plain before it is recorded, and a secret that was changed is not known any more.
        let path = self.engine.redactor().text(path).into_owned();
        let path = crate::artifact_path(&state, std::path::Path::new(&state.project.path), &path)?;
        let phase = phase.map(ToOwned::to_owned);
        self.act(Command::RecordArtifact { path, artifact_type, phase })
    }

    /// The files recorded so far, of one phase or of all.
    pub fn get_artifacts(&self, phase: Option<&str>) -> Result<Vec<Artifact>, Error> {
        let all: Vec<Artifact> = self.rows(List::Artifacts)?;
        Ok(all.into_iter().filter(|artifact| phase.is_none() || artifact.phase.as_deref() == phase).collect())
    }

    /// Writes a line into the history.
    pub fn add_history(
        &mut self,
        action: &str,
        phase: Option<&str>,
        details: Option<&str>,
    ) -> Result<&State, Error> {
        let (action, phase) = (action.to_owned(), phase.map(ToOwned::to_owned));
        self.act(Fact::HistoryNoted { action, phase, details: details.map(Into::into) })
    }

    /// What happened so far, in order.
    pub fn history(&self) -> Result<Vec<HistoryEntry>, Error> {
        self.rows(List::History)
    }

    /// Records a decision on the present branch.
    pub fn record_decision(
        &mut self,
        question: &str,
        choice: &str,
        reason: Option<&str>,
    ) -> Result<&State, Error> {
        self.act(Command::Decide {
            question: question.into(),
            choice: choice.into(),
            reason: reason.map(Into::into),
            alternatives: Vec::new(),
            parent: None,
            branch: None,
        })
    }

    /// Sets a named number or flag.
    pub fn set_metric(&mut self, name: &str, value: Metric) -> Result<&State, Error> {
        self.act(Command::SetMetric { name: name.to_owned(), value })
    }

    /// Keeps a named output.
    pub fn record_output(&mut self, name: &str, kind: OutputKind, content: &str) -> Result<&State, Error> {
        self.act(Command::RecordOutput { name: name.to_owned(), kind, content: content.into() })
    }

    /// Puts a task on the list; answers with its number.
    pub fn add_task(&mut self, text: &str) -> Result<u64, Error> {
        self.act(Command::AddTask { text: text.into() }).map(|state| state.tasks.added)
    }

    /// Takes a task off the list.
    pub fn complete_task(&mut self, task: u64) -> Result<&State, Error> {
        self.act(Command::EndTask { task, done: true })
    }

    /// Another agent works from now on.
    pub fn switch_agent(&mut self, agent: &str) -> Result<&State, Error> {
        self.act(Command::SwitchAgent { to: agent.to_owned() })
    }

    /// Where work is.
    pub fn set_position(&mut self, file: &str, line: Option<u64>) -> Result<&State, Error> {
        self.act(Command::SetPosition { file: Some(file.to_owned()), line })
    }

    /// A milestone was reached.
    pub fn reach_milestone(&mut self, name: &str) -> Result<&State, Error> {
        self.act(Command::ReachMilestone { name: name.to_owned(), details: None })
    }

    /// Work waits for somebody to look.
    pub fn wait_at_breakpoint(&mut self, name: &str) -> Result<&State, Error> {
        self.act(Command::ReachBreakpoint { name: name.to_owned(), details: None })
    }

    /// Somebody looked.
    pub fn continue_breakpoint(&mut self) -> Result<&State, Error> {
        self.act(Command::ContinueBreakpoint { details: None })
    }

    /// How a check of the present phase came out.
    pub fn verify_phase(
        &mut self,
        check: &str,
        verdict: Verdict,
        details: Option<&str>,
    ) -> Result<&State, Error> {
        let details = details.map(Into::into);
        self.act(Command::VerifyPhase { phase: None, check: check.to_owned(), verdict, details })
    }

    /// One more turn of the loop in this phase.
    pub fn start_iteration(&mut self) -> Result<&State, Error> {
        self.act(Command::StartIteration)
    }

    /// One more try at this phase.
    pub fn start_attempt(&mut self) -> Result<&State, Error> {
        self.act(Command::StartAttempt)
    }

    /// Keeps something for the workflow.
    pub fn set_workflow_state(&mut self, state: Value) -> Result<&State, Error> {
        self.act(Command::SetWorkflowState { state })
    }

    /// Something went wrong.
    pub fn record_error(&mut self, message: &str) -> Result<&State, Error> {
        self.act(Fact::ErrorRecorded { message: message.into(), error_kind: None })
    }

    /// A memory was asked.
    pub fn record_memory(
        &mut self,
        usage: MemoryUse,
        query: &str,
        result: Option<&str>,
    ) -> Result<&State, Error> {
        self.act(Fact::MemoryUsed {
            usage,
            source: None,
            query: query.into(),
            result: result.map(Into::into),
        })
    }
}
