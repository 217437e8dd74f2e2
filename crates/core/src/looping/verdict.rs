//! The verdict on an iteration: exactly one, in a fixed order.

use crate::event::PauseReason;
use serde::Deserialize;
use serde::Serialize;

use super::breaker::Breaker;
use super::breaker::BreakerState;
use super::gate;
use super::gate::GateResult;
use super::observation::Asked;
use super::observation::Observation;
use super::observation::RunEnd;
use super::progress;
use super::progress::Progress;
use super::spend::spend_cap;
use super::state::LoopState;
use super::state::ParkReason;
use super::waiter;
use super::words;
use crate::time::Timestamp;

/// What follows from an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum LoopVerdict {
    /// One more iteration of the same phase.
    Continue {
        /// Why the phase is not done.
        why: String,
    },
    /// The phase is done; the next one begins.
    NextPhase {
        /// Which.
        to: String,
    },
    /// The last phase is done, and with it the work.
    Complete,
    /// The work was rejected and goes back.
    BackTo {
        /// The phase.
        phase: String,
        /// Why.
        why: String,
        /// The how-manieth time, from 1.
        attempt: u32,
    },
    /// Somebody asked for it.
    Stopped {
        /// What they asked for.
        how: Asked,
    },
    /// A cap is reached.
    Cap {
        /// Which.
        which: CapKind,
        /// In words.
        why: String,
    },
    /// The breaker is open.
    Halt {
        /// Why.
        why: String,
    },
    /// The loop waits without a process.
    Park {
        /// Until when.
        until: Timestamp,
        /// What it waits for.
        class: ParkReason,
        /// Why, in words.
        why: String,
    },
    /// The loop tries again soon.
    BackOff {
        /// When.
        until: Timestamp,
        /// Why, in words.
        why: String,
    },
    /// Only a person can help.
    NeedsPerson {
        /// With what.
        need: PersonNeed,
        /// In words.
        why: String,
    },
    /// Another agent goes on.
    HandOver {
        /// Which.
        to: String,
        /// Why.
        why: String,
    },
}

/// Which cap was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapKind {
    /// Iterations of the loop.
    Iterations,
    /// Iterations of the phase.
    PhaseIterations,
    /// Time of the loop.
    Seconds,
    /// Time of the phase.
    PhaseSeconds,
    /// Tokens of one iteration.
    IterationTokens,
    /// Money of one iteration.
    IterationMoney,
    /// Tokens of the day.
    DayTokens,
    /// Money of the day.
    DayMoney,
    /// A budget of the session.
    Budget,
    /// A share of the account's plan that is to be left.
    Plan,
}

impl CapKind {
    /// What a session is paused for that has reached it.
    pub fn pause_reason(self) -> PauseReason {
        match self {
            Self::Seconds | Self::PhaseSeconds => PauseReason::Timeout,
            Self::Plan => PauseReason::Limit,
            Self::Iterations
            | Self::PhaseIterations
            | Self::IterationTokens
            | Self::IterationMoney
            | Self::DayTokens
            | Self::DayMoney
            | Self::Budget => PauseReason::Budget,
        }
    }
}

/// What a person is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonNeed {
    /// Money.
    Pay,
    /// A login or a key.
    Auth,
    /// The agent has to be set up.
    Setup,
    /// Rights: all that the agent tried was denied.
    CannotAct,
    /// A look before the next phase.
    Breakpoint,
    /// An answer.
    Question,
    /// The work was rejected too often.
    Escalated,
    /// A limit that did not end, or whose end nobody knows.
    Limit,
}

impl PersonNeed {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pay => "payment",
            Self::Auth => "login",
            Self::Setup => "setup",
            Self::CannotAct => "rights",
            Self::Breakpoint => "a look",
            Self::Question => "an answer",
            Self::Escalated => "a decision",
            Self::Limit => "a limit",
        }
    }
}

impl LoopVerdict {
    /// The word that is shown, such as `goes on`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Continue { .. } => "goes on",
            Self::NextPhase { .. } => "next phase",
            Self::Complete => "completed",
            Self::BackTo { .. } => "goes back",
            Self::Stopped { .. } => "stopped",
            Self::Cap { .. } => "cap reached",
            Self::Halt { .. } => "halted",
            Self::Park { .. } => "parked",
            Self::BackOff { .. } => "backs off",
            Self::NeedsPerson { .. } => "needs you",
            Self::HandOver { .. } => "hands over",
        }
    }

    /// Whether the loop takes another iteration without anybody doing anything or time passing.
    pub fn goes_on(&self) -> bool {
        match self {
            Self::Continue { .. } | Self::NextPhase { .. } | Self::BackTo { .. } | Self::HandOver { .. } => {
                true
            }
            Self::Complete
            | Self::Stopped { .. }
            | Self::Cap { .. }
            | Self::Halt { .. }
            | Self::Park { .. }
            | Self::BackOff { .. }
            | Self::NeedsPerson { .. } => false,
        }
    }
}

/// All that follows from an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Whether it brought something.
    pub progress: Progress,
    /// How the gate came out.
    pub gate: GateResult,
    /// What the breaker has counted.
    pub breaker: Breaker,
    /// What follows.
    pub verdict: LoopVerdict,
    /// All of it in one line.
    pub line: String,
}

/// One iteration, as it is decided on.
#[derive(Clone, Copy, Debug)]
pub struct Iteration<'a> {
    /// Its number in the phase, from 1.
    pub number: u64,
    /// What it showed.
    pub seen: &'a Observation,
    /// The agent that worked.
    pub agent: Option<&'a str>,
    /// When it ended.
    pub at: Timestamp,
    /// A random number for waking up.
    pub jitter: u64,
}

/// Decides on an iteration. The order is fixed: what a person asked for, the gate, caps, the breaker, limits.
pub fn decide(state: &LoopState, iteration: Iteration<'_>) -> Decision {
    let seen = iteration.seen;
    let progress = progress::measure(state, seen);
    let gate = gate::evaluate(state, seen, iteration.number);
    let limits = state.phase_plan().map(|plan| plan.thresholds).unwrap_or_default();
    let mut breaker = state.breaker.step(&limits, seen, &progress, usual_spend(state), iteration.at);
    let verdict = verdict(state, iteration, &gate, &breaker);
    if matches!(verdict, LoopVerdict::NeedsPerson { need: PersonNeed::CannotAct, .. }) {
        // Whoever helped gets as many tries again.
        breaker.denials = 0;
    }
    let line = words::line(state, &iteration, &verdict);
    Decision { progress, gate, breaker, verdict, line }
}

fn verdict(state: &LoopState, iteration: Iteration<'_>, gate: &GateResult, breaker: &Breaker) -> LoopVerdict {
    let seen = iteration.seen;
    let rules: [&dyn Fn() -> Option<LoopVerdict>; 8] = [
        &|| asked(seen),
        &|| skipped(state),
        &|| passed(state, gate),
        &|| cap(state, seen, iteration),
        &|| rejected(state, seen),
        &|| stuck(state, seen, breaker),
        &|| {
            let limit = seen.limit.as_ref().filter(|_| seen.end == RunEnd::Limited)?;
            Some(waiter::at_limit(state, limit, iteration.agent, iteration.at, iteration.jitter))
        },
        &|| waiter::at_share(state, seen, iteration.at, iteration.jitter),
    ];
    let first = rules.iter().find_map(|rule| rule());
    first.unwrap_or_else(|| LoopVerdict::Continue { why: words::why_not_done(seen, gate) })
}

fn asked(seen: &Observation) -> Option<LoopVerdict> {
    let stopped = (seen.end == RunEnd::Stopped).then_some(Asked::Stop);
    seen.asked.or(stopped).map(|how| LoopVerdict::Stopped { how })
}

fn skipped(state: &LoopState) -> Option<LoopVerdict> {
    let next = state.plan.after(&state.phase).filter(|_| state.skip)?;
    Some(LoopVerdict::NextPhase { to: next.name.clone() })
}

fn passed(state: &LoopState, gate: &GateResult) -> Option<LoopVerdict> {
    if !gate.can_exit {
        return None;
    }
    if state.phase_plan().is_some_and(|plan| plan.breakpoint) {
        let why = format!("{} is done; somebody is to look at it", state.phase);
        return Some(LoopVerdict::NeedsPerson { need: PersonNeed::Breakpoint, why });
    }
    Some(match state.plan.after(&state.phase) {
        Some(next) => LoopVerdict::NextPhase { to: next.name.clone() },
        None => LoopVerdict::Complete,
    })
}

/// The review sends the work back, as often as the plan allows.
fn rejected(state: &LoopState, seen: &Observation) -> Option<LoopVerdict> {
    let verdict = seen.claims.verdict.as_deref()?;
    let no = verdict.eq_ignore_ascii_case("reject") || verdict.eq_ignore_ascii_case("rejected");
    let back = state.phase_plan()?.on_reject.as_ref().filter(|_| no)?;
    let sent = state.phases.iter().find(|stand| stand.name == back.to).map_or(0, |stand| stand.sent_back);
    let attempt = sent.saturating_add(1);
    let why = format!("{} rejects it", state.phase);
    Some(if attempt < back.most.max(1) {
        LoopVerdict::BackTo { phase: back.to.clone(), why, attempt }
    } else {
        let before = match sent {
            0 => "nothing goes back from here".to_owned(),
            1 => "it was sent back once before".to_owned(),
            sent => format!("it was sent back {sent} times before"),
        };
        let why = format!("{why}, and {before}");
        LoopVerdict::NeedsPerson { need: PersonNeed::Escalated, why }
    })
}

fn stuck(state: &LoopState, seen: &Observation, breaker: &Breaker) -> Option<LoopVerdict> {
    if breaker.state == BreakerState::Open {
        let why = breaker.reason.clone().unwrap_or_else(|| "the breaker is open".to_owned());
        return Some(LoopVerdict::Halt { why });
    }
    let most = state.phase_plan().map_or(0, |plan| plan.thresholds.denials);
    (most > 0 && breaker.denials >= most).then(|| {
        let denied = seen.denied_in_words().map_or(String::new(), |denied| format!(": {denied}"));
        let why = format!("all that the agent tried was denied, {} times{denied}", breaker.denials);
        LoopVerdict::NeedsPerson { need: PersonNeed::CannotAct, why }
    })
}

fn cap(state: &LoopState, seen: &Observation, iteration: Iteration<'_>) -> Option<LoopVerdict> {
    let counts = u64::from(seen.end.counts());
    count_cap(state, counts, iteration.number, iteration.at).or_else(|| spend_cap(&state.plan.caps, seen))
}

/// How many seconds one more iteration may take: what is left of the time of the loop and of the phase, at least one.
pub fn time_left(state: &LoopState, at: Timestamp) -> Option<u64> {
    let (whole, here) = time_spent(state, at);
    let whole = state.plan.caps.seconds.map(|most| most.saturating_sub(whole));
    let here = state.phase_plan().and_then(|plan| plan.max_seconds).map(|most| most.saturating_sub(here));
    whole.into_iter().chain(here).min().map(|left| left.max(1))
}

/// How many seconds the loop, and the present phase, have taken, without the time that it was parked.
pub fn time_spent(state: &LoopState, at: Timestamp) -> (u64, u64) {
    let spent = |since: Timestamp, parked: u64| (at.micros_since(since) / 1_000_000).saturating_sub(parked);
    let stand = state.stand();
    let here = stand.and_then(|stand| Some(spent(stand.started_at?, stand.parked_seconds)));
    (spent(state.started_at, state.parked_seconds), here.unwrap_or(0))
}

/// The caps on iterations and time, with so many iterations more than the state has counted.
pub(super) fn count_cap(state: &LoopState, more: u64, number: u64, at: Timestamp) -> Option<LoopVerdict> {
    let caps = &state.plan.caps;
    let phase = state.phase_plan();
    let done = state.total.saturating_add(more);
    let (whole, here) = time_spent(state, at);
    // An iteration that does not count has the number of the one that will.
    let in_phase = number.saturating_sub(u64::from(more == 0));
    let rules = [
        (CapKind::Iterations, done, caps.iterations, "iterations"),
        (
            CapKind::PhaseIterations,
            in_phase,
            phase.and_then(|plan| plan.max_iterations),
            "iterations of the phase",
        ),
        (CapKind::Seconds, whole, caps.seconds, "seconds"),
        (CapKind::PhaseSeconds, here, phase.and_then(|plan| plan.max_seconds), "seconds of the phase"),
    ];
    rules.into_iter().find_map(|(which, used, most, unit)| {
        let most = most.filter(|most| used >= *most)?;
        Some(LoopVerdict::Cap { which, why: format!("{used} of {most} {unit}") })
    })
}

/// What an iteration of this loop usually costs: the median of the newest ones, if there are enough to tell.
pub fn usual_spend(state: &LoopState) -> Option<u64> {
    let mut spent: Vec<u64> = state.recent.iter().map(|recent| recent.spend).filter(|n| *n > 0).collect();
    if spent.len() < 3 {
        return None;
    }
    spent.sort_unstable();
    spent.get(spent.len() / 2).copied()
}
