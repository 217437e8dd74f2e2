//! Says that a driver lives, beside everything else it does: nothing that takes long there keeps this waiting.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread::Scope;
use std::time::Duration;

use super::supervisor::Input;
use crate::Error;
use crate::lease::Driver;

/// How often the driver says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Renews the lease until it is dropped.
pub(crate) struct Heartbeat(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    /// Somebody wants to know now.
    wanted: bool,
    ended: bool,
    news: Vec<Input>,
}

impl Heartbeat {
    /// Begins. The first beat comes when the first interval is over: the lease was just taken.
    pub(crate) fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        driver: &'env Driver<'env>,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        scope.spawn(move || {
            while own.rest() {
                let news = tell(driver.heartbeat());
                own.lock().news.extend(news);
            }
        });
        Self(shared)
    }

    /// Beats at once.
    pub(super) fn beat_now(&self) {
        self.0.lock().wanted = true;
        self.0.wake.notify_all();
    }

    /// What it found out since it was last asked.
    pub(super) fn news(&self) -> Vec<Input> {
        std::mem::take(&mut self.0.lock().news)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.wake.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next beat; false when there is none.
    fn rest(&self) -> bool {
        let idle = |state: &mut State| !state.wanted && !state.ended;
        let (mut state, _) = self
            .wake
            .wait_timeout_while(self.lock(), HEARTBEAT, idle)
            .unwrap_or_else(PoisonError::into_inner);
        state.wanted = false;
        !state.ended
    }
}

/// What the answer of the store means for whoever drives. Trouble of the store is told by those who write to it.
fn tell(renewed: Result<(), Error>) -> Option<Input> {
    match renewed {
        Ok(()) => Some(Input::Renewed),
        Err(why) => replaced(&why),
    }
}

/// Whether an error means that there is nothing left to drive for us. Every other one is waited out.
pub(super) fn replaced(why: &Error) -> Option<Input> {
    match why {
        Error::Store(segno_store::Error::StaleEpoch { .. }) => {
            Some(Input::Replaced("another driver took over the session".to_owned()))
        }
        Error::SessionNotFound { .. } => Some(Input::Replaced("the session is gone".to_owned())),
        _ => None,
    }
}
