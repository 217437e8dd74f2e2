//! The right to a tree: nobody goes anywhere in it while an agent works there, of whichever session.

use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_store::Filter;

use crate::Engine;
use crate::Error;
use crate::fault::Guard;
use crate::fault::broken;

impl Engine {
    /// Refuses while somebody works in the session's tree. What is left of dead drivers is settled first.
    pub(super) fn refuse_while_driven(&self, state: &State) -> Result<(), Error> {
        if broken(Guard::Right) {
            return Ok(());
        }
        self.settle_session(state.session_id)?;
        for (session, _) in self.leases_of_tree(state)? {
            if session != state.session_id {
                self.settle_session(session)?;
            }
        }
        self.refuse_while_held(state)
    }

    /// The same without settling anything, for a caller that holds the lock of the snapshots. Whoever begins to drive
    /// takes the lease first and then makes a snapshot, so either its lease is seen here or it waits for the lock.
    pub(super) fn refuse_while_held(&self, state: &State) -> Result<(), Error> {
        if broken(Guard::Right) {
            return Ok(());
        }
        if let Some((session, lease)) = self.leases_of_tree(state)?.into_iter().next() {
            if session == state.session_id {
                return Err(segno_store::Error::Held(Box::new(lease)).into());
            }
            return Err(Error::TreeBusy { session, what: lease.holder.what.clone(), pid: lease.holder.pid });
        }
        // An agent may outlive its driver.
        let open = Status::ALL.into_iter().filter(|status| status.is_open()).collect();
        let filter =
            Filter { project: Some(state.project.path.clone()), statuses: open, ..Filter::default() };
        let others = self.list(&filter)?.into_iter().map(|summary| summary.session_id);
        for session in others.filter(|session| *session != state.session_id) {
            let other = self.store().load(session)?.state;
            if let (Some(agent), Some(run)) = (crate::run::living_agent(&other), &other.run) {
                return Err(Error::TreeBusy { session, what: run.agent.clone(), pid: agent.pid });
            }
        }
        match (crate::run::living_agent(state), &state.run) {
            (Some(agent), Some(run)) => Err(Error::AgentAlive { agent: run.agent.clone(), pid: agent.pid }),
            _ => Ok(()),
        }
    }

    /// Who drives a session in the same tree.
    fn leases_of_tree(&self, state: &State) -> Result<Vec<(SessionId, segno_store::Lease)>, Error> {
        let root = real(&state.project.path);
        let mut found = Vec::new();
        for (session, lease) in self.store().leases()? {
            let is_here = session == state.session_id
                || self.store().load(session).is_ok_and(|other| real(&other.state.project.path) == root);
            if is_here {
                found.push((session, lease));
            }
        }
        Ok(found)
    }
}

fn real(path: &str) -> PathBuf {
    let path = Path::new(path);
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
