//! How a store is opened, whatever it is kept in.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::time::Duration;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// What for.
    pub purpose: Purpose,
    /// Whether to make it if there is none.
    pub create: bool,
    /// How long to wait for other writers.
    pub busy: Duration,
    /// Who may decide otherwise.
    pub patience: Patience,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            purpose: Purpose::OneShot,
            create: true,
            busy: Duration::from_secs(10),
            patience: Patience::default(),
        }
    }
}

/// What the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A short process: one append or a look, then gone. It leaves upkeep to others.
    OneShot,
    /// A short process that comes again and again, and after which nobody need come who is not in a hurry: it looks after the
    /// log itself, and waits for nobody to do so.
    Recurring,
    /// A process that stays.
    LongLived,
    /// Looking at a damaged or read-only database: nothing is written, not even beside it.
    Inspect,
}

/// Asked again and again while somebody else writes, with how long that has taken: whether to wait on.
pub type KeepWaiting = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// Who decides how long other writers are waited for. Clones are one and the same, so that whoever opened a store can
/// change it later.
#[derive(Clone, Default)]
pub struct Patience(Arc<RwLock<Option<KeepWaiting>>>);

impl Patience {
    /// However often a store is waited for, all of it together takes at most this long.
    pub fn at_most(limit: Duration) -> Self {
        let spent = Mutex::new((Duration::ZERO, Duration::ZERO));
        let keep_waiting = move |waited: Duration| {
            let (before, now) = &mut *spent.lock().unwrap_or_else(PoisonError::into_inner);
            // A shorter wait than the last one is another one.
            if waited < *now {
                *before += *now;
            }
            *now = waited;
            *before + *now < limit
        };
        let patience = Self::default();
        patience.set(Some(Arc::new(keep_waiting)));
        patience
    }

    /// From now on this decides; with none, waiting ends after [`OpenOptions::busy`].
    pub fn set(&self, keep_waiting: Option<KeepWaiting>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keep_waiting;
    }

    pub(crate) fn get(&self) -> Option<KeepWaiting> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Patience").field(&self.get().is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_waits_share_what_there_is() {
        let patience = Patience::at_most(Duration::from_millis(100));
        let keep = patience.get().unwrap();
        let waits = |millis: u64| keep(Duration::from_millis(millis));
        assert!(waits(0) && waits(40) && waits(60), "the first");
        assert!(waits(0) && waits(30), "the second has 40 left");
        assert!(!waits(40), "100 together");
        assert!(!waits(0), "and nothing for the third");
    }
}
