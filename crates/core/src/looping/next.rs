//! What a loop does next: the same whether it has just gone on or is taken up after a kill, a wait or a halt.

use super::breaker::BreakerState;
use super::state::LoopState;
use super::state::ParkReason;
use super::verdict::CapKind;
use super::verdict::LoopVerdict;
use super::verdict::count_cap;
use super::waiter;
use super::window::moment;
use crate::event::LoopParked;
use crate::state::State;
use crate::time::Timestamp;

/// What a loop does next.
#[derive(Clone, Debug, PartialEq)]
pub enum NextStep {
    /// The session is no loop.
    NoLoop,
    /// It has ended.
    Ended,
    /// It is parked until then.
    Wait {
        /// Until when.
        until: Timestamp,
    },
    /// It is parked until somebody says so.
    Held,
    /// It was parked, and the time is over.
    Wake,
    /// Its breaker is open.
    Halted {
        /// When one iteration is tried by itself; none if only a person can help.
        probe_at: Option<Timestamp>,
    },
    /// Its breaker was open, and one iteration may be tried.
    Probe,
    /// It waits at a breakpoint.
    Breakpoint {
        /// Its name.
        name: String,
    },
    /// The present phase is done or skipped: go into the next one.
    Advance,
    /// A cap is reached, and nobody raised it.
    Capped(LoopVerdict),
    /// What there is has to be measured before the first iteration of the phase.
    Baseline,
    /// It has to wait before the next iteration.
    Park(LoopParked),
    /// The vendor was busy: wait with the process until then.
    BackOff {
        /// Until when.
        until: Timestamp,
    },
    /// Another agent takes over.
    HandOver {
        /// Which.
        to: String,
        /// Why.
        why: String,
    },
    /// Work goes on with the items of its queue, each in a session of its own.
    Items,
    /// One more iteration.
    Iterate {
        /// Whether one that was cut short is begun again.
        again: bool,
    },
}

/// What a loop does next at this moment.
pub fn next_step(session: &State, at: Timestamp) -> NextStep {
    let Some(state) = session.looping.as_deref() else { return NextStep::NoLoop };
    if session.status.is_terminal() {
        return NextStep::Ended;
    }
    if let Some(parked) = &state.parked {
        return match parked.until {
            None => NextStep::Held,
            Some(until) if until > at => NextStep::Wait { until },
            Some(_) => NextStep::Wake,
        };
    }
    if state.plan.queue.is_some() {
        // What an item does is decided in its own session; the caps hold for all of them together.
        let whole = |cap: &LoopVerdict| {
            matches!(cap, LoopVerdict::Cap { which: CapKind::Iterations | CapKind::Seconds, .. })
        };
        return count_cap(state, 0, 0, at).filter(whole).map_or(NextStep::Items, NextStep::Capped);
    }
    if state.breaker.state == BreakerState::Open {
        let limits = state.phase_plan().map(|plan| plan.thresholds).unwrap_or_default();
        let probe_at = state.breaker.probe_at(&limits);
        return match probe_at {
            Some(when) if when <= at => NextStep::Probe,
            probe_at => NextStep::Halted { probe_at },
        };
    }
    if let Some(waiting) = &session.breakpoint {
        return NextStep::Breakpoint { name: waiting.name.clone() };
    }
    if state.skip || state.passed {
        return NextStep::Advance;
    }
    if state.open {
        return NextStep::Iterate { again: true };
    }
    before_iteration(session, state, at)
}

/// How the run of the open iteration came out, if it has ended. Whoever had their say is measured, and not asked again;
/// an agent that was stopped, or cut short together with its driver, had not.
pub fn outcome_of_open(session: &State) -> Option<&str> {
    let told = session.looping.as_deref().filter(|looping| looping.open)?.told;
    let run = session.run.as_ref().filter(|run| run.seq > told && !run.is_running())?;
    Some(run.outcome.as_deref().unwrap_or_default())
}

/// Whether the agent of the open iteration had its say.
pub fn had_its_say(session: &State) -> bool {
    outcome_of_open(session).is_some_and(|how| how != "stopped" && how != "interrupted")
}

fn before_iteration(session: &State, state: &LoopState, at: Timestamp) -> NextStep {
    if let Some(LoopVerdict::BackOff { until, .. }) = &state.verdict
        && *until > at
    {
        return NextStep::BackOff { until: *until };
    }
    if let Some(cap) = count_cap(state, 0, session.iteration.saturating_add(1), at) {
        return NextStep::Capped(cap);
    }
    if let Some((to, why)) = waiter::hand_back(state, at) {
        return NextStep::HandOver { to, why };
    }
    let open = waiter::next_open(&state.plan.limits, at);
    if open > at {
        return park(open, ParkReason::Hours, format!("it may work again at {}", moment(open)));
    }
    if let Some((until, why)) = waiter::own_limit(state, at) {
        let until = waiter::next_open(&state.plan.limits, until);
        return park(until, ParkReason::Own, why);
    }
    if state.baseline.is_none() {
        return NextStep::Baseline;
    }
    NextStep::Iterate { again: false }
}

fn park(until: Timestamp, class: ParkReason, words: String) -> NextStep {
    NextStep::Park(LoopParked { until: Some(until), class, words, ..LoopParked::default() })
}
