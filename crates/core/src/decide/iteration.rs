//! The end of an iteration: the decision, and all that follows from it in the same breath. Whoever is killed after it
//! finds it done, whoever is killed before it has done nothing.

use super::checkpoint;
use super::looping::into_phase;
use crate::event as ev;
use crate::event::CheckpointReason;
use crate::event::Event;
use crate::event::PauseReason;
use crate::limits;
use crate::looping::Asked;
use crate::looping::Decision;
use crate::looping::Iteration;
use crate::looping::LoopState;
use crate::looping::LoopVerdict;
use crate::looping::Observation;
use crate::looping::ParkReason;
use crate::looping::PersonNeed;
use crate::looping::Receipt;
use crate::looping::TestCounts;
use crate::looping::decide;
use crate::looping::over_budget;
use crate::looping::things;
use crate::refusal::Refusal;
use crate::state::State;
use crate::text::Text;
use crate::time::Timestamp;

/// What is told of an iteration that ended.
pub(super) struct Ended {
    pub(super) run: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) observation: Observation,
    pub(super) at: Timestamp,
    pub(super) jitter: u64,
}

pub(super) fn end_iteration(state: &State, looping: &LoopState, ended: Ended) -> Result<Vec<Event>, Refusal> {
    limits::optional_name("run", ended.run.as_deref())?;
    limits::optional_name("agent", ended.agent.as_deref())?;
    if !looping.open {
        return Err(Refusal::Already("no iteration is open".to_owned()));
    }
    let mut seen = ended.observation.bounded();
    if seen.over_budget.is_none() {
        seen.over_budget = over_budget(state);
    }
    let iteration = Iteration {
        number: state.iteration.max(1),
        seen: &seen,
        agent: ended.agent.as_deref().or(looping.agent.as_deref()).or(state.agent.as_deref()),
        at: ended.at,
        jitter: ended.jitter,
    };
    let Decision { progress, gate, breaker, verdict, line } = decide(looping, iteration);
    let follows = Follows { state, looping, seen: &seen, line: &line, at: ended.at };
    let mut rest = Vec::new();
    if gate.can_exit && matches!(verdict, LoopVerdict::NextPhase { .. } | LoopVerdict::Complete)
        || is_look(&verdict)
    {
        rest.push(follows.passed());
    }
    rest.extend(follows.of(&verdict));
    let event = ev::IterationEnded {
        iteration: iteration.number,
        phase: looping.phase.clone(),
        run: ended.run,
        agent: iteration.agent.map(str::to_owned),
        observation: Box::new(seen),
        progress,
        gate,
        breaker: Box::new(breaker),
        verdict,
        line,
    };
    Ok([event.into()].into_iter().chain(rest).collect())
}

fn is_look(verdict: &LoopVerdict) -> bool {
    matches!(verdict, LoopVerdict::NeedsPerson { need: PersonNeed::Breakpoint, .. })
}

struct Follows<'a> {
    state: &'a State,
    looping: &'a LoopState,
    seen: &'a Observation,
    line: &'a str,
    at: Timestamp,
}

impl Follows<'_> {
    /// The phase is done, with what was measured.
    fn passed(&self) -> Event {
        let plan = self.looping.phase_plan();
        let commands = plan.map(|plan| plan.evidence.iter().map(|one| one.command.clone()).collect());
        let receipt = Receipt {
            tree: self.seen.bound_to().cloned(),
            commands: commands.unwrap_or_default(),
            evidence: self.seen.evidence.clone(),
            counts: self.seen.tests.clone().unwrap_or_default(),
            at: self.at,
        };
        ev::GatePassed { phase: self.looping.phase.clone(), receipt }.into()
    }

    fn of(&self, verdict: &LoopVerdict) -> Vec<Event> {
        match verdict {
            // The next iteration begins, or begins after a while.
            LoopVerdict::Continue { .. } | LoopVerdict::BackOff { .. } => Vec::new(),
            LoopVerdict::NextPhase { to } => into_phase(self.state, to),
            LoopVerdict::BackTo { phase, .. } => into_phase(self.state, phase),
            LoopVerdict::Complete => {
                let tests = self.seen.tests.as_ref();
                completed(self.state, self.looping, self.iterations(), tests)
            }
            LoopVerdict::Stopped { how } => vec![self.stopped(*how)],
            // Every cap is a budget: of money, of tokens, of time, of iterations.
            LoopVerdict::Cap { why, which } => vec![paused(which.pause_reason(), why)],
            LoopVerdict::Halt { why } => vec![ev::SessionHalted { reason: why.as_str().into() }.into()],
            LoopVerdict::Park { until, class, why } => self.parked(*until, *class, why),
            LoopVerdict::NeedsPerson { need, why } => self.needs_person(*need, why),
            LoopVerdict::HandOver { to, why } => {
                let from_agent = self.looping.agent.clone().or_else(|| self.state.agent.clone());
                vec![
                    ev::HandedOver { from_agent, to_agent: to.clone(), why: why.clone(), until: None }.into(),
                ]
            }
        }
    }

    fn iterations(&self) -> u64 {
        self.looping.total.saturating_add(u64::from(self.seen.end.counts()))
    }

    fn stopped(&self, how: Asked) -> Event {
        match how {
            Asked::Pause | Asked::Stop => paused(PauseReason::Asked, self.line),
            Asked::Signal => paused(PauseReason::Signal, self.line),
            Asked::Abort => ev::SessionAborted { reason: Some(self.line.into()) }.into(),
        }
    }

    fn parked(&self, until: Timestamp, class: ParkReason, why: &str) -> Vec<Event> {
        let limit = self.seen.limit.as_ref();
        let waited = self.looping.windows_waited.saturating_add(u32::from(class == ParkReason::Plan));
        let parked = ev::LoopParked {
            until: Some(until),
            class,
            account: limit.map(|limit| limit.account.clone()),
            window: limit.and_then(|limit| limit.window.clone()),
            windows_waited: waited,
            words: why.to_owned(),
        };
        vec![parked.into(), paused(PauseReason::Limit, why)]
    }

    fn needs_person(&self, need: PersonNeed, why: &str) -> Vec<Event> {
        match need {
            PersonNeed::Pay | PersonNeed::Limit => vec![paused(PauseReason::Limit, why)],
            PersonNeed::Auth | PersonNeed::Setup | PersonNeed::CannotAct => {
                vec![paused(PauseReason::Error, why)]
            }
            PersonNeed::Question | PersonNeed::Escalated => vec![paused(PauseReason::Ended, why)],
            PersonNeed::Breakpoint => {
                let name = self.looping.phase.clone();
                let progress = self.state.progress();
                let sign = checkpoint(self.state, Some(&name), CheckpointReason::Breakpoint, progress);
                let reached = ev::BreakpointReached { name, details: Some(why.into()) };
                vec![reached.into(), sign, paused(PauseReason::Ended, why)]
            }
        }
    }
}

fn paused(reason: PauseReason, why: &str) -> Event {
    ev::SessionPaused { reason, details: Some(Text::from(why)) }.into()
}

/// The loop is done. Its summary says what the whole of it came to: the line of its last iteration says only what that did.
pub(super) fn completed(
    state: &State,
    looping: &LoopState,
    iterations: u64,
    tests: Option<&TestCounts>,
) -> Vec<Event> {
    let tests = tests.filter(|tests| tests.total > 0);
    let tests = tests.map_or(String::new(), |tests| format!(", {} tests pass", tests.fraction()));
    let phase = &looping.phase;
    let summary = format!("the gate of {phase} passed after {}{tests}", things(iterations, "iteration"));
    let sign = checkpoint(state, Some("final"), CheckpointReason::Final, Some(100));
    vec![sign, ev::SessionCompleted { summary: Some(summary.into()) }.into()]
}
