//! Starting an agent, and what is left when that fails.

use segno_core::Command;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::event::Maker;
use segno_core::event::PauseReason;

use crate::Engine;
use crate::Error;
use crate::run::Report;
use crate::run::Request;

impl Engine {
    /// Runs an agent in a session to its end. A session that was made for a run that could not be started does not
    /// stay active: nobody works on it.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn start(&self, request: Request) -> Result<Report, Error> {
        let session = request.session;
        self.run(request).inspect_err(|why| {
            // The error itself is what matters now.
            let _ = self.leave_paused(session, why);
        })
    }

    fn leave_paused(&self, session: SessionId, why: &Error) -> Result<(), Error> {
        let state = self.load(session)?.state;
        let at_work =
            state.run.as_ref().is_some_and(|run| run.is_running()) || self.store().lease(session)?.is_some();
        if state.made_by != Maker::Run || state.status != Status::Active || at_work {
            return Ok(());
        }
        let details = Some(why.to_string().into());
        self.act(session, Command::Pause { reason: PauseReason::Error, details }).map(drop)
    }
}
