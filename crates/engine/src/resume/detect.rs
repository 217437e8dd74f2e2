//! The session of a project that is there already, and what to do about it.

use std::path::Path;

use segno_core::SessionId;
use segno_core::Status;
use segno_core::detect::Candidate;
use segno_core::detect::Detection;
use segno_core::detect::detect;
use segno_store::Filter;

use crate::Engine;
use crate::Error;

/// How many of the newest open sessions are looked through for the one about a file.
const NEWEST: usize = 100;

impl Engine {
    /// What to do about the session that a project has; `wanted` is the file with the work that is asked for.
    ///
    /// One about the wanted file is meant, an open one before one that ended; without such, the newest open session, and
    /// without any of these the newest that ended.
    pub fn detect(&self, project: &Path, wanted: Option<&str>) -> Result<Detection, Error> {
        let of = |statuses: Vec<Status>, limit: usize| Filter {
            project: Some(project.display().to_string()),
            statuses,
            archived: Some(false),
            limit: Some(limit),
            ..Filter::default()
        };
        let open = Status::ALL.into_iter().filter(|status| status.is_open()).collect();
        let open: Vec<SessionId> =
            self.list(&of(open, NEWEST))?.iter().map(|summary| summary.session_id).collect();
        let is_about =
            |id: &SessionId| self.load(*id).is_ok_and(|loaded| loaded.state.file.as_deref() == wanted);
        let mut about = open.iter().copied().find(|id| wanted.is_some() && is_about(id));
        // What was done with it counts more than other work that is open.
        if about.is_none() && wanted.is_some() {
            let ended = Status::ALL.into_iter().filter(|status| !status.is_open()).collect();
            let ended = self.list(&of(ended, NEWEST))?;
            about = ended.iter().map(|summary| summary.session_id).find(is_about);
        }
        let newest = about.or_else(|| open.first().copied());
        let session = match newest {
            Some(session) => Some(session),
            None => self.list(&of(Vec::new(), 1))?.first().map(|summary| summary.session_id),
        };
        match session {
            None => Ok(detect(None, wanted)),
            Some(session) => self.detect_session(session, wanted),
        }
    }

    /// The same for one session.
    pub fn detect_session(&self, session: SessionId, wanted: Option<&str>) -> Result<Detection, Error> {
        let driven = self
            .store()
            .lease(session)
            .is_ok_and(|lease| lease.is_some_and(|lease| crate::lease::life(&lease).may_live()));
        let (state, problems) = match self.load(session) {
            Ok(loaded) => (Some(loaded.state), loaded.notices),
            Err(Error::SessionCorrupted { details, .. }) => (None, vec![details]),
            Err(other) => return Err(other),
        };
        let candidate = Candidate { session, state: state.as_ref(), problems: &problems, driven };
        Ok(detect(Some(candidate), wanted))
    }
}
