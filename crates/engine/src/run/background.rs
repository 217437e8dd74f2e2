//! Work that may take long, done beside the thread that drives.

use std::sync::mpsc;
use std::thread::Scope;
use std::time::Duration;
use std::time::Instant;

use segno_core::SessionId;
use segno_core::State;
use segno_core::event::CheckpointReason;

use crate::Acted;
use crate::Engine;
use crate::Error;
use crate::tree::At;

/// Something to be done.
enum Job {
    Checkpoint { session: SessionId, name: String, reason: CheckpointReason, at: At },
    View(Box<State>),
}

/// What came of it.
pub(super) enum Done {
    Checkpoint(Box<Result<Acted, Error>>),
    View { notices: Vec<String>, took: Duration },
}

/// A thread that does one thing after the other.
pub(super) struct BackgroundWork {
    jobs: mpsc::Sender<Job>,
    done: mpsc::Receiver<Done>,
}

impl BackgroundWork {
    pub(super) fn start<'scope, 'env>(scope: &'scope Scope<'scope, 'env>, engine: &'env Engine) -> Self {
        let (jobs, to_do) = mpsc::channel::<Job>();
        let (tell, done) = mpsc::channel();
        scope.spawn(move || {
            for job in to_do {
                if tell.send(job.work(engine)).is_err() {
                    break;
                }
            }
        });
        Self { jobs, done }
    }

    /// Sets a checkpoint.
    pub(super) fn checkpoint(&self, session: SessionId, name: String, reason: CheckpointReason, at: At) {
        // The thread ends only after this has been dropped.
        let _ = self.jobs.send(Job::Checkpoint { session, name, reason, at });
    }

    /// Writes the view.
    pub(super) fn view(&self, state: State) {
        let _ = self.jobs.send(Job::View(Box::new(state)));
    }

    /// What is done since this was last asked.
    pub(super) fn done(&self) -> impl Iterator<Item = Done> + '_ {
        self.done.try_iter()
    }

    /// Waits for what is still being done.
    pub(super) fn finish(self) -> Vec<Done> {
        drop(self.jobs);
        self.done.into_iter().collect()
    }
}

impl Job {
    fn work(self, engine: &Engine) -> Done {
        match self {
            Self::Checkpoint { session, name, reason, at } => {
                Done::Checkpoint(Box::new(engine.checkpoint(session, Some(name), reason, &at)))
            }
            Self::View(state) => {
                let begun = Instant::now();
                let mut notices = Vec::new();
                engine.refresh_view(&state, &mut notices);
                Done::View { notices, took: begun.elapsed() }
            }
        }
    }
}
