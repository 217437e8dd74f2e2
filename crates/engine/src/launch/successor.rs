//! A session that goes on from another one.

use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::event::Workflow;

use crate::Acted;
use crate::Engine;
use crate::Error;
use crate::NewSession;

impl NewSession {
    /// A session that goes on from this one. What it may use and has used of that comes along: no way of going on is
    /// a way round a cap.
    #[must_use]
    pub fn after(state: &State) -> Self {
        Self {
            topic: state.topic.clone(),
            project: state.project.clone(),
            budget: state.budget.carried_over(),
            cost: state.cost.carried_over(),
            made_by: state.made_by,
            continues: Some(state.session_id),
            file: state.file.clone(),
            ..Self::default()
        }
    }
}

impl Engine {
    /// Begins anew what a session was about: the first step of the same workflow, with its task and caps, without what
    /// came of it.
    ///
    /// # Errors
    /// If the session cannot be made.
    pub fn start_afresh(&self, state: &State) -> Result<Acted, Error> {
        let intent = state.intent.as_deref().map(Into::into);
        let workflow: Option<Workflow> = state.workflow.clone();
        let acted = self.create(NewSession { intent, workflow, ..NewSession::after(state) })?;
        let mut commands: Vec<Command> =
            state.tasks.open.values().map(|text| Command::AddTask { text: text.as_str().into() }).collect();
        if state.branch.is_some() {
            commands.push(Command::SetGitBranch { branch: state.branch.clone(), commit: None });
        }
        let session: SessionId = acted.state.session_id;
        if commands.is_empty() {
            return Ok(acted);
        }
        let mut more = self.act_all(session, commands, None)?;
        more.notices.splice(0..0, acted.notices);
        Ok(more)
    }
}
