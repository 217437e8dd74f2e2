//! What a session is now: the fold of its journal, bounded in size however long the journal grows.

mod action;
mod apply;
mod begin;
mod ledger;
mod loop_state;
mod looping;
mod parts;
mod plan;
mod progress;
mod run;
mod standing;
mod tree;
mod used;
mod windows;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::budget::CostBudget;
use crate::budget::TokenBudget;
use crate::budget::TokenUse;
use crate::event::Maker;
use crate::event::Metric;
use crate::event::Project;
use crate::event::Verdict;
use crate::event::WorkItemMark;
use crate::event::Workflow;
use crate::id::SessionId;
use crate::id::Uid;
use crate::lately::UsedLately;
use crate::status::Status;
use crate::time::Timestamp;

pub use apply::Applied;
pub use apply::BRIEF_BEGINS;
pub use apply::FoldError;
pub use apply::Mark;
pub use parts::*;
pub(crate) use plan::step_of;
pub(crate) use progress::percent_done;
pub(crate) use progress::weighted;

/// The version of this fold. A stored state of another version is folded anew from the journal.
pub const FOLD_VERSION: u32 = 24;

/// The present values, counters and open calls of a session. Long lists are kept elsewhere ([`mod@crate::project`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The name people see.
    pub session_id: SessionId,
    /// The identity across stores.
    pub uid: Uid,
    /// The last event folded in.
    pub seq: u64,
    /// How it came to be.
    pub made_by: Maker,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Words by which people find it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// It stands first in lists and is never cleaned up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Lists leave it out until it goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// What the user wants, as far as it is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// What it works on.
    pub project: Project,
    /// The ended session it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<SessionId>,
    /// The session whose cap this one goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_from: Option<CapFrom>,
    /// The branch of the project's repository that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,

    /// Where it stands.
    pub status: Status,
    /// Why it stands there, for a status that has a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,

    /// The workflow it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Workflow>,
    /// The phase it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When it went into that phase.
    pub phase_since: Timestamp,
    /// The number of the step, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Of how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// The turn of the loop in this phase; 0 before the first.
    pub iteration: u64,
    /// The try at this phase, from 1.
    pub attempt: u64,
    /// The phases that were left, in the order they were first left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases_completed: Vec<String>,
    /// How the checks of the present phase came out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verification: BTreeMap<String, Verdict>,
    /// What the workflow keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_state: Option<Value>,
    /// How far the work has come as somebody said, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_set: Option<u8>,

    /// Tokens allowed and used.
    pub budget: TokenBudget,
    /// Tokens used, by kind.
    #[serde(default)]
    pub tokens: TokenUse,
    /// What was used is known only roughly: a run ended before it could say so, or somebody estimated it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_estimated: bool,
    /// Money allowed and spent.
    pub cost: CostBudget,
    /// Tokens of runs before the newest whose cost nobody has told and no price list knows, by model; `?` stands for models
    /// that nobody named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unpriced: BTreeMap<String, TokenUse>,
    /// What it used itself lately, for caps on a day.
    #[serde(default, skip_serializing_if = "UsedLately::is_empty")]
    pub lately: UsedLately,
    /// What runs of other sessions have used so far that an agent of this one started, by run; and what sessions have
    /// used that go on with its cap, by their `uid`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub below: BTreeMap<String, BelowMark>,
    /// Which warnings were given since the budgets last changed.
    #[serde(default)]
    pub warned: Warned,
    /// Which run's tokens are counted from which source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_source: Option<TokenSource>,
    /// The same of the runs before, newest last: a late word from one of them must not count twice either.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub earlier_token_sources: VecDeque<TokenSource>,

    /// The windows of the agents' plans as they were last told, by agent and window.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, WindowMark>,

    /// Named numbers and flags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Metric>,
    /// What they were in each phase, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phase_metrics: BTreeMap<String, BTreeMap<String, Metric>>,
    /// Which outputs there are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, OutputMark>,
    /// What is to be done.
    #[serde(default)]
    pub tasks: Tasks,
    /// Who works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Everybody who worked, and what they keep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AgentMark>,
    /// Where work is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// The newest milestone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone: Option<String>,
    /// The breakpoint that work waits at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakpoint: Option<Breakpoint>,
    /// The tree of decisions in short.
    #[serde(default)]
    pub decisions: Decisions,
    /// The ledger in short.
    #[serde(default)]
    pub calls: Calls,
    /// What memory keeps close.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cache: BTreeMap<String, Value>,
    /// The errors in short.
    #[serde(default)]
    pub errors: Errors,
    /// How long the lists are.
    #[serde(default)]
    pub counts: Counts,
    /// The newest checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointMark>,
    /// Where the working tree stands.
    #[serde(default)]
    pub tree: TreeMark,
    /// What was done since.
    #[serde(default)]
    pub actions_since_checkpoint: u64,
    /// What was done in all.
    #[serde(default)]
    pub actions: u64,
    /// What was last done, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_action: Option<String>,

    /// The file that says what is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The item of a tracker that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item: Option<WorkItemMark>,
    /// The event with what the agent was asked to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// The newest stop, and what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Box<RecoveryMark>>,

    /// Where its loop stands, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looping: Option<Box<crate::looping::LoopState>>,
    /// The newest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunMark>,
    /// Who drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// What was asked of the driver and not answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<OpenRequest>,
    /// What its run asked a person and waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<OpenQuestion>,
    /// How many events came from drivers that had been replaced.
    #[serde(default)]
    pub late: u64,
    /// How many events a newer segno recorded that this fold skipped.
    #[serde(default)]
    pub unknown: u64,
}

impl State {
    /// How far the work has come, in percent: as somebody said, else by what the phases weigh, else as the steps tell.
    pub fn progress(&self) -> Option<u8> {
        if self.status == Status::Completed {
            return Some(100);
        }
        let weighted = || weighted(self.workflow.as_ref(), self.phase.as_deref(), self.iteration);
        self.progress_set.or_else(weighted).or_else(|| percent_done(self.step, self.of))
    }

    /// Whether a budget is passed; the mark stays until it is extended.
    pub fn is_over_budget(&self) -> bool {
        self.budget.is_over() || self.cost.is_over()
    }

    /// Tokens whose cost nobody knows. Of a run that goes on it is not known yet.
    pub fn unpriced_tokens(&self) -> u64 {
        let ended = self.run.as_ref().filter(|run| !run.is_running()).map(|run| run.unpriced);
        self.unpriced.values().copied().chain(ended).map(|tokens| tokens.total()).fold(0, u64::saturating_add)
    }

    /// Whether a cap on money that stops cannot hold, because it is not known what was spent.
    pub fn is_cost_unknown(&self) -> bool {
        self.cost.hard && self.cost.limit_micros.is_some() && self.unpriced_tokens() > 0
    }

    /// Whether a budget is nearly used up, or more than that.
    pub fn is_low_on_budget(&self) -> bool {
        self.budget.is_warning() || self.cost.is_warning()
    }

    /// Whether work may be picked up again after a stop.
    pub fn is_resumable(&self) -> bool {
        self.status.is_open()
    }

    /// How many actions came after an event, as far as the newest checkpoint tells.
    pub fn actions_since(&self, seq: u64) -> u64 {
        match &self.checkpoint {
            Some(mark) if mark.seq <= seq => self.actions_since_checkpoint,
            // An earlier one: calls since then are not counted one by one, events are.
            _ => self.actions_since_checkpoint.max(u64::from(self.seq > seq)),
        }
    }

    /// How the phase is shown: its name, and the step if there are several.
    pub fn phase_label(&self) -> Option<String> {
        let step = match (self.step, self.of) {
            (Some(step), Some(of)) => Some(format!("{step}/{of}")),
            (Some(step), None) => Some(format!("step {step}")),
            (None, _) => None,
        };
        match (&self.phase, step) {
            (Some(phase), Some(step)) => Some(format!("{phase} {step}")),
            (Some(phase), None) => Some(phase.clone()),
            (None, step) => step,
        }
    }
}
