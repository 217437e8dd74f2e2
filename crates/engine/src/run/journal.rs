//! What a run brings goes into the journal in order, and stays in hand until it is there.

use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::Envelope;
use segno_agents::Outcome;
use segno_agents::TokenCounts;
use segno_core::Command;
use segno_core::Event;
use segno_core::EventKey;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::event::Change;
use segno_core::event::CheckpointReason;
use segno_core::event::Source;
use segno_redact::Redacted;
use segno_store::Answer;
use segno_store::Append;
use segno_store::What;
use serde_json::json;

use super::Feed;
use super::News;
use super::beside::Done;
use super::supervisor::Input;
use super::texts::Texts;
use super::translate;
use crate::Engine;
use crate::Error;
use crate::engine::fresh_key;
use crate::tree::At;
use crate::view;

/// Most appends in one transaction: others want to write too.
const BATCH: usize = 512;
/// The view is written at most so often while a run goes on.
const VIEW: Duration = Duration::from_secs(1);
/// However little happens, the view shows it after so long.
const AUTO_SAVE: Duration = Duration::from_secs(30);
/// A long view takes a while to write: it rests so many times as long, lest a run become the writing of its view.
const VIEW_RESTS: u32 = 30;
/// Most tasks that are remembered.
const LAUNCHED: usize = 10_000;
/// Most artifacts of one run: more are only in the list of files.
const ARTIFACTS: usize = 10_000;
/// How long an answer of the store is waited for before something else is looked at.
const ANSWER: Duration = Duration::from_millis(20);
/// How many messages are remembered by what they used.
const MESSAGES: usize = 256;

/// Whether everything in hand is in the journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// It is.
    All,
    /// The store cannot take it now; it stays in hand.
    NotYet(String),
}

/// Writes down what one run brings.
pub(super) struct Recorder<'a> {
    pub(super) engine: &'a Engine,
    pub(super) session: SessionId,
    pub(super) run: String,
    pub(super) state: State,
    pub(super) notices: Vec<String>,
    last_message: Option<String>,
    epoch: u64,
    feed: Feed,
    calls_recur: bool,
    texts: Texts,
    pending: VecDeque<Item>,
    under_way: Option<UnderWay>,
    tokens: LiveTokens,
    /// Tasks that go on after their calls were answered, and those calls.
    launched: HashMap<String, String>,
    /// The beginning of the run was heard by somebody else.
    took_over: bool,
    /// The tools that the agent said it has.
    tools: Option<serde_json::Value>,
    /// Artifacts that were recorded already, each once in a phase.
    artifacts: HashSet<(Option<String>, String)>,
    view_due: bool,
    /// Something was recorded that the view does not show yet, though nothing to rewrite it for at once.
    view_stale: bool,
    view_written: Option<Instant>,
    view_rest: Duration,
    /// What was last told to the session whose agent started this run.
    told_above: (TokenUse, u64),
    /// It is written by somebody beside.
    view_beside: bool,
    view_under_way: bool,
}

/// What the store was given and has not answered yet.
struct UnderWay {
    items: Vec<Item>,
    heard: bool,
    answer: Answer,
    results: Option<Vec<Result<segno_store::Appended, segno_store::Error>>>,
}

struct Item {
    key: EventKey,
    at: Timestamp,
    what: Prepared,
}

enum Prepared {
    /// Facts that do not depend on the state, made fit before the store is locked.
    Facts(Vec<Redacted>),
    /// To be decided on the newest state.
    Commands(Vec<Command>),
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        agent: &dyn Agent,
        state: State,
        epoch: u64,
        run: &str,
        feed: Feed,
    ) -> Self {
        // The ids of a session's first run cannot meet others.
        let calls_recur = agent.capabilities().call_ids_recur && state.counts.runs > 1;
        Self {
            engine,
            session: state.session_id,
            run: run.to_owned(),
            state,
            notices: Vec::new(),
            last_message: None,
            epoch,
            feed,
            calls_recur,
            texts: Texts::new(agent.text_flow()),
            pending: VecDeque::new(),
            under_way: None,
            tokens: LiveTokens::default(),
            launched: HashMap::new(),
            took_over: false,
            tools: None,
            artifacts: HashSet::new(),
            view_due: false,
            view_stale: false,
            view_written: None,
            view_rest: VIEW,
            told_above: Default::default(),
            view_beside: false,
            view_under_way: false,
        }
    }

    /// For a run whose beginning was heard by somebody else.
    pub(super) fn taken_over(mut self) -> Self {
        self.took_over = true;
        self
    }

    /// For a record in which calls have ids of their own.
    pub(super) fn with_lasting_ids(mut self, lasting: bool) -> Self {
        self.calls_recur &= !lasting;
        self
    }

    /// Takes one thing that the agent reported.
    pub(super) fn take(&mut self, envelope: &Envelope) {
        self.take_at(envelope, "", self.calls_recur);
    }

    /// The same from the agent's own record, where calls have other places, and ids that do not recur.
    pub(super) fn take_record(&mut self, envelope: &Envelope) {
        self.take_at(envelope, "record-", false);
    }

    fn take_at(&mut self, envelope: &Envelope, place: &str, calls_recur: bool) {
        if envelope.native_event_id.is_some() {
            self.last_message.clone_from(&envelope.native_event_id);
        }
        let mut commands = translate::commands_of(&envelope.event, &self.run);
        if calls_recur {
            translate::scope_calls(&mut commands, &self.run);
        }
        commands.extend(self.launched(&envelope.event));
        commands.extend(self.tokens.take(&envelope.event));
        // Agents say who they are again and again.
        commands.retain(|command| match command {
            Command::NameRun(named) => !self.state.run.as_ref().is_some_and(|run| {
                run.is_named(&named.native_id, named.model.as_deref(), named.version.as_deref())
            }),
            Command::Report { what, body } if what == translate::TOOLS => {
                self.tools.replace(body.clone()).as_ref() != Some(body)
            }
            _ => true,
        });
        if let AgentEvent::Oversized { bytes, .. } = &envelope.event {
            let most = self.engine.options.line_limit >> 20;
            let text = format!(
                "a line of {} MB is longer than {most} MB (run.max_line_mb); only its beginning and end are kept",
                bytes >> 20
            );
            self.say(&text);
            self.notices.push(text);
        }
        if commands.is_empty() {
            return;
        }
        // The key holds run and place: reading the capture again after a crash records nothing twice.
        let key = format!("run-{}@{place}{}", self.run, envelope.key());
        let place = key.parse().unwrap_or_else(|_| fresh_key());
        let redactor = self.engine.redactor();
        match self.texts.take(&envelope.event, place, self.engine.now(), commands, &redactor) {
            None => {}
            // What was used is counted at once, and says nothing about whether a text goes on.
            Some((key, commands)) if commands.iter().all(is_mere_use) => {
                self.queue(key, self.engine.now(), commands);
            }
            Some((key, commands)) => self.put(key, commands),
        }
        if let AgentEvent::FileChanged { path, change, moved_to, .. } = &envelope.event {
            for (index, (path, change)) in
                translate::files(path, *change, moved_to.as_deref()).into_iter().enumerate()
            {
                self.artifact(&format!("{key}.artifact{index}"), path, change);
            }
        }
    }

    /// Remembers what goes on after its call was answered, and gives its end when that is told.
    fn launched(&mut self, event: &AgentEvent) -> Option<Command> {
        match event {
            AgentEvent::ToolFinished { call_id, background: Some(task), .. } => {
                if self.launched.len() < LAUNCHED {
                    self.launched.insert(task.clone(), call_id.clone());
                }
                None
            }
            AgentEvent::TaskStopped { task_id: task, call_id, status, summary }
            | AgentEvent::SubAgentStopped { agent_id: task, call_id, status, summary } => {
                let known = self.launched.remove(task);
                // Whoever takes a run over has not heard of its beginning; then what the call itself says is lost if
                // it still comes, but not that it ended.
                let told =
                    call_id.clone().filter(|call| self.took_over && self.state.calls.open.contains_key(call));
                let call = known.or(told)?;
                Some(translate::task_ended(&call, status, summary.as_deref()))
            }
            _ => None,
        }
    }

    /// A file of the project that the agent made or changed is an artifact, once in each phase.
    fn artifact(&mut self, key: &str, path: &str, change: Change) {
        let root = PathBuf::from(&self.state.project.path);
        let base = self.state.run.as_ref().map_or_else(|| root.clone(), |run| PathBuf::from(&run.directory));
        // A secret that was changed is not known any more, so they go first.
        let path = self.engine.redactor().text(path).into_owned();
        let found = crate::inside(&root, &base, Path::new(&path));
        let Some(path) = found.and_then(|found| Some(found.to_str()?.to_owned())) else { return };
        let path = translate::fit(&path, segno_core::limits::LINE);
        let known = (self.state.phase.clone(), path.clone());
        if change == Change::Deleted || self.artifacts.len() >= ARTIFACTS || !self.artifacts.insert(known) {
            return;
        }
        let key = key.parse().unwrap_or_else(|_| fresh_key());
        self.put(key, vec![Command::RecordArtifact { path, artifact_type: change, phase: None }]);
    }

    /// Takes something of our own.
    pub(super) fn note(&mut self, command: Command) {
        self.put(fresh_key(), vec![command]);
    }

    /// Takes something of our own that may be tried again by somebody else.
    pub(super) fn put(&mut self, key: EventKey, commands: Vec<Command>) {
        self.finish_texts();
        self.queue(key, self.engine.now(), commands);
    }

    /// How many texts there were, and the first of them that is held back.
    pub(super) fn texts_progress(&self) -> (u64, Option<u64>) {
        self.texts.progress()
    }

    /// Takes in the texts that depend on nothing that comes.
    pub(super) fn give_texts(&mut self) {
        for said in self.texts.give(&self.engine.redactor()) {
            self.queue(said.key, said.at, said.commands);
        }
    }

    fn finish_texts(&mut self) {
        for said in self.texts.finish(&self.engine.redactor()) {
            self.queue(said.key, said.at, said.commands);
        }
    }

    /// Takes the secrets out of what came of a run: whoever hears of it hears what is recorded.
    pub(super) fn make_fit(&mut self, outcome: &mut Outcome) {
        self.finish_texts();
        let redactor = self.engine.redactor();
        let fit = |text: &mut String| *text = redactor.text(text).into_owned();
        if let Some(text) = &mut outcome.text {
            match self.texts.recorded(text) {
                Some(recorded) => *text = recorded.to_owned(),
                None => fit(text),
            }
        }
        fit(&mut outcome.reason);
        if let Some(error) = &mut outcome.error {
            fit(&mut error.text);
        }
    }

    fn queue(&mut self, key: EventKey, at: Timestamp, commands: Vec<Command>) {
        let what = match self.engine.facts(&commands) {
            Some(facts) => Prepared::Facts(facts),
            None => Prepared::Commands(commands),
        };
        self.pending.push_back(Item { key, at, what });
    }

    /// Whether the store has been given something and has not answered yet. It is asked for a moment only: whoever
    /// drives has other things to see to.
    pub(super) fn waits_for_answer(&mut self) -> bool {
        let Some(under_way) = &mut self.under_way else { return false };
        if under_way.results.is_none() {
            under_way.results = under_way.answer.within(ANSWER);
        }
        under_way.results.is_none()
    }

    /// Waits for the answer however long it takes.
    pub(super) fn wait_for_answer(&mut self) {
        while self.waits_for_answer() {}
    }

    /// Whether something waits to be given to the store.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether something waits to be journaled.
    pub(super) fn is_behind(&self) -> bool {
        !self.pending.is_empty() || self.under_way.is_some()
    }

    /// Writes what is in hand. An error means that this driver has no say any more.
    pub(super) fn flush(&mut self) -> Result<Flushed, Error> {
        self.give_texts();
        loop {
            if let Some(why) = self.settle()? {
                return Ok(Flushed::NotYet(why));
            }
            if self.pending.is_empty() {
                break;
            }
            self.send();
        }
        self.refresh_view(false);
        Ok(Flushed::All)
    }

    /// Gives what is in hand to the store and does not wait for the last of it: the next can be made ready meanwhile.
    /// What was in hand the last time is in the journal then.
    pub(super) fn advance(&mut self) -> Result<Flushed, Error> {
        self.give_texts();
        loop {
            if let Some(why) = self.settle()? {
                return Ok(Flushed::NotYet(why));
            }
            if self.pending.is_empty() {
                break;
            }
            self.send();
            if self.pending.is_empty() {
                break;
            }
        }
        self.refresh_view(false);
        Ok(Flushed::All)
    }

    fn send(&mut self) {
        let heard = self.feed.is_heard();
        let count = self.pending.len().min(BATCH);
        let items: Vec<Item> = self.pending.drain(..count).collect();
        let batch = items
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let what = match &item.what {
                    Prepared::Facts(facts) => What::Facts(facts.clone()),
                    Prepared::Commands(commands) => self.engine.decide_as(commands.clone(), Some(self.epoch)),
                };
                let decided = matches!(item.what, Prepared::Commands(_));
                Append {
                    run: Some(self.run.clone()),
                    epoch: Some(self.epoch),
                    want_state: index + 1 == count || (heard && decided),
                    ..Append::new(self.session, item.key.clone(), item.at, what)
                }
            })
            .collect();
        let answer = self.engine.store().append_soon(batch);
        self.under_way = Some(UnderWay { items, heard, answer, results: None });
    }

    /// Waits for what the store was given. What it could not take is in hand again, and why is told.
    fn settle(&mut self) -> Result<Option<String>, Error> {
        let Some(UnderWay { items, heard, answer, results }) = self.under_way.take() else {
            return Ok(None);
        };
        let mut kept = Vec::new();
        let mut problem = None;
        let mut over = None;
        for (item, result) in items.into_iter().zip(results.unwrap_or_else(|| answer.wait())) {
            match result {
                Ok(appended) => self.appended(item, appended, heard),
                // Nothing can be recorded here as our own any more; what was said is told as late.
                Err(why @ (segno_store::Error::StaleEpoch { .. } | segno_store::Error::NotFound(_))) => {
                    over = Some(why);
                    kept.push(item);
                }
                Err(segno_store::Error::Refused(refusal)) => self.refused(item, &refusal),
                Err(why) => {
                    problem.get_or_insert_with(|| why.to_string());
                    kept.push(item);
                }
            }
        }
        for item in kept.into_iter().rev() {
            self.pending.push_front(item);
        }
        match over {
            Some(why) => Err(why.into()),
            None => Ok(problem),
        }
    }

    fn appended(&mut self, item: Item, appended: segno_store::Appended, heard: bool) {
        let shows = match &item.what {
            Prepared::Facts(facts) => facts.iter().any(|fact| view::shows(fact.event())),
            Prepared::Commands(commands) => !commands.iter().all(is_mere_use),
        };
        self.view_due |= shows && !appended.repeated;
        self.view_stale |= !appended.repeated;
        if heard && !appended.repeated {
            let tell = |(index, event): (usize, Event)| {
                self.feed.publish(News::Recorded {
                    seq: appended.first + index as u64,
                    at: item.at,
                    event: Box::new(event),
                });
            };
            match item.what {
                Prepared::Facts(facts) => {
                    facts.iter().map(|fact| fact.event().clone()).enumerate().for_each(tell);
                }
                Prepared::Commands(_) => appended.events.iter().cloned().enumerate().for_each(tell),
            }
        }
        if let Some(state) = appended.state {
            self.view_due |= crossed(&self.state, &state);
            self.state = *state;
        }
    }

    /// What the rules do not let in is kept as a report, so that nothing the agent said is lost.
    fn refused(&mut self, item: Item, refusal: &segno_core::Refusal) {
        let Prepared::Commands(commands) = item.what else { return };
        let verbs: Vec<&str> = commands.iter().map(Command::verb).collect();
        let body = json!({ "commands": format!("{commands:?}"), "doing": verbs, "why": refusal.to_string() });
        let report = Command::Report { what: "refused".to_owned(), body };
        let key = format!("{}!", item.key).parse().unwrap_or_else(|_| fresh_key());
        self.put(key, vec![report]);
    }

    /// Under whom checkpoints of this run are made, and where its conversation stands.
    pub(super) fn at(&self, offset: Option<u64>) -> At {
        At {
            epoch: Some(self.epoch),
            run: Some(self.run.clone()),
            message: self.last_message.clone(),
            offset,
            cancel: None,
        }
    }

    /// Sets a checkpoint now. What goes wrong is said, and the run goes on.
    pub(super) fn checkpoint(&mut self, name: Option<String>, reason: CheckpointReason, offset: Option<u64>) {
        let result = self.engine.checkpoint(self.session, name, reason, &self.at(offset));
        self.checkpointed(result);
    }

    fn checkpointed(&mut self, result: Result<crate::Acted, Error>) {
        match result {
            Ok(acted) => {
                // What happened meanwhile may be known already.
                if acted.state.seq > self.state.seq {
                    self.state = acted.state;
                }
                for event in acted.events {
                    let (seq, at) = (acted.seq, self.engine.now());
                    self.feed.publish(News::Recorded { seq, at, event: Box::new(event) });
                }
                acted.notices.iter().for_each(|notice| self.say(notice));
                self.notices.extend(acted.notices);
            }
            Err(why) => {
                let text = format!("no checkpoint: {why}");
                self.say(&text);
                self.notices.push(text);
            }
        }
    }

    /// Counts what was used where the caps are that this run is below. A store that cannot take it now is told again.
    pub(super) fn tell_above(&mut self) {
        let used = (self.state.tokens, self.state.cost.used_micros);
        if used != self.told_above && self.engine.count_above(&self.state).is_ok() {
            self.told_above = used;
        }
    }

    /// Takes what was done beside.
    pub(super) fn hear_done(&mut self, done: Done) -> Option<Input> {
        match done {
            Done::Checkpoint(result) => {
                self.checkpointed(*result);
                Some(Input::SnapshotDone)
            }
            Done::View { notices, took } => {
                self.notices.extend(notices);
                (self.view_written, self.view_rest) = (Some(Instant::now()), VIEW.max(took * VIEW_RESTS));
                self.view_under_way = false;
                None
            }
        }
    }

    /// The state that the view is to show now, if that is due. Whoever takes it writes it and says so.
    pub(super) fn view_to_write(&mut self) -> Option<State> {
        self.view_beside = true;
        if self.view_under_way || !self.view_is_due(false) {
            return None;
        }
        (self.view_due, self.view_stale, self.view_under_way) = (false, false, true);
        Some(self.state.clone())
    }

    /// Records what is in hand as late: somebody else drives. False if that could not be done.
    pub(super) fn flush_late(&mut self) -> bool {
        let run = Some(self.run.clone());
        for item in std::mem::take(&mut self.pending) {
            let events: Vec<Event> = match item.what {
                Prepared::Facts(facts) => facts.iter().map(|fact| fact.event().clone()).collect(),
                // What depended on having the right to drive has no effect any more.
                Prepared::Commands(commands) => {
                    let decided =
                        commands.into_iter().map(|command| segno_core::decide(&self.state, command));
                    decided.filter_map(Result::ok).flatten().collect()
                }
            };
            let late = events.iter().filter_map(|event| self.engine.late(self.epoch, event).ok()).collect();
            let append = Append {
                run: run.clone(),
                ..Append::new(self.session, item.key, item.at, What::Facts(late))
            };
            if self.engine.append_one(append).is_err() {
                return false;
            }
        }
        true
    }

    /// Tells those who watch, and whoever reads the report.
    pub(super) fn warn(&mut self, text: String) {
        self.say(&text);
        if !self.notices.contains(&text) {
            self.notices.push(text);
        }
    }

    /// Looks at what others recorded.
    pub(super) fn refresh(&mut self) -> Result<(), Error> {
        self.tell_above();
        // The answer to what is under way brings the newest state.
        if self.under_way.is_some() {
            return Ok(());
        }
        let newest = self.engine.store().wait_after(self.session, self.state.seq, Duration::ZERO)?;
        if newest > self.state.seq {
            self.state = self.engine.store().load(self.session)?.state;
            self.view_due = true;
        }
        Ok(())
    }

    /// Writes the view if it is due; `now` does not wait for its second.
    pub(super) fn refresh_view(&mut self, now: bool) {
        if (now || !self.view_beside) && self.view_is_due(now) {
            (self.view_due, self.view_stale) = (false, false);
            let begun = Instant::now();
            self.engine.refresh_view(&self.state, &mut self.notices);
            self.view_written = Some(Instant::now());
            self.view_rest = VIEW.max(begun.elapsed() * VIEW_RESTS);
        }
    }

    fn view_is_due(&self, now: bool) -> bool {
        let written = self.view_written.map(|written| written.elapsed());
        let rested = written.is_none_or(|ago| ago >= self.view_rest);
        let saves = self.view_stale && written.is_some_and(|ago| ago >= AUTO_SAVE);
        (self.view_due || saves || (now && self.view_stale)) && (now || rested)
    }

    /// Tells those who watch, and the record, something in words.
    pub(super) fn say(&self, text: &str) {
        self.feed.publish(News::Notice(text.to_owned()));
    }

    /// The tokens that were counted so far.
    pub(super) fn used(&self) -> TokenCounts {
        self.tokens.recorded
    }

    /// These are counted already; whoever tells them again tells nothing new.
    pub(super) fn count_ahead(&mut self, used: TokenCounts) {
        (self.tokens.ahead, self.tokens.recorded) = (used, used);
    }

    /// What a run used that no event told, such as the last message of one that died.
    pub(super) fn settle_tokens(&mut self, whole: TokenCounts) {
        let missing = self.tokens.missing(whole);
        self.pending.extend(missing.map(|tokens| Item {
            key: format!("run-{}@tokens", self.run).parse().unwrap_or_else(|_| fresh_key()),
            at: self.engine.now(),
            what: Prepared::Commands(vec![Command::RecordTokens {
                tokens,
                estimated: true,
                source: Source::Stream,
            }]),
        }));
    }
}

/// Whether a command only counts what was used: a view is not rewritten for that.
fn is_mere_use(command: &Command) -> bool {
    matches!(command, Command::RecordTokens { .. } | Command::RecordCost { .. })
}

/// Whether a budget ran low or out in between.
fn crossed(before: &State, after: &State) -> bool {
    let tokens = |state: &State| (state.budget.is_warning(), state.budget.is_over());
    let cost = |state: &State| (state.cost.is_warning(), state.cost.is_over());
    (tokens(before), cost(before)) != (tokens(after), cost(after))
}

/// Counts tokens while messages stream, so that a budget is held before the agent says what the turn used, and takes
/// off what was counted when it does.
#[derive(Default)]
struct LiveTokens {
    messages: VecDeque<(String, TokenCounts)>,
    ahead: TokenCounts,
    recorded: TokenCounts,
}

impl LiveTokens {
    fn take(&mut self, event: &AgentEvent) -> Option<Command> {
        let (news, estimated) = match event {
            AgentEvent::MessageUsage { message_id, tokens } => {
                let known = self.messages.iter_mut().find(|(id, _)| id == message_id);
                let before = known.as_ref().map_or_else(TokenCounts::default, |(_, before)| *before);
                match known {
                    Some((_, known)) => *known = *tokens,
                    None => self.messages.push_back((message_id.clone(), *tokens)),
                }
                if self.messages.len() > MESSAGES {
                    self.messages.pop_front();
                }
                let news = minus(*tokens, before);
                self.ahead = self.ahead.plus(news);
                (news, true)
            }
            AgentEvent::Tokens { delta: Some(delta), .. } => {
                let news = minus(*delta, self.ahead);
                self.ahead = minus(self.ahead, *delta);
                (news, false)
            }
            _ => return None,
        };
        self.recorded = self.recorded.plus(news);
        command(news, estimated)
    }

    fn missing(&mut self, whole: TokenCounts) -> Option<TokenUse> {
        let news = minus(whole, self.recorded);
        (news.total() > 0).then(|| token_use(news))
    }
}

fn command(tokens: TokenCounts, estimated: bool) -> Option<Command> {
    let source = Source::Stream;
    (tokens.total() > 0).then(|| Command::RecordTokens { tokens: token_use(tokens), estimated, source })
}

/// Kind by kind, never below zero.
fn minus(a: TokenCounts, b: TokenCounts) -> TokenCounts {
    TokenCounts {
        input: a.input.saturating_sub(b.input),
        cache_read: a.cache_read.saturating_sub(b.cache_read),
        cache_write: a.cache_write.saturating_sub(b.cache_write),
        output: a.output.saturating_sub(b.output),
        reasoning: a.reasoning.saturating_sub(b.reasoning),
    }
}

/// The same counts as the journal has them.
pub(super) fn token_use(counts: TokenCounts) -> TokenUse {
    TokenUse {
        input: counts.input,
        output: counts.output,
        cache_read: counts.cache_read,
        cache_write: counts.cache_write,
        other: 0,
    }
}

#[cfg(test)]
mod tests {
    use segno_core::event::Channel;
    use segno_store::EventRow;
    use segno_store::sqlite;
    use segno_store::sqlite::Purpose;

    use super::*;
    use crate::EngineOptions;
    use crate::NewSession;

    fn counts(input: u64, output: u64) -> TokenCounts {
        TokenCounts { input, output, ..TokenCounts::default() }
    }

    fn usage(id: &str, input: u64, output: u64) -> AgentEvent {
        AgentEvent::MessageUsage { message_id: id.to_owned(), tokens: counts(input, output) }
    }

    fn told(event: Option<Command>) -> Option<(u64, u64, bool)> {
        event.map(|command| match command {
            Command::RecordTokens { tokens, estimated, .. } => (tokens.input, tokens.output, estimated),
            other => panic!("{other:?}"),
        })
    }

    fn said(text: &str) -> Command {
        Command::Say { channel: Channel::Text, text: text.into(), message: None, parent: None }
    }

    fn open(path: &std::path::Path) -> Engine {
        let purpose = Purpose::LongLived;
        let options = sqlite::Options { purpose, create: true, busy: Duration::from_millis(20) };
        let store = sqlite::SqliteStore::open(path, options).unwrap();
        let view = view::Options { enabled: false, ..view::Options::default() };
        Engine::new(Box::new(store), EngineOptions { view, ..EngineOptions::default() })
    }

    /// What was said in a session, in the order of the journal.
    fn heard(engine: &Engine, session: SessionId) -> Vec<String> {
        let rows = engine.store().events(session, 0, 10_000).unwrap();
        rows.into_iter()
            .filter_map(|row| match row {
                EventRow::Whole(stored) => match stored.event().unwrap() {
                    Event::Said(said) => Some(engine.whole(&said.text).unwrap()),
                    _ => None,
                },
                EventRow::Damaged { what, .. } => panic!("{what}"),
            })
            .collect()
    }

    #[test]
    fn what_is_given_ahead_stays_in_order_whatever_the_store_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segno.db");
        let (engine, other) = (open(&path), open(&path));
        let state = engine.create(NewSession::default()).unwrap().state;
        let session = state.session_id;
        let driver = engine.drive(session, "test").unwrap();
        let mut recorder = Recorder::new(
            &engine,
            &segno_agents::plain::Plain::default(),
            state,
            driver.epoch(),
            "r1",
            Feed::default(),
        );
        for number in 0..2_000 {
            recorder.note(said(&number.to_string()));
            if number % 700 == 0 {
                assert_eq!(recorder.advance().unwrap(), Flushed::All);
                assert!(recorder.is_behind(), "the last of it was not waited for");
            }
        }
        // Somebody else writes for longer than anybody here waits.
        let (began, is_begun) = std::sync::mpsc::channel();
        let busy = std::thread::spawn(move || {
            let hold = What::Decide(Box::new(move |_| {
                began.send(()).unwrap();
                std::thread::sleep(Duration::from_millis(300));
                Ok(Vec::new())
            }));
            other.append_one(Append::new(session, fresh_key(), other.now(), hold)).unwrap();
        });
        is_begun.recv().unwrap();
        recorder.advance().unwrap();
        recorder.note(said("2000"));
        assert!(matches!(recorder.flush().unwrap(), Flushed::NotYet(_)));
        assert!(recorder.is_behind());
        busy.join().unwrap();
        assert_eq!(recorder.flush().unwrap(), Flushed::All);
        assert!(!recorder.is_behind());
        assert_eq!(recorder.state.seq, engine.load(session).unwrap().state.seq);
        let wanted: Vec<String> = (0..=2_000).map(|number| number.to_string()).collect();
        assert_eq!(heard(&engine, session), wanted);
    }

    #[test]
    fn tokens_count_as_they_come_and_only_once() {
        let mut live = LiveTokens::default();
        assert_eq!(told(live.take(&usage("a", 100, 1))), Some((100, 1, true)));
        assert_eq!(told(live.take(&usage("a", 100, 1))), None);
        assert_eq!(told(live.take(&usage("b", 50, 1))), Some((50, 1, true)));
        assert_eq!(told(live.take(&usage("a", 100, 9))), Some((0, 8, true)));
        // The turn is over and the exact numbers come: only what is new is counted.
        let exact = AgentEvent::Tokens { model: None, delta: Some(counts(160, 40)), total: None };
        assert_eq!(told(live.take(&exact)), Some((10, 30, false)));
        assert_eq!(told(live.take(&usage("c", 7, 0))), Some((7, 0, true)));
        assert_eq!(live.missing(counts(170, 40)).map(|tokens| tokens.total()), Some(3));
        assert_eq!(live.missing(counts(167, 40)), None);
    }
}
