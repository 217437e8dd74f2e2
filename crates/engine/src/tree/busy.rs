//! The right to a tree: nobody goes anywhere in it while an agent works there, of whichever session. One that waits, or
//! whose next call can be held, may live.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use segno_core::Event;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::event::Ledger;
use segno_store::EventRow;
use segno_store::Filter;

use super::hold::HeldAgent;
use crate::Engine;
use crate::Error;
use crate::fault::Guard;
use crate::fault::broken;

/// So many of the newest events are looked at for whether a turn is over.
const NEWEST: u64 = 200;

/// How much of a living agent is put up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentsAllowed {
    /// None at all.
    Nobody,
    /// One whose next call can be held: it was told before each of its calls ran, and none is open; or one that waits
    /// for a person.
    Waiting,
}

impl Engine {
    /// Refuses while somebody works in the session's tree. What is left of dead drivers is settled first.
    pub(super) fn refuse_while_driven(
        &self,
        state: &State,
        company: AgentsAllowed,
    ) -> Result<Vec<HeldAgent>, Error> {
        self.settle_session(state.session_id)?;
        for (session, _) in self.leases_of_tree(state)? {
            if session != state.session_id {
                self.settle_session(session)?;
            }
        }
        self.refuse_while_held(state, company)
    }

    /// The same without settling anything, for a caller that holds the lock of the snapshots. Whoever begins to drive
    /// takes the lease first and then makes a snapshot, so either its lease is seen here or it waits for the lock.
    /// Answers with the agents that live on beside.
    pub(super) fn refuse_while_held(
        &self,
        state: &State,
        company: AgentsAllowed,
    ) -> Result<Vec<HeldAgent>, Error> {
        if broken(Guard::Right) {
            return Ok(Vec::new());
        }
        let mut beside = Vec::new();
        let leases = self.leases_of_tree(state)?;
        for (session, lease) in &leases {
            let run = match company {
                AgentsAllowed::Nobody => None,
                AgentsAllowed::Waiting => self.waiting_run(*session)?,
            };
            match run {
                Some(run) => beside.push(HeldAgent { session: *session, run }),
                // Nobody can make that agent wait. It is told that only the person may do this, and what to type.
                None if self.only_keeps(*session, lease)? && !self.is_below_an_agent()? => {}
                None if *session == state.session_id => {
                    return Err(segno_store::Error::Held(Box::new(lease.clone())).into());
                }
                None => {
                    let (what, pid) = (lease.holder.what.clone(), lease.holder.pid);
                    return Err(Error::TreeBusy { session: *session, what, pid });
                }
            }
        }
        let is_driven = |session: SessionId| leases.iter().any(|(driven, _)| *driven == session);
        // An agent may outlive its driver.
        let open = Status::ALL.into_iter().filter(|status| status.is_open()).collect();
        let listed = self.list(&Filter { statuses: open, ..Filter::default() })?.into_iter();
        let here = listed.filter(|summary| overlap(&summary.project, &state.project.path));
        let others = here.map(|summary| summary.session_id);
        for session in others.filter(|session| *session != state.session_id && !is_driven(*session)) {
            let other = self.store().load(session)?.state;
            if let (Some(agent), Some(run)) = (crate::run::living_agent(&other), &other.run) {
                return Err(Error::TreeBusy { session, what: run.agent.clone(), pid: agent.pid });
            }
        }
        match (crate::run::living_agent(state), &state.run) {
            (Some(agent), Some(run)) if !is_driven(state.session_id) => {
                Err(Error::AgentAlive { agent: run.agent.clone(), pid: agent.pid })
            }
            _ => Ok(beside),
        }
    }

    /// Whether the holder of a session merely keeps it for an agent, and runs none itself.
    fn only_keeps(&self, session: SessionId, lease: &segno_store::Lease) -> Result<bool, Error> {
        if lease.holder.what != crate::lease::KEEPER {
            return Ok(false);
        }
        let state = self.store().load(session)?.state;
        Ok(!state.run.as_ref().is_some_and(|run| run.is_running()))
    }

    /// The run of a driven session, if its agent waits or can be made to wait before its next call.
    fn waiting_run(&self, session: SessionId) -> Result<Option<String>, Error> {
        let state = self.store().load(session)?.state;
        let Some(run) = state.run.as_ref().filter(|run| run.is_running()) else { return Ok(None) };
        if !state.calls.open.is_empty() || state.calls.open_beyond > 0 {
            return Ok(None);
        }
        let waits = match run.ledger {
            Ledger::WriteAhead => true,
            Ledger::Observed => run.interactive && self.turn_is_over(&state)?,
        };
        Ok(waits.then(|| run.id.clone()))
    }

    /// Whether the agent of a session has answered and waits for a person. What cannot be told is not so.
    fn turn_is_over(&self, state: &State) -> Result<bool, Error> {
        let rows =
            self.store().events(state.session_id, state.seq.saturating_sub(NEWEST), NEWEST as usize)?;
        for row in rows.iter().rev() {
            let EventRow::Whole(stored) = row else { return Ok(false) };
            match stored.event() {
                Ok(Event::TurnCompleted(_)) => return Ok(true),
                Ok(Event::Said(_) | Event::ToolStarted(_) | Event::ToolEnded(_) | Event::RunStarted(_)) => {
                    return Ok(false);
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// One loop at a time in a tree: neither of two could tell what is its own, and each would count the other's
    /// changes as progress. Whoever took its lease first stays. Asked again by who holds a lease, it is exact: of two, the
    /// second one sees the first. A loop that is parked or stands still holds none, and is in nobody's way.
    pub(crate) fn refuse_second_loop(
        &self,
        session: Option<SessionId>,
        parent: Option<SessionId>,
        project: &str,
    ) -> Result<(), Error> {
        let own = match session {
            Some(session) => self.store().lease(session)?.map(|lease| (lease.acquired_at, session)),
            None => None,
        };
        for (other, lease) in self.store().leases()? {
            let later = own.is_some_and(|own| own < (lease.acquired_at, other));
            if Some(other) == session
                || Some(other) == parent
                || later
                || !crate::lease::life(&lease).may_live()
            {
                continue;
            }
            // What cannot be read is nobody's loop that could be named; its own driver says so.
            let Ok(state) = self.store().load(other).map(|loaded| loaded.state) else { continue };
            // The session of an item is driven below its loop, which is found by itself.
            let is_loop = state.looping.as_deref().is_some_and(|looping| looping.parent.is_none());
            if is_loop && is_same_tree(&state.project.path, project) {
                let (what, pid) = (lease.holder.what, lease.holder.pid);
                return Err(Error::TreeBusy { session: other, what, pid });
            }
        }
        Ok(())
    }

    /// Who drives a session in the same tree, inside it, or around it.
    fn leases_of_tree(&self, state: &State) -> Result<Vec<(SessionId, segno_store::Lease)>, Error> {
        let mut found = Vec::new();
        for (session, lease) in self.store().leases()? {
            let is_here = session == state.session_id
                || self
                    .store()
                    .load(session)
                    .is_ok_and(|other| overlap(&other.state.project.path, &state.project.path));
            if is_here {
                found.push((session, lease));
            }
        }
        Ok(found)
    }
}

/// Whether two projects have files in common: one is the other, under whichever name, or lies inside it.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let (one, other) = (real(one), real(other));
    let within = |inner: &Path, outer: &Path| {
        inner.starts_with(outer) || inner.ancestors().any(|above| is_same_directory(above, outer))
    };
    within(&one, &other) || within(&other, &one)
}

/// Whether two projects are one, under whichever names.
fn is_same_tree(one: &str, other: &str) -> bool {
    let (one, other) = (real(one), real(other));
    one == other || is_same_directory(&one, &other)
}

/// One directory can be mounted at two places.
fn is_same_directory(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    id(one).is_some_and(|found| id(other) == Some(found))
}

pub(super) fn real(path: &str) -> PathBuf {
    let path = Path::new(path);
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
