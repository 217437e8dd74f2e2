//! The session that a run works in: made for it, taken up again, or gone on from.

use std::path::Path;

use segno_agents::Baseline;
use segno_agents::TokenCounts;
use segno_core::Command;
use segno_core::CostBudget;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::TokenBudget;
use segno_core::UserKey;
use segno_core::event::Maker;
use segno_core::event::Project;
use segno_core::rows::RunRow;
use segno_store::Page;

use super::FreshSession;
use super::Intent;
use super::LaunchSettings;
use super::caps::check_budgets;
use crate::Engine;
use crate::Error;
use crate::NewSession;
use crate::frontend::Frontend;
use crate::resume::BranchWish;

/// How many of the newest runs are looked through before all of them are.
const NEWEST_RUNS: usize = 20;

/// A conversation to go on with.
pub(super) struct From {
    pub(super) native_id: String,
    pub(super) baseline: Baseline,
}

impl Engine {
    fn load_for_run(&self, session: SessionId, frontend: &dyn Frontend) -> Result<State, Error> {
        let loaded = self.load(session)?;
        for notice in &loaded.notices {
            frontend.damaged(session, notice);
        }
        Ok(loaded.state)
    }

    /// A session that has to be at work already.
    pub(super) fn load_to_start(&self, session: SessionId, frontend: &dyn Frontend) -> Result<State, Error> {
        let state = self.load_for_run(session, frontend)?;
        self.check_start(&state)?;
        match state.status {
            Status::Active => Ok(state),
            Status::Halted => Err(Error::BreakerOpen { session }),
            status if status.is_open() => {
                Err(Error::NotResumable { why: "the session was stopped meanwhile", status })
            }
            status => Err(Error::Ended { session, status }),
        }
    }

    /// The newest conversation of a session with an agent.
    pub(super) fn continued(
        &self,
        session: SessionId,
        agent: &str,
        fork: bool,
        frontend: &dyn Frontend,
    ) -> Result<From, Error> {
        let state = self.load_for_run(session, frontend)?;
        if !fork && let Some(alive) = crate::run::living_agent(&state) {
            return Err(Error::ConversationBusy { session, pid: alive.pid });
        }
        let rows = self.runs_before(session, agent)?;
        let last = rows.iter().find(|row| row.agent == agent);
        let native_id = last
            .and_then(|row| row.native_id.clone())
            .filter(|id| id != "?")
            .ok_or_else(|| Error::NoConversation { session, agent: agent.to_owned() })?;
        // Totals of a conversation go over all its runs; what is known of them is what the runs before have used.
        let used = rows
            .iter()
            .filter(|row| row.native_id.as_ref() == Some(&native_id))
            .filter_map(|row| row.tokens)
            .fold(TokenCounts::default(), |sum, tokens| {
                sum.plus(TokenCounts {
                    input: tokens.input,
                    cache_read: tokens.cache_read,
                    cache_write: tokens.cache_write,
                    output: tokens.output,
                    reasoning: tokens.reasoning,
                })
            });
        Ok(From { native_id, baseline: Baseline::Known(used) })
    }

    /// The runs of a session from the newest backwards, as far as they tell how its newest conversation with an agent
    /// stands: all of them only where the agent counts all that the conversation used.
    fn runs_before(&self, session: SessionId, agent: &str) -> Result<Vec<RunRow>, Error> {
        let counts = segno_agents::by_name(agent).is_none_or(|it| it.capabilities().counts_conversation);
        if !counts {
            let newest = self.store().page(session, List::Runs, &Page::newest(NEWEST_RUNS))?;
            let newest: Vec<RunRow> = newest.iter().map(segno_store::Item::row).collect();
            if newest.iter().any(|row| row.agent == agent) {
                return Ok(newest);
            }
        }
        Ok(self.items(session, List::Runs)?.iter().rev().map(segno_store::Item::row).collect())
    }

    /// The same, or the conversation of the session that this one goes on from, if it has none of its own yet.
    pub(super) fn continued_or_before(
        &self,
        session: SessionId,
        agent: &str,
        frontend: &dyn Frontend,
    ) -> Result<From, Error> {
        match self.continued(session, agent, false, frontend) {
            Err(none @ Error::NoConversation { .. }) => {
                match self.load_for_run(session, frontend)?.continues {
                    Some(before) => self.continued(before, agent, false, frontend).map_err(|_| none),
                    None => Err(none),
                }
            }
            found => found,
        }
    }

    /// What must be right before a run begins in an open session: it is on its branch, and the caps that were given
    /// with the run are its caps from now on.
    pub(super) fn prepare_open(
        &self,
        session: SessionId,
        caps: Vec<Command>,
        frontend: &dyn Frontend,
    ) -> Result<(), Error> {
        let state = self.load_for_run(session, frontend)?;
        if !state.status.is_open() {
            return Err(Error::Ended { session, status: state.status });
        }
        self.refuse_driven(session)?;
        self.settle_branch(&state, BranchWish::Same)?;
        if !caps.is_empty() {
            self.act_all(session, caps, None)?;
        }
        Ok(())
    }

    /// Takes an open session up again.
    pub(super) fn take_up(
        &self,
        session: SessionId,
        reset_breaker: bool,
        key: Option<UserKey>,
        frontend: &dyn Frontend,
    ) -> Result<State, Error> {
        let state = self.load_for_run(session, frontend)?;
        self.check_start(&state)?;
        let reset_breaker = match state.status {
            Status::Active => return Ok(state),
            Status::Paused | Status::Interrupted => false,
            Status::Halted if reset_breaker => true,
            Status::Halted => return Err(Error::BreakerOpen { session }),
            status @ (Status::Completed | Status::Aborted | Status::Failed) => {
                return Err(Error::Ended { session, status });
            }
        };
        let resume = Command::Resume { reset_breaker, details: Some("segno run".into()) };
        Ok(self.act_all(session, vec![resume], key)?.state)
    }

    /// Makes the session of a run.
    pub(super) fn create_for_run(
        &self,
        new: FreshSession,
        intent: &Intent,
        settings: &LaunchSettings,
        frontend: &dyn Frontend,
    ) -> Result<State, Error> {
        let before = match intent.continues {
            Some(session) => self.successor(&self.load_for_run(session, frontend)?)?,
            None => NewSession::default(),
        };
        let kept = intent.continues.is_some();
        // Whatever cap it gets, what was used of the one before counts.
        let budget = match new.budget {
            Some(asked) => TokenBudget { tokens_used: before.budget.tokens_used, ..asked },
            None if kept => before.budget,
            None => settings.budget,
        };
        let cost = match new.cost {
            Some(asked) => CostBudget { used_micros: before.cost.used_micros, ..asked },
            None if kept => before.cost,
            None => settings.cost,
        };
        if let Some(session) = intent.continues {
            check_budgets(session, &budget, &cost)?;
        }
        let description = intent.item.as_ref().map(|item| item.description.as_str());
        let acted = self.create(NewSession {
            topic: self.topic(&new, intent).or(before.topic.clone()),
            intent: description.filter(|text| !text.trim().is_empty()).map(Into::into),
            project: project_at(&settings.project),
            budget,
            cost,
            made_by: Maker::Run,
            ..before
        })?;
        for notice in &acted.notices {
            frontend.warn(notice);
        }
        self.begin_branch(acted.state, new.branch.as_deref())
    }

    /// Begins the branch of a new session, if it shall have one. One that cannot be made leaves no session behind that
    /// nobody worked in.
    ///
    /// # Errors
    /// If the branch cannot be made.
    pub fn begin_branch(&self, state: State, branch: Option<&str>) -> Result<State, Error> {
        let Some(name) = branch else { return Ok(state) };
        match self.start_branch(state.session_id, name) {
            Ok(acted) => Ok(acted.state),
            Err(why) => {
                self.delete(state.session_id)?;
                Err(why)
            }
        }
    }

    /// What a new session is about, in a few words: as said, or the first line of what is to be done.
    fn topic(&self, new: &FreshSession, intent: &Intent) -> Option<String> {
        let title = intent.item.as_ref().map(|item| item.title.as_str());
        self.topic_of([new.topic.as_deref(), title, Some(&intent.prompt), Some(&new.typed)])
    }

    /// The first line of the first text that has one, as a topic.
    pub(crate) fn topic_of<'a>(&self, texts: impl IntoIterator<Item = Option<&'a str>>) -> Option<String> {
        topic_of(&self.redactor(), texts)
    }
}

/// The first line of the first text that has one, as a topic.
pub(crate) fn topic_of<'a>(
    redactor: &segno_redact::Redactor,
    texts: impl IntoIterator<Item = Option<&'a str>>,
) -> Option<String> {
    let first = texts.into_iter().flatten().find_map(first_line)?;
    // A secret that is cut in two is not recognised any more.
    let clean = redactor.text(&first).into_owned();
    let clean: String = clean.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(segno_core::text::shorten(clean.trim(), 80)).filter(|topic| !topic.is_empty())
}

/// The first line with something on it, without the marks of a heading.
fn first_line(text: &str) -> Option<String> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches('#').trim());
    lines.into_iter().find(|line| !line.is_empty()).map(ToOwned::to_owned)
}

/// The project in a directory.
pub fn project_at(root: &Path) -> Project {
    const KINDS: &[(&str, &str)] = &[
        ("Cargo.toml", "rust"),
        ("package.json", "node"),
        ("pyproject.toml", "python"),
        ("go.mod", "go"),
        ("pom.xml", "java"),
        ("Gemfile", "ruby"),
    ];
    let kind = KINDS.iter().find(|(file, _)| root.join(file).exists()).map(|(_, kind)| (*kind).to_owned());
    Project {
        path: root.display().to_string(),
        name: root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        kind,
    }
}
