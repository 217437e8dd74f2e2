//! How often a driver gives the store what its agent prints.
//!
//! A commit costs about the same for one event as for twenty, and all drivers of a store share its one lock. So a driver
//! that had to wait for others lets what is printed gather before it comes again, the longer the more it had to wait; one
//! that is alone gives everything at once. What is printed is in the capture meanwhile, and is neither shown nor acted on
//! before it is in the journal. What has to be there before something may happen does not go by this: hooks, the start of a
//! run, questions, its end.

use std::time::Duration;
use std::time::Instant;

/// So many times as long as it waited does a driver rest.
const RESTS: u32 = 8;
/// Shorter waits are as good as none.
const SHORT: Duration = Duration::from_millis(1);
/// However much others write, it comes again after so long.
const LONGEST: Duration = Duration::from_millis(400);

/// The pace of one driver.
#[derive(Debug, Default)]
pub(super) struct Pace {
    rest: Duration,
    given: Option<Instant>,
}

impl Pace {
    /// The store was given something, and had to wait so long for others before it could write. The rest grows at once and
    /// shrinks by halves: one lucky moment does not mean that the others have gone.
    pub(super) fn given(&mut self, now: Instant, waited: Duration) {
        let wanted = if waited < SHORT { Duration::ZERO } else { waited.saturating_mul(RESTS) };
        let before = if self.rest < SHORT { Duration::ZERO } else { self.rest / 2 };
        self.rest = wanted.max(before).min(LONGEST);
        self.given = Some(now);
    }

    /// Whether others want to write too.
    pub(super) fn is_slow(&self) -> bool {
        !self.rest.is_zero()
    }

    /// How long it still rests.
    pub(super) fn left(&self, now: Instant) -> Duration {
        let Some(given) = self.given else { return Duration::ZERO };
        self.rest.saturating_sub(now.saturating_duration_since(given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a driver comes whose agent prints all the time, within so many milliseconds, if it always waits so long.
    fn comes(waited: u64, within: u64) -> u64 {
        let begun = Instant::now();
        let (mut pace, mut comes) = (Pace::default(), 0);
        for millis in 0..within {
            let now = begun + Duration::from_millis(millis);
            if pace.left(now).is_zero() {
                comes += 1;
                pace.given(now, Duration::from_millis(waited));
            }
        }
        comes
    }

    #[test]
    fn who_is_alone_gives_everything_at_once() {
        assert_eq!(comes(0, 1_000), 1_000);
        let mut pace = Pace::default();
        pace.given(Instant::now(), Duration::from_micros(900));
        assert!(!pace.is_slow());
    }

    #[test]
    fn who_waits_comes_less_often_but_comes() {
        assert_eq!(comes(5, 1_000), 25, "every 40 ms");
        assert_eq!(comes(20, 1_600), 10, "every 160 ms");
        assert_eq!(comes(10_000, 4_000), 10, "every 400 ms, however long it waits");
    }

    #[test]
    fn when_the_others_have_gone_the_rest_is_soon_over() {
        let mut pace = Pace::default();
        let now = Instant::now();
        pace.given(now, Duration::from_secs(60));
        assert_eq!(pace.left(now), LONGEST);
        let mut times = 0;
        while pace.is_slow() {
            pace.given(now, Duration::ZERO);
            times += 1;
        }
        assert_eq!(times, 10);
        assert_eq!(pace.left(now), Duration::ZERO);
    }
}
