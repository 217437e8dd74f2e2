//! Where a loop stands, for people and monitors.

use serde::Serialize;

use super::breaker::BreakerChange;
use super::breaker::BreakerState;
use super::breaker::REPEATS;
use super::gate::GateResult;
use super::next::NextStep;
use super::next::had_its_say;
use super::next::next_step;
use super::observation::TestCounts;
use super::plan::GateRule;
use super::queue::begun_item;
use super::queue_status::QueueStatus;
use super::queue_status::queue_status;
use super::state::LoopState;
use super::state::PhaseEnd;
use super::state::Recent;
use super::window::countdown;
use super::words;
use crate::event::WorkItemMark;
use crate::id::SessionId;
use crate::state::State;
use crate::status::Status;
use crate::time::Timestamp;

/// Where a loop stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopStatus {
    /// The workflow.
    pub workflow: String,
    /// The session's status.
    pub status: &'static str,
    /// The present phase.
    pub phase: String,
    /// All phases, in order.
    pub phases: Vec<PhaseStatus>,
    /// The iteration in the present phase.
    pub iteration: u64,
    /// Iterations of all phases.
    pub total: u64,
    /// How many there may be.
    pub most: Option<u64>,
    /// The agent that it was handed over to.
    pub agent: Option<String>,
    /// The tests as they were measured last.
    pub tests: Option<TestCounts>,
    /// How the gate came out the last time.
    pub gate: Option<GateResult>,
    /// The breaker.
    pub breaker: BreakerStatus,
    /// Tokens used.
    pub tokens: u64,
    /// What it cost, in millionths of a dollar, as far as that is known.
    pub cost_micros: u64,
    /// Iterations whose cost nobody knows.
    pub unpriced: u64,
    /// Until when it waits.
    pub waiting_until: Option<Timestamp>,
    /// How long that is.
    pub countdown: Option<String>,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// Notes that wait for the next prompt.
    pub notes: Vec<String>,
    /// How many of them, the first ones, the agent was told in an iteration that was cut short.
    #[serde(skip)]
    pub told_before: usize,
    /// What the last iteration did, in one line.
    pub line: Option<String>,
    /// What comes next, in words.
    pub next: String,
    /// The newest iterations in numbers, newest last.
    pub recent: Vec<Recent>,
    /// Work items that were done.
    pub items_done: u64,
    /// The work items, if it has a queue.
    pub queue: Option<QueueStatus>,
    /// The loop whose item this session works on.
    pub parent: Option<SessionId>,
    /// That item.
    pub item: Option<WorkItemMark>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseStatus {
    /// Its name.
    pub name: String,
    /// `done`, `skipped`, `sent back`, `now` or `to come`.
    pub state: &'static str,
    /// Iterations in it.
    pub iterations: u64,
    /// Tokens used in it.
    pub tokens: u64,
    /// What it cost, in millionths of a dollar.
    pub cost_micros: u64,
    /// The event with its receipt.
    pub receipt: Option<u64>,
}

/// The breaker, with what would move it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerStatus {
    /// Where it stands.
    pub state: BreakerState,
    /// Each counter, and where it opens.
    pub counters: Vec<Counter>,
    /// What was compared last.
    pub compared: Option<String>,
    /// What would have counted as progress.
    pub would_count: Vec<String>,
    /// When it opened.
    pub opened_at: Option<Timestamp>,
    /// Why.
    pub reason: Option<String>,
    /// When one iteration is tried by itself.
    pub probe_at: Option<Timestamp>,
    /// Its newest changes, newest last.
    pub changes: Vec<BreakerChange>,
}

/// One counter of a breaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// What it counts.
    pub name: &'static str,
    /// Where it stands.
    pub value: u32,
    /// Where it stops the loop; 0 if it never does.
    pub limit: u32,
}

/// Where the loop of a session stands at this moment, if it is one.
pub fn loop_status(session: &State, at: Timestamp) -> Option<LoopStatus> {
    let state = session.looping.as_deref()?;
    let waiting_until = state.parked.as_ref().and_then(|parked| parked.until);
    // What is in the prompt of the present iteration does not wait any more; if that is cut short, it is told again.
    let in_prompt = state.notes.iter().take_while(|note| note.seq <= state.told).count();
    let works = state.open && (session.status == Status::Active || had_its_say(session));
    let (gone, told_before) = if works { (in_prompt, 0) } else { (0, in_prompt) };
    Some(LoopStatus {
        workflow: state.plan.workflow.clone(),
        status: session.status.as_str(),
        phase: state.phase.clone(),
        phases: phases(state),
        iteration: session.iteration,
        total: state.total,
        most: state.plan.caps.iterations,
        agent: state.agent.clone().or_else(|| session.run.as_ref().map(|run| run.agent.clone())),
        tests: state.tests.clone(),
        gate: state.gate.clone(),
        breaker: breaker_status(state),
        // The loop's own sums hold ended iterations, and items of a queue; the session knows also of a run that goes on or
        // was cut short.
        tokens: state.tokens.max(session.tokens.counted(session.budget.count)),
        cost_micros: state.micros.max(session.cost.used_micros),
        unpriced: state.unpriced,
        waiting_until,
        countdown: waiting_until.map(|until| countdown(until, at)),
        waiting_for: state
            .parked
            .as_ref()
            .map(|parked| format!("{}: {}", parked.class.as_str(), parked.words)),
        notes: state.notes.iter().skip(gone).map(|note| note.text.clone()).collect(),
        told_before,
        line: state.line.clone(),
        next: next_words(session, state, at),
        recent: state.recent.iter().cloned().collect(),
        items_done: state.items_done,
        queue: queue_status(state, at),
        parent: state.parent,
        item: state.item.clone(),
    })
}

fn phases(state: &LoopState) -> Vec<PhaseStatus> {
    let of = |stand: &super::state::PhaseStand| PhaseStatus {
        name: stand.name.clone(),
        state: match stand.end {
            Some(PhaseEnd::Passed) => "done",
            Some(PhaseEnd::Skipped) => "skipped",
            Some(PhaseEnd::SentBack) => "sent back",
            None if stand.name == state.phase => "now",
            None => "to come",
        },
        iterations: stand.iterations,
        tokens: stand.tokens,
        cost_micros: stand.micros,
        receipt: stand.receipt,
    };
    state.phases.iter().map(of).collect()
}

/// The breaker of a loop, with what would move it.
pub fn breaker_status(state: &LoopState) -> BreakerStatus {
    let limits = state.phase_plan().map(|plan| plan.thresholds).unwrap_or_default();
    let breaker = &state.breaker;
    let counter = |name: &'static str, value: u32, limit: u32| Counter { name, value, limit };
    let repeats = |limit: u32| if limit == 0 { 0 } else { REPEATS };
    BreakerStatus {
        state: breaker.state,
        counters: vec![
            counter("iterations without progress", breaker.no_progress, limits.no_progress),
            counter("same error in a row", breaker.same_error, limits.same_error),
            counter("iterations that only asked", breaker.questions, limits.questions),
            counter("iterations in which all was denied", breaker.denials, limits.denials),
            counter("starts in a row that failed", breaker.start_failures, limits.start_failures),
            counter("iterations with identical calls", breaker.identical, repeats(limits.identical_calls)),
            counter("iterations in a circle", breaker.cycles, repeats(limits.cycles)),
            counter("dear iterations without progress", breaker.spend, repeats(limits.spend_factor)),
        ],
        compared: breaker.compared.clone(),
        would_count: would_count(state),
        opened_at: breaker.opened_at,
        reason: breaker.reason.clone(),
        probe_at: breaker.probe_at(&limits),
        changes: state.breaker_changes.iter().cloned().collect(),
    }
}

/// What the next iteration would have to bring.
fn would_count(state: &LoopState) -> Vec<String> {
    let mut list = vec!["a file that changes to something new, or a commit".to_owned()];
    match &state.tests {
        Some(tests) if tests.build_failed => list.push("tests that build".to_owned()),
        Some(tests) => list.push(format!("more than {} passing tests, or a new test", tests.passed)),
        None => list.push("tests that pass, if there are some".to_owned()),
    }
    let numbers = match state.phase_plan().map(|plan| &plan.gate) {
        Some(GateRule::Document { .. }) => {
            "more documents, a record of a decision, or a valid diagram".to_owned()
        }
        Some(GateRule::Refactor { .. }) => {
            "more patterns applied, less complexity or less repetition".to_owned()
        }
        Some(GateRule::Metrics(rules)) => {
            let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
            format!("{} closer to what is wanted", names.join(", "))
        }
        Some(
            GateRule::Red { .. } | GateRule::Green { .. } | GateRule::Qa | GateRule::Until | GateRule::Signal,
        )
        | None => String::new(),
    };
    list.extend(Some(numbers).filter(|numbers| !numbers.is_empty()));
    list.extend(state.open_items.map(|open| format!("fewer than {open} open items")));
    list
}

fn next_words(session: &State, state: &LoopState, at: Timestamp) -> String {
    let until = |until: Timestamp| countdown(until, at);
    let step = next_step(session, at);
    // Nothing happens by itself in a session that stands still; its record says what would.
    let goes_on = match step {
        NextStep::Advance
        | NextStep::Baseline
        | NextStep::Park(_)
        | NextStep::BackOff { .. }
        | NextStep::HandOver { .. }
        | NextStep::Items
        | NextStep::Iterate { .. } => session.status == Status::Active,
        NextStep::NoLoop
        | NextStep::Ended
        | NextStep::Wait { .. }
        | NextStep::Held
        | NextStep::Wake
        | NextStep::Halted { .. }
        | NextStep::Probe
        | NextStep::Breakpoint { .. }
        | NextStep::Capped(_) => true,
    };
    let used_up = session.budget.is_exhausted() || session.cost.is_exhausted();
    let starts = matches!(step, NextStep::Baseline | NextStep::Iterate { .. } | NextStep::Items);
    if used_up && starts && !goes_on {
        return "nothing until its budget is extended (segno budget); then: segno resume".to_owned();
    }
    let words = match step {
        NextStep::NoLoop | NextStep::Ended => "nothing: it has ended".to_owned(),
        NextStep::Wait { until: when } => format!("goes on in {}", until(when)),
        NextStep::Held => "waits until you say so".to_owned(),
        NextStep::Wake => "is due".to_owned(),
        NextStep::Halted { probe_at: Some(when) } => {
            format!("halted; one iteration may be tried in {}", until(when))
        }
        NextStep::Halted { probe_at: None } => "halted; only you can reset the breaker".to_owned(),
        NextStep::Probe => "tries one iteration".to_owned(),
        NextStep::Breakpoint { name } => format!("waits for your look at {name}"),
        NextStep::Advance => "goes into the next phase".to_owned(),
        NextStep::Capped(verdict) => format!("stands still: {}", words::why(&verdict)),
        NextStep::Baseline => format!("measures what there is before {}", state.phase),
        NextStep::Park(parked) => format!("parks: {}", parked.words),
        NextStep::BackOff { until: when } => format!("tries again in {}", until(when)),
        NextStep::HandOver { to, why } => format!("hands over to {to}: {why}"),
        NextStep::Items => match begun_item(state) {
            Some((id, _)) => format!("works on item {id}"),
            None => "takes the next item".to_owned(),
        },
        NextStep::Iterate { again: true } if had_its_say(session) => {
            "measures what its agent left".to_owned()
        }
        NextStep::Iterate { again: true } => "works on an iteration".to_owned(),
        NextStep::Iterate { again: false } => "one more iteration".to_owned(),
    };
    if goes_on { words } else { format!("nothing until you resume it; then: {words}") }
}
