//! How often something may happen.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

/// A bucket that fills by itself: so many in such a time, and that many at once.
#[derive(Debug)]
pub(super) struct Rate {
    most: f64,
    per_second: f64,
    left: Mutex<(f64, Instant)>,
}

impl Rate {
    pub(super) fn new(most: u32, time: Duration) -> Self {
        let most = f64::from(most);
        Self { most, per_second: most / time.as_secs_f64(), left: Mutex::new((most, Instant::now())) }
    }

    /// Takes one out; false if there is none.
    pub(super) fn take(&self) -> bool {
        self.take_at(Instant::now())
    }

    fn fill(&self, now: Instant) -> f64 {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(left.1).as_secs_f64();
        *left = ((left.0 + since * self.per_second).min(self.most), now);
        left.0
    }

    fn take_at(&self, now: Instant) -> bool {
        let has = self.fill(now) >= 1.0;
        if has {
            self.left.lock().unwrap_or_else(PoisonError::into_inner).0 -= 1.0;
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills() {
        let rate = Rate::new(2, Duration::from_secs(60));
        let now = Instant::now();
        assert!(rate.take_at(now) && rate.take_at(now) && !rate.take_at(now));
        assert!(!rate.take_at(now + Duration::from_secs(20)));
        assert!(rate.take_at(now + Duration::from_secs(40)));
        assert!(!rate.take_at(now + Duration::from_secs(40)));
    }
}
