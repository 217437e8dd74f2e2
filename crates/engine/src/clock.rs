//! The time, as an argument.

use segno_core::Timestamp;

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(micros.saturating_add(crate::fault::clock_shift().saturating_mul(1_000_000)))
    }
}

/// A clock that stands still until it is moved: for tests.
#[derive(Debug)]
pub struct FixedClock(std::sync::atomic::AtomicI64);

impl FixedClock {
    /// Standing at `at`.
    pub fn new(at: Timestamp) -> Self {
        Self(at.as_micros().into())
    }

    /// Moves it by seconds, backwards if negative.
    pub fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }
}
