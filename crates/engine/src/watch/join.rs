//! The session of a conversation: known, taken up again, or made.

use segno_core::RunId;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::event::Maker;
use segno_core::state::RunMark;
use segno_store::Filter;

use super::Entries;
use super::Entry;
use super::WatchVisit;
use super::begin::Conversation;
use super::begin::logs_of;
use super::caller::caller_words;
use super::caller::holder;
use super::caller::is_interactive;
use crate::Actor;
use crate::Engine;
use crate::Error;
use crate::NewSession;
use crate::tree::At;

/// How many of the newest sessions of a project are looked through for a conversation that nobody remembers.
const LOOKED_AT: usize = 50;

/// What an agent calls the beginning of a conversation that is a copy of another one.
const FORK: &str = "fork";

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
        // Somebody who is at it for that long may be making its session: the spool takes this then.
        let Some(alone) = entries.lock() else {
            let why = std::io::Error::from(std::io::ErrorKind::WouldBlock);
            return Err(Error::file(&self.setup.state, why));
        };
        let known = entries.read(native_id);
        if let Some(entry) = known.clone().filter(ours) {
            return Ok(Joined::new(&entry, false));
        }
        let known = known.filter(|entry| entry.store.is_none_or(|known| known == store));
        let (named, state) = self.session(engine, entries, known, native_id)?;
        let found = named.continues.is_some() || state.run.is_some();
        let mut entry = Entry {
            store: Some(store),
            session: state.session_id,
            run: None,
            epoch: None,
            pid: self.caller.map_or(0, |caller| caller.pid),
            start: self.caller.map_or(0, |caller| caller.start),
            brief_due: state.status == Status::Interrupted && self.brief,
            ..named.clone()
        };
        if let Some((run, epoch)) = self.begin(engine, &state, native_id, found)? {
            (entry.run, entry.epoch) = (Some(run.to_string()), Some(epoch));
        }
        // Whoever is only recorded leaves the note to the one that holds the session.
        if entry.run.is_some() || named.store.is_none() {
            self.note(entries, &entry)?;
        }
        drop(alone);
        if named.store.is_none() {
            // What was told before there was a session is waiting for it.
            let _ = engine.take_in_spool();
        }
        Ok(Joined::new(&entry, entry.run.is_some()))
    }

    /// The session, settled, and what was noted of it before. Its name and identity are noted before it is made, so that
    /// whoever has to finish what this hook began makes no second one.
    fn session(
        &self,
        engine: &Engine,
        entries: &Entries,
        known: Option<Entry>,
        native_id: &str,
    ) -> Result<(Entry, State), Error> {
        let named = match known {
            Some(entry) => entry,
            None => self.named(engine, entries, native_id)?,
        };
        let there = engine.load(named.session).ok().map(|loaded| loaded.state);
        let begun = match there.filter(|state| named.uid.is_none_or(|uid| uid == state.uid)) {
            Some(_) => {
                engine.settle_session(named.session)?;
                let state = engine.load(named.session)?.state;
                if state.status.is_open() {
                    return Ok((named, state));
                }
                // What somebody called done stays done.
                let continues = Some(state.session_id);
                Entry { continues, used: named.used, ..Entry::beginning(native_id, engine.now()) }
            }
            None if named.uid.is_some() && named.store.is_none() => named.clone(),
            // It was removed, or a program that gave no identities noted it.
            None => Entry { session: named.session, ..Entry::beginning(native_id, engine.now()) },
        };
        if begun.uid != named.uid {
            self.note(entries, &begun)?;
        }
        let new = NewSession {
            made_by: Maker::Run,
            continues: begun.continues,
            uid: begun.uid,
            id: Some(begun.session),
            ..self.new.clone()
        };
        let state = engine.create(new)?.state;
        Ok((begun, state))
    }

    /// The name of a session that no note tells: one that had the conversation before, or a new one.
    fn named(&self, engine: &Engine, entries: &Entries, native_id: &str) -> Result<Entry, Error> {
        if let Some(session) = self.remembered(engine, native_id) {
            return Ok(Entry::new(native_id, session));
        }
        let named = entries.claim(native_id, engine.now(), || self.forked_from(engine));
        let named = named.map_err(|why| Error::file(&self.setup.state, why))?;
        if named.store.is_none_or(|known| known == engine.store_id()) {
            return Ok(named);
        }
        // The note of another store's session: from now on it is about one of this store.
        let named =
            Entry { continues: self.forked_from(engine), ..Entry::beginning(native_id, engine.now()) };
        self.note(entries, &named)?;
        Ok(named)
    }

    fn note(&self, entries: &Entries, entry: &Entry) -> Result<(), Error> {
        entries.write(entry).map_err(|why| Error::file(&self.setup.state, why))
    }

    /// A session of this project that had the conversation last, for one of which no note is left.
    fn remembered(&self, engine: &Engine, native_id: &str) -> Option<SessionId> {
        self.newest_run(engine, |run| run.conversation() == Some(native_id))
    }

    /// The session of the conversation that a new one was copied from: the agent was started with its name, or says that it
    /// made a copy of what this process had.
    fn forked_from(&self, engine: &Engine) -> Option<SessionId> {
        let caller = self.caller?;
        let words = caller_words(caller);
        let copies = self.report.events.iter().any(
            |event| matches!(event, segno_agents::AgentEvent::Hook { name: Some(name), .. } if name == FORK),
        );
        self.newest_run(engine, |run| {
            let named = run.conversation().is_some_and(|known| words.iter().any(|word| word == known));
            named || (copies && (run.pid, run.process_start) == (caller.pid, caller.start))
        })
    }

    /// The newest session of this project with such a run of this agent.
    fn newest_run(&self, engine: &Engine, is_it: impl Fn(&RunMark) -> bool) -> Option<SessionId> {
        let project = Some(self.new.project.path.clone());
        let filter = Filter { project, limit: Some(LOOKED_AT), ..Filter::default() };
        let sessions = engine.list(&filter).ok()?;
        sessions.into_iter().map(|summary| summary.session_id).find(|session| {
            let run = engine.load(*session).ok().and_then(|loaded| loaded.state.run);
            run.is_some_and(|run| run.agent == self.agent.name() && is_it(&run))
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
