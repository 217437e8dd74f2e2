//! A restore that was cut short: finished if nothing happened since, else told, and whoever asks decides.

use segno_core::SessionId;
use segno_workspace::Applied;
use segno_workspace::Settled;
use segno_workspace::Waiting;
use segno_workspace::Workspace;

use crate::Engine;
use crate::Error;

/// What to do with a restore that was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Bring the tree to where it was going.
    Finish,
    /// Bring it back to where it was.
    TakeBack,
    /// Leave the tree as it is.
    Leave,
}

impl Engine {
    /// Looks whether a restore of the session's tree was cut short, and finishes it if nothing happened since. What is
    /// left then waits for a decision.
    pub fn pending_restore(&self, session: SessionId) -> Result<(Option<Waiting>, Option<String>), Error> {
        let workspace = self.workspace(&self.load(session)?.state)?;
        match workspace.settle_pending()? {
            Settled::Waiting(waiting) => Ok((Some(*waiting), None)),
            other => Ok((None, said(&other))),
        }
    }

    /// Does with it what somebody decided.
    pub fn decide_restore(&self, session: SessionId, decision: Decision) -> Result<Applied, Error> {
        let state = self.load(session)?.state;
        self.refuse_while_driven(&state, super::busy::AgentsAllowed::Nobody)?;
        let workspace = self.workspace(&state)?;
        let done = match decision {
            Decision::Finish => workspace.finish_pending(),
            Decision::TakeBack => workspace.undo_pending(),
            Decision::Leave => workspace.leave_pending().map(|()| Applied::default()),
        };
        match done {
            Err(segno_workspace::Error::NothingPending) => {
                Err(Error::NoTree("no restore was interrupted in this project".to_owned()))
            }
            done => Ok(done?),
        }
    }
}

/// Finishes a restore that was cut short if the tree is as it left it. Answers with what the user should know.
pub(super) fn settle(workspace: &Workspace) -> Result<Option<String>, Error> {
    let settled = workspace.settle_pending()?;
    match &settled {
        Settled::Waiting(waiting) => {
            Ok(Some(format!("{}; nothing was done about it: segno checkpoint pending", tell(waiting))))
        }
        settled => Ok(said(settled)),
    }
}

/// The same before going somewhere: nothing can be done while one waits for a decision.
pub(super) fn settle_or_refuse(workspace: &Workspace) -> Result<Option<String>, Error> {
    match workspace.settle_pending()? {
        Settled::Waiting(waiting) => Err(Error::RestorePending(tell(&waiting))),
        settled => Ok(said(&settled)),
    }
}

fn said(settled: &Settled) -> Option<String> {
    match settled {
        Settled::Finished(_) => Some("a restore that was cut short is finished now".to_owned()),
        Settled::TakenBack { why, .. } => Some(format!(
            "a restore that was cut short could not be finished and is taken back: everything is as before it ({why})"
        )),
        Settled::Nothing | Settled::Waiting(_) => None,
    }
}

/// In one line.
pub fn tell(waiting: &Waiting) -> String {
    let paths = waiting.pending.paths;
    let how = match (waiting.changed.first(), waiting.committed) {
        (_, true) => "the project has another commit since".to_owned(),
        (Some(first), _) => match waiting.changed.len() {
            1 => format!("{} was changed since", first.display()),
            count => format!("{} and {} more were changed since", first.display(), count - 1),
        },
        (None, false) => "it cannot be told what happened since".to_owned(),
    };
    format!("a restore of {paths} paths was cut short, and {how}")
}
