//! The conversation of a session: what was asked, said and done, in the order in which it began, for whoever shows it.
//!
//! It is read from the journal, so it is the same for every agent and for sessions that came from elsewhere.

use std::collections::HashMap;

use segno_core::Event;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::call::subject;
use segno_core::event::CallEnd;
use segno_core::event::Channel;
use segno_core::rows::Row as _;
use segno_core::rows::ToolRow;
use segno_store::EventRow;
use serde::Serialize;

use crate::Engine;
use crate::Error;

/// How many events are read at once.
const PAGE: usize = 500;
/// How many entries are kept at least of a conversation that is followed.
const KEPT: usize = 1_000;

/// One thing in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The event that began it.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub what: Spoken,
}

/// What was asked, said or done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Spoken {
    /// An agent was started.
    RunStarted {
        /// Which.
        agent: String,
        /// Its version.
        version: Option<String>,
    },
    /// The agent was told something.
    Asked {
        /// By segno itself, which tells where the work stands.
        brief: bool,
        /// What.
        text: Text,
    },
    /// The agent said something.
    Said {
        /// Which agent.
        agent: String,
        /// To itself.
        thinking: bool,
        /// The call of the sub-agent that said it.
        parent: Option<String>,
        /// What.
        text: Text,
    },
    /// The agent used a tool.
    Called {
        /// Its id.
        call: String,
        /// The tool.
        tool: String,
        /// What it was about, on a line.
        subject: String,
        /// How it ended, if it did.
        end: Option<CallEnd>,
        /// How long it took.
        took_ms: Option<u64>,
        /// What came of it.
        output: Option<Text>,
    },
    /// The agent's process ended.
    RunEnded {
        /// How, in a word.
        outcome: String,
        /// Why.
        reason: Text,
        /// How long it took.
        duration_ms: u64,
        /// What it cost.
        cost_micros: Option<u64>,
        /// The last of what it wrote to standard error.
        #[serde(skip_serializing_if = "Option::is_none")]
        stderr: Option<Text>,
    },
}

impl Engine {
    /// The conversation of a session, whichever agents led it.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn conversation(&self, session: SessionId) -> Result<Vec<Entry>, Error> {
        let mut told = Told::of(&self.load(session)?.state);
        let mut after = 0;
        loop {
            let rows = self.events(session, after, PAGE)?;
            if rows.is_empty() {
                return Ok(told.entries);
            }
            for row in rows {
                match row {
                    EventRow::Whole(stored) => {
                        after = stored.seq;
                        if let Ok(event) = stored.event() {
                            told.take(stored.seq, stored.at, event);
                        }
                    }
                    EventRow::Damaged { seq, .. } => after = seq,
                }
            }
        }
    }
}

/// The end of a conversation, followed as it grows. What is kept of it is bounded.
pub struct Following {
    session: SessionId,
    told: Told,
    after: u64,
}

impl Following {
    /// Begins with the last events of a session, at most so many.
    pub fn the_last(state: &State, events: u64) -> Self {
        let after = state.seq.saturating_sub(events);
        Self { session: state.session_id, told: Told::of(state), after }
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Reads on; true if there was something.
    ///
    /// # Errors
    /// If there is no such session any more, or it cannot be read.
    pub fn read_on(&mut self, engine: &Engine) -> Result<bool, Error> {
        let before = self.after;
        loop {
            let rows = engine.events(self.session, self.after, PAGE)?;
            let Some(last) = rows.last() else { return Ok(self.after > before) };
            self.after = last.seq();
            for row in rows {
                let EventRow::Whole(stored) = row else { continue };
                if let Ok(event) = stored.event() {
                    self.told.take(stored.seq, stored.at, event);
                }
            }
            self.told.forget_all_but(KEPT);
        }
    }

    /// What was read, the oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.told.entries
    }
}

/// What was read so far.
#[derive(Default)]
struct Told {
    entries: Vec<Entry>,
    /// The project, whose paths are shown without it.
    root: String,
    /// The agent of the newest run.
    agent: String,
    /// Where the calls stand among the entries.
    calls: HashMap<String, usize>,
}

impl Told {
    fn of(state: &State) -> Self {
        let root = format!("{}/", state.project.path.trim_end_matches('/'));
        Self { root, ..Self::default() }
    }

    /// Forgets the oldest entries if there are more than twice as many.
    fn forget_all_but(&mut self, most: usize) {
        if self.entries.len() <= most * 2 {
            return;
        }
        let gone = self.entries.len() - most;
        self.entries.drain(..gone);
        self.calls.retain(|_, index| *index >= gone);
        self.calls.values_mut().for_each(|index| *index -= gone);
    }

    fn put(&mut self, seq: u64, at: Timestamp, what: Spoken) {
        self.entries.push(Entry { seq, at, what });
    }

    fn take(&mut self, seq: u64, at: Timestamp, event: Event) {
        match event {
            Event::RunStarted(e) => {
                // A command that was asked nothing is known by its own name.
                let asked = e.prompt.is_some() || e.interactive;
                let program = e.command.first().and_then(|program| program.rsplit('/').next());
                let agent = program.filter(|name| !asked && !name.is_empty()).unwrap_or(&e.agent).to_owned();
                self.agent.clone_from(&agent);
                self.put(seq, at, Spoken::RunStarted { agent, version: e.version });
                if let Some(text) = e.prompt {
                    self.put(seq, at, Spoken::Asked { brief: e.briefed, text });
                }
            }
            Event::Said(e) if e.channel == Channel::Input => self.input(seq, at, e.text),
            Event::Said(e) => {
                let thinking = e.channel == Channel::Thinking;
                let agent = self.agent.clone();
                self.put(seq, at, Spoken::Said { agent, thinking, parent: e.parent, text: e.text });
            }
            // A hook and the agent's output may both tell of a call; the first word counts.
            Event::ToolStarted(e) if !self.calls.contains_key(&e.call) => {
                self.calls.insert(e.call.clone(), self.entries.len());
                let subject = self.short(subject(&e.input));
                let (call, tool) = (e.call, e.tool);
                self.put(
                    seq,
                    at,
                    Spoken::Called { call, tool, subject, end: None, took_ms: None, output: None },
                );
            }
            Event::ToolEnded(e) => {
                let index = self.calls.get(&e.call).copied().unwrap_or_else(|| {
                    self.calls.insert(e.call.clone(), self.entries.len());
                    let tool = e.tool.clone().unwrap_or_else(|| "call".to_owned());
                    let (call, subject) = (e.call.clone(), String::new());
                    self.put(
                        seq,
                        at,
                        Spoken::Called { call, tool, subject, end: None, took_ms: None, output: None },
                    );
                    self.entries.len() - 1
                });
                self.end(index, at, e.end, e.output);
            }
            Event::RunEnded(e) => self.put(
                seq,
                at,
                Spoken::RunEnded {
                    outcome: e.outcome,
                    reason: e.reason,
                    duration_ms: e.duration_ms,
                    cost_micros: e.cost_micros,
                    stderr: e.stderr,
                },
            ),
            // A session that came without its journal has rows of calls only.
            Event::ItemsImported(e) if e.list == List::Tools => {
                for row in e.items.iter().filter_map(|item| ToolRow::read(&item.body)) {
                    self.imported(seq, at, row);
                }
            }
            _ => {}
        }
    }

    /// What a person typed. An agent that repeats its prompt says nothing new.
    fn input(&mut self, seq: u64, at: Timestamp, text: Text) {
        let again = self.entries.iter().rev().take(3).any(|entry| {
            matches!(&entry.what, Spoken::Asked { text: asked, .. } if asked.excerpt().trim() == text.excerpt().trim())
        });
        if !again {
            self.put(seq, at, Spoken::Asked { brief: false, text });
        }
    }

    /// A call has one end; what tells it again may bring its output.
    fn end(&mut self, index: usize, at: Timestamp, ended: CallEnd, brought: Option<Text>) {
        let Some(Entry { at: begun, what: Spoken::Called { end, took_ms, output, .. }, .. }) =
            self.entries.get_mut(index)
        else {
            return;
        };
        // A call in doubt may be found out about later.
        if end.is_none() || *end == Some(CallEnd::InDoubt) {
            *end = Some(ended);
            *took_ms = Some(at.micros_since(*begun) / 1_000).filter(|_| ended != CallEnd::InDoubt);
        }
        if brought.is_some() {
            *output = brought;
        }
    }

    fn imported(&mut self, seq: u64, at: Timestamp, row: ToolRow) {
        let end = match row.state.as_str() {
            "completed" => Some(CallEnd::Completed),
            "failed" => Some(CallEnd::Failed),
            "denied" => Some(CallEnd::Denied),
            "in_doubt" => Some(CallEnd::InDoubt),
            _ => None,
        };
        let begun = row.started_at.unwrap_or(at);
        let took_ms = row.ended_at.map(|ended| ended.micros_since(begun) / 1_000);
        let subject = row.input.as_ref().map_or(String::new(), |input| self.short(subject(input)));
        let (call, tool, output) = (row.call, row.tool, row.output);
        self.put(seq, begun, Spoken::Called { call, tool, subject, end, took_ms, output });
    }

    fn short(&self, subject: String) -> String {
        match subject.strip_prefix(&self.root) {
            Some(inside) if self.root.len() > 1 => inside.to_owned(),
            _ => subject,
        }
    }
}
