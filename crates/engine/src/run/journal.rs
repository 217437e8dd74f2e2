//! What a run brings goes into the journal in order, and stays in hand until it is there.

mod agent;
mod made;
mod price;
mod send;
mod shared;
mod shown;
mod tokens;

use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;
use std::time::Duration;
use std::time::Instant;

use segno_agents::Agent;
use segno_agents::Outcome;
use segno_agents::TokenCounts;
use segno_core::EventKey;
use segno_core::Fact;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::event::CheckpointReason;
use segno_core::event::Source;
use segno_redact::Redacted;
use segno_store::Answer;

use self::price::Pricing;
use self::shared::SharedCaps;
use self::tokens::LiveTokens;
pub(crate) use self::tokens::token_use;
use super::Feed;
use super::News;
use super::background::Done;
use super::supervisor::Input;
use super::texts::Texts;
use crate::Engine;
use crate::Error;
use crate::engine::fresh_key;
use crate::tree::At;
use crate::view::pace::RESTS as VIEW_RESTS;
use crate::view::pace::SHORTEST as VIEW;

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
    pub(super) feed: Feed,
    calls_recur: bool,
    texts: Texts,
    pending: VecDeque<Item>,
    /// How many bytes this driver has recorded, about.
    pub(super) recorded: u64,
    under_way: Option<UnderWay>,
    tokens: LiveTokens,
    pricing: Pricing,
    shared: SharedCaps,
    /// Tasks that go on after their calls were answered, and those calls.
    launched: HashMap<String, String>,
    /// The beginning of the run was heard by somebody else.
    took_over: bool,
    /// We stopped the agent: a call that is said to have failed was cut off, and nobody knows how far it got.
    pub(super) cut_off: bool,
    /// The agent was told to stop: what it had launched does not come to its end by itself.
    pub(super) is_stopping: bool,
    /// The tools that the agent said it has.
    tools: Option<serde_json::Value>,
    /// Artifacts that were recorded already, each once in a phase.
    artifacts: HashSet<(Option<String>, String)>,
    /// Files that were told of, by their path in the project.
    told_files: HashSet<std::path::PathBuf>,
    /// The files as the run found them, once somebody asked.
    before: Option<Option<made::Before>>,
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
    Inputs(Vec<segno_core::Input>),
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
        let pricing = Pricing::new(agent, &state, engine.day_caps().micros.is_some());
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
            recorded: 0,
            under_way: None,
            tokens: LiveTokens::default(),
            pricing,
            shared: SharedCaps::default(),
            launched: HashMap::new(),
            took_over: false,
            cut_off: false,
            is_stopping: false,
            tools: None,
            artifacts: HashSet::new(),
            told_files: HashSet::new(),
            before: None,
            view_due: false,
            view_stale: false,
            view_written: None,
            view_rest: VIEW,
            told_above: Default::default(),
            view_beside: false,
            view_under_way: false,
        }
    }

    /// The fencing number under which it writes.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
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

    /// Takes something of our own.
    pub(super) fn note(&mut self, input: impl Into<segno_core::Input>) {
        self.put(fresh_key(), [input]);
    }

    /// Takes something of our own that may be tried again by somebody else.
    pub(super) fn put(
        &mut self,
        key: EventKey,
        inputs: impl IntoIterator<Item = impl Into<segno_core::Input>>,
    ) {
        self.finish_texts();
        self.queue(key, self.engine.now(), inputs);
    }

    /// How many texts there were, and the first of them that is held back.
    pub(super) fn texts_progress(&self) -> (u64, Option<u64>) {
        self.texts.progress()
    }

    /// Takes in the texts that depend on nothing that comes.
    pub(super) fn give_texts(&mut self) {
        for said in self.texts.give(&self.engine.redactor()) {
            self.queue(said.key, said.at, said.facts);
        }
    }

    fn finish_texts(&mut self) {
        for said in self.texts.finish(&self.engine.redactor()) {
            self.queue(said.key, said.at, said.facts);
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
        if let Some(text) = outcome.limit.as_mut().and_then(|limit| limit.text.as_mut()) {
            fit(text);
        }
    }

    fn queue(
        &mut self,
        key: EventKey,
        at: Timestamp,
        inputs: impl IntoIterator<Item = impl Into<segno_core::Input>>,
    ) {
        let inputs: Vec<segno_core::Input> = inputs.into_iter().map(Into::into).collect();
        let what = match self.engine.ready_facts(&inputs) {
            Some(facts) => Prepared::Facts(facts),
            None => Prepared::Inputs(inputs),
        };
        self.pending.push_back(Item { key, at, what });
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

    /// Tells those who watch, and whoever reads the report.
    pub(super) fn warn(&mut self, text: String) {
        self.say(&text);
        if !self.notices.contains(&text) {
            self.notices.push(text);
        }
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
            what: Prepared::Inputs(vec![segno_core::Input::Fact(Fact::TokensRecorded {
                tokens,
                estimated: true,
                source: Source::Stream,
            })]),
        }));
    }
}

/// Whether a fact only counts what was used: a view is not rewritten for that.
fn is_mere_use(fact: &Fact) -> bool {
    matches!(fact, Fact::TokensRecorded { .. } | Fact::CostRecorded { .. })
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
