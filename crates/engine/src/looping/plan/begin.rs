//! Making the session of a loop.

use segno_core::Command;
use segno_core::CostBudget;
use segno_core::SessionId;
use segno_core::State;
use segno_core::TokenBudget;
use segno_core::event::Maker;
use segno_core::event::WorkItemMark;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopPlan;

use crate::Engine;
use crate::Error;
use crate::NewSession;
use crate::launch::LaunchSettings;
use crate::launch::project_at;

/// A loop to be begun.
#[derive(Clone, Debug, Default)]
pub struct NewLoop {
    /// What it is to do, and by which rules.
    pub plan: LoopPlan,
    /// What it is about, if somebody said so.
    pub topic: Option<String>,
    /// The file that says what is to be done.
    pub file: Option<String>,
    /// Tokens it may use, if not the configured ones.
    pub budget: Option<TokenBudget>,
    /// Money it may cost, if not the configured one.
    pub cost: Option<CostBudget>,
    /// A git branch to begin; `{id}` stands for the session's id.
    pub branch: Option<String>,
    /// The loop whose queue its item comes from.
    pub parent: Option<SessionId>,
    /// That item.
    pub item: Option<WorkItemMark>,
}

impl Engine {
    /// Makes the session of a loop and records its plan. Nothing of it stays if the plan cannot be followed.
    ///
    /// # Errors
    /// If the plan cannot be followed, or the branch cannot be made.
    pub fn loop_begin(&self, mut new: NewLoop, settings: &LaunchSettings) -> Result<State, Error> {
        self.check_start_below()?;
        let project = project_at(&settings.project).path;
        self.check_day(&project)?;
        // A queue makes the sessions of its items itself, and drives while it does.
        self.refuse_second_loop(None, new.parent, &project)?;
        new.plan.check()?;
        let work = self.whole(&new.plan.work)?;
        let title = new.item.as_ref().map(|item| item.title.as_str());
        let made = self.create(NewSession {
            topic: self.topic_of([new.topic.as_deref(), title, Some(&work)]),
            intent: Some(work.as_str()).filter(|work| !work.trim().is_empty()).map(Into::into),
            project: project_at(&settings.project),
            budget: new.budget.unwrap_or(settings.budget),
            cost: new.cost.unwrap_or(settings.cost),
            made_by: Maker::Loop,
            file: new.file,
            ..NewSession::default()
        })?;
        let session = made.state.session_id;
        let prepared = new.plan.queue.as_mut().map_or(Ok(()), |queue| self.prepare_queue(&made.state, queue));
        let start = LoopCommand::Start { plan: Box::new(new.plan), parent: new.parent, item: new.item };
        let begun = prepared
            .and_then(|()| self.act(session, Command::Loop(Box::new(start))))
            .and_then(|acted| self.begin_branch(acted.state, new.branch.as_deref()));
        if begun.is_err() {
            // One that could not begin is nobody's work; a branch that could not be made has taken it along already.
            let _ = self.delete(session);
        }
        begun
    }

    /// Goes on with a loop by another plan: the newest one holds.
    ///
    /// # Errors
    /// If it cannot be followed, or the session has ended.
    pub fn loop_replan(&self, session: SessionId, plan: LoopPlan) -> Result<State, Error> {
        let start = LoopCommand::Start { plan: Box::new(plan), parent: None, item: None };
        Ok(self.act(session, Command::Loop(Box::new(start)))?.state)
    }
}
