//! What a session used lately, by the quarter of an hour: so that what all sessions of a project used in a day can be
//! added up, whatever the user's time zone is. Every zone begins its days at a quarter of an hour.

use std::collections::VecDeque;

use serde::Deserialize;
use serde::Serialize;

use crate::budget::Counting;
use crate::budget::TokenUse;
use crate::time::Timestamp;

/// A quarter of an hour in microseconds.
const SLOT: i64 = 15 * 60 * 1_000_000;
/// How many of the newest are kept: two days, so that a day is whole however it lies.
const SLOTS: i64 = 2 * 24 * 4;

/// What was used in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Tokens, without those that were read from the vendor's cache.
    pub uncached: u64,
    /// Those.
    pub cache_read: u64,
    /// Money, in millionths of a dollar.
    pub micros: u64,
}

impl Used {
    /// The tokens that count.
    pub fn tokens(&self, counting: Counting) -> u64 {
        match counting {
            Counting::Uncached => self.uncached,
            Counting::All => self.uncached.saturating_add(self.cache_read),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Self {
        Self {
            uncached: self.uncached.saturating_add(more.uncached),
            cache_read: self.cache_read.saturating_add(more.cache_read),
            micros: self.micros.saturating_add(more.micros),
        }
    }
}

/// What was used in each of the newest quarters of an hour in which something was, in order of time. Stored as
/// `[quarter since 1970, uncached, cache_read, micros]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UsedLately(VecDeque<(i64, u64, u64, u64)>);

impl UsedLately {
    /// Whether nothing was used lately.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tokens were used.
    pub(crate) fn add_tokens(&mut self, at: Timestamp, tokens: &TokenUse) {
        let slot = self.slot(at);
        slot.1 = slot.1.saturating_add(tokens.counted(Counting::Uncached));
        slot.2 = slot.2.saturating_add(tokens.cache_read);
    }

    /// Money was spent.
    pub(crate) fn add_money(&mut self, at: Timestamp, micros: u64) {
        let slot = self.slot(at);
        slot.3 = slot.3.saturating_add(micros);
    }

    /// Money that was added lately was reckoned, and what was really spent is told now.
    pub(crate) fn take_back(&mut self, micros: u64) {
        let mut left = micros;
        for slot in self.0.iter_mut().rev() {
            let taken = slot.3.min(left);
            slot.3 -= taken;
            left -= taken;
        }
    }

    /// What was used since a moment, which is the beginning of a quarter of an hour.
    pub fn since(&self, from: Timestamp) -> Used {
        let first = from.as_micros().div_euclid(SLOT);
        let lately = self.0.iter().filter(|slot| slot.0 >= first);
        lately.fold(Used::default(), |sum, slot| {
            sum.plus(&Used { uncached: slot.1, cache_read: slot.2, micros: slot.3 })
        })
    }

    /// The slot of a moment. Clocks are set back now and then: then it lies before others.
    fn slot(&mut self, at: Timestamp) -> &mut (i64, u64, u64, u64) {
        let number = at.as_micros().div_euclid(SLOT);
        let newest = self.0.back().map_or(number, |slot| slot.0.max(number));
        while self.0.front().is_some_and(|slot| slot.0 <= newest - SLOTS) {
            self.0.pop_front();
        }
        let index = self.0.partition_point(|slot| slot.0 < number);
        if self.0.get(index).is_none_or(|slot| slot.0 != number) {
            self.0.insert(index, (number, 0, 0, 0));
        }
        &mut self.0[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_micros(minutes * 60_000_000)
    }

    fn input(tokens: u64) -> TokenUse {
        TokenUse { input: tokens, cache_read: 1_000, ..TokenUse::default() }
    }

    #[test]
    fn a_day_begins_at_any_quarter_of_an_hour() {
        let mut lately = UsedLately::default();
        for (minute, tokens) in [(0, 1), (14, 2), (15, 4), (29, 8), (30, 16)] {
            lately.add_tokens(at(minute), &input(tokens));
            lately.add_money(at(minute), tokens * 10);
        }
        let used = |minute| {
            let used = lately.since(at(minute));
            (used.uncached, used.micros)
        };
        assert_eq!((used(0), used(15), used(30), used(45)), ((31, 310), (28, 280), (16, 160), (0, 0)));
        assert_eq!(lately.since(at(30)).tokens(Counting::All), 1_016);
        assert_eq!(
            serde_json::to_string(&lately).unwrap(),
            "[[0,3,2000,30],[1,12,2000,120],[2,16,1000,160]]"
        );
    }

    #[test]
    fn it_is_bounded_and_a_clock_that_is_set_back_loses_nothing() {
        let mut lately = UsedLately::default();
        for quarter in 0..1_000 {
            lately.add_tokens(at(quarter * 15), &input(1));
        }
        assert_eq!(lately.0.len(), 192);
        assert_eq!(lately.since(at(0)).uncached, 192);
        lately.add_tokens(at(990 * 15), &input(5));
        lately.add_tokens(at(2_000 * 15), &input(7));
        assert_eq!(lately.since(at(0)).uncached, 7, "two days are over");
        lately.add_tokens(at(1_990 * 15), &input(3));
        assert_eq!((lately.since(at(0)).uncached, lately.since(at(1_995 * 15)).uncached), (10, 7));
    }

    #[test]
    fn what_was_only_reckoned_is_taken_back_from_the_newest() {
        let mut lately = UsedLately::default();
        lately.add_money(at(0), 100);
        lately.add_money(at(15), 30);
        lately.take_back(50);
        lately.add_money(at(15), 7);
        assert_eq!((lately.since(at(15)).micros, lately.since(at(0)).micros), (7, 87));
    }
}
