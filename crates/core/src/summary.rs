//! A session in one line: what lists show.
//!
//! Summaries are kept beside the journal and written anew with every change of their session, so a store holds some that
//! older programs wrote. Every field has a value that stands for "not written then": adding one can never
//! make an older row unreadable.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use crate::event::Maker;
use crate::id::SessionId;
use crate::id::Uid;
use crate::lately::UsedLately;
use crate::looping::LoopState;
use crate::looping::ParkReason;
use crate::state::Reason;
use crate::state::State;
use crate::status::Status;
use crate::time::Timestamp;

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What a list of sessions shows of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the state, documented there")]
pub struct Summary {
    pub session_id: SessionId,
    pub uid: Uid,
    pub topic: Option<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    // Stores look for these two by their text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    pub status: Status,
    pub reason: Option<Reason>,
    pub workflow: Option<String>,
    pub phase: Option<String>,
    pub step: Option<u32>,
    pub of: Option<u32>,
    pub iteration: u64,
    pub progress: Option<u8>,
    pub project: String,
    pub made_by: Maker,
    pub agent: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub tokens_used: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tokens_estimated: bool,
    pub token_budget: u64,
    pub over_budget: bool,
    pub budget_warning: bool,
    pub budget_hard: bool,
    pub cost_micros: u64,
    pub cost_limit_micros: Option<u64>,
    /// Tokens whose cost nobody knows.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_tokens: u64,
    /// What it used itself lately, for caps on a day.
    #[serde(skip_serializing_if = "UsedLately::is_empty")]
    pub lately: UsedLately,
    pub open_tasks: u64,
    pub open_calls: u64,
    pub in_doubt: u64,
    /// What waits for an answer of a person: questions of an agent, and a breakpoint.
    #[serde(skip_serializing_if = "is_zero")]
    pub open_questions: u64,
    pub resumable: bool,
    pub checkpoint: Option<String>,
    pub branch: Option<String>,
    pub file: Option<String>,
    pub work_item: Option<String>,
    pub waiting_until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_account: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tries_account: bool,
    pub breaker: Option<String>,
    pub loop_total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_done: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<crate::looping::QueueShare>,
    pub seq: u64,
}

impl From<&State> for Summary {
    fn from(state: &State) -> Self {
        let looping = state.looping.as_deref();
        Self {
            session_id: state.session_id,
            uid: state.uid,
            topic: state.topic.clone(),
            tags: state.tags.clone(),
            pinned: state.pinned,
            archived: state.archived,
            status: state.status,
            reason: state.reason.clone(),
            workflow: state.workflow.as_ref().map(|workflow| workflow.name.clone()),
            phase: state.phase.clone(),
            step: state.step,
            of: state.of,
            iteration: state.iteration,
            progress: state.progress(),
            project: state.project.path.clone(),
            made_by: state.made_by,
            agent: state.agent.clone(),
            created_at: state.created_at,
            updated_at: state.updated_at,
            completed_at: state.completed_at,
            tokens_used: state.budget.tokens_used,
            tokens_estimated: state.tokens_estimated,
            token_budget: state.budget.total_budget,
            over_budget: state.is_over_budget(),
            budget_warning: state.is_low_on_budget(),
            budget_hard: state.budget.hard,
            cost_micros: state.cost.used_micros,
            cost_limit_micros: state.cost.limit_micros,
            unpriced_tokens: state.unpriced_tokens(),
            lately: state.lately.clone(),
            open_tasks: state.tasks.open.len() as u64,
            open_calls: (state.calls.open.len() as u64).saturating_add(state.calls.open_beyond),
            in_doubt: state.calls.in_doubt.len() as u64,
            open_questions: open_questions(state),
            resumable: state.is_resumable(),
            checkpoint: state.checkpoint.as_ref().map(|mark| mark.id.to_string()),
            branch: state.branch.clone(),
            file: state.file.clone(),
            work_item: state
                .work_item
                .as_ref()
                .or_else(|| looping.and_then(|looping| looping.item.as_ref()))
                .map(|item| item.id.clone()),
            waiting_until: looping.and_then(|looping| looping.parked.as_ref()?.until),
            waiting_account: looping.and_then(waiting_account),
            tries_account: looping.is_some_and(|looping| looping.tries.is_some()),
            breaker: looping.map(|looping| looping.breaker.state.as_str().to_owned()),
            loop_total: looping.map(|looping| looping.total),
            parent: looping.and_then(|looping| looping.parent),
            queue: looping.and_then(crate::looping::QueueShare::of),
            items_done: looping.filter(|it| it.plan.queue.is_some()).map(|it| it.items_done),
            seq: state.seq,
        }
    }
}

/// What waits for an answer of a person.
fn open_questions(state: &State) -> u64 {
    let asked = state.questions.iter().filter(|question| question.answer.is_none()).count();
    asked as u64 + u64::from(state.breakpoint.is_some())
}

/// The account whose window a loop waits for, or tries after a wait.
fn waiting_account(looping: &LoopState) -> Option<String> {
    let parked = looping.parked.as_ref().filter(|parked| parked.class == ParkReason::Plan);
    parked.and_then(|parked| parked.account.clone()).or_else(|| looping.tries.clone())
}

impl Default for Summary {
    /// What stands for a field that was not written then.
    fn default() -> Self {
        let start = Timestamp::from_micros(0);
        Self {
            session_id: SessionId::at(start),
            uid: Uid::new(uuid::Uuid::nil()),
            topic: None,
            tags: BTreeSet::new(),
            pinned: false,
            archived: false,
            status: Status::Active,
            reason: None,
            workflow: None,
            phase: None,
            step: None,
            of: None,
            iteration: 0,
            progress: None,
            project: String::new(),
            made_by: Maker::default(),
            agent: None,
            created_at: start,
            updated_at: start,
            completed_at: None,
            tokens_used: 0,
            tokens_estimated: false,
            token_budget: 0,
            over_budget: false,
            cost_micros: 0,
            open_tasks: 0,
            open_calls: 0,
            in_doubt: 0,
            open_questions: 0,
            resumable: false,
            checkpoint: None,
            budget_warning: false,
            budget_hard: false,
            cost_limit_micros: None,
            unpriced_tokens: 0,
            lately: UsedLately::default(),
            branch: None,
            file: None,
            work_item: None,
            waiting_until: None,
            waiting_account: None,
            tries_account: false,
            breaker: None,
            loop_total: None,
            parent: None,
            items_done: None,
            queue: None,
            seq: 0,
        }
    }
}

/// Whether a kept row is the one that was wanted, or an older form of it: what it says must be so, and it may say less.
pub fn is_form_of(kept: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    kept.iter().all(|(name, value)| wanted.get(name) == Some(value))
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
