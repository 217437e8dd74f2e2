//! The run of an agent that somebody else started: begun by its hook, or later from what a hook kept in the spool.

use std::path::Path;
use std::path::PathBuf;

use segno_agents::Agent;
use segno_core::Command;
use segno_core::CostBudget;
use segno_core::Fact;
use segno_core::RunId;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::TokenBudget;
use segno_core::Uid;
use segno_core::event::Holder;
use segno_core::event::Maker;
use segno_core::event::Project;
use segno_core::state::RunMark;
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

/// Who holds the session of a conversation.
enum Held {
    /// Its agent, in this run.
    Running(RunId, u64),
    /// Its agent, without a run.
    Idle(u64),
    /// Somebody else.
    ByAnother,
}

/// How a conversation began that no store could take then. It lies in the spool with what was told of it, so that whoever
/// takes that in can make its session, also when its agent is never heard of again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Beginning {
    /// The store that could not take it.
    store: String,
    agent: String,
    native_id: String,
    /// The identity of its session. Earlier programs gave it none.
    #[serde(default)]
    uid: Option<Uid>,
    /// What it is about, if it was asked something here. Without it, the first prompt that a store can take names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    /// The ended session that it goes on from.
    #[serde(default)]
    continues: Option<SessionId>,
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
    pub(super) fn of(visit: &super::WatchVisit, entry: &Entry, topic: Option<String>) -> Self {
        let standing = match visit.report.moment {
            Some(segno_agents::hook::Moment::Waits) => WatchedStanding::Waits,
            Some(segno_agents::hook::Moment::Left) => WatchedStanding::Left,
            _ => WatchedStanding::Works,
        };
        let agent = visit.agent.as_ref();
        Self {
            store: visit.setup.store.to_string(),
            agent: agent.name().to_owned(),
            native_id: entry.native_id.clone(),
            uid: entry.uid,
            topic,
            continues: entry.continues,
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
            Err(segno_store::Error::Held(_)) => match self.held_conversation(state, talk.holder)? {
                Held::Running(run, epoch) => return Ok(Some((run, epoch))),
                Held::Idle(epoch) => epoch,
                Held::ByAnother => return Ok(None),
            },
            lease => lease?.epoch,
        };
        let run = RunId::new(uuid::Uuid::now_v7());
        if let Err(why) = self.begin_conversation_as(state, talk, found, epoch, &run) {
            // A store that is busy now keeps the lease: the next hook goes on with it.
            let _ = self.store().release(session, epoch);
            tracing::warn!(%session, %why, "a run that is watched could not begin: it is only recorded");
            return match why {
                Error::Refused(_) => Ok(None),
                other => Err(other),
            };
        }
        Ok(Some((run, epoch)))
    }

    /// What this agent has of a session that somebody holds. Its run goes on, and only the note of it was lost; or a hook
    /// took the lease and could do no more.
    fn held_conversation(&self, state: &State, holder: &Holder) -> Result<Held, Error> {
        let Some(lease) = self.store().lease(state.session_id)?.filter(|lease| lease.holder == *holder)
        else {
            return Ok(Held::ByAnother);
        };
        // Somebody may have begun it since the state was read.
        let run = self.load(state.session_id)?.state.run.filter(RunMark::is_running);
        Ok(match run.and_then(|run| run.id.parse().ok()) {
            Some(run) => Held::Running(run, lease.epoch),
            None => Held::Idle(lease.epoch),
        })
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

    /// Makes the session of a conversation that began while there was no store for it, as its first hook would have done,
    /// unless that or somebody else did. Answers with it, and with its run, if it has one.
    pub(crate) fn make_spooled(
        &self,
        name: SessionId,
        beginning: &Beginning,
    ) -> Result<(SessionId, Option<RunId>), Error> {
        let state_dir = self.options.spool.as_deref().and_then(Path::parent).map(Path::to_owned);
        let agent = segno_agents::by_name(&beginning.agent);
        let Some((state_dir, agent)) = state_dir.zip(agent) else { return Ok((name, None)) };
        let entries = Entries::of(&state_dir, &beginning.agent, &beginning.native_id);
        let state = match self.made_of(name, beginning) {
            // Its agent goes on with it, or somebody took in what was told before this.
            Some(state) if state.run.is_some() => state,
            _ => {
                // Somebody who is at it for that long will be done when the next one comes.
                let Some(_alone) = entries.lock() else {
                    return Err(segno_store::Error::Busy { location: self.store().location() }.into());
                };
                let state = self.make_of(name, beginning)?;
                if state.run.is_none() {
                    self.run_spooled(&state, beginning, agent.as_ref(), &entries)?;
                }
                state
            }
        };
        let session = state.session_id;
        if let Some(topic) = beginning.topic.clone().filter(|_| state.topic.is_none()) {
            self.act(session, Fact::TopicSet { topic })?;
        }
        let noted = entries.read(&beginning.native_id).filter(|entry| entry.session == session);
        let run = noted.filter(|entry| entry.store == Some(self.store_id())).and_then(|entry| entry.run);
        if let Some(run) = &run {
            self.note_watched(run, beginning.standing);
        }
        Ok((session, run.and_then(|run| run.parse().ok())))
    }

    /// The session of a conversation, if it is made and nobody else's.
    fn made_of(&self, name: SessionId, beginning: &Beginning) -> Option<State> {
        let state = self.load(name).ok()?.state;
        beginning.uid.is_none_or(|uid| uid == state.uid).then_some(state)
    }

    fn make_of(&self, name: SessionId, beginning: &Beginning) -> Result<State, Error> {
        if let Some(state) = self.made_of(name, beginning) {
            return Ok(state);
        }
        let new = NewSession {
            made_by: Maker::Run,
            project: beginning.project.clone(),
            budget: beginning.budget,
            cost: beginning.cost,
            continues: beginning.continues,
            uid: beginning.uid,
            id: Some(name),
            ..NewSession::default()
        };
        Ok(self.create(new)?.state)
    }

    /// Begins the run of an agent that is known from the spool.
    fn run_spooled(
        &self,
        state: &State,
        beginning: &Beginning,
        agent: &dyn Agent,
        entries: &Entries,
    ) -> Result<(), Error> {
        let Some(holder) = &beginning.holder else { return Ok(()) };
        let talk = Conversation {
            agent,
            native_id: &beginning.native_id,
            holder,
            directory: &beginning.directory,
            logs: beginning.logs.clone(),
            interactive: beginning.interactive,
        };
        let Some((run, epoch)) = self.begin_conversation(state, &talk, beginning.continues.is_some())? else {
            return Ok(());
        };
        let entry = Entry {
            uid: beginning.uid,
            run: Some(run.to_string()),
            epoch: Some(epoch),
            store: Some(self.store_id()),
            pid: holder.pid,
            start: holder.process_start,
            ..Entry::new(&beginning.native_id, state.session_id)
        };
        entries.write(&entry).map_err(|why| Error::file(&beginning.directory, why))
    }
}
