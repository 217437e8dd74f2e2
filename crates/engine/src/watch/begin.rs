//! The run of an agent that somebody else started: begun by its hook, or later from what a hook kept in the spool.

use std::path::Path;
use std::path::PathBuf;

use segno_agents::Agent;
use segno_core::Command;
use segno_core::CostBudget;
use segno_core::RunId;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::TokenBudget;
use segno_core::event::Holder;
use segno_core::event::Maker;
use segno_core::event::Project;
use serde::Deserialize;
use serde::Serialize;

use super::Entries;
use super::Entry;
use crate::Actor;
use crate::Engine;
use crate::Error;
use crate::NewSession;
use crate::act::Acting;
use crate::run::WatchedRun;
use crate::run::WatchedStanding;

/// A conversation and the process that has it.
pub(super) struct Conversation<'a> {
    pub(super) agent: &'a dyn Agent,
    pub(super) native_id: &'a str,
    pub(super) holder: &'a Holder,
    pub(super) directory: &'a Path,
    /// The directory that the agent's logs are in.
    pub(super) logs: Option<PathBuf>,
    /// A person has its terminal.
    pub(super) interactive: bool,
}

/// How a conversation began that no store could take then. It lies in the spool with what was told of it, so that whoever
/// takes that in can make its session, also when its agent is never heard of again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Beginning {
    /// The store that could not take it.
    store: String,
    agent: String,
    native_id: String,
    project: Project,
    budget: TokenBudget,
    cost: CostBudget,
    directory: PathBuf,
    /// The agent's process, if the system tells.
    holder: Option<Holder>,
    logs: Option<PathBuf>,
    interactive: bool,
    /// How the agent stood when this was told.
    standing: WatchedStanding,
}

impl Beginning {
    pub(super) fn of(visit: &super::WatchVisit, native_id: &str) -> Self {
        let standing = match visit.report.moment {
            Some(segno_agents::hook::Moment::Waits) => WatchedStanding::Waits,
            Some(segno_agents::hook::Moment::Left) => WatchedStanding::Left,
            _ => WatchedStanding::Works,
        };
        let agent = visit.agent.as_ref();
        Self {
            store: visit.setup.store.to_string(),
            agent: agent.name().to_owned(),
            native_id: native_id.to_owned(),
            project: visit.new.project.clone(),
            budget: visit.new.budget,
            cost: visit.new.cost,
            directory: visit.directory.clone(),
            holder: visit.caller.map(|caller| super::caller::holder(caller, agent.name())),
            logs: logs_of(agent, &visit.setup.variables),
            interactive: visit.caller.is_some_and(super::caller::is_interactive),
            standing,
        }
    }
}

/// Where an agent keeps its logs.
pub(super) fn logs_of(
    agent: &dyn Agent,
    variables: &std::collections::BTreeMap<String, String>,
) -> Option<PathBuf> {
    let variable = |name: &str| variables.get(name).cloned();
    let location = agent.conversation_log().and_then(|log| log.location());
    location.and_then(|location| location.root(&variable)).map(PathBuf::from)
}

impl Engine {
    /// Takes the lease for the agent and begins its run. None if another process has it.
    pub(super) fn begin_conversation(
        &self,
        state: &State,
        talk: &Conversation<'_>,
        found: bool,
    ) -> Result<Option<(RunId, u64)>, Error> {
        let session = state.session_id;
        let epoch = match self.store().acquire(session, talk.holder, None) {
            Err(segno_store::Error::Held(_)) => return self.held_conversation(state, talk.holder),
            lease => lease?.epoch,
        };
        let run = RunId::new(uuid::Uuid::now_v7());
        if let Err(why) = self.begin_conversation_as(state, talk, found, epoch, &run) {
            self.store().release(session, epoch)?;
            tracing::warn!(%session, %why, "a run that is watched could not begin: it is only recorded");
            return match why {
                Error::Refused(_) => Ok(None),
                other => Err(other),
            };
        }
        Ok(Some((run, epoch)))
    }

    /// The run that goes on already, if this agent holds the session: only the note of it was lost.
    fn held_conversation(&self, state: &State, holder: &Holder) -> Result<Option<(RunId, u64)>, Error> {
        let lease = self.store().lease(state.session_id)?.filter(|lease| lease.holder == *holder);
        let run = state.run.as_ref().filter(|run| run.is_running()).and_then(|run| run.id.parse().ok());
        Ok(run.zip(lease.map(|lease| lease.epoch)))
    }

    fn begin_conversation_as(
        &self,
        state: &State,
        talk: &Conversation<'_>,
        found: bool,
        epoch: u64,
        run: &RunId,
    ) -> Result<(), Error> {
        let mut commands = Vec::new();
        if matches!(state.status, Status::Paused | Status::Interrupted) {
            let details = Some(format!("{} was started by hand", talk.agent.name()).into());
            commands.push(Command::Resume { reset_breaker: false, details });
        }
        commands.push(Command::AttachDriver { epoch, holder: talk.holder.clone() });
        let acting = Acting::driver(&Actor::default(), Some(epoch), None);
        self.act_as(state.session_id, commands, acting)?;
        self.begin_watched(&WatchedRun {
            session: state.session_id,
            run,
            epoch,
            agent: talk.agent,
            holder: talk.holder,
            native_id: talk.native_id,
            resumed: found,
            directory: talk.directory,
            logs: talk.logs.clone(),
            interactive: talk.interactive,
        })?;
        Ok(())
    }

    /// Whether a conversation was to be recorded in this store.
    pub(crate) fn is_beginning_ours(&self, beginning: &Beginning) -> bool {
        beginning.store == self.store().location()
    }

    /// Makes the session of a conversation that began while there was no store for it, as its first hook would have done.
    /// Answers with its run, if it has one.
    pub(crate) fn make_spooled(
        &self,
        session: SessionId,
        beginning: &Beginning,
    ) -> Result<Option<RunId>, Error> {
        let state_dir = self.options.spool.as_deref().and_then(Path::parent).map(Path::to_owned);
        let Some(state_dir) = state_dir else { return Ok(None) };
        let Some(agent) = segno_agents::by_name(&beginning.agent) else { return Ok(None) };
        let entries = Entries::of(&state_dir, &beginning.agent, &beginning.native_id);
        let store = self.store_id();
        let alone = match self.load(session) {
            // Its agent goes on with it, or somebody took in what was told before this.
            Ok(_) => None,
            Err(_) => entries.lock(),
        };
        let noted = || entries.read(&beginning.native_id).filter(|entry| entry.session == session);
        if self.load(session).is_err() {
            let new = NewSession {
                made_by: Maker::Run,
                project: beginning.project.clone(),
                budget: beginning.budget,
                cost: beginning.cost,
                id: Some(session),
                ..NewSession::default()
            };
            let state = self.create(new)?.state;
            if let Some(holder) = beginning.holder.as_ref().filter(|_| state.session_id == session) {
                let talk = Conversation {
                    agent: agent.as_ref(),
                    native_id: &beginning.native_id,
                    holder,
                    directory: &beginning.directory,
                    logs: beginning.logs.clone(),
                    interactive: beginning.interactive,
                };
                if let Some((run, epoch)) = self.begin_conversation(&state, &talk, false)? {
                    let entry = Entry {
                        run: Some(run.to_string()),
                        epoch: Some(epoch),
                        store: Some(store),
                        pid: holder.pid,
                        start: holder.process_start,
                        ..Entry::new(&beginning.native_id, session)
                    };
                    entries.write(&entry).map_err(|why| Error::file(&state_dir, why))?;
                }
            }
        }
        drop(alone);
        let run = noted().filter(|entry| entry.store == Some(store)).and_then(|entry| entry.run);
        if let Some(run) = &run {
            self.note_watched(run, beginning.standing);
        }
        Ok(run.and_then(|run| run.parse().ok()))
    }
}
