//! The rules for loops.

use super::check::not_empty;
use super::checkpoint;
use super::iteration::Ended;
use super::iteration::end_iteration;
use super::one;
use crate::event as ev;
use crate::event::CheckpointReason;
use crate::event::Event;
use crate::limits;
use crate::looping::AccountLoop;
use crate::looping::AccountTurn;
use crate::looping::BreakerBy;
use crate::looping::BreakerState;
use crate::looping::GateResult;
use crate::looping::LoopCommand;
use crate::looping::LoopPlan;
use crate::looping::LoopState;
use crate::looping::ParkReason;
use crate::looping::QueueListing;
use crate::looping::account_turn;
use crate::refusal::Refusal;
use crate::state::State;
use crate::state::step_of;
use crate::status::Status;
use crate::text::Text;

/// What follows from a command to a loop.
pub(super) fn decide_loop(state: &State, command: LoopCommand) -> Result<Vec<Event>, Refusal> {
    match command {
        LoopCommand::Start { plan, parent, item } => start(state, plan, parent, item),
        LoopCommand::Allow { further, at } => {
            the_loop(state)?;
            match further.plan(state, at) {
                Some(plan) => start(state, Box::new(plan), None, None),
                None => Ok(Vec::new()),
            }
        }
        LoopCommand::TakeBaseline(taken) => baseline(the_loop(state)?, taken),
        LoopCommand::ResetBreaker { reason } => reset(the_loop(state)?, reason),
        LoopCommand::Probe { by, reason } => probe(state, by, reason),
        LoopCommand::MeasureGate { phase, result, by_hand } => {
            known(the_loop(state)?, &phase)?;
            one(ev::GateMeasured { phase, result: result.bounded(), by_hand })
        }
        LoopCommand::AcceptGate { because, conditions, tree } => {
            accept(the_loop(state)?, because, conditions, tree)
        }
        LoopCommand::Park(parked) => park(the_loop(state)?, parked),
        LoopCommand::Hold => hold(the_loop(state)?),
        LoopCommand::Wake { how, at, others } => wake(state, how, at, &others),
        LoopCommand::TakeTurn { account, agent, others, at, jitter, now } => super::turn::take_turn(
            state,
            the_loop(state)?,
            &super::turn::Turn { account, agent, others, at, jitter, now },
        ),
        LoopCommand::Say { text } => {
            the_loop(state)?;
            not_empty("note", &text)?;
            one(ev::OperatorNoted { text })
        }
        LoopCommand::SkipPhase { by } => skip(the_loop(state)?, by),
        LoopCommand::Advance => advance(state),
        LoopCommand::HandOver { to, why } => hand_over(state, to, &why),
        LoopCommand::TakeItem(taken) => take_item(the_loop(state)?, taken),
        LoopCommand::ListItems { ready, total, skipped } => {
            list_items(the_loop(state)?, ready, total, skipped)
        }
        LoopCommand::EndIteration { run, agent, observation, at, jitter } => {
            let ended = Ended { run, agent, observation: *observation, at, jitter };
            end_iteration(state, the_loop(state)?, ended)
        }
        LoopCommand::EndItem { item, end, failures, retry_at, why, used } => {
            the_loop(state)?;
            check_item(&item)?;
            one(ev::ItemEnded { item, end, failures, retry_at, why: short(&why), used })
        }
    }
}

/// The session's loop.
fn the_loop(state: &State) -> Result<&LoopState, Refusal> {
    state.looping.as_deref().ok_or(Refusal::bad("session", "it is no loop"))
}

fn known(looping: &LoopState, phase: &str) -> Result<(), Refusal> {
    if looping.plan.phase(phase).is_some() {
        return Ok(());
    }
    Err(Refusal::UnknownPhase {
        phase: phase.to_owned(),
        workflow: looping.plan.workflow.clone(),
        phases: looping.plan.phase_names().join(", "),
    })
}

fn short(text: &str) -> String {
    crate::text::shorten(text, limits::LOOP_TEXT)
}

fn check_item(item: &ev::WorkItemMark) -> Result<(), Refusal> {
    limits::name("work item", &item.id)
}

/// One that could not be remembered would be taken again and again.
fn take_item(looping: &LoopState, taken: ev::ItemTaken) -> Result<Vec<Event>, Refusal> {
    check_item(&taken.item)?;
    limits::optional_name("parent of the work item", taken.group.as_deref())?;
    let known = looping.items.contains_key(&taken.item.id);
    let room = || looping.items.values().any(|stand| stand.end == Some(ev::ItemEnd::Done));
    if !known && looping.items.len() >= limits::LOOP_ITEMS && !room() {
        return Err(Refusal::TooMany { what: "work items that are not done", limit: limits::LOOP_ITEMS });
    }
    one(taken)
}

/// Only what is something else than before is recorded.
fn list_items(
    looping: &LoopState,
    mut ready: Vec<ev::WorkItemMark>,
    total: u64,
    skipped: u64,
) -> Result<Vec<Event>, Refusal> {
    ready.truncate(limits::LISTED_ITEMS);
    for item in &mut ready {
        check_item(item)?;
        item.title = crate::text::shorten(&item.title, limits::NAME);
    }
    let same = |known: &QueueListing| (&known.ready, known.total, known.skipped) == (&ready, total, skipped);
    if looping.listed.as_ref().is_some_and(same) {
        return Ok(Vec::new());
    }
    one(ev::QueueListed { ready, total, skipped })
}

/// The plan is recorded, and the session follows its workflow from the phase it is in, or from the first.
fn start(
    state: &State,
    plan: Box<LoopPlan>,
    parent: Option<crate::id::SessionId>,
    item: Option<ev::WorkItemMark>,
) -> Result<Vec<Event>, Refusal> {
    plan.check()?;
    item.as_ref().map_or(Ok(()), check_item)?;
    let workflow = ev::Workflow { name: plan.workflow.clone(), phases: plan.phase_names() };
    let there = state.phase.as_ref().is_some_and(|phase| plan.phase(phase).is_some());
    let to = plan.phases.first().map(|phase| phase.name.clone()).unwrap_or_default();
    let mut events = Vec::new();
    if state.workflow.as_ref() != Some(&workflow) {
        events.push(ev::WorkflowSet { workflow: workflow.clone() }.into());
    }
    events.push(ev::LoopStarted { plan, parent, item }.into());
    if !there {
        let (step, of) = step_of(Some(&workflow), Some(&to));
        events.push(ev::PhaseAdvanced { from: state.phase.clone(), to, step, of }.into());
    }
    Ok(events)
}

fn baseline(looping: &LoopState, mut taken: ev::LoopBaselineTaken) -> Result<Vec<Event>, Refusal> {
    known(looping, &taken.phase)?;
    limits::optional_name("tree", taken.tree.as_deref())?;
    // More than can be kept by name are counted only.
    if taken.names.len() > limits::BASELINE_TESTS {
        taken.names.clear();
    }
    while taken.unloaded.len() > limits::BASELINE_TESTS {
        taken.unloaded.pop_last();
    }
    taken.evidence.truncate(limits::EVIDENCE);
    if let Some(protected) = &mut taken.protected
        && protected.files.len() > limits::BASELINE_TESTS
    {
        protected.files.clear();
    }
    one(taken)
}

fn reset(looping: &LoopState, reason: String) -> Result<Vec<Event>, Refusal> {
    let from = looping.breaker.state;
    if from == BreakerState::Closed && looping.breaker.no_progress == 0 && looping.breaker.same_error == 0 {
        return Err(Refusal::Already("the breaker is closed, and has counted nothing".to_owned()));
    }
    one(ev::BreakerChanged { from, to: BreakerState::Closed, reason: short(&reason), by: BreakerBy::Person })
}

/// One iteration is tried; a session that stands still is active again for it. One that met a cap in the iteration that
/// opened its breaker is paused, and not halted.
fn probe(state: &State, by: BreakerBy, reason: String) -> Result<Vec<Event>, Refusal> {
    let looping = the_loop(state)?;
    if looping.breaker.state != BreakerState::Open {
        return Err(Refusal::Already("the breaker is not open".to_owned()));
    }
    let reason = short(&reason);
    let changed = ev::BreakerChanged { from: BreakerState::Open, to: BreakerState::HalfOpen, reason, by };
    let mut events = vec![Event::from(changed)];
    if state.status != Status::Active && looping.parked.is_none() {
        events.push(ev::SessionResumed { breaker_reset: false, details: Some(by.as_str().into()) }.into());
    }
    Ok(events)
}

/// Only what a gate itself says a person may accept can be accepted.
fn accept(
    looping: &LoopState,
    because: Text,
    conditions: Vec<String>,
    tree: Option<String>,
) -> Result<Vec<Event>, Refusal> {
    not_empty("reason", &because)?;
    let failing = |gate: &GateResult| -> Vec<String> {
        let open = gate.conditions.iter().filter(|one| !one.holds && one.acceptable);
        open.map(|one| one.name.clone()).collect()
    };
    let open = looping.gate.as_ref().map(failing).unwrap_or_default();
    let wanted = if conditions.is_empty() { open.clone() } else { conditions };
    if wanted.is_empty() {
        return Err(Refusal::Already("the gate names nothing that a person may accept".to_owned()));
    }
    if let Some(other) = wanted.iter().find(|name| !open.contains(name)) {
        return Err(Refusal::Unknown {
            what: "failing condition that a person may accept, called",
            id: other.clone(),
        });
    }
    let tree = tree.or_else(|| looping.gate.as_ref().and_then(|gate| gate.tree.clone()));
    one(ev::GateAccepted { phase: looping.phase.clone(), because, conditions: wanted, tree })
}

fn park(looping: &LoopState, mut parked: ev::LoopParked) -> Result<Vec<Event>, Refusal> {
    if looping.parked.is_some() {
        return Err(Refusal::Already("the loop is parked already".to_owned()));
    }
    limits::optional_name("account", parked.account.as_deref())?;
    limits::optional_name("window", parked.window.as_deref())?;
    parked.words = short(&parked.words);
    let details = Some(Text::from(parked.words.as_str()));
    let reason = ev::PauseReason::Limit;
    Ok(vec![parked.into(), ev::SessionPaused { reason, details }.into()])
}

/// It stays parked, whatever time it is.
fn hold(looping: &LoopState) -> Result<Vec<Event>, Refusal> {
    let Some(parked) = &looping.parked else {
        return Err(Refusal::Already("the loop is not parked".to_owned()));
    };
    if parked.until.is_none() {
        return Err(Refusal::Already("the loop is parked already, until you say so".to_owned()));
    }
    one(ev::LoopParked {
        until: None,
        class: ParkReason::Held,
        account: parked.account.clone(),
        window: parked.window.clone(),
        windows_waited: looping.windows_waited,
        words: match parked.until {
            Some(until) => format!("it waits until you say so; its time would have been {until}"),
            None => "it waits until you say so".to_owned(),
        },
    })
}

/// Only a person wakes a loop early, or one that was told to stay parked. One that waits for work is woken by work.
fn wake(
    state: &State,
    how: ev::WokenHow,
    at: crate::time::Timestamp,
    others: &[AccountLoop],
) -> Result<Vec<Event>, Refusal> {
    let looping = the_loop(state)?;
    let Some(parked) = &looping.parked else {
        return Err(Refusal::Already("the loop is not parked".to_owned()));
    };
    let early = parked.until.is_none_or(|until| at < until);
    // New work may come at any time; every other wait has its end.
    let for_work = parked.class == ParkReason::Queue;
    if early && !for_work && how != ev::WokenHow::Person {
        let until = parked.until.map_or_else(|| "you say so".to_owned(), |until| until.to_string());
        return Err(Refusal::Already(format!("the loop is parked until {until}")));
    }
    // Who says "now" has decided; else the window of an account is waited for once, and tried by one.
    let account = parked.account.as_deref().filter(|_| parked.class == ParkReason::Plan);
    let turn = account.map(|account| account_turn(state.session_id, account, others, at));
    match turn.filter(|_| how != ev::WokenHow::Person) {
        Some(AccountTurn::Later { until, session }) => {
            return one(ev::LoopParked {
                until: Some(until),
                class: parked.class,
                account: parked.account.clone(),
                window: parked.window.clone(),
                windows_waited: looping.windows_waited,
                words: super::turn::known_by(session, until),
            });
        }
        Some(AccountTurn::Behind { session }) => return Err(Refusal::AnotherFirst { session }),
        Some(AccountTurn::Go) | None => {}
    }
    let mut events = vec![Event::from(ev::LoopWoken { how, early })];
    if state.status == Status::Paused {
        events.push(ev::SessionResumed { breaker_reset: false, details: Some(how.as_str().into()) }.into());
    }
    Ok(events)
}

/// The phase is left at the end of the open iteration, or when the loop goes on. Its breaker holds nobody up then.
fn skip(looping: &LoopState, by: String) -> Result<Vec<Event>, Refusal> {
    limits::name("who", &by)?;
    if looping.skip {
        return Err(Refusal::Already(format!("phase {} is to be skipped already", looping.phase)));
    }
    if looping.plan.after(&looping.phase).is_none() {
        let why = format!("{} is the last phase: complete or abort the session instead", looping.phase);
        return Err(Refusal::bad("phase", why));
    }
    let from = looping.breaker.state;
    let mut events = vec![Event::from(ev::PhaseSkipped { phase: looping.phase.clone(), by })];
    if from == BreakerState::Open {
        let reason = format!("phase {} is skipped", looping.phase);
        let to = BreakerState::Closed;
        events.push(ev::BreakerChanged { from, to, reason, by: BreakerBy::Person }.into());
    }
    Ok(events)
}

fn advance(state: &State) -> Result<Vec<Event>, Refusal> {
    let looping = the_loop(state)?;
    if !looping.passed && !looping.skip {
        return Err(Refusal::bad("phase", format!("the gate of {} has not passed", looping.phase)));
    }
    match looping.plan.after(&looping.phase) {
        Some(next) => Ok(into_phase(state, &next.name)),
        // Somebody looked at the last phase, and nothing follows it. One that is skipped has not passed.
        None if looping.passed => {
            Ok(super::iteration::completed(state, looping, looping.total, looping.tests.as_ref()))
        }
        None => Err(Refusal::bad("phase", format!("{} is the last phase", looping.phase))),
    }
}

/// Goes into a phase, with the sign that stands for the end of the one that is left.
pub(super) fn into_phase(state: &State, to: &str) -> Vec<Event> {
    let (step, of) = step_of(state.workflow.as_ref(), Some(to));
    let from = state.phase.clone();
    let name = from.clone().unwrap_or_else(|| "start".to_owned());
    let sign = checkpoint(state, Some(&name), CheckpointReason::PhaseComplete, state.progress());
    vec![ev::PhaseAdvanced { from, to: to.to_owned(), step, of }.into(), sign]
}

fn hand_over(state: &State, to: String, why: &str) -> Result<Vec<Event>, Refusal> {
    let looping = the_loop(state)?;
    limits::name("agent", &to)?;
    let from_agent = looping.agent.clone().or_else(|| state.agent.clone());
    if from_agent.as_ref() == Some(&to) {
        return Err(Refusal::Already(format!("{to} works on it already")));
    }
    one(ev::HandedOver { from_agent, to_agent: to, why: short(why), until: None })
}
