//! Driving an agent until the work is done.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::WorkItemMark;
use crate::id::SessionId;
use crate::looping::Breaker;
use crate::looping::BreakerBy;
use crate::looping::BreakerState;
use crate::looping::EvidenceMark;
use crate::looping::GateResult;
use crate::looping::ItemUse;
use crate::looping::LoopPlan;
use crate::looping::LoopVerdict;
use crate::looping::Observation;
use crate::looping::ParkReason;
use crate::looping::Progress;
use crate::looping::ProtectedMark;
use crate::looping::Receipt;
use crate::looping::TestCounts;
use crate::looping::TestEnd;
use crate::looping::UnloadedTests;
use crate::text::Text;
use crate::time::Timestamp;

/// A loop began, or went on with another plan: the newest one holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopStarted {
    /// All that it was told.
    pub plan: Box<LoopPlan>,
    /// The loop whose queue this session's item comes from.
    pub parent: Option<SessionId>,
    /// That item.
    pub item: Option<WorkItemMark>,
}

/// What there was when a phase began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopBaselineTaken {
    /// The phase.
    pub phase: String,
    /// The tree that was measured.
    pub tree: Option<String>,
    /// How the tests came out.
    pub tests: TestCounts,
    /// Each of them by name; none if there are too many, or if the runner does not name every test that ran: then only
    /// the numbers are compared.
    #[serde(default)]
    pub names: BTreeMap<String, TestEnd>,
    /// How each evidence command ended.
    #[serde(default)]
    pub evidence: Vec<EvidenceMark>,
    /// The files that the phase protects, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<ProtectedMark>,
    /// Files of tests and how many are written in each, if what measures them was broken: nobody would miss them otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unloaded: BTreeMap<String, UnloadedTests>,
}

/// An iteration ended: what it showed, and what follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationEnded {
    /// Its number in the phase, from 1.
    pub iteration: u64,
    /// The phase.
    pub phase: String,
    /// The run that it was.
    pub run: Option<String>,
    /// The agent that worked.
    #[serde(default)]
    pub agent: Option<String>,
    /// What it showed.
    pub observation: Box<Observation>,
    /// Whether it brought something.
    pub progress: Progress,
    /// How the gate came out.
    pub gate: GateResult,
    /// What the breaker has counted.
    pub breaker: Box<Breaker>,
    /// What follows.
    pub verdict: LoopVerdict,
    /// All of it in one line.
    pub line: String,
}

/// The breaker moved outside an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerChanged {
    /// From where.
    pub from: BreakerState,
    /// To where.
    pub to: BreakerState,
    /// Why.
    pub reason: String,
    /// Who moved it.
    pub by: BreakerBy,
}

/// A gate was measured outside an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateMeasured {
    /// The phase.
    pub phase: String,
    /// How it came out.
    pub result: GateResult,
    /// Whether a person asked for it.
    pub by_hand: bool,
}

/// A person accepts that conditions do not hold: on this tree for the next measurement, and in the phase for as long as
/// exactly the same is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateAccepted {
    /// The phase.
    pub phase: String,
    /// Why.
    pub because: Text,
    /// Which conditions.
    pub conditions: Vec<String>,
    /// The tree that they looked at.
    pub tree: Option<String>,
}

/// A phase is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatePassed {
    /// The phase.
    pub phase: String,
    /// What was measured, so that anybody can measure it again.
    pub receipt: Receipt,
}

/// The loop waits without a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopParked {
    /// Until when; none until somebody says so.
    pub until: Option<Timestamp>,
    /// What it waits for.
    pub class: ParkReason,
    /// Whose limit it is.
    #[serde(default)]
    pub account: Option<String>,
    /// Which window.
    #[serde(default)]
    pub window: Option<String>,
    /// How many windows were waited for in a row, this one included.
    #[serde(default)]
    pub windows_waited: u32,
    /// Why, in words.
    pub words: String,
}

/// What woke a parked loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WokenHow {
    /// The process that waited in the foreground.
    Foreground,
    /// A timer of the system.
    Timer,
    /// Another command of this program that saw that it was due.
    Command,
    /// Somebody.
    #[default]
    Person,
}

impl WokenHow {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreground => "the waiting process",
            Self::Timer => "a timer",
            Self::Command => "another command",
            Self::Person => "a person",
        }
    }
}

/// A parked loop goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopWoken {
    /// What woke it.
    pub how: WokenHow,
    /// Whether the time was not over yet.
    pub early: bool,
}

/// Somebody has something to say to the agent; the next prompt holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorNoted {
    /// What.
    pub text: Text,
}

/// A phase is to be left without its gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSkipped {
    /// The phase.
    pub phase: String,
    /// Who wants it so.
    pub by: String,
}

/// Another agent goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// Who worked.
    pub from_agent: Option<String>,
    /// Who goes on.
    pub to_agent: String,
    /// Why.
    pub why: String,
    /// Until when the one who worked is at its limit, where another loop of the account knows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A work item was taken from the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemTaken {
    /// Which.
    pub item: WorkItemMark,
    /// The session that works on it.
    pub session: Option<SessionId>,
    /// The item of the tracker that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether it is the one follow-up for an item whose gate passed and that is still open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follow_up: bool,
    /// How often it failed before, in whichever loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
}

/// What the tracker or checklist lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueListed {
    /// The first of those that can be taken up, in order.
    pub ready: Vec<WorkItemMark>,
    /// How many can be taken up.
    pub total: u64,
    /// How many cannot: blocked, put off, or only there to hold others together.
    pub skipped: u64,
}

/// How a work item ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemEnd {
    /// Its gate passed, and the tracker says that it is closed.
    Done,
    /// It failed; it may be tried again later.
    #[default]
    Failed,
    /// It failed too often.
    SetAside,
    /// Somebody left it out.
    Skipped,
}

impl ItemEnd {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::SetAside => "set aside",
            Self::Skipped => "skipped",
        }
    }
}

/// The work on an item ended, or it may be tried again at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemEnded {
    /// Which.
    pub item: WorkItemMark,
    /// How.
    pub end: ItemEnd,
    /// How often it has failed.
    pub failures: u32,
    /// When it may be tried again.
    pub retry_at: Option<Timestamp>,
    /// Why.
    pub why: String,
    /// What the work on it used, this time.
    #[serde(default, skip_serializing_if = "ItemUse::is_nothing")]
    pub used: ItemUse,
}
