//! Loops that share an account: its window is waited for once, and they go on one after the other.
//!
//! What the others do is read from their summaries, which follow from their journals, inside the transaction in which
//! one of them is to go on. So two that wake at the same moment cannot both be the first.

use crate::id::SessionId;
use crate::status::Status;
use crate::summary::Summary;
use crate::time::Timestamp;

/// A loop as the others of its account see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountLoop {
    /// Its session.
    pub session: SessionId,
    /// Whose window it is about: the agent, its config home and the name it tells, never a credential.
    pub account: String,
    /// Until when it waits for a window of the account; none if it does not.
    pub until: Option<Timestamp>,
    /// Whether it went on after such a wait, and nobody knows yet whether the account is open again.
    pub tries: bool,
}

impl AccountLoop {
    /// What a summary says of it, if that concerns others.
    pub fn of(summary: &Summary) -> Option<Self> {
        let account = summary.waiting_account.clone()?;
        let until = summary.waiting_until.filter(|_| summary.status == Status::Paused);
        let tries = summary.tries_account && summary.status == Status::Active;
        (tries || until.is_some()).then_some(Self { session: summary.session_id, account, until, tries })
    }
}

/// Whether a loop may work with an account now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountTurn {
    /// It may.
    Go,
    /// Another one knows that the account is at its limit.
    Later {
        /// Until when.
        until: Timestamp,
        /// Which one knows.
        session: SessionId,
    },
    /// Another one tries first whether the account is open again.
    Behind {
        /// Which one.
        session: SessionId,
    },
}

/// Whether a loop may work with an account now. The latest end that any of the others knows of counts.
pub fn account_turn(own: SessionId, account: &str, others: &[AccountLoop], at: Timestamp) -> AccountTurn {
    let others = others.iter().filter(|other| other.session != own && other.account == account);
    let later = others.clone().filter_map(|other| Some((other.until.filter(|until| *until > at)?, other)));
    if let Some((until, other)) = later.max_by_key(|(until, _)| *until) {
        return AccountTurn::Later { until, session: other.session };
    }
    match others.filter(|other| other.tries).map(|other| other.session).min() {
        Some(session) => AccountTurn::Behind { session },
        None => AccountTurn::Go,
    }
}

/// Loops of one account that are due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueLoops {
    /// Whose window they waited for; none for one that waited for something else.
    pub account: Option<String>,
    /// The sessions, in the order in which they are to go on.
    pub sessions: Vec<SessionId>,
}

/// The loops that are due, in the order in which they are to go on: by account, and there the one that was due first is
/// first. One that waits for something else than an account stands alone.
pub fn due_in_order(summaries: &[Summary], at: Timestamp) -> Vec<DueLoops> {
    let mut due: Vec<&Summary> = summaries
        .iter()
        // An item goes on with the loop that it belongs to.
        .filter(|one| one.parent.is_none())
        .filter(|one| one.status == Status::Paused && one.waiting_until.is_some_and(|until| until <= at))
        .collect();
    due.sort_by_key(|one| (one.waiting_until, one.session_id));
    let mut groups: Vec<DueLoops> = Vec::new();
    for one in due {
        let account = &one.waiting_account;
        match groups.iter_mut().find(|group| account.is_some() && group.account == *account) {
            Some(group) => group.sessions.push(one.session_id),
            None => groups.push(DueLoops { account: account.clone(), sessions: vec![one.session_id] }),
        }
    }
    groups
}
