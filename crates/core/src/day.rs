//! Caps on what all sessions of a project use in one day.

use serde::Deserialize;
use serde::Serialize;

use crate::budget::Counting;
use crate::budget::DEFAULT_WARN_PERCENT;
use crate::budget::reaches;
use crate::event::Unit;
use crate::lately::Used;

/// What all sessions of a project may use in one day of the user's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayCaps {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Money, in millionths of a dollar.
    pub micros: Option<u64>,
    /// Which tokens count.
    pub count: Counting,
    /// From which percentage on a warning is due.
    pub warn_percent: u8,
}

impl Default for DayCaps {
    fn default() -> Self {
        Self { tokens: None, micros: None, count: Counting::default(), warn_percent: DEFAULT_WARN_PERCENT }
    }
}

impl DayCaps {
    /// Whether there is one at all.
    pub fn is_set(&self) -> bool {
        self.tokens.is_some() || self.micros.is_some()
    }

    /// The cap that is used up, if one is: which, how much of it is used, and how much it is.
    pub fn reached(&self, used: &Used) -> Option<(Unit, u64, u64)> {
        self.first(used, 100)
    }

    /// The cap that runs low or is used up, if one is.
    pub fn low(&self, used: &Used) -> Option<(Unit, u64, u64)> {
        self.first(used, self.warn_percent)
    }

    fn first(&self, used: &Used, percent: u8) -> Option<(Unit, u64, u64)> {
        let tokens = self.tokens.map(|most| (Unit::Tokens, used.tokens(self.count), most));
        let money = self.micros.map(|most| (Unit::Cost, used.micros, most));
        tokens.into_iter().chain(money).find(|(_, used, most)| reaches(*used, *most, percent))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing_set(None, None, 900, 900, None, None)]
    #[case::below(Some(1_000), None, 799, 0, None, None)]
    #[case::low(Some(1_000), None, 800, 0, Some(Unit::Tokens), None)]
    #[case::used_up(Some(1_000), None, 1_000, 0, Some(Unit::Tokens), Some(Unit::Tokens))]
    #[case::money(None, Some(1_000), 9_999, 1_000, Some(Unit::Cost), Some(Unit::Cost))]
    #[case::both(Some(10), Some(10), 9, 10, Some(Unit::Tokens), Some(Unit::Cost))]
    fn caps(
        #[case] tokens: Option<u64>,
        #[case] micros: Option<u64>,
        #[case] uncached: u64,
        #[case] spent: u64,
        #[case] low: Option<Unit>,
        #[case] reached: Option<Unit>,
    ) {
        let caps = DayCaps { tokens, micros, ..DayCaps::default() };
        let used = Used { uncached, cache_read: 1_000_000, micros: spent };
        let unit = |found: Option<(Unit, u64, u64)>| found.map(|(unit, ..)| unit);
        assert_eq!((unit(caps.low(&used)), unit(caps.reached(&used))), (low, reached));
        let all = DayCaps { count: Counting::All, ..caps };
        assert_eq!(all.reached(&used).is_some(), tokens.is_some() || reached.is_some());
    }
}
