//! What can be asked of a loop.

use super::account::AccountLoop;
use super::breaker::BreakerBy;
use super::further::Further;
use super::gate::GateResult;
use super::observation::Observation;
use super::plan::LoopPlan;
use super::state::ItemUse;
use crate::command::Need;
use crate::event::ItemEnd;
use crate::event::ItemTaken;
use crate::event::LoopBaselineTaken;
use crate::event::LoopParked;
use crate::event::WokenHow;
use crate::event::WorkItemMark;
use crate::id::SessionId;
use crate::text::Text;
use crate::time::Timestamp;

/// One thing asked of a loop. Its rules are in `decide/looping.rs`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the event that follows, documented there")]
pub enum LoopCommand {
    /// Begin, or go on by another plan.
    Start { plan: Box<LoopPlan>, parent: Option<SessionId>, item: Option<WorkItemMark> },
    /// Go further than the plan says. Nothing follows if it allows as much already.
    Allow { further: Further, at: Timestamp },
    /// What there is before the first iteration of a phase.
    TakeBaseline(LoopBaselineTaken),
    /// Reset the breaker.
    ResetBreaker { reason: String },
    /// Try one iteration although the breaker was open.
    Probe { by: BreakerBy, reason: String },
    /// A gate was measured outside an iteration.
    MeasureGate { phase: String, result: GateResult, by_hand: bool },
    /// Accept that conditions do not hold.
    AcceptGate { because: Text, conditions: Vec<String>, tree: Option<String> },
    /// Wait without a process.
    Park(LoopParked),
    /// Stay parked until somebody says otherwise.
    Hold,
    /// Go on after waiting. `others` are the loops of the store that share an account, as they are in the same
    /// transaction.
    Wake { how: WokenHow, at: Timestamp, others: Vec<AccountLoop> },
    /// Begin an iteration with this account, unless another loop knows that it is at its limit. `jitter` is a random
    /// number for waking up, `others` as above. With `now` a person wants it tried whatever others know.
    TakeTurn {
        account: String,
        agent: String,
        others: Vec<AccountLoop>,
        at: Timestamp,
        jitter: u64,
        now: bool,
    },
    /// Tell the agent something with the next prompt.
    Say { text: Text },
    /// Leave the phase without its gate.
    SkipPhase { by: String },
    /// Go into the next phase: its gate has passed and somebody looked, or it is skipped.
    Advance,
    /// Let another agent go on.
    HandOver { to: String, why: String },
    /// Work on an item.
    TakeItem(ItemTaken),
    /// An iteration ended: decide what follows. `jitter` is a random number for waking up, `agent` is who worked.
    EndIteration {
        run: Option<String>,
        agent: Option<String>,
        observation: Box<Observation>,
        at: Timestamp,
        jitter: u64,
    },
    /// The work on an item ended.
    EndItem {
        item: WorkItemMark,
        end: ItemEnd,
        failures: u32,
        retry_at: Option<Timestamp>,
        why: String,
        used: ItemUse,
    },
    /// What the tracker lists is something else than before.
    ListItems { ready: Vec<WorkItemMark>, total: u64, skipped: u64 },
}

impl LoopCommand {
    /// What it needs of the status.
    pub fn need(&self) -> Need {
        match self {
            Self::TakeBaseline(_)
            | Self::Park(_)
            | Self::Advance
            | Self::HandOver { .. }
            | Self::TakeTurn { .. }
            | Self::TakeItem(_)
            | Self::ListItems { .. }
            | Self::EndIteration { .. } => Need::Active,
            Self::Start { .. }
            | Self::Allow { .. }
            | Self::ResetBreaker { .. }
            | Self::Probe { .. }
            | Self::MeasureGate { .. }
            | Self::AcceptGate { .. }
            | Self::Hold
            | Self::Wake { .. }
            | Self::Say { .. }
            | Self::SkipPhase { .. }
            | Self::EndItem { .. } => Need::Open,
        }
    }

    /// Whether it takes the work further: what a breakpoint stops.
    pub fn moves_on(&self) -> bool {
        matches!(self, Self::Advance | Self::HandOver { .. } | Self::TakeTurn { .. } | Self::TakeItem(_))
    }
}
