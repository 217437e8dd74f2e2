//! One conversation of an agent becomes a session.
//!
//! A stretch of it that is of one day and one model is a run: what was used counts where and at what price it was used.

use std::collections::HashMap;
use std::collections::HashSet;

use segno_agents::AgentEvent;
use segno_agents::ConversationLog;
use segno_agents::Envelope;
use segno_agents::InputSource;
use segno_agents::LogUse;
use segno_agents::Reader;
use segno_agents::ReaderOptions;
use segno_agents::TokenCounts;
use segno_core::Event;
use segno_core::EventKey;
use segno_core::Fact;
use segno_core::RunId;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::Uid;
use segno_core::event as ev;
use segno_core::event::CallEnd;
use segno_core::event::Maker;
use segno_core::event::PauseReason;
use segno_core::event::Project;
use segno_core::event::Source;
use segno_store::Append;
use segno_store::Create;
use segno_store::What;

use super::AgentImport;
use crate::Engine;
use crate::Error;
use crate::engine::record;
use crate::engine::unrecordable;

/// How many appends are made at once.
const BATCH: usize = 400;
/// How many bytes of texts they have at most, about.
const BATCH_BYTES: usize = 4 << 20;
/// Open calls that are remembered; more are nobody's.
const OPEN_CALLS: usize = 10_000;

/// A time in which segno recorded a conversation itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) session: SessionId,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

/// What is known of a conversation before it is taken in.
#[derive(Default)]
pub(super) struct Origin {
    /// The session it was taken into before.
    pub(super) session: Option<SessionId>,
    /// The session that it goes on from.
    pub(super) continues: Option<SessionId>,
    /// Where the agent worked.
    pub(super) cwd: Option<String>,
    /// What segno recorded itself.
    pub(super) windows: Vec<Window>,
    /// Messages that are another conversation's.
    pub(super) copied: HashSet<String>,
}

/// Takes in one conversation.
pub(super) struct Taker<'a> {
    engine: &'a Engine,
    agent: &'static str,
    conversation: String,
    origin: Origin,
    session: Option<SessionId>,
    /// It stays paused when more of it is taken in: nobody is at work.
    paused: bool,
    /// Its end is somebody's word: it stays.
    is_over: bool,
    has_topic: bool,
    pending: Vec<Append>,
    pending_bytes: usize,
    stretch: Option<Stretch>,
    named: (Option<String>, Option<String>),
    open: HashMap<String, String>,
    last_at: Option<Timestamp>,
    last_key: String,
    pub(super) import: &'a mut AgentImport,
    /// Whether anything new was recorded.
    pub(super) is_changed: bool,
    pub(super) is_new: bool,
    /// Something of it was recorded by segno itself.
    pub(super) is_recorded: bool,
}

/// A part of a conversation that is of one day and one model.
struct Stretch {
    run: RunId,
    model: Option<String>,
    day: String,
    began: Timestamp,
    turns: u64,
    tokens: TokenUse,
    micros: u64,
    text: Option<String>,
}

/// What one file says.
pub(super) struct Part<'a> {
    pub(super) reader: Reader,
    pub(super) taken: u64,
    pub(super) used: TokenCounts,
    pub(super) total: Option<TokenCounts>,
    /// The lines so far, by a part of their hash: one that was written twice counts once.
    seen: HashSet<u64>,
    name: &'a str,
}

impl<'a> Part<'a> {
    /// None for an agent whose log cannot be read line by line.
    pub(super) fn new(log: &dyn ConversationLog, taken: u64, name: &'a str) -> Option<Self> {
        let options = ReaderOptions { line_limit: super::lines::LONGEST, ..ReaderOptions::default() };
        let reader = log.reader(&options, LogUse::History)?;
        Some(Self { reader, taken, used: TokenCounts::default(), total: None, seen: HashSet::new(), name })
    }
}

/// A UUID that follows from what it names, of the version that says so.
fn derived(words: &[&str]) -> uuid::Uuid {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Whether a run was taken from an agent's own history.
pub(super) fn is_imported(run: &str) -> bool {
    run.parse::<RunId>().is_ok()
        && uuid::Uuid::try_parse(run.rsplit('_').next().unwrap_or(run))
            .is_ok_and(|uuid| uuid.get_version_num() == 8)
}

impl<'a> Taker<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        agent: &'static str,
        conversation: &str,
        origin: Origin,
        import: &'a mut AgentImport,
    ) -> Result<Self, Error> {
        let mut taker = Self {
            engine,
            agent,
            conversation: conversation.to_owned(),
            session: origin.session,
            origin,
            paused: false,
            is_over: false,
            has_topic: false,
            pending: Vec::new(),
            pending_bytes: 0,
            stretch: None,
            named: (None, None),
            open: HashMap::new(),
            last_at: None,
            last_key: String::new(),
            import,
            is_changed: false,
            is_new: false,
            is_recorded: false,
        };
        if let Some(session) = taker.session {
            taker.known(&engine.load(session)?.state);
        }
        Ok(taker)
    }

    fn known(&mut self, state: &segno_core::State) {
        self.paused = state.status == segno_core::Status::Paused;
        self.is_over = !state.status.is_open();
        self.has_topic = state.topic.is_some();
    }

    /// The session, if there is one by now.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// Takes one line of a file.
    pub(super) fn line(&mut self, part: &mut Part<'_>, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let mut told: Vec<Envelope> = Vec::new();
        part.reader.feed(bytes, &mut |envelope| told.push(envelope));
        part.reader.feed(b"\n", &mut |envelope| told.push(envelope));
        let whole = blake3::hash(bytes);
        let (first, _) = whole.as_bytes().split_at(8);
        if !part.seen.insert(first.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))) {
            return Ok(());
        }
        for (index, envelope) in told.into_iter().enumerate() {
            let line =
                envelope.native_event_id.clone().unwrap_or_else(|| whole.to_hex().chars().take(24).collect());
            match &envelope.event {
                AgentEvent::Tokens { delta: Some(delta), .. } => part.used = part.used.plus(*delta),
                AgentEvent::Tokens { delta: None, total: Some(total), .. } => part.total = Some(*total),
                AgentEvent::SessionStarted { cwd: Some(cwd), .. } if self.origin.cwd.is_none() => {
                    self.origin.cwd = Some(cwd.clone());
                }
                _ => {}
            }
            self.event(offset < part.taken, &line, index, envelope)?;
        }
        Ok(())
    }

    fn event(&mut self, is_taken: bool, line: &str, index: usize, envelope: Envelope) -> Result<(), Error> {
        let at = envelope.at.as_deref().and_then(|at| at.parse().ok()).or(self.last_at);
        let at = at.unwrap_or_else(|| self.engine.now());
        self.last_at = Some(at);
        if let AgentEvent::SessionStarted { model, version, .. } = &envelope.event {
            self.named.1 = version.clone().or(self.named.1.take());
            self.named.0 = model.clone().or(self.named.0.take());
        }
        if is_taken || !is_kept(&envelope.event) {
            return Ok(());
        }
        let key = format!("i-{line}.{index}");
        if self.origin.copied.contains(&key) {
            self.import.copied += 1;
            return Ok(());
        }
        if self.origin.windows.iter().any(|window| at >= window.from && at <= window.to) {
            self.is_recorded = true;
            return Ok(());
        }
        self.record(at, &key, envelope.event)
    }

    fn record(&mut self, at: Timestamp, key: &str, event: AgentEvent) -> Result<(), Error> {
        self.begin(at, key, &event)?;
        self.last_key = key.to_owned();
        let is_open = match &event {
            AgentEvent::TaskStopped { call_id: Some(call), .. }
            | AgentEvent::SubAgentStopped { call_id: Some(call), .. } => self.open.contains_key(call),
            _ => false,
        };
        self.follow(at, key, &event)?;
        let Some(stretch) = &self.stretch else { return Ok(()) };
        let run = stretch.run.to_string();
        let events: Vec<Event> = match &event {
            AgentEvent::Tokens { delta: Some(delta), .. } => {
                let tokens = crate::run::token_use(*delta);
                vec![
                    ev::TokensRecorded { tokens, estimated: false, source: Source::Stream, below: None }
                        .into(),
                ]
            }
            AgentEvent::Cost { delta_usd: Some(dollars), .. } if *dollars > 0.0 => {
                let micros = (dollars * 1e6).round() as u64;
                vec![ev::CostRecorded { micros, source: Source::Stream, below: None, list: None }.into()]
            }
            other => {
                let mut events = Vec::new();
                let end = match other {
                    AgentEvent::TaskStopped { call_id: Some(call), status, summary, .. }
                    | AgentEvent::SubAgentStopped { call_id: Some(call), status, summary, .. }
                        if is_open =>
                    {
                        Some(crate::run::task_ended(call, status, summary.as_deref()))
                    }
                    _ => None,
                };
                for fact in crate::run::facts_of(other, &run).into_iter().chain(end) {
                    if let Ok(made) = segno_core::decide::events_of_fact(None, fact) {
                        events.extend(made.into_iter().map(ev::FactEvent::into_event));
                    }
                }
                events
            }
        };
        self.put(at, key, Some(run), events)
    }

    /// Makes the session and the stretch that something is of.
    fn begin(&mut self, at: Timestamp, key: &str, event: &AgentEvent) -> Result<(), Error> {
        if self.session.is_none() {
            self.create(at)?;
        }
        let day = crate::cost::day(at, self.engine.options.zone.get());
        let asks = matches!(event, AgentEvent::Input { source: InputSource::User, .. });
        let model = match event {
            AgentEvent::Tokens { model, .. } => model.clone(),
            AgentEvent::SessionStarted { model, .. } => model.clone(),
            _ => None,
        };
        let ends = self.stretch.as_ref().is_some_and(|stretch| {
            let other_model = model.is_some() && stretch.model.is_some() && model != stretch.model;
            other_model || (asks && stretch.day != day)
        });
        if ends {
            self.end_stretch()?;
        }
        if self.stretch.is_none() {
            self.begin_stretch(at, key, day)?;
        }
        let Some(stretch) = self.stretch.as_mut().filter(|stretch| stretch.model.is_none()) else {
            return Ok(());
        };
        if model.is_some() {
            stretch.model.clone_from(&model);
            let named = ev::RunNamed {
                run: stretch.run.to_string(),
                native_id: self.conversation.clone(),
                model: model.as_deref().map(|model| crate::run::fit(model, segno_core::limits::NAME)),
                version: self
                    .named
                    .1
                    .as_deref()
                    .map(|version| crate::run::fit(version, segno_core::limits::NAME)),
            };
            let run = stretch.run.to_string();
            self.put(at, &format!("named-{run}"), Some(run), vec![named.into()])?;
        }
        Ok(())
    }

    fn create(&mut self, at: Timestamp) -> Result<(), Error> {
        let uuid = derived(&["conversation", self.agent, &self.conversation]);
        let uid = Uid::new(uuid);
        let path = self.origin.cwd.clone().unwrap_or_else(|| "/".to_owned());
        let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/").to_owned();
        let continues = self.origin.continues;
        let redactor = self.engine.redactor();
        let first = move |id: SessionId| {
            let mut created = ev::SessionCreated::new(id, uid, Maker::Import);
            created.project = Project { path: path.clone(), name: name.clone(), kind: None };
            created.continues = continues;
            // It is over: what it used is no budget's affair.
            created.budget.total_budget = segno_core::budget::UNLIMITED_TOKENS;
            Ok(vec![record(&redactor, created.into())?])
        };
        let create = Create {
            at,
            key: EventKey::unique(uuid),
            first: Box::new(first),
            wish: SessionId::at(at),
            alone_in: None,
        };
        let loaded = self.engine.store().create(create)?;
        self.is_new = loaded.state.seq == 1;
        self.known(&loaded.state);
        self.session = Some(loaded.state.session_id);
        Ok(())
    }

    fn begin_stretch(&mut self, at: Timestamp, key: &str, day: String) -> Result<(), Error> {
        let run = RunId::new(derived(&["run", self.agent, &self.conversation, key]));
        let started = ev::RunStarted {
            run: run.to_string(),
            agent: self.agent.to_owned(),
            version: self.named.1.clone(),
            native_id: Some(self.conversation.clone()),
            directory: self.origin.cwd.clone().unwrap_or_default(),
            interactive: true,
            ..ev::RunStarted::default()
        };
        let (began, tokens) = (at, TokenUse::default());
        self.put(at, &format!("run-{run}"), Some(run.to_string()), vec![started.into()])?;
        self.stretch =
            Some(Stretch { run, model: None, day, began, turns: 0, tokens, micros: 0, text: None });
        Ok(())
    }

    /// Remembers what the end of a stretch tells, and which calls are open.
    fn follow(&mut self, at: Timestamp, key: &str, event: &AgentEvent) -> Result<(), Error> {
        let Some(stretch) = &mut self.stretch else { return Ok(()) };
        match event {
            AgentEvent::Tokens { delta: Some(delta), .. } => {
                stretch.tokens = stretch.tokens.plus(&crate::run::token_use(*delta));
            }
            AgentEvent::Cost { delta_usd: Some(dollars), .. } if *dollars > 0.0 => {
                stretch.micros = stretch.micros.saturating_add((dollars * 1e6).round() as u64);
            }
            AgentEvent::TurnCompleted { .. } => stretch.turns += 1,
            AgentEvent::Text { text, parent: None, .. } => stretch.text = Some(text.clone()),
            AgentEvent::ToolStarted { call_id, tool, .. } if self.open.len() < OPEN_CALLS => {
                self.open.insert(call_id.clone(), tool.clone());
            }
            // Answered, and what it began goes on.
            AgentEvent::ToolFinished { background: Some(_), .. } => {}
            AgentEvent::TaskStopped { call_id: Some(call_id), .. }
            | AgentEvent::SubAgentStopped { call_id: Some(call_id), .. }
            | AgentEvent::ToolFinished { call_id, .. }
            | AgentEvent::ToolFailed { call_id, .. }
            | AgentEvent::ToolDenied { call_id, .. } => drop(self.open.remove(call_id)),
            AgentEvent::Input { source: InputSource::User, text, .. } if !self.has_topic => {
                if let Some(topic) = self.engine.topic_of([Some(text.as_str())]) {
                    self.has_topic = true;
                    let made = segno_core::decide::events_of_fact(None, Fact::TopicSet { topic });
                    let events =
                        made.unwrap_or_default().into_iter().map(ev::FactEvent::into_event).collect();
                    self.put(at, &format!("topic-{key}"), None, events)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end_stretch(&mut self) -> Result<(), Error> {
        let Some(stretch) = self.stretch.take() else { return Ok(()) };
        let at = self.last_at.unwrap_or(stretch.began).max(stretch.began);
        let run = stretch.run.to_string();
        let mut doubts: Vec<(String, String)> = self.open.drain().collect();
        doubts.sort_unstable();
        let is_cut = !doubts.is_empty();
        for (call, tool) in doubts {
            let fact = Fact::ToolEnded {
                call: crate::run::fit(&call, segno_core::limits::NAME),
                tool: Some(crate::run::fit(&tool, segno_core::limits::NAME)),
                end: CallEnd::InDoubt,
                output: None,
                source: Source::Stream,
            };
            let made = segno_core::decide::events_of_fact(None, fact).unwrap_or_default();
            let events = made.into_iter().map(ev::FactEvent::into_event).collect();
            let hash = blake3::hash(call.as_bytes()).to_hex();
            self.put(at, &format!("doubt-{run}-{}", &hash[..16]), Some(run.clone()), events)?;
        }
        let ended = ev::RunEnded {
            run: run.clone(),
            outcome: if is_cut { "interrupted" } else { "completed" }.to_owned(),
            reason: "as the agent's own history tells it".into(),
            native_id: Some(self.conversation.clone()),
            turns: stretch.turns,
            duration_ms: at.micros_since(stretch.began) / 1_000,
            tokens: stretch.tokens,
            cost_micros: Some(stretch.micros).filter(|micros| *micros > 0),
            text: stretch.text.map(Into::into),
            ..ev::RunEnded::default()
        };
        self.put(at, &format!("end-{run}"), Some(run), vec![ended.into()])
    }

    /// What the agent's own account has beyond its messages: titles, summaries and other requests that it made beside.
    pub(super) fn beside(&mut self, tokens: TokenCounts, line: &str) -> Result<(), Error> {
        if tokens.is_zero() || self.session.is_none() {
            return Ok(());
        }
        let at = self.last_at.unwrap_or_else(|| self.engine.now());
        let event = AgentEvent::Tokens { model: self.named.0.clone(), delta: Some(tokens), total: None };
        self.record(at, &format!("i-beside-{line}.0"), event)
    }

    fn put(
        &mut self,
        at: Timestamp,
        key: &str,
        run: Option<String>,
        events: Vec<Event>,
    ) -> Result<(), Error> {
        let Some(session) = self.session.filter(|_| !events.is_empty()) else { return Ok(()) };
        let redactor = self.engine.redactor();
        let mut facts = Vec::with_capacity(events.len());
        for event in events {
            let fit = redactor.record(event).map_err(unrecordable)?;
            self.pending_bytes += fit.body().len();
            facts.push(fit);
        }
        let key: EventKey = match key.parse() {
            Ok(key) => key,
            Err(_) => EventKey::unique(derived(&["key", key])),
        };
        self.pending.push(Append { run, ..Append::new(session, key, at, What::Facts(facts)) });
        if self.pending.len() >= BATCH || self.pending_bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.pending_bytes = 0;
        for result in self.engine.store().append(std::mem::take(&mut self.pending)) {
            let appended = result?;
            if appended.repeated {
                self.import.known += 1;
            } else {
                self.is_changed = true;
                self.import.events += appended.last + 1 - appended.first;
            }
        }
        Ok(())
    }

    /// Takes one prompt of a conversation of which there is nothing else.
    pub(super) fn prompt(&mut self, at: &str, index: usize, event: AgentEvent) -> Result<(), Error> {
        let at = at.parse().unwrap_or_else(|_| self.engine.now());
        self.last_at = Some(at);
        self.record(at, &format!("i-prompt-{index}.0"), event)
    }

    /// One file is done.
    pub(super) fn finish_part(&mut self, part: &Part<'_>) -> Result<(), Error> {
        let irregular = part.reader.irregular();
        self.import.damage.torn += irregular.torn;
        self.import.damage.glued += irregular.glued;
        self.import.damage.oversized += irregular.oversized;
        tracing::debug!(agent = self.agent, file = part.name, "taken in");
        self.end_stretch()
    }

    /// All is recorded when this returns.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.end_stretch()?;
        if self.session.is_some() && !self.paused && !self.is_over && !self.last_key.is_empty() {
            let at = self.last_at.unwrap_or_else(|| self.engine.now());
            let paused = ev::SessionPaused { reason: PauseReason::Ended, details: None };
            let key = format!("paused-{}", self.last_key);
            self.put(at, &key, None, vec![paused.into()])?;
            self.paused = true;
        }
        self.flush()
    }
}

/// Whether an event is worth a place in the record of something that is over.
fn is_kept(event: &AgentEvent) -> bool {
    matches!(
        event,
        AgentEvent::Text { .. }
            | AgentEvent::Thinking { .. }
            | AgentEvent::Input { .. }
            | AgentEvent::ToolStarted { .. }
            | AgentEvent::ToolFinished { .. }
            | AgentEvent::ToolFailed { .. }
            | AgentEvent::ToolDenied { .. }
            | AgentEvent::FileChanged { .. }
            | AgentEvent::SubAgentStarted { .. }
            | AgentEvent::SubAgentStopped { .. }
            | AgentEvent::TaskStopped { .. }
            | AgentEvent::Compaction { .. }
            | AgentEvent::Plan { .. }
            | AgentEvent::Error { .. }
            | AgentEvent::TurnCompleted { .. }
            | AgentEvent::Tokens { delta: Some(_), .. }
            | AgentEvent::Cost { delta_usd: Some(_), .. }
    )
}
