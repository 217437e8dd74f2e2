//! Many sessions, every command.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use segno_core::CostBudget;
use segno_core::Event;
use segno_core::EventKey;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::StoreId;
use segno_core::Summary;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::TokenBudget;
use segno_core::Uid;
use segno_core::UserKey;
use segno_core::day::DayCaps;
use segno_core::event::Maker;
use segno_core::event::Project;
use segno_core::event::Request;
use segno_core::event::Workflow;
use segno_redact::Redacted;
use segno_redact::Redactor;
use segno_store::Create;
use segno_store::Filter;
use segno_store::Item;
use segno_store::Listing;
use segno_store::Page;
use segno_store::Store;

use crate::Clock;
use crate::Error;
use crate::SystemClock;
use crate::view;

/// Under whom this process acts: a run and its driver's epoch, handed down by the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// The run.
    pub run: Option<String>,
    /// The epoch.
    pub epoch: Option<u64>,
    /// The session of that run.
    pub session: Option<SessionId>,
}

/// How an engine works.
pub struct EngineOptions {
    /// Takes secrets out before anything is written.
    pub redactor: Arc<Redactor>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Under whom it acts.
    pub actor: Actor,
    /// Whether and how the human-readable view is kept in projects.
    pub view: view::Options,
    /// Which file families of other session managers are kept current.
    pub layout: crate::layout::Options,
    /// Where facts are kept while the store cannot take them.
    pub spool: Option<PathBuf>,
    /// Where what agents print is kept until it is journaled.
    pub captures: Option<PathBuf>,
    /// Whether and how checkpoints hold the files of the working tree.
    pub tree: Option<crate::tree::TreeOptions>,
    /// Variables that say where agents keep their own records, for runs that recorded none.
    pub variables: std::collections::BTreeMap<String, String>,
    /// The longest line of an agent, in bytes, that is kept whole.
    pub line_limit: usize,
    /// What models cost whose agents do not say.
    pub prices: crate::cost::PriceList,
    /// What all sessions of a project may use in a day.
    pub day: DayCaps,
    /// The zone whose days they are.
    pub zone: crate::zones::LocalZone,
    /// Whether an import keeps the agents' own transcripts as they are.
    pub keep_transcripts: bool,
    /// Which tools ask memories.
    pub memory: crate::memory::MemoryTools,
    /// Until a run has begun, a store that somebody else writes to is waited for, and this says so.
    pub at_start: Option<crate::busy_start::BusyStart>,
    /// Hooks only watch: nothing that goes wrong with the record keeps the agent from working.
    pub watching: bool,
}

impl EngineOptions {
    /// With this redactor, and nothing else that is not there by itself.
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self {
            redactor,
            clock: Arc::new(SystemClock),
            actor: Actor::default(),
            view: view::Options::default(),
            layout: Default::default(),
            spool: None,
            captures: None,
            tree: None,
            variables: Default::default(),
            line_limit: segno_agents::DEFAULT_LINE_LIMIT,
            prices: Default::default(),
            day: DayCaps::default(),
            zone: jiff::tz::TimeZone::UTC.into(),
            keep_transcripts: false,
            memory: Default::default(),
            at_start: None,
            watching: false,
        }
    }
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self::new(Arc::new(Redactor::new(segno_redact::Options::default())))
    }
}

/// A session to be made.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// What it is about.
    pub topic: Option<String>,
    /// What the user wants.
    pub intent: Option<Text>,
    /// What it works on.
    pub project: Project,
    /// The workflow it follows.
    pub workflow: Option<Workflow>,
    /// The phase it starts in.
    pub phase: Option<String>,
    /// Tokens it may use.
    pub budget: TokenBudget,
    /// Money it may cost.
    pub cost: CostBudget,
    /// How it comes to be.
    pub made_by: Maker,
    /// The ended session it goes on from.
    pub continues: Option<SessionId>,
    /// The session whose cap it goes on with.
    pub cap_from: Option<SessionId>,
    /// The file that says what is to be done.
    pub file: Option<String>,
    /// Refuse if a session made by hand is open in the project.
    pub alone: bool,
    /// Its identity, for one that is made once however often it is asked for.
    pub uid: Option<Uid>,
    /// The name it gets if nobody has it, for one that was told of before it could be made.
    pub id: Option<SessionId>,
}

/// What came of a command.
#[derive(Clone, Debug)]
pub struct Acted {
    /// The session now.
    pub state: State,
    /// The newest event.
    pub seq: u64,
    /// What was recorded.
    pub events: Vec<Event>,
    /// The key was known: nothing was recorded again.
    pub repeated: bool,
    /// It came from a driver that had been replaced, and was recorded as late.
    pub late: bool,
    /// The session is driven by somebody, who was asked instead.
    pub requested: Option<Request>,
    /// The store could not take it; it is kept in the spool until the next command.
    pub spooled: bool,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// What a clean-up removes or would remove.
#[derive(Clone, Debug)]
pub struct Removal {
    /// The session in short.
    pub summary: Summary,
    /// Why.
    pub why: String,
}

/// Acts on the sessions of one store.
pub struct Engine {
    store: Box<dyn Store>,
    /// The one of the options, until it learns: then there is a newer one.
    redactor: RwLock<Arc<Redactor>>,
    pub(crate) options: EngineOptions,
    pub(crate) views: view::pace::ViewPace,
    pub(crate) trees: crate::tree::TreeMemory,
    pub(crate) records: crate::layout::Records,
    pub(crate) looks: Arc<crate::layout::Looks>,
}

impl Engine {
    /// On a store.
    pub fn new(store: Box<dyn Store>, options: EngineOptions) -> Self {
        let redactor = RwLock::new(Arc::clone(&options.redactor));
        let (views, trees, records, looks) = Default::default();
        Self { store, redactor, options, views, trees, records, looks }
    }

    /// The store.
    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Which store it is: files kept beside the store carry this.
    pub fn store_id(&self) -> StoreId {
        self.store.id()
    }

    /// Whether the store is a copy of one that is still there. Nothing is done on its behalf: what is kept beside it is
    /// the other one's.
    pub fn is_copy(&self) -> bool {
        matches!(self.store.identity().standing, segno_store::Standing::Copy { .. })
    }

    /// What takes secrets out.
    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.redactor.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps these out of the record from now on, too. What is known stays known.
    pub(crate) fn learn(&self, secrets: Vec<(String, String)>) {
        if let Some(knowing) = self.redactor().knowing(secrets) {
            *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(knowing);
        }
    }

    /// A key as it may be recorded: one that holds a secret is known by what only this installation can tell of it.
    pub fn fit_key(&self, key: UserKey) -> UserKey {
        let (redactor, typed) = (self.redactor(), key.former());
        match redactor.text(typed.as_str()) {
            std::borrow::Cow::Borrowed(_) => key,
            std::borrow::Cow::Owned(_) => {
                format!("key-{:016x}", redactor.fingerprint(typed.as_str())).parse().unwrap_or(key)
            }
        }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// Makes a session and writes its view.
    pub fn create(&self, new: NewSession) -> Result<Acted, Error> {
        let at = self.now();
        let key =
            new.uid.map_or_else(fresh_key, |uid| EventKey::unique(uuid::Uuid::from_bytes(*uid.as_bytes())));
        let uid = new.uid.unwrap_or_else(|| Uid::new(uuid::Uuid::now_v7()));
        let redactor = self.redactor();
        let alone_in = new.alone.then(|| new.project.path.clone());
        let wish = new.id.unwrap_or_else(|| SessionId::at(at));
        let first = move |id: SessionId| {
            let event = segno_core::create(segno_core::event::SessionCreated {
                id,
                uid,
                made_by: new.made_by,
                topic: new.topic.clone(),
                intent: new.intent.clone(),
                project: new.project.clone(),
                workflow: new.workflow.clone(),
                phase: new.phase.clone(),
                budget: new.budget,
                cost: new.cost,
                continues: new.continues,
                cap_from: new.cap_from,
                file: new.file.clone(),
            })?;
            Ok(vec![record(&redactor, event)?])
        };
        let create = Create { at, key, first: Box::new(first), wish, alone_in };
        let loaded = self.store.create(create)?;
        let mut notices = loaded.notices;
        self.refresh_view(&loaded.state, &mut notices);
        Ok(Acted {
            seq: loaded.state.seq,
            state: loaded.state,
            events: Vec::new(),
            repeated: false,
            late: false,
            requested: None,
            spooled: false,
            notices,
        })
    }

    /// A session's state, and what is wrong with its record.
    pub fn load(&self, session: SessionId) -> Result<segno_store::Loaded, Error> {
        Ok(self.store.load(session)?)
    }

    /// Sessions in short, the most recently changed first: the one list of sessions, whoever shows it.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Summary>, Error> {
        Ok(self.listing(filter)?.sessions)
    }

    /// The same, with how many there are and which of them cannot be read. A summary that cannot be read is made anew
    /// from the session, as far as that can be.
    pub fn listing(&self, filter: &Filter) -> Result<Listing, Error> {
        let mut listing = self.store.list(filter)?;
        for id in listing.unreadable.iter().filter_map(|(id, _)| *id) {
            if let Ok(loaded) = self.store.load(id)
                && let Some(shown) = listing.sessions.iter_mut().find(|summary| summary.session_id == id)
            {
                *shown = Summary::from(&loaded.state);
            }
        }
        Ok(listing)
    }

    /// Every row of a list, in order, read page by page.
    pub fn items(&self, session: SessionId, list: List) -> Result<Vec<Item>, Error> {
        let mut all: Vec<Item> = Vec::new();
        loop {
            let after =
                all.last().map(|item| segno_store::ItemPosition { seq: item.seq, key: item.key.clone() });
            let page = Page { after, limit: 1_000, newest_first: false };
            let items = self.store.page(session, list, &page)?;
            if items.is_empty() {
                return Ok(all);
            }
            all.extend(items);
        }
    }

    /// The whole of a text that may have been set aside.
    pub fn whole(&self, text: &Text) -> Result<String, Error> {
        match text {
            Text::Whole(text) => Ok(text.clone()),
            Text::Aside(aside) => {
                let hash = parse_hash(&aside.hash)
                    .ok_or_else(|| Error::Store(segno_store::Error::NoBlob(aside.hash.clone())))?;
                Ok(self.store.blob(&hash)?)
            }
        }
    }

    /// Removes a session and its view; false if there is none. Nobody may be driving it.
    pub fn delete(&self, session: SessionId) -> Result<bool, Error> {
        self.delete_if(session, None)
    }

    /// The same, if nothing was recorded after this event.
    pub(crate) fn delete_at(&self, session: SessionId, seq: u64) -> Result<bool, Error> {
        self.delete_if(session, Some(seq))
    }

    fn delete_if(&self, session: SessionId, at: Option<u64>) -> Result<bool, Error> {
        let over = match self.store.lease(session) {
            Err(segno_store::Error::NotFound(_)) => return Ok(false),
            Err(why) => return Err(why.into()),
            Ok(Some(lease)) if crate::lease::life(&lease).may_live() => {
                return Err(segno_store::Error::Held(Box::new(lease)).into());
            }
            // Somebody may take it, or be heard of again, before it is removed.
            Ok(lease) => lease.as_ref().map(segno_store::Over::from),
        };
        // One that is removed only as it was seen has ended, and nothing is done to it.
        if at.is_none() && over.is_none() {
            match self.end_left_agent(session) {
                // What is damaged can be removed all the same.
                Err(Error::SessionCorrupted { .. }) => None,
                ended => ended?,
            };
        }
        let project = self.store.load(session).map(|loaded| PathBuf::from(loaded.state.project.path));
        let conversations = self.conversations_before_removal(session);
        let deleted = match at {
            Some(seq) => self.store.delete_at(session, seq, over)?,
            None => self.store.delete(session, over)?,
        };
        let project = project.ok();
        if let Some(project) = &project {
            view::remove(project, session, &self.options.view);
        }
        if deleted {
            self.unindex(session);
            self.note_removed(session, &conversations);
            // One that is cleaned up has an archive of its own, and its agent may yet go on.
            if at.is_none() {
                self.drop_transcripts(&conversations);
            }
            self.remove_captures(session);
            self.remove_past(session);
            if let Some(project) = project {
                self.remove_all_shown(&project, session);
            }
        }
        Ok(deleted)
    }

    /// Ended sessions older than `days`, and those beyond the newest `keep`; open and pinned ones never.
    pub fn old_sessions(
        &self,
        days: u32,
        keep: Option<usize>,
        project: Option<&Path>,
    ) -> Result<Vec<Removal>, Error> {
        let cutoff = self.now().plus_seconds(-i64::from(days) * 86_400);
        let filter = Filter {
            statuses: vec![Status::Completed, Status::Aborted, Status::Failed],
            project: project.map(|path| path.display().to_string()),
            pinned: Some(false),
            ..Filter::default()
        };
        let mut removals = Vec::new();
        for (index, summary) in self.list(&filter)?.into_iter().enumerate() {
            // What was taken over from elsewhere is as old as it is here: nobody has had time to look at it.
            let ended = match summary.made_by {
                Maker::Import => summary.updated_at,
                _ => summary.completed_at.unwrap_or(summary.updated_at),
            };
            let why = if ended <= cutoff {
                format!("{} more than {days} days ago", summary.status)
            } else if keep.is_some_and(|keep| index >= keep) {
                format!("beyond the newest {}", keep.unwrap_or(0))
            } else {
                continue;
            };
            removals.push(Removal { summary, why });
        }
        Ok(removals)
    }

    /// Writes the view of a session now.
    pub fn write_view(&self, session: SessionId) -> Result<PathBuf, Error> {
        let loaded = self.store.load(session)?;
        view::write(self, &loaded.state).map(|written| written.path)
    }

    pub(crate) fn refresh_view(&self, state: &State, notices: &mut Vec<String>) {
        self.refresh_view_as(state, false, notices);
    }

    /// The same; whether what happened must be seen by those who follow the copies for other tools.
    pub(crate) fn refresh_view_as(&self, state: &State, at_once: bool, notices: &mut Vec<String>) {
        if let Some(spool) = &self.options.spool {
            crate::capped::note(spool, state);
        }
        self.write_view_in_turn(state, at_once, notices);
    }

    /// The view, and the copies for other tools.
    pub(crate) fn write_view_now(&self, state: &State, notices: &mut Vec<String>) {
        self.refresh_layouts(state, notices);
        if !self.options.view.enabled {
            return;
        }
        match view::write(self, state) {
            Ok(written) => notices.extend(written.notices),
            // The record is safe; the view is only a picture of it.
            Err(why) => {
                notices.push(format!("the change is recorded, but session.yaml was not written: {why}"))
            }
        }
    }
}

/// A key that nobody else has.
pub fn fresh_key() -> EventKey {
    EventKey::unique(uuid::Uuid::now_v7())
}

pub(crate) fn record(redactor: &Redactor, event: Event) -> Result<Redacted, segno_core::Refusal> {
    redactor.record(event).map_err(|why| segno_core::Refusal::bad("event", why.to_string()))
}

pub(crate) fn unrecordable(why: segno_redact::RecordError) -> Error {
    Error::Refused(segno_core::Refusal::bad("event", why.to_string()))
}

/// Sixty-four hexadecimal digits.
pub(crate) fn parse_hash(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text).ok().map(|hash| *hash.as_bytes())
}
