//! The work queue: which item comes next, and what a failure means for it.

use super::state::ItemStand;
use super::state::LoopState;
use crate::event::ItemEnd;
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
}

/// What the queue says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueStep {
    /// Work on this one; it may be one that was begun before.
    Take(QueueItem),
    /// All that is left may be tried again then.
    Wait(Timestamp),
    /// Nothing is left.
    Empty,
}

/// The item that comes next: one that was begun, else the first by priority, then age, then id.
pub fn next_item(state: &LoopState, listed: &[QueueItem], at: Timestamp) -> QueueStep {
    let stand = |item: &QueueItem| state.items.get(&item.id);
    let mut left: Vec<&QueueItem> = listed
        .iter()
        .filter(|item| !item.is_epic && !item.is_blocked)
        .filter(|item| !stand(item).is_some_and(is_out))
        .collect();
    left.sort_by(|a, b| order(a).cmp(&order(b)));
    let begun = |item: &&&QueueItem| stand(item).is_some_and(|stand| stand.end.is_none());
    if let Some(item) = left.iter().find(begun) {
        return QueueStep::Take((*item).clone());
    }
    let waits = |item: &QueueItem| stand(item).and_then(|stand| stand.retry_at).filter(|retry| *retry > at);
    if let Some(item) = left.iter().find(|item| waits(item).is_none()) {
        return QueueStep::Take((*item).clone());
    }
    left.iter().filter_map(|item| waits(item)).min().map_or(QueueStep::Empty, QueueStep::Wait)
}

/// Whether an item is not tried again by itself.
fn is_out(stand: &ItemStand) -> bool {
    match stand.end {
        Some(ItemEnd::SetAside | ItemEnd::Skipped) => true,
        // One that was done and is listed again was opened again.
        Some(ItemEnd::Done | ItemEnd::Failed) | None => false,
    }
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
