//! Ending a run that somebody else drives, or that nobody drives any more.

use std::time::Duration;
use std::time::Instant;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::UserKey;
use segno_core::event::Request;

use super::living_agent;
use super::watched::WatchedStanding;
use crate::Acted;
use crate::Engine;
use crate::Error;

/// How often it is looked whether a run has ended.
const LOOK: Duration = Duration::from_millis(50);

/// How a run is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Politely: whoever drives it is asked to stop the agent.
    Stop,
    /// At once, with all its processes, whoever drives it.
    Kill,
}

/// What came of the wish to end a run.
#[derive(Clone, Debug)]
pub enum EndedRun {
    /// No agent runs in the session.
    Nothing,
    /// Nobody drove it: so many of its processes were ended, and its end is recorded.
    Undriven(u64),
    /// Its driver was asked; [`Engine::wait_until_undriven`] waits until it is done.
    Asked(Box<Acted>),
}

/// Why the agent of a watched session is left alone.
fn not_ours(state: &State, standing: WatchedStanding) -> Error {
    let (agent, pid) = state.run.as_ref().map_or(("its agent", 0), |run| (run.agent.as_str(), run.pid));
    let waits = match standing {
        WatchedStanding::Works => "",
        WatchedStanding::Waits | WatchedStanding::Left => ", and waits there",
    };
    Error::NoRun(format!(
        "segno did not start {agent} (pid {pid}) and does not end it: it runs in a terminal of its own{waits}"
    ))
}

impl Engine {
    /// Ends the run of a session, or asks whoever drives it to do so.
    ///
    /// # Errors
    /// If that cannot be recorded.
    pub fn end_running(
        &self,
        session: SessionId,
        how: Ending,
        key: Option<UserKey>,
    ) -> Result<EndedRun, Error> {
        let state = self.load(session)?.state;
        if state.driver.is_none() {
            if living_agent(&state).is_none() {
                return Ok(EndedRun::Nothing);
            }
            let ended = self.kill_run(&state);
            match &state.run {
                // Nobody drives a session that has ended; its agent may have outlived that.
                Some(run) if !state.status.is_open() => self.settle_left(session, &run.id)?,
                _ => drop(self.settle_run(session)?),
            }
            return Ok(EndedRun::Undriven(ended));
        }
        match (self.watched_standing(session), how) {
            (None, _) | (Some(WatchedStanding::Works), Ending::Stop) => {}
            (Some(standing), _) => return Err(not_ours(&state, standing)),
        }
        let request = match how {
            Ending::Stop => Request::Stop,
            Ending::Kill => Request::Kill,
        };
        let acted = self.act_all(session, vec![Command::MakeRequest { request, details: None }], key)?;
        if how == Ending::Kill {
            // The driver may be stuck; its agent is not spared for that.
            self.kill_run(&state);
        }
        Ok(EndedRun::Asked(Box::new(acted)))
    }

    /// Whether the agent of a session was started by somebody else, and only its hooks tell of it.
    pub fn is_watched(&self, session: SessionId) -> bool {
        self.watched_standing(session).is_some()
    }

    /// Waits until nobody drives a session any more, at most so long; false if somebody still does.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub fn wait_until_undriven(&self, session: SessionId, most: Duration) -> Result<bool, Error> {
        let until = Instant::now() + most;
        loop {
            self.settle()?;
            if self.load(session)?.state.driver.is_none() {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
    }
}
