//! Where the work items of a loop stand, for people and monitors.

use serde::Serialize;

use super::state::ItemStand;
use super::state::LoopState;
use super::window::countdown;
use crate::event::ItemEnd;
use crate::event::WorkItemMark;
use crate::id::SessionId;
use crate::time::Timestamp;

/// Where the work items stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueStatus {
    /// The command or the checklist that they come from.
    pub source: String,
    /// Whether the loop waits for new ones.
    pub watch: bool,
    /// Items that were taken up, in the order in which something last happened to them.
    pub items: Vec<ItemStatus>,
    /// The first of those that the tracker lists and that were not taken up, in order.
    pub open: Vec<WorkItemMark>,
    /// How many the tracker lists that can be taken up.
    pub listed: u64,
    /// How many it lists that cannot.
    pub skipped: u64,
    /// When it began to list that.
    pub listed_at: Option<Timestamp>,
    /// Items that are done.
    pub done: u64,
    /// Items that failed too often.
    pub set_aside: u64,
}

/// Where one item stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemStatus {
    /// The tracker's id.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// `works`, `done`, `failed`, `set aside` or `skipped`.
    pub state: &'static str,
    /// The session that worked on it last.
    pub session: Option<SessionId>,
    /// How often it failed.
    pub failures: u32,
    /// When it may be tried again.
    pub retry_at: Option<Timestamp>,
    /// How long that is.
    pub wait: Option<String>,
    /// Why it ended as it did.
    pub why: String,
    /// Iterations of all its sessions that have ended.
    pub iterations: u64,
    /// Tokens that they used.
    pub tokens: u64,
    /// What they cost, in millionths of a dollar, as far as that is known.
    pub cost_micros: u64,
}

/// Where the work items of a loop stand at this moment, if it has a queue.
pub fn queue_status(state: &LoopState, at: Timestamp) -> Option<QueueStatus> {
    let queue = state.plan.queue.as_ref()?;
    let mut known: Vec<(&String, &ItemStand)> = state.items.iter().collect();
    known.sort_by_key(|(id, stand)| (stand.at, *id));
    let items: Vec<ItemStatus> = known.into_iter().map(|(id, stand)| item_status(id, stand, at)).collect();
    let listed = state.listed.as_ref();
    let taken = |item: &&WorkItemMark| !state.items.contains_key(&item.id);
    let count = |end: ItemEnd| state.items.values().filter(|stand| stand.end == Some(end)).count() as u64;
    Some(QueueStatus {
        source: queue.source().to_owned(),
        watch: queue.watch,
        open: listed.into_iter().flat_map(|listed| &listed.ready).filter(taken).cloned().collect(),
        listed: listed.map_or(0, |listed| listed.total),
        skipped: listed.map_or(0, |listed| listed.skipped),
        listed_at: listed.map(|listed| listed.at),
        done: state.items_done,
        set_aside: count(ItemEnd::SetAside),
        items,
    })
}

fn item_status(id: &str, stand: &ItemStand, at: Timestamp) -> ItemStatus {
    let retry_at = stand.retry_at.filter(|_| stand.end == Some(ItemEnd::Failed));
    ItemStatus {
        id: id.to_owned(),
        title: stand.title.clone(),
        state: stand.end.map_or("works", ItemEnd::as_str),
        session: stand.session,
        failures: stand.failures,
        retry_at,
        wait: retry_at.filter(|retry| *retry > at).map(|retry| countdown(retry, at)),
        why: stand.why.clone(),
        iterations: stand.used.iterations,
        tokens: stand.used.tokens,
        cost_micros: stand.used.micros,
    }
}
