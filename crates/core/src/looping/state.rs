//! Where a loop stands: what follows from its events, bounded however many iterations there were.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use serde::Deserialize;
use serde::Serialize;

use super::breaker::Breaker;
use super::breaker::BreakerChange;
use super::gate::GateResult;
use super::marks::EvidenceMark;
use super::observation::Observation;
use super::observation::TestCounts;
use super::plan::LoopPlan;
use super::plan::PhasePlan;
use super::progress::Progress;
use super::verdict::LoopVerdict;
use crate::event::ItemEnd;
use crate::event::WorkItemMark;
use crate::id::SessionId;
use crate::time::Timestamp;

/// What a parked loop waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParkReason {
    /// A window of the account's plan.
    #[default]
    Plan,
    /// The vendor: too many requests, or overloaded.
    Vendor,
    /// A window of our own: calls or tokens per hour.
    Own,
    /// A share of the plan that the user wants left.
    Share,
    /// The hours in which it may work.
    Hours,
    /// New work items, or one that may be tried again.
    Queue,
    /// Somebody: it was parked and told to stay so.
    Held,
}

impl ParkReason {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "limit of the plan",
            Self::Vendor => "vendor busy",
            Self::Own => "own limit per hour",
            Self::Share => "share of the plan to be left",
            Self::Hours => "working hours",
            Self::Queue => "work items",
            Self::Held => "held by a person",
        }
    }
}

/// A loop that waits without a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// Since when.
    pub since: Timestamp,
    /// Until when; none until somebody says so.
    pub until: Option<Timestamp>,
    /// What it waits for.
    pub class: ParkReason,
    /// Whose limit it is.
    pub account: Option<String>,
    /// Which window.
    pub window: Option<String>,
    /// Why, in words.
    pub words: String,
}

/// What there was when a phase began. The names of the tests are in the event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BaselineMark {
    /// The event.
    pub seq: u64,
    /// The phase.
    pub phase: String,
    /// The tree that was measured.
    pub tree: Option<String>,
    /// How the tests came out.
    pub tests: TestCounts,
    /// Whether the event has them by name.
    pub named: bool,
    /// How each evidence command ended.
    pub evidence: Vec<EvidenceMark>,
    /// A hash of the files that the phase protects, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected: Option<String>,
}

/// What was measured when a phase was done, so that anybody can measure it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The tree.
    pub tree: Option<String>,
    /// The evidence commands.
    pub commands: Vec<String>,
    /// How each of them ended.
    #[serde(default)]
    pub evidence: Vec<EvidenceMark>,
    /// How the tests came out.
    pub counts: TestCounts,
    /// When.
    pub at: Timestamp,
}

/// How a phase was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseEnd {
    /// Its gate passed.
    Passed,
    /// Without its gate.
    Skipped,
    /// The work was sent back to an earlier phase.
    SentBack,
}

/// What is known of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseStand {
    /// Its name.
    pub name: String,
    /// When it began, the last time.
    pub started_at: Option<Timestamp>,
    /// When it was left.
    pub ended_at: Option<Timestamp>,
    /// How it was left.
    pub end: Option<PhaseEnd>,
    /// The event with its receipt.
    pub receipt: Option<u64>,
    /// All iterations in it.
    pub iterations: u64,
    /// How often work was sent back to it.
    pub sent_back: u32,
    /// How long the loop was parked in it, in seconds, since it began.
    pub parked_seconds: u64,
    /// Tokens used in it.
    pub tokens: u64,
    /// What it cost, in millionths of a dollar.
    pub micros: u64,
}

/// One of the newest iterations in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recent {
    /// Its number over all phases.
    pub iteration: u64,
    /// The phase.
    pub phase: String,
    /// Tests that passed, and all of them.
    pub tests: Option<(u64, u64)>,
    /// What it cost: money if that was known, else tokens.
    pub spend: u64,
    /// The tree that it left.
    pub tree: Option<String>,
    /// Whether it brought something.
    pub progress: bool,
    /// Whether there were commits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub committed: bool,
}

/// A note of the operator that the agent has not been told for certain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The event with all of it.
    pub seq: u64,
    /// Its beginning.
    pub text: String,
}

/// An hour of our own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HourWindow {
    /// When it began.
    pub start: Option<Timestamp>,
    /// Iterations that began in it.
    pub calls: u64,
    /// Tokens used in it.
    pub tokens: u64,
}

/// A person accepts that conditions do not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Acceptance {
    /// The tree that they looked at.
    pub tree: Option<String>,
    /// Which conditions.
    pub conditions: Vec<String>,
    /// What was missing in each: this is accepted on any tree, until something else is missing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, String>,
    /// Why.
    pub because: String,
}

impl Acceptance {
    /// What is left of it after a measurement: what was accepted on a tree was accepted for that one.
    pub(crate) fn after_measurement(self) -> Option<Self> {
        let left = Self { tree: None, conditions: Vec::new(), ..self };
        Some(left).filter(|left| !left.marks.is_empty())
    }
}

/// Where a work item stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemStand {
    /// What it is about.
    pub title: String,
    /// The session that worked on it last.
    pub session: Option<SessionId>,
    /// How often it failed.
    pub failures: u32,
    /// How it ended the last time; none while it is worked on.
    pub end: Option<ItemEnd>,
    /// When it may be tried again.
    pub retry_at: Option<Timestamp>,
    /// Why it failed.
    pub why: String,
    /// When it was taken up or ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The item of the tracker that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether it had its follow-up since it was taken up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub followed_up: bool,
    /// The session of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<SessionId>,
    /// What all work on it used, as far as that has ended.
    #[serde(skip_serializing_if = "ItemUse::is_nothing")]
    pub used: ItemUse,
}

/// What the work on an item used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemUse {
    /// Iterations.
    pub iterations: u64,
    /// Tokens.
    pub tokens: u64,
    /// Millionths of a dollar, as far as that is known.
    pub micros: u64,
    /// The hour of our own limits, as it was left.
    pub hour: HourWindow,
}

impl ItemUse {
    /// Whether nothing was used.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Both together; the hour is the newer one's.
    pub(crate) fn and(self, more: Self) -> Self {
        Self {
            iterations: self.iterations.saturating_add(more.iterations),
            tokens: self.tokens.saturating_add(more.tokens),
            micros: self.micros.saturating_add(more.micros),
            hour: more.hour,
        }
    }
}

/// What the tracker listed when it was asked last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueListing {
    /// When it began to list that.
    pub at: Timestamp,
    /// The first of those that can be taken up, in order.
    pub ready: Vec<WorkItemMark>,
    /// How many can be taken up.
    pub total: u64,
    /// How many cannot.
    pub skipped: u64,
}

/// The fold of a loop's events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopState {
    /// All that it was told.
    pub plan: LoopPlan,
    /// The loop whose queue this session's item comes from.
    #[serde(default)]
    pub parent: Option<SessionId>,
    /// That item.
    #[serde(default)]
    pub item: Option<WorkItemMark>,
    /// When it began.
    pub started_at: Timestamp,
    /// The phase it is in.
    pub phase: String,
    /// What is known of each phase, in the order of the plan.
    #[serde(default)]
    pub phases: Vec<PhaseStand>,
    /// Iterations of all phases.
    #[serde(default)]
    pub total: u64,
    /// Whether an iteration has begun and not ended.
    #[serde(default)]
    pub open: bool,
    /// The agent that it was handed over to.
    #[serde(default)]
    pub agent: Option<String>,
    /// Tokens used in all.
    #[serde(default)]
    pub tokens: u64,
    /// What it cost in all, in millionths of a dollar, as far as that is known.
    #[serde(default)]
    pub micros: u64,
    /// Iterations that used tokens and whose cost nobody knows.
    #[serde(default)]
    pub unpriced: u64,
    /// How long it was parked in all, in seconds.
    #[serde(default)]
    pub parked_seconds: u64,

    /// What the breaker has counted.
    #[serde(default)]
    pub breaker: Breaker,
    /// Its newest changes, newest last.
    #[serde(default)]
    pub breaker_changes: VecDeque<BreakerChange>,
    /// Whether the newest iteration brought something.
    #[serde(default)]
    pub progress: Progress,
    /// How the gate came out the last time.
    #[serde(default)]
    pub gate: Option<GateResult>,
    /// What followed from the newest iteration.
    #[serde(default)]
    pub verdict: Option<LoopVerdict>,
    /// That iteration in one line.
    #[serde(default)]
    pub line: Option<String>,
    /// What it showed.
    #[serde(default)]
    pub last: Option<Box<Observation>>,
    /// The tests as they were measured last in this phase.
    #[serde(default)]
    pub tests: Option<TestCounts>,
    /// Tests that were new in that measurement.
    #[serde(default)]
    pub new_tests: u64,
    /// Numbers as they were measured last in this phase.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
    /// Items that were open then.
    #[serde(default)]
    pub open_items: Option<u64>,
    /// How many times in a row all tests passed.
    #[serde(default)]
    pub green_runs: u32,
    /// New failing tests that a phase left for the next one to make pass.
    #[serde(default)]
    pub promised: u64,
    /// What there was when the phase began.
    #[serde(default)]
    pub baseline: Option<BaselineMark>,
    /// What there was when the loop began.
    #[serde(default)]
    pub first: Option<BaselineMark>,
    /// What a person accepted in the present phase.
    #[serde(default)]
    pub accepted: Option<Acceptance>,
    /// Whether the present phase is to be left without its gate.
    #[serde(default)]
    pub skip: bool,
    /// Whether somebody gave it another plan since its breaker opened.
    #[serde(default)]
    pub replanned: bool,
    /// Whether the gate of the present phase has passed and somebody is to look.
    #[serde(default)]
    pub passed: bool,
    /// The newest iterations in numbers, newest last.
    #[serde(default)]
    pub recent: VecDeque<Recent>,
    /// Notes of the operator for the next prompt.
    #[serde(default)]
    pub notes: VecDeque<Note>,
    /// The event up to which notes are in the prompt of the open iteration.
    #[serde(default)]
    pub told: u64,

    /// How full the context of the last iteration's conversation is, in per cent, if that is known.
    #[serde(default)]
    pub context_percent: Option<u8>,

    /// What it waits for.
    #[serde(default)]
    pub parked: Option<Parked>,
    /// The account that it tries after a wait, until something shows that it is open again.
    #[serde(default)]
    pub tries: Option<String>,
    /// Windows of the plan that were waited for in a row.
    #[serde(default)]
    pub windows_waited: u32,
    /// The end of the window that was waited for last.
    #[serde(default)]
    pub waited_for: Option<Timestamp>,
    /// Until when each agent is at its limit, as far as is known.
    #[serde(default)]
    pub limited: BTreeMap<String, Timestamp>,
    /// How often in a row it backed off.
    #[serde(default)]
    pub backoffs: u32,
    /// The present hour of our own limits.
    #[serde(default)]
    pub hour: HourWindow,

    /// Where the work items stand, by id.
    #[serde(default)]
    pub items: BTreeMap<String, ItemStand>,
    /// Items that were done, also those that are not remembered any more.
    #[serde(default)]
    pub items_done: u64,
    /// What the tracker listed when it was asked last.
    #[serde(default)]
    pub listed: Option<QueueListing>,
}

impl LoopState {
    /// The plan of the present phase.
    pub fn phase_plan(&self) -> Option<&PhasePlan> {
        self.plan.phase(&self.phase)
    }

    /// The tests that those of now are compared with: those of the newest baseline that could be built. What does not
    /// build says nothing of the tests that are there, such as when those of a phase before it were written first.
    pub fn reference(&self) -> Option<&BaselineMark> {
        let built = |mark: &&BaselineMark| !mark.tests.build_failed;
        let first = self.first.as_ref().filter(built);
        self.baseline.as_ref().filter(built).or(first).or(self.baseline.as_ref())
    }

    /// What is known of the present phase.
    pub fn stand(&self) -> Option<&PhaseStand> {
        self.phases.iter().find(|stand| stand.name == self.phase)
    }

    pub(crate) fn stand_mut(&mut self, phase: &str) -> Option<&mut PhaseStand> {
        self.phases.iter_mut().find(|stand| stand.name == phase)
    }
}
