//! What the tokens of one model cost by a price list.

use crate::budget::TokenUse;

/// Dollars for a million tokens of one model, by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// The model that they are for.
    pub model: String,
    /// The day of the list, such as `2025-11-30`.
    pub as_of: String,
    /// What was sent, not from a cache.
    pub input: f64,
    /// What the model wrote.
    pub output: f64,
    /// What was read from the vendor's cache; none if the list does not say.
    pub cache_read: Option<f64>,
    /// What was written to it; none if the list does not say.
    pub cache_write: Option<f64>,
}

impl Rates {
    /// What these tokens cost, in millionths of a dollar; none if the list does not tell for one of their kinds.
    pub fn micros(&self, tokens: &TokenUse) -> Option<u64> {
        // Nobody knows what a token of no known kind costs.
        let kinds = [
            (tokens.input, Some(self.input)),
            (tokens.output, Some(self.output)),
            (tokens.cache_read, self.cache_read),
            (tokens.cache_write, self.cache_write),
            (tokens.other, None),
        ];
        let mut micros = 0.0;
        for (count, price) in kinds.into_iter().filter(|(count, _)| *count > 0) {
            // A dollar for a million tokens is a millionth of a dollar for each.
            micros += count as f64 * price?;
        }
        Some(micros.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_a_price_is_not_free() {
        let rates = Rates { input: 4.0, output: 20.0, ..Rates::default() };
        let tokens = TokenUse { input: 100, output: 7, ..TokenUse::default() };
        assert_eq!(rates.micros(&tokens), Some(540));
        assert_eq!(rates.micros(&TokenUse { cache_write: 10, ..tokens }), None);
        assert_eq!(rates.micros(&TokenUse { cache_read: 1, ..tokens }), None);
        assert_eq!(rates.micros(&TokenUse { other: 1, ..tokens }), None);
        let known = Rates { cache_read: Some(0.4), ..rates };
        assert_eq!(known.micros(&TokenUse { cache_read: 1_000, ..tokens }), Some(940));
    }
}
