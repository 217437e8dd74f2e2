//! List prices of models, for agents that do not say what they cost.

use std::collections::BTreeMap;

use segno_core::TokenUse;
use segno_core::rates::Rates;
use serde::Deserialize;

/// The prices that come with the program.
const BUILT_IN: &str = include_str!("prices.toml");

/// What models cost.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The day on which they were looked up, such as `2025-11-30`.
    #[serde(default)]
    pub as_of: String,
    /// By a model's name; see [`stands_for`].
    #[serde(default)]
    models: BTreeMap<String, Price>,
}

/// What a million tokens cost, in dollars.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

/// Prices that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadPrices(String);

impl Prices {
    /// The prices that come with the program.
    pub fn built_in() -> Self {
        // A test reads it; a program whose own table were broken would show everything as unpriced.
        toml::from_str(BUILT_IN).unwrap_or_default()
    }

    /// The built-in prices with somebody's own laid over them.
    ///
    /// # Errors
    /// If the text is no table of prices, or a price is no amount of money.
    pub fn with(text: &str) -> Result<Self, BadPrices> {
        let own: Self = toml::from_str(text).map_err(|why| BadPrices(why.to_string().trim().to_owned()))?;
        for (model, price) in &own.models {
            let amounts = [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
            if amounts.into_iter().flatten().any(|amount| !amount.is_finite() || amount < 0.0) {
                return Err(BadPrices(format!("{model}: a price is an amount of money")));
            }
        }
        let mut all = Self::built_in();
        if !own.as_of.is_empty() {
            all.as_of = format!("{} (own prices {})", all.as_of, own.as_of);
        }
        all.models.extend(own.models.into_iter().map(|(model, price)| (plain(&model), price)));
        Ok(all)
    }

    /// What these tokens of a model cost, in millionths of a dollar; none if nobody knows.
    pub fn micros(&self, model: &str, tokens: &TokenUse) -> Option<u64> {
        self.rates(model)?.micros(tokens)
    }

    /// What a model's tokens cost by the list, if it is there. The rates are named as the model was.
    pub fn rates(&self, model: &str) -> Option<Rates> {
        let name = plain(model);
        let fitting = self.models.iter().filter(|(listed, _)| stands_for(listed, &name));
        let (_, price) = fitting.max_by_key(|(listed, _)| listed.len())?;
        Some(Rates {
            model: model.to_owned(),
            as_of: self.as_of.clone(),
            input: price.input,
            output: price.output,
            cache_read: price.cache_read,
            cache_write: price.cache_write,
        })
    }
}

/// Whether a name of the list means this model: the same name, the same with a date behind it, or, if it ends in `*`, any
/// that begins so. Another number behind a name is another model with a price of its own.
fn stands_for(listed: &str, model: &str) -> bool {
    if let Some(beginning) = listed.strip_suffix('*') {
        return model.starts_with(beginning);
    }
    let Some(rest) = model.strip_prefix(listed) else { return false };
    let digits: String = rest.chars().filter(char::is_ascii_digit).collect();
    let dated = rest.starts_with('-') && digits.len() == 8 && matches!(rest.len(), 9 | 11);
    rest.is_empty() || dated || rest == "-latest"
}

/// A model's name as the table has it: without the provider in front, and without a context size behind.
fn plain(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.split(['[', '@', ':']).next().unwrap_or(name);
    name.trim().to_ascii_lowercase().replace('.', "-")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn tokens(input: u64, output: u64, cache_read: u64, cache_write: u64) -> TokenUse {
        TokenUse { input, output, cache_read, cache_write, other: 0, reasoning: 0 }
    }

    #[test]
    fn the_table_that_comes_along_can_be_read() {
        let prices = Prices::built_in();
        assert!(prices.models.len() > 10);
        assert_eq!(prices.as_of.len(), "2025-11-30".len());
        assert!(
            prices.models.keys().all(|name| *name == plain(name)),
            "names are looked up as they stand there"
        );
    }

    #[rstest]
    #[case::input("claude-sonnet-4-5-20250929", tokens(1_000_000, 0, 0, 0), Some(3_000_000))]
    #[case::all_kinds("claude-sonnet-4-5", tokens(100, 10, 1_000, 40), Some(300 + 150 + 300 + 150))]
    #[case::the_longest_name("claude-opus-4-5", tokens(1_000, 0, 0, 0), Some(5_000))]
    #[case::an_earlier_one("claude-opus-4-1", tokens(1_000, 0, 0, 0), Some(15_000))]
    #[case::a_provider_in_front("openai/gpt-5", tokens(1_000, 0, 0, 0), Some(1_250))]
    #[case::dots("gpt-5.1-codex", tokens(1_000, 0, 0, 0), Some(1_250))]
    #[case::a_context_size("claude-sonnet-4-5[1m]", tokens(1_000, 0, 0, 0), Some(3_000))]
    #[case::no_price_for_writing("gpt-5", tokens(0, 0, 0, 1_000), None)]
    #[case::only_a_beginning("gpt-50", tokens(1, 1, 1, 1), None)]
    #[case::another_one_of_the_kind("gpt-5.5", tokens(1, 1, 1, 1), None)]
    #[case::a_date("gpt-5-2025-08-07", tokens(1_000, 0, 0, 0), Some(1_250))]
    #[case::no_date("gpt-5-20250", tokens(1_000, 0, 0, 0), None)]
    #[case::as_the_agent_reckons("claude-opus-5-5", tokens(1_040_300, 152, 0, 0), Some(4_164_240))]
    #[case::no_price_for_reading("claude-opus-5-5", tokens(1, 1, 1, 0), None)]
    #[case::unknown("some-model", tokens(1, 1, 1, 1), None)]
    #[case::of_no_kind("gpt-5", TokenUse::of(5), None)]
    fn what_tokens_cost(#[case] model: &str, #[case] tokens: TokenUse, #[case] expected: Option<u64>) {
        assert_eq!(Prices::built_in().micros(model, &tokens), expected);
    }

    #[test]
    fn own_prices_are_laid_over() {
        let own = "as_of = \"2026-01-02\"\n[models]\n\"GPT-5\" = { input = 2, output = 4 }\n\"mine*\" = { input = 1, output = 1 }\n";
        let prices = Prices::with(own).unwrap();
        assert_eq!(prices.micros("gpt-5", &tokens(10, 10, 0, 0)), Some(60));
        assert_eq!(prices.micros("mine-7b", &tokens(10, 10, 0, 0)), Some(20));
        assert_eq!(prices.micros("o3", &tokens(10, 0, 0, 0)), Some(20), "the others stay");
        assert!(prices.as_of.ends_with("(own prices 2026-01-02)"), "{}", prices.as_of);
    }

    #[rstest]
    #[case::no_table("models = 3")]
    #[case::unknown_field("[models]\nx = { input = 1, output = 1, cached = 2 }")]
    #[case::negative("[models]\nx = { input = -1, output = 1 }")]
    #[case::no_number("[models]\nx = { input = nan, output = 1 }")]
    fn bad_prices_are_refused(#[case] text: &str) {
        assert!(Prices::with(text).is_err());
    }
}
