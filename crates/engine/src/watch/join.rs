//! The session of a conversation: known, taken up again, or made.

use segno_agents::TokenCounts;
use segno_core::RunId;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::event::Maker;
use segno_store::Filter;

use super::Entries;
use super::Entry;
use super::WatchVisit;
use super::begin::Conversation;
use super::begin::logs_of;
use super::caller::holder;
use super::caller::is_interactive;
use crate::Actor;
use crate::Engine;
use crate::Error;
use crate::NewSession;
use crate::tree::At;

/// How many of the newest sessions of a project are looked through for a conversation that nobody remembers.
const LOOKED_AT: usize = 50;

/// A conversation and where it is recorded.
pub(super) struct Joined {
    pub(super) native_id: String,
    pub(super) session: SessionId,
    /// Without a run it is only recorded: another process has the same conversation, or none can be seen.
    pub(super) actor: Actor,
    pub(super) is_new_run: bool,
}

impl Joined {
    fn new(entry: &Entry, is_new_run: bool) -> Self {
        let actor = Actor { run: entry.run.clone(), epoch: entry.epoch, ..Actor::default() };
        Self { native_id: entry.native_id.clone(), session: entry.session, actor, is_new_run }
    }

    pub(super) fn at(&self) -> At {
        At { epoch: self.actor.epoch, run: self.actor.run.clone(), ..At::default() }
    }
}

impl WatchVisit {
    pub(super) fn join(&self, engine: &Engine, entries: &Entries, native_id: &str) -> Result<Joined, Error> {
        let store = engine.store_id();
        let ours = |entry: &Entry| entry.is_of(self.caller, store);
        if let Some(entry) = entries.read(native_id).filter(ours) {
            return Ok(Joined::new(&entry, false));
        }
        let _alone = entries.lock();
        let known = entries.read(native_id);
        if let Some(entry) = known.clone().filter(ours) {
            return Ok(Joined::new(&entry, false));
        }
        let known = known.filter(|entry| entry.store.is_none_or(|known| known == store));
        let (state, found) = self.session(engine, known.as_ref(), native_id)?;
        let mut entry = Entry {
            store: Some(store),
            pid: self.caller.map_or(0, |caller| caller.pid),
            start: self.caller.map_or(0, |caller| caller.start),
            brief_due: state.status == Status::Interrupted && self.brief,
            used: known.as_ref().map_or(TokenCounts::default(), |known| known.used),
            ..Entry::new(native_id, state.session_id)
        };
        if let Some((run, epoch)) = self.begin(engine, &state, native_id, found)? {
            (entry.run, entry.epoch) = (Some(run.to_string()), Some(epoch));
        }
        // Whoever is only recorded leaves the note to the one that holds the session.
        if entry.run.is_some() || known.is_none() {
            entries.write(&entry).map_err(|why| Error::file(&self.setup.state, why))?;
        }
        Ok(Joined::new(&entry, entry.run.is_some()))
    }

    /// The session, settled, and whether it was there before.
    fn session(
        &self,
        engine: &Engine,
        known: Option<&Entry>,
        native_id: &str,
    ) -> Result<(State, bool), Error> {
        let noted = known.filter(|entry| engine.load(entry.session).is_ok()).map(|entry| entry.session);
        let found = noted.or_else(|| self.remembered(engine, native_id));
        let new = |continues: Option<SessionId>, id: Option<SessionId>| {
            let new = NewSession { made_by: Maker::Run, continues, id, ..self.new.clone() };
            let state = engine.create(new)?.state;
            // What was told before there was a store is waiting for it.
            let _ = engine.take_in_spool();
            Ok((engine.load(state.session_id)?.state, continues.is_some()))
        };
        let Some(session) = found else {
            return new(None, known.map(|entry| entry.session));
        };
        engine.settle_session(session)?;
        let state = engine.load(session)?.state;
        // What somebody called done stays done.
        if !state.status.is_open() {
            return new(Some(session), None);
        }
        Ok((state, true))
    }

    /// A session of this project that had the conversation last, for one of which no note is left.
    fn remembered(&self, engine: &Engine, native_id: &str) -> Option<SessionId> {
        let project = Some(self.new.project.path.clone());
        let filter = Filter { project, limit: Some(LOOKED_AT), ..Filter::default() };
        let sessions = engine.list(&filter).ok()?;
        sessions.into_iter().map(|summary| summary.session_id).find(|session| {
            let run = engine.load(*session).ok().and_then(|loaded| loaded.state.run);
            run.is_some_and(|run| run.agent == self.agent.name() && run.conversation() == Some(native_id))
        })
    }

    /// Takes the lease for the agent and begins its run. None if another process has it, or the agent cannot be seen.
    fn begin(
        &self,
        engine: &Engine,
        state: &State,
        native_id: &str,
        found: bool,
    ) -> Result<Option<(RunId, u64)>, Error> {
        let Some(caller) = self.caller else { return Ok(None) };
        let agent = self.agent.as_ref();
        let talk = Conversation {
            agent,
            native_id,
            holder: &holder(caller, agent.name()),
            directory: &self.directory,
            logs: logs_of(agent, &engine.options.variables),
            interactive: is_interactive(caller),
        };
        engine.begin_conversation(state, &talk, found)
    }
}
