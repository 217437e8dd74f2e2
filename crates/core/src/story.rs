//! A session told by tests: commands go in, and its journal, state and lists follow as they do in earnest.

use std::collections::BTreeMap;

use serde_json::Map;
use serde_json::Value;

use crate::budget::TokenUse;
use crate::command::Command;
use crate::decide::decide;
use crate::event::CallEnd;
use crate::event::Event;
use crate::event::Holder;
use crate::event::RunEnded;
use crate::event::RunStarted;
use crate::event::Source;
use crate::event::Unit;
use crate::event::samples::at;
use crate::event::samples::bare_state;
use crate::fact::Fact;
use crate::input::Input;
use crate::project::List;
use crate::project::project;
use crate::refusal::Refusal;
use crate::state::Applied;
use crate::state::Mark;
use crate::state::State;
use crate::status::Status;
use crate::text::Text;

/// Commands and facts in one list.
macro_rules! inputs {
    ($($input:expr),* $(,)?) => { vec![$(crate::input::Input::from($input)),*] };
}
pub(crate) use inputs;

pub(crate) struct Story {
    pub(crate) state: State,
    /// The run that what happens next belongs to.
    pub(crate) run: Option<String>,
    pub(crate) rows: BTreeMap<(List, String), Map<String, Value>>,
}

impl Story {
    /// A new session with nothing in it.
    pub(crate) fn new() -> Self {
        Self::of(bare_state())
    }

    pub(crate) fn of(state: State) -> Self {
        Self { state, run: None, rows: BTreeMap::new() }
    }

    /// The story that these commands tell.
    pub(crate) fn told(inputs: impl IntoIterator<Item = impl Into<Input>>) -> Self {
        let mut story = Self::new();
        for input in inputs {
            story.ok(input);
        }
        story
    }

    /// Takes an active, driven session to this status.
    pub(crate) fn go_to(mut self, status: Status) -> Self {
        match status {
            Status::Active => vec![],
            Status::Paused => self.ok(pause()),
            Status::Interrupted => self.ok(interrupt()),
            Status::Halted => self.ok(Command::Halt { reason: "no progress".into() }),
            Status::Completed => self.ok(Command::Complete { summary: None }),
            Status::Aborted => self.ok(Command::Abort { reason: None }),
            Status::Failed => self.ok(Command::Fail { reason: None }),
        };
        assert_eq!(self.state.status, status);
        self
    }

    /// Records an event as it comes; each is one second after the one before.
    pub(crate) fn record(&mut self, event: &Event) -> Applied {
        let seq = self.state.seq + 1;
        let mark = Mark { seq, at: at(seq.try_into().unwrap()), run: self.run.clone() };
        let applied = self.state.apply(&mark, event);
        for change in project(&self.state, &mark, event, applied) {
            self.rows.entry((change.list, change.key)).or_default().extend(change.fields);
        }
        applied
    }

    /// A command that is carried out, or a fact.
    pub(crate) fn ok(&mut self, input: impl Into<Input>) -> Vec<Event> {
        let input = input.into();
        let words = format!("{input:?}");
        let events = decide(&self.state, input).unwrap_or_else(|refusal| panic!("{words}: {refusal}"));
        for event in &events {
            self.record(event);
        }
        events
    }

    /// A command that is not.
    pub(crate) fn refused(&self, input: impl Into<Input>) -> Refusal {
        let input = input.into();
        let words = format!("{input:?}");
        decide(&self.state, input).expect_err(&words)
    }

    /// The rows of a list in order.
    pub(crate) fn list(&self, list: List) -> Vec<&Map<String, Value>> {
        self.rows.iter().filter(|((of, _), _)| *of == list).map(|(_, row)| row).collect()
    }

    /// One column of a list, as words.
    pub(crate) fn column(&self, list: List, name: &str) -> Vec<String> {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.list(list).iter().map(|row| row.get(name).map_or_else(String::new, word)).collect()
    }
}

/// The kinds of some events.
pub(crate) fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::kind).collect()
}

pub(crate) fn attach(epoch: u64) -> Command {
    Command::AttachDriver { epoch, holder: Holder::default() }
}

pub(crate) fn pause() -> Command {
    Command::Pause { reason: Default::default(), details: None }
}

pub(crate) fn resume() -> Command {
    Command::Resume { reset_breaker: false, details: None }
}

pub(crate) fn interrupt() -> Command {
    Command::Interrupt { reason: Default::default(), details: None, at: None }
}

pub(crate) fn phase(to: &str) -> Command {
    Command::AdvancePhase { to: to.to_owned(), step: None, of: None }
}

pub(crate) fn tokens(tokens: u64, source: Source) -> Fact {
    Fact::TokensRecorded { tokens: TokenUse::of(tokens), estimated: false, source }
}

pub(crate) fn extend(unit: Unit, added: u64) -> Command {
    Command::ExtendBudget { unit, added }
}

pub(crate) fn start(call: &str, source: Source) -> Fact {
    Fact::ToolStarted {
        call: call.to_owned(),
        tool: "Bash".to_owned(),
        input: serde_json::json!({ "command": "ls" }),
        write_ahead: source == Source::Hook,
        source,
    }
}

pub(crate) fn end(call: &str, end: CallEnd) -> Fact {
    let output: Option<Text> = (end == CallEnd::Completed).then(|| "a.txt".into());
    Fact::ToolEnded { call: call.to_owned(), tool: None, end, output, source: Source::Stream }
}

pub(crate) fn start_run(run: &str) -> Command {
    let agent = "claude".to_owned();
    Command::StartRun(Box::new(RunStarted { run: run.to_owned(), agent, ..RunStarted::default() }))
}

pub(crate) fn end_run(run: &str, outcome: &str) -> Command {
    let (run, outcome) = (run.to_owned(), outcome.to_owned());
    Command::EndRun(Box::new(RunEnded { run, outcome, ..RunEnded::default() }))
}
