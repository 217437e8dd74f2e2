//! The work queue: which item comes next, what a failure means for it, and what came of the work on one.
//!
//! Loops on the same queue share what each knows of an item: who works on it, how often it failed, when it may be tried
//! again. That is read from their summaries inside the transaction in which it is decided, as long as they are open. What the
//! newest of them says of an item holds; one that somebody works on is theirs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::breaker::BreakerCause;
use super::state::ItemStand;
use super::state::LoopState;
use super::state::Parked;
use super::verdict::CapKind;
use super::verdict::LoopVerdict;
use super::verdict::PersonNeed;
use crate::event::ItemEnd;
use crate::id::SessionId;
use crate::state::State;
use crate::status::Status;
use crate::summary::Summary;
use crate::time::Timestamp;

/// The pause before the third try of an item, in seconds; each further one is twice as long.
const FIRST_PAUSE: u64 = 60;
/// The longest such pause, in seconds.
const LONGEST_PAUSE: u64 = 3_600;

/// An item that the tracker or checklist lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueItem {
    /// The tracker's id.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// Smaller comes first; without one it comes last.
    pub priority: Option<i64>,
    /// When it was made; older comes first.
    pub created_at: Option<Timestamp>,
    /// Whether it only holds other items together.
    pub is_epic: bool,
    /// Whether something has to be done before it.
    pub is_blocked: bool,
    /// The item that it belongs to.
    pub group: Option<String>,
}

/// What the queue says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueStep {
    /// Work on this one; it may be one that was begun before.
    Take(QueueItem),
    /// All that is left may be tried again then.
    Wait(Timestamp),
    /// Nothing is left to be taken up.
    Empty(LeftOver),
}

/// What is listed and not taken up by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOver {
    /// Items that failed too often.
    pub set_aside: Vec<String>,
    /// Items that another loop works on.
    pub elsewhere: Vec<String>,
    /// Items that another loop has begun, and that lie there because it stands still; with its session.
    pub left_lying: Vec<(String, SessionId)>,
    /// Items that wait for others.
    pub blocked: usize,
}

/// What a loop tells others on the same queue of its items; what is done needs no telling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueShare {
    /// What they have in common.
    pub id: String,
    /// The items, without words.
    pub items: BTreeMap<String, ItemStand>,
    /// The session that tells it, if that stands still and nothing wakes it. Not stored: whoever reads it knows.
    #[serde(skip)]
    pub still: Option<SessionId>,
}

impl QueueShare {
    /// What this loop tells, if it shares its queue.
    pub fn of(state: &LoopState) -> Option<Self> {
        let id = state.plan.queue.as_ref().map(|queue| queue.id.clone()).filter(|id| !id.is_empty())?;
        let told = |stand: &ItemStand| ItemStand {
            failures: stand.failures,
            end: stand.end,
            retry_at: stand.retry_at,
            at: stand.at,
            ..ItemStand::default()
        };
        let open = state.items.iter().filter(|(_, stand)| stand.end != Some(ItemEnd::Done));
        let items = open.map(|(id, stand)| (id.clone(), told(stand))).collect();
        Some(Self { id, items, still: None })
    }
}

/// What the open loops among these sessions tell that work on the same queue as this one.
pub fn sharing(own: &State, others: &[Summary]) -> Vec<QueueShare> {
    let id = own.looping.as_deref().and_then(|looping| looping.plan.queue.as_ref()).map(|queue| &queue.id);
    let Some(id) = id.filter(|id| !id.is_empty()) else { return Vec::new() };
    let others = others.iter().filter(|other| other.session_id != own.session_id && other.status.is_open());
    let told = others.filter_map(|other| {
        let share = other.queue.clone().filter(|share| share.id == *id)?;
        let goes_on = other.status == Status::Active || other.waiting_until.is_some();
        Some(QueueShare { still: (!goes_on).then_some(other.session_id), ..share })
    });
    told.collect()
}

/// What is known of an item: what the loop that heard of it last says.
fn known_of<'a>(own: &'a LoopState, others: &'a [QueueShare], id: &str) -> Option<&'a ItemStand> {
    let all = others.iter().filter_map(|other| other.items.get(id)).chain(own.items.get(id));
    // The last of several equal ones: this loop's own.
    all.max_by_key(|stand| stand.at)
}

/// How often an item failed since it was done last or somebody wanted it tried again.
pub fn failures_of(own: &LoopState, others: &[QueueShare], id: &str) -> Option<u32> {
    let known = known_of(own, others, id).filter(|stand| stand.end != Some(ItemEnd::Done));
    known.map(|stand| stand.failures)
}

/// The item that comes next: one that was begun, else the first by priority, then age, then id.
pub fn next_item(own: &LoopState, others: &[QueueShare], listed: &[QueueItem], at: Timestamp) -> QueueStep {
    let mut left: Vec<&QueueItem> = listed.iter().filter(|item| !item.is_epic).collect();
    left.sort_by(|a, b| order(a).cmp(&order(b)));
    if let Some(item) = left.iter().find(|item| is_open(own.items.get(&item.id))) {
        return QueueStep::Take((*item).clone());
    }
    let mut over = LeftOver::default();
    left.retain(|item| {
        let mut holders = others.iter().filter(|other| is_open(other.items.get(&item.id)));
        let known = known_of(own, others, &item.id);
        let holder = holders.clone().find(|other| other.still.is_none()).or_else(|| holders.next());
        if let Some(holder) = holder {
            match holder.still {
                Some(session) => over.left_lying.push((item.id.clone(), session)),
                None => over.elsewhere.push(item.id.clone()),
            }
            return false;
        }
        match known.and_then(|stand| stand.end) {
            _ if item.is_blocked => over.blocked += 1,
            Some(ItemEnd::SetAside) => over.set_aside.push(item.id.clone()),
            Some(ItemEnd::Skipped) => {}
            // With a branch for each item, the list is read where none of them is closed yet.
            Some(ItemEnd::Done) if has_branches(own) => {}
            // One that was done and is listed again was opened again.
            Some(ItemEnd::Done | ItemEnd::Failed) | None => return true,
        }
        false
    });
    let waits = |item: &QueueItem| {
        known_of(own, others, &item.id).and_then(|stand| stand.retry_at).filter(|retry| *retry > at)
    };
    if let Some(item) = left.iter().find(|item| waits(item).is_none()) {
        return QueueStep::Take((*item).clone());
    }
    left.iter().filter_map(|item| waits(item)).min().map_or(QueueStep::Empty(over), QueueStep::Wait)
}

/// Whether somebody works on an item that stands so.
fn is_open(stand: Option<&ItemStand>) -> bool {
    stand.is_some_and(|stand| stand.end.is_none())
}

fn has_branches(state: &LoopState) -> bool {
    state.plan.queue.as_ref().is_some_and(|queue| queue.branch.is_some())
}

/// The item that a loop has begun and not ended, if there is one.
pub fn begun_item(state: &LoopState) -> Option<(&String, &ItemStand)> {
    state.items.iter().find(|(_, stand)| stand.end.is_none())
}

fn order(item: &QueueItem) -> (bool, i64, bool, Option<Timestamp>, &str) {
    let priority = item.priority.unwrap_or(0);
    (item.priority.is_none(), priority, item.created_at.is_none(), item.created_at, &item.id)
}

/// How long is waited before an item is tried again that has failed so often: 0, then 1, 2, 4 … minutes, an hour at most.
pub fn pause_after(failures: u32) -> u64 {
    match failures {
        0 | 1 => 0,
        more => FIRST_PAUSE.saturating_mul(1 << (more - 2).min(16)).min(LONGEST_PAUSE),
    }
}

/// What one more failure means for an item: how it ends, how often it has failed now, and when it may be tried again.
pub fn after_failure(before: u32, most: u32, at: Timestamp) -> (ItemEnd, u32, Option<Timestamp>) {
    let failures = before.saturating_add(1);
    if failures >= most.max(1) {
        return (ItemEnd::SetAside, failures, None);
    }
    let pause = i64::try_from(pause_after(failures)).unwrap_or(i64::MAX);
    (ItemEnd::Failed, failures, Some(at.plus_seconds(pause)))
}

/// What came of the work on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    /// It is done.
    Done,
    /// Its gate passed, but it is open in its tracker: one short follow-up is to close it.
    FollowUp,
    /// It failed.
    Failed,
}

/// What came of the work on an item: done is what passed its gate and is closed in the tracker, asked again.
pub fn item_outcome(passed: bool, closed: bool, followed_up: bool) -> ItemOutcome {
    match (passed, closed, followed_up) {
        (true, true, _) => ItemOutcome::Done,
        (true, false, false) => ItemOutcome::FollowUp,
        (true, false, true) | (false, _, _) => ItemOutcome::Failed,
    }
}

/// How the session of an item stands, as far as the queue is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemStanding {
    /// Its gate passed.
    Passed,
    /// It got nowhere.
    Failed {
        /// Why.
        why: String,
    },
    /// Somebody gave it up.
    LeftOut {
        /// Why.
        why: String,
    },
    /// It waits, and the whole loop with it: what it waits for is not its own.
    Waits(Parked),
    /// The whole loop stands still with it: another item would fare no better, or somebody has to look.
    Stops(LoopVerdict),
    /// Somebody stopped it, or it can go on.
    Open,
}

/// How the session of an item stands. `verdict` is what ended its last stretch, if that is known.
pub fn item_standing(parent: &LoopState, item: &State, verdict: Option<&LoopVerdict>) -> ItemStanding {
    let looping = item.looping.as_deref();
    let said = || {
        let details =
            item.reason.as_ref().map(|reason| reason.details.clone().unwrap_or(reason.what.clone()));
        details.filter(|text| !text.is_empty()).unwrap_or_else(|| item.status.as_str().to_owned())
    };
    match item.status {
        Status::Completed => ItemStanding::Passed,
        Status::Failed => ItemStanding::Failed { why: said() },
        Status::Aborted => ItemStanding::LeftOut { why: said() },
        Status::Halted => {
            let why = looping.and_then(|it| it.breaker.reason.clone()).unwrap_or_else(said);
            let cause = looping.and_then(|it| it.breaker.cause);
            match cause {
                // No agent: no other item would fare better.
                Some(BreakerCause::StartFailures) => {
                    ItemStanding::Stops(LoopVerdict::NeedsPerson { need: PersonNeed::Setup, why })
                }
                _ => ItemStanding::Failed { why: format!("halted: {why}") },
            }
        }
        Status::Paused | Status::Interrupted | Status::Active => {
            if let Some(parked) = looping.and_then(|looping| looping.parked.clone()) {
                return ItemStanding::Waits(parked);
            }
            let total = looping.map_or(0, |looping| looping.total);
            verdict.map_or(ItemStanding::Open, |verdict| of_verdict(parent, total, verdict))
        }
    }
}

fn of_verdict(parent: &LoopState, iterations: u64, verdict: &LoopVerdict) -> ItemStanding {
    let stops = || ItemStanding::Stops(verdict.clone());
    let failed = || ItemStanding::Failed { why: super::words::why(verdict) };
    match verdict {
        LoopVerdict::Cap { which, .. } => match which {
            CapKind::Budget | CapKind::DayTokens | CapKind::DayMoney | CapKind::Plan | CapKind::Seconds => {
                stops()
            }
            CapKind::Iterations => {
                // What the item counts is its part of what all of them may take together.
                let all = parent.total.saturating_add(iterations);
                match parent.plan.caps.iterations.filter(|most| all >= *most) {
                    Some(most) => {
                        let why = format!("{all} of {most} iterations");
                        ItemStanding::Stops(LoopVerdict::Cap { which: *which, why })
                    }
                    None => failed(),
                }
            }
            CapKind::PhaseIterations
            | CapKind::PhaseSeconds
            | CapKind::IterationTokens
            | CapKind::IterationMoney => failed(),
        },
        LoopVerdict::NeedsPerson { need, .. } => match need {
            PersonNeed::Pay
            | PersonNeed::Auth
            | PersonNeed::Setup
            | PersonNeed::CannotAct
            | PersonNeed::Breakpoint
            | PersonNeed::Limit => stops(),
            PersonNeed::Question | PersonNeed::Escalated => failed(),
        },
        LoopVerdict::Halt { .. } => failed(),
        LoopVerdict::Continue { .. }
        | LoopVerdict::NextPhase { .. }
        | LoopVerdict::Complete
        | LoopVerdict::BackTo { .. }
        | LoopVerdict::Stopped { .. }
        | LoopVerdict::Park { .. }
        | LoopVerdict::BackOff { .. }
        | LoopVerdict::HandOver { .. } => ItemStanding::Open,
    }
}
