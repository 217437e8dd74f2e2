//! A session that goes on from another one.

use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::event::Workflow;

use crate::Acted;
use crate::Engine;
use crate::Error;
use crate::NewSession;

impl Engine {
    /// A session that goes on from this one. What it may use and has used of that comes along: no way of going on is
    /// a way round a cap. What other sessions have used that went on from it, or from where its cap comes from, counts
    /// too, so that going on twice does not give the rest of a cap twice.
    ///
    /// # Errors
    /// If it cannot be told what was used of the cap.
    pub(super) fn successor(&self, state: &State) -> Result<NewSession, Error> {
        let (mut budget, mut cost) = (state.budget.carried_over(), state.cost.carried_over());
        let capped = budget.hard || (cost.hard && cost.limit_micros.is_some());
        let mut cap_from = capped.then_some(state.session_id);
        // What this one used may not have been counted there yet: it may come from another store.
        self.count_where_cap_began(state)?;
        if let Some(first) = state.cap_from.filter(|_| capped)
            && let Some(first) = self.load_if_there(first.session)?
        {
            cap_from = Some(first.session_id);
            let mut used = first.budget;
            used.count_as(budget.count, &first.tokens);
            if budget.hard {
                budget.tokens_used = budget.tokens_used.max(used.tokens_used);
            }
            if cost.hard && cost.limit_micros.is_some() {
                cost.used_micros = cost.used_micros.max(first.cost.used_micros);
            }
        }
        Ok(NewSession {
            topic: state.topic.clone(),
            project: state.project.clone(),
            budget,
            cost,
            made_by: state.made_by,
            continues: Some(state.session_id),
            cap_from,
            file: state.file.clone(),
            ..NewSession::default()
        })
    }

    fn load_if_there(&self, session: SessionId) -> Result<Option<State>, Error> {
        match self.load(session) {
            Ok(loaded) => Ok(Some(loaded.state)),
            // It is in another store, or was removed: what is known of it went along.
            Err(Error::SessionNotFound { .. } | Error::Store(segno_store::Error::NotFound(_))) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Begins anew what a session was about: the first step of the same workflow, with its task and caps, without what
    /// came of it.
    ///
    /// # Errors
    /// If the session cannot be made.
    pub fn start_afresh(&self, state: &State) -> Result<Acted, Error> {
        let intent = state.intent.as_deref().map(Into::into);
        let workflow: Option<Workflow> = state.workflow.clone();
        let acted = self.create(NewSession { intent, workflow, ..self.successor(state)? })?;
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
