//! A session kept twice: as its commands are carried out, and folded from what was stored of them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use segno_core::Command;
use segno_core::Encoded;
use segno_core::Event;
use segno_core::Input;
use segno_core::List;
use segno_core::Mark;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::create;
use segno_core::decide;
use segno_core::event::Maker;
use segno_core::event::SessionCreated;
use segno_core::event::Source;
use segno_core::project;
use segno_core::state::Applied;

type Checked = Result<(), TestCaseError>;

#[derive(Clone)]
pub(crate) struct Journal {
    /// The state as commands were carried out.
    pub(crate) live: State,
    /// The state as read back.
    folded: State,
    /// What was stored, and where.
    pub(crate) stored: Vec<Encoded>,
    marks: Vec<Mark>,
    /// The keys of the history's rows.
    history: BTreeSet<String>,
    /// Which source of a run spoke first, and what counts by that rule.
    first_source: BTreeMap<String, Source>,
    tokens: u64,
}

impl Journal {
    pub(crate) fn new() -> Self {
        let at = Timestamp::from_micros(1_750_000_000_000_000);
        let uid = "01932f6e-7c00-7000-8000-00805f9b34fb".parse().unwrap();
        let creation = SessionCreated::new(SessionId::at(at), uid, Maker::New);
        let event = create(creation).unwrap();
        let mark = Mark { seq: 1, at, run: None };
        let live = State::begin(&mark, &event).unwrap();
        let rows = project(&live, &mark, &event, Applied::Counted);
        Self {
            folded: live.clone(),
            live,
            stored: vec![event.encode()],
            marks: vec![mark],
            history: rows.into_iter().filter(|row| row.list == List::History).map(|row| row.key).collect(),
            first_source: BTreeMap::new(),
            tokens: 0,
        }
    }

    /// Carries a command out if the rules allow it, without looking closely.
    pub(crate) fn say(&mut self, input: impl Into<Input>) {
        for event in decide(&self.live, input).unwrap_or_default() {
            let mark = Mark { seq: self.live.seq + 1, at: self.live.updated_at, run: None };
            self.live.apply(&mark, &event);
        }
    }

    /// Carries a command out if the rules allow it, and checks all that must hold.
    pub(crate) fn ask(&mut self, input: Input, at: Timestamp, run: Option<String>) -> Checked {
        // The rules only borrow the state, so a refusal cannot change it.
        let Ok(events) = decide(&self.live, self.aim(input)) else { return Ok(()) };
        prop_assert!(!events.is_empty(), "what is allowed leaves a trace");
        for event in events {
            let (from, id) = (self.live.status, self.live.session_id);
            let mark = Mark { seq: self.live.seq + 1, at, run: run.clone() };
            self.count_tokens(&mark, &event);
            let applied = self.live.apply(&mark, &event);
            for row in project(&self.live, &mark, &event, applied) {
                if row.list == List::History {
                    prop_assert!(self.history.insert(row.key), "a line of the history is never written over");
                }
            }
            let stored = event.encode();
            let read = Event::decode(&stored.kind, stored.version, &stored.body);
            let read = read.map_err(|error| TestCaseError::fail(format!("{error}: {}", stored.body)))?;
            prop_assert_eq!(&read, &event);
            prop_assert_eq!(self.folded.apply(&mark, &read), applied);
            self.stored.push(stored);
            self.marks.push(mark);
            let to = self.live.status;
            prop_assert!(from == to || from.may_become(to), "from {} to {}", from, to);
            prop_assert_eq!(self.live.session_id, id, "a session keeps its id");
        }
        prop_assert_eq!(&self.folded, &self.live);
        self.check()
    }

    /// Most answers are to a request that is open; chance alone would hardly ever find one.
    fn aim(&self, input: Input) -> Input {
        match input {
            Input::Command(Command::AnswerRequest { request, obeyed, details }) => {
                let open = self.live.requests.get(usize::try_from(request % 8).unwrap());
                let request = open.map_or(request, |open| open.seq);
                Command::AnswerRequest { request, obeyed, details }.into()
            }
            other => other,
        }
    }

    fn count_tokens(&mut self, mark: &Mark, event: &Event) {
        let Event::TokensRecorded(recorded) = event else { return };
        let counts = match &mark.run {
            Some(run) if recorded.source != Source::Hand => {
                *self.first_source.entry(run.clone()).or_insert(recorded.source) == recorded.source
            }
            Some(_) | None => true,
        };
        if counts {
            self.tokens = self.tokens.saturating_add(recorded.tokens.counted(Default::default()));
        }
    }

    fn check(&self) -> Checked {
        let state = &self.live;
        prop_assert_eq!(state.seq, self.stored.len() as u64, "no gaps");
        prop_assert!(state.created_at <= state.updated_at);
        prop_assert_eq!(state.completed_at.is_some(), state.status.is_terminal());
        if let Some(at) = state.completed_at {
            prop_assert!(state.created_at <= at && at <= state.updated_at);
        }
        prop_assert!(state.counts.history >= 1);
        prop_assert_eq!(state.counts.history, self.history.len() as u64);

        let budget = state.budget;
        prop_assert!(budget.total_budget > 0);
        prop_assert!(state.cost.limit_micros != Some(0));
        prop_assert_eq!(budget.tokens_used, self.tokens);
        let remaining = i128::from(budget.total_budget) - i128::from(budget.tokens_used);
        prop_assert_eq!(i128::from(budget.tokens_remaining()), remaining.max(0));
        // A warning that was given is one that is still true.
        prop_assert!(!state.warned.tokens || budget.is_warning());
        prop_assert!(!state.warned.tokens_over || budget.is_over());
        prop_assert!(!state.warned.cost || state.cost.is_warning());
        prop_assert!(!state.warned.cost_over || state.cost.is_over());

        let calls = &state.calls;
        let without_end = (calls.open.len() + calls.in_doubt.len()) as u64 + calls.open_beyond;
        prop_assert_eq!(calls.completed + calls.failed + calls.denied + without_end, calls.total);
        let tasks = &state.tasks;
        prop_assert_eq!(tasks.done + tasks.dropped + tasks.open.len() as u64, tasks.added);
        prop_assert!(state.decisions.heads.values().all(|head| (1..=state.decisions.count).contains(head)));
        if let (Some(step), Some(of)) = (state.step, state.of) {
            prop_assert!((1..=of).contains(&step), "step {} of {}", step, of);
        }
        prop_assert!(state.progress().is_none_or(|percent| percent <= 100));
        prop_assert!(state.driver.is_none() || state.status.is_open());
        Ok(())
    }

    /// Folds all that was stored once more, from the beginning, and reads the state back.
    pub(crate) fn finish(&self) -> Checked {
        let events: Vec<Event> = self
            .stored
            .iter()
            .map(|stored| Event::decode(&stored.kind, stored.version, &stored.body).unwrap())
            .collect();
        let mut state = State::begin(&self.marks[0], &events[0]).unwrap();
        for (mark, event) in self.marks.iter().zip(&events).skip(1) {
            state.apply(mark, event);
        }
        prop_assert_eq!(&state, &self.live);
        let json = serde_json::to_string(&state).unwrap();
        let read: State = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), json);
        prop_assert_eq!(read, state);
        Ok(())
    }
}
