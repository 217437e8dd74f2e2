//! What the files say of a session's past: each phase that it was in, and the log. It follows from the journal alone, never
//! from the files that happen to be there, so that nothing is lost that was not written in time, and the same session
//! always has the same files.

use std::collections::BTreeMap;

use segno_core::Mark;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::Event;
use segno_core::looping::PhaseEnd;
use segno_core::state::Applied;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use super::moment::Moment;
use super::moment::known;
use super::status_log;

/// The newest numbers of a phase that are kept.
const HISTORY: usize = 100;

/// Kinds of events that say nothing of what is told here, and that there are many of.
const PASSED_OVER: [&str; 10] = [
    "tool_started",
    "tool_ended",
    "said",
    "turn_completed",
    "reported",
    "tokens_recorded",
    "cost_recorded",
    "items_imported",
    "memory_used",
    "artifact_recorded",
];

/// The past of a session, as far as its events were taken. It can be kept, for whoever goes on with it later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    state: State,
    phases: BTreeMap<String, Visit>,
    log: String,
}

/// What is known of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Visit {
    /// When it began, the last time; none if that was before the session came here.
    pub started_at: Option<Timestamp>,
    /// When it was left.
    pub ended_at: Option<Timestamp>,
    /// Iterations in it before the session came here.
    pub before: u64,
    /// Iterations in it since.
    pub iterations: u64,
    /// How it was left.
    pub exit: Option<String>,
    /// The numbers that it was left with.
    pub numbers: BTreeMap<String, Value>,
    /// The numbers of each iteration.
    pub history: Vec<Value>,
}

impl Record {
    /// Whether an event of this kind is of no use here.
    pub fn passes_over(kind: &str) -> bool {
        PASSED_OVER.contains(&kind)
    }

    /// From the first event of a session; none if it makes no session.
    pub fn begin(mark: &Mark, event: &Event) -> Option<Self> {
        let state = State::begin(mark, event).ok()?;
        if matches!(event, Event::SessionImported(_)) {
            return Some(Self::of_state(state));
        }
        let mut record = Self { state, phases: BTreeMap::new(), log: String::new() };
        record.enter(mark.at);
        Some(record)
    }

    /// Of a session whose events are not here: what its state says of its phases.
    pub fn of_state(state: State) -> Self {
        let mut phases: BTreeMap<String, Visit> = BTreeMap::new();
        for stand in state.looping.iter().flat_map(|looping| &looping.phases) {
            if let Some(phase) = known(Some(&stand.name)).filter(|_| stand.started_at.is_some()) {
                let visit = Visit {
                    started_at: stand.started_at,
                    ended_at: stand.ended_at,
                    before: stand.iterations,
                    exit: stand.end.map(|end| exit_word(end).to_owned()),
                    ..Visit::default()
                };
                phases.insert(phase.to_owned(), visit);
            }
        }
        if let Some(phase) = known(state.phase.as_deref()) {
            phases
                .entry(phase.to_owned())
                .or_insert_with(|| Visit { before: state.iteration, ..Visit::default() });
        }
        Self { state, phases, log: String::new() }
    }

    /// The last event that was taken.
    pub fn seq(&self) -> u64 {
        self.state.seq
    }

    /// Goes past an event without a look.
    pub fn pass(&mut self, seq: u64) {
        self.state.seq = seq;
    }

    pub(super) fn visit(&self, phase: &str) -> Option<&Visit> {
        self.phases.get(phase)
    }

    pub(super) fn log(&self) -> &str {
        &self.log
    }

    /// Takes the next event.
    pub fn take(&mut self, mark: &Mark, event: &Event) {
        let (phase, status) = (self.state.phase.clone(), self.state.status);
        // What was counted in a phase is gone once another one has begun.
        let leaves = matches!(
            event,
            Event::PhaseAdvanced(_)
                | Event::StateRestored(_)
                | Event::WorkflowSet(_)
                | Event::LoopStarted(_)
                | Event::SessionCompleted(_)
        );
        let before = leaves.then(|| self.state.clone());
        if self.state.apply(mark, event) != Applied::Counted {
            return;
        }
        if let Some(before) = before.as_ref().filter(|_| phase != self.state.phase) {
            self.leave(before, mark.at);
            return self.enter(mark.at);
        }
        match event {
            Event::IterationEnded(e) if e.observation.end.counts() => self.count(&e.phase),
            Event::IterationStarted(_) if self.state.looping.is_none() => {
                self.count(&phase.unwrap_or_default());
            }
            Event::MetricSet(_) if self.state.looping.is_none() => return self.note(),
            Event::LoopParked(_)
            | Event::LoopWoken(_)
            | Event::BreakerChanged(_)
            | Event::GateMeasured(_) => {}
            _ if status != self.state.status => {}
            _ => return,
        }
        if self.state.status == Status::Completed {
            self.close(before.as_ref(), mark.at);
        } else if matches!(event, Event::IterationEnded(_) | Event::IterationStarted(_)) {
            self.note();
        }
        self.say();
    }

    fn count(&mut self, phase: &str) {
        if let Some(visit) = known(Some(phase)).and_then(|phase| self.phases.get_mut(phase)) {
            visit.iterations = visit.iterations.saturating_add(1);
        }
    }

    /// Puts the numbers of the newest measured iteration into the history of its phase; those of the same one are replaced.
    fn note(&mut self) {
        let Some(moment) = Moment::of(&self.state).filter(|moment| moment.measured() > 0) else { return };
        let mut entry = moment.numbers();
        let iteration = json!(moment.measured());
        entry.insert("iteration".to_owned(), iteration.clone());
        entry.insert("timestamp".to_owned(), json!(self.state.updated_at));
        let visit = self.phases.entry(moment.phase.to_owned()).or_default();
        // A phase that began again counts from 1 again.
        let since = visit.started_at;
        let is_same = visit.history.last().is_some_and(|last| {
            let at = last.get("timestamp").and_then(Value::as_str);
            let at: Option<Timestamp> = at.and_then(|at| at.parse().ok());
            last.get("iteration") == Some(&iteration) && since.is_none_or(|since| at >= Some(since))
        });
        if is_same {
            visit.history.pop();
        }
        visit.history.push(entry.into_iter().collect());
        visit.history.drain(..visit.history.len().saturating_sub(HISTORY));
    }

    /// Adds a block to the log, unless the last one says the same.
    fn say(&mut self) {
        if let Some(moment) = Moment::of(&self.state) {
            status_log::add(&mut self.log, &moment.entry());
        }
    }

    fn enter(&mut self, at: Timestamp) {
        let Some(phase) = known(self.state.phase.as_deref()) else { return };
        let visit = self.phases.entry(phase.to_owned()).or_default();
        (visit.started_at, visit.ended_at, visit.exit) = (Some(at), None, None);
        visit.numbers.clear();
        self.say();
    }

    fn leave(&mut self, before: &State, at: Timestamp) {
        let Some(moment) = Moment::of(before) else { return };
        let end = self
            .state
            .looping
            .as_ref()
            .and_then(|looping| looping.phases.iter().find(|stand| stand.name == moment.phase)?.end);
        let end = end.filter(|_| before.looping.is_some());
        let entry = moment.left(end, self.state.phase.as_deref(), at);
        let gone_back = if entry.status == "BLOCKED" { "gone_back" } else { "gone_on" };
        let visit = self.phases.entry(moment.phase.to_owned()).or_default();
        visit.ended_at = Some(at);
        visit.exit = Some(end.map_or(gone_back, exit_word).to_owned());
        visit.numbers = moment.numbers();
        status_log::add(&mut self.log, &entry);
    }

    /// The session is completed, and with it the phase that it is in.
    fn close(&mut self, before: Option<&State>, at: Timestamp) {
        let Some(moment) = before.and_then(Moment::of) else { return };
        let end = moment.stand(moment.phase).and_then(|stand| stand.end);
        let visit = self.phases.entry(moment.phase.to_owned()).or_default();
        visit.ended_at = visit.ended_at.or(Some(at));
        visit.exit = Some(end.map_or("session_completed", exit_word).to_owned());
        visit.numbers = moment.numbers();
    }
}

fn exit_word(end: PhaseEnd) -> &'static str {
    match end {
        PhaseEnd::Passed => "gate_passed",
        PhaseEnd::Skipped => "forced_exit",
        PhaseEnd::SentBack => "sent_back",
    }
}
