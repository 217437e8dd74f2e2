//! A store that somebody else writes to is no reason not to begin: it is waited for, with a word.
//!
//! A run that goes on must not wait like that, because its agent, its caps and those who want it to stop do not wait
//! either. So this holds from the moment a store is opened until a run has begun.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use segno_store::Patience;

use crate::run::Stop;

/// Told again and again for how long a store has been waited for.
#[derive(Clone)]
pub struct TellWaiting(Arc<dyn Fn(Duration) + Send + Sync>);

impl TellWaiting {
    /// Tells by calling this, from whichever thread waits.
    pub fn new(tell: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for TellWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TellWaiting")
    }
}

/// Waits for a busy store until something has begun.
#[derive(Clone, Debug)]
pub struct BusyStart {
    patience: Patience,
    tell: TellWaiting,
}

impl BusyStart {
    /// Waits from now on, for the store that is opened with this patience.
    pub(crate) fn new(patience: Patience, tell: TellWaiting) -> Self {
        let start = Self { patience, tell };
        let tell = start.tell.clone();
        start.patience.set(Some(Arc::new(move |waited| {
            (tell.0)(waited);
            true
        })));
        start
    }

    /// A run is about to begin: waits until it has, or until somebody asks it to stop.
    pub(crate) fn until_asked(&self, stop: &Stop) {
        let (tell, stop) = (self.tell.clone(), stop.clone());
        self.patience.set(Some(Arc::new(move |waited| {
            (tell.0)(waited);
            stop.asked().0 == 0
        })));
    }

    /// It has begun: from now on nobody waits longer than they always do.
    pub(crate) fn begun(&self) {
        self.patience.set(None);
    }
}
