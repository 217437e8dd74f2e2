//! Token and money budgets, in whole numbers that never overflow.

use serde::Deserialize;
use serde::Serialize;

/// What a session may use if nobody says otherwise.
pub const DEFAULT_TOKENS: u64 = 100_000;
/// So many that nobody can use them: the budget of a session that has none, such as one of a history.
pub const UNLIMITED_TOKENS: u64 = i64::MAX as u64;
/// At how many percent of a budget the warning comes if nobody says otherwise.
pub const DEFAULT_WARN_PERCENT: u8 = 80;

/// Which tokens count towards a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// All but those that were read from the vendor's cache: these are most of what a long run sends, and cost a tenth.
    #[default]
    Uncached,
    /// All of them, as budgets counted that were stored without saying how.
    All,
}

impl Counting {
    /// What a budget means that does not say how it counts.
    fn unsaid() -> Self {
        Self::All
    }

    fn is_unsaid(&self) -> bool {
        *self == Self::unsaid()
    }
}

/// Tokens by kind. Agents bill the kinds differently; [`Counting`] says which of them a budget counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUse {
    /// Sent to the model, not from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub input: u64,
    /// Written by the model.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output: u64,
    /// Sent, and read from the vendor's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Sent, and written to the vendor's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Recorded without saying of which kind.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other: u64,
    /// The part of `output` that the model only thought, where the agent tells it apart: it is counted there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl TokenUse {
    /// So many tokens of no stated kind.
    pub fn of(tokens: u64) -> Self {
        Self { other: tokens, ..Self::default() }
    }

    /// All kinds together.
    pub fn total(&self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write, self.other]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Those that count towards a budget.
    pub fn counted(&self, counting: Counting) -> u64 {
        match counting {
            Counting::All => self.total(),
            Counting::Uncached => Self { cache_read: 0, ..*self }.total(),
        }
    }

    /// What was added since `earlier`, kind by kind.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(earlier.input),
            output: self.output.saturating_sub(earlier.output),
            cache_read: self.cache_read.saturating_sub(earlier.cache_read),
            cache_write: self.cache_write.saturating_sub(earlier.cache_write),
            other: self.other.saturating_sub(earlier.other),
            reasoning: self.reasoning.saturating_sub(earlier.reasoning),
        }
    }

    /// Both together, kind by kind.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cache_read: self.cache_read.saturating_add(more.cache_read),
            cache_write: self.cache_write.saturating_add(more.cache_write),
            other: self.other.saturating_add(more.other),
            reasoning: self.reasoning.saturating_add(more.reasoning),
        }
    }
}

/// About how many tokens a text has, where no agent says: four characters each, rounded up.
pub fn estimate_tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// How many tokens a session may use, and how many it has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudget {
    /// The allowance; more than 0.
    pub total_budget: u64,
    /// Used so far. May pass the allowance: recording never refuses.
    pub tokens_used: u64,
    /// From which percentage on a warning is due.
    pub warn_percent: u8,
    /// Whether the user set it as a cap that stops, not only warns.
    pub hard: bool,
    /// Which tokens count.
    #[serde(default = "Counting::unsaid", skip_serializing_if = "Counting::is_unsaid")]
    pub count: Counting,
}

impl Default for TokenBudget {
    fn default() -> Self {
        Self {
            total_budget: DEFAULT_TOKENS,
            tokens_used: 0,
            warn_percent: DEFAULT_WARN_PERCENT,
            hard: false,
            count: Counting::default(),
        }
    }
}

impl TokenBudget {
    /// Whether there is no budget.
    pub fn is_unlimited(&self) -> bool {
        self.total_budget >= UNLIMITED_TOKENS
    }

    /// What is left; 0 when the budget is used up or passed.
    pub fn tokens_remaining(&self) -> u64 {
        self.total_budget.saturating_sub(self.tokens_used)
    }

    /// Used, as a percentage of the allowance; over 100 when passed.
    pub fn utilization_percent(&self) -> f64 {
        utilization(self.tokens_used, self.total_budget)
    }

    /// Whether the warning threshold is reached.
    pub fn is_warning(&self) -> bool {
        reaches(self.tokens_used, self.total_budget, self.warn_percent)
    }

    /// Whether more was used than allowed.
    pub fn is_over(&self) -> bool {
        self.tokens_used > self.total_budget
    }

    /// Whether a hard budget has nothing left.
    pub fn is_exhausted(&self) -> bool {
        self.hard && self.tokens_used >= self.total_budget
    }

    /// Whether `required` more tokens still fit.
    pub fn can_continue(&self, required: u64) -> bool {
        self.tokens_remaining() >= required
    }

    /// Adds what was used.
    pub fn record_usage(&mut self, tokens: u64) {
        self.tokens_used = self.tokens_used.saturating_add(tokens);
    }

    /// Counts in another way from now on, what was used before included; `used` is that, by kind.
    pub fn count_as(&mut self, count: Counting, used: &TokenUse) {
        let elsewhere = self.tokens_used.saturating_sub(used.counted(self.count));
        self.tokens_used = elsewhere.saturating_add(used.counted(count));
        self.count = count;
    }

    /// The budget of a session that goes on from one with this budget. What was used of a cap goes along, or a fresh
    /// start would be a way round it.
    #[must_use]
    pub fn carried_over(&self) -> Self {
        Self { tokens_used: if self.hard { self.tokens_used } else { 0 }, ..*self }
    }

    /// Allows more.
    pub fn extend(&mut self, additional: u64) {
        self.total_budget = self.total_budget.saturating_add(additional);
    }
}

/// How much money a session may cost, in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostBudget {
    /// The allowance; none if nobody set one.
    pub limit_micros: Option<u64>,
    /// Spent so far.
    pub used_micros: u64,
    /// From which percentage on a warning is due.
    pub warn_percent: u8,
    /// Whether it stops, not only warns.
    pub hard: bool,
}

impl Default for CostBudget {
    fn default() -> Self {
        Self { limit_micros: None, used_micros: 0, warn_percent: DEFAULT_WARN_PERCENT, hard: false }
    }
}

impl CostBudget {
    /// The budget of a session that goes on from one with this budget; see [`TokenBudget::carried_over`].
    #[must_use]
    pub fn carried_over(&self) -> Self {
        let cap = self.hard && self.limit_micros.is_some();
        Self { used_micros: if cap { self.used_micros } else { 0 }, ..*self }
    }

    /// What is left, if there is a limit.
    pub fn remaining_micros(&self) -> Option<u64> {
        self.limit_micros.map(|limit| limit.saturating_sub(self.used_micros))
    }

    /// Whether the warning threshold is reached.
    pub fn is_warning(&self) -> bool {
        self.limit_micros.is_some_and(|limit| reaches(self.used_micros, limit, self.warn_percent))
    }

    /// Whether more was spent than allowed.
    pub fn is_over(&self) -> bool {
        self.limit_micros.is_some_and(|limit| self.used_micros > limit)
    }

    /// Whether a hard limit has nothing left.
    pub fn is_exhausted(&self) -> bool {
        self.hard && self.limit_micros.is_some_and(|limit| self.used_micros >= limit)
    }
}

fn utilization(used: u64, total: u64) -> f64 {
    if total == 0 { 100.0 } else { used as f64 / total as f64 * 100.0 }
}

/// `used` is at least `percent` of `total`, in whole numbers: no rounding decides a warning.
pub(crate) fn reaches(used: u64, total: u64, percent: u8) -> bool {
    u128::from(used) * 100 >= u128::from(total) * u128::from(percent)
}

/// Money from millionths of a dollar: `$0.42`. Small amounts keep the digits that matter: a tenth of a cent below ten cents
/// (`$0.012`), and all of them below one (`$0.0042`).
pub fn dollars(micros: u64) -> String {
    if micros > 0 && micros < 10_000 {
        let digits = format!("{micros:06}");
        return format!("$0.{}", digits.trim_end_matches('0'));
    }
    let mills = micros.saturating_add(500) / 1_000;
    if mills < 100 && !mills.is_multiple_of(10) {
        return format!("$0.{mills:03}");
    }
    let cents = micros.saturating_add(5_000) / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_used() {
        let mut budget = TokenBudget::default();
        budget.record_usage(50_000);
        assert_eq!(budget.tokens_remaining(), 50_000);
        assert!((budget.utilization_percent() - 50.0).abs() < f64::EPSILON);
        assert!(!budget.is_warning());
    }

    #[test]
    fn warns_exactly_at_the_threshold() {
        let at = |used| TokenBudget { tokens_used: used, ..TokenBudget::default() }.is_warning();
        assert!(!at(79_999));
        assert!(at(80_000));
    }

    #[test]
    fn nothing_overflows() {
        let mut budget =
            TokenBudget { total_budget: u64::MAX, tokens_used: u64::MAX, ..TokenBudget::default() };
        budget.record_usage(u64::MAX);
        budget.extend(u64::MAX);
        assert!(budget.is_warning());
        assert_eq!(budget.tokens_remaining(), 0);
        let all = TokenUse { input: u64::MAX, output: 1, ..TokenUse::default() };
        assert_eq!(all.plus(&all).total(), u64::MAX);
    }

    #[test]
    fn reading_from_a_cache_counts_only_if_somebody_says_so() {
        let used =
            TokenUse { input: 1, output: 2, cache_read: 1_000, cache_write: 4, other: 8, reasoning: 2 };
        assert_eq!(used.total(), 1_015, "what was only thought is output, and counts once");
        assert_eq!(
            (used.plus(&used).reasoning, used.since(&TokenUse { reasoning: 1, ..used }).reasoning),
            (4, 1)
        );
        assert_eq!((used.counted(Counting::Uncached), used.counted(Counting::All)), (15, 1_015));
        let mut budget = TokenBudget { tokens_used: 15 + 5, ..TokenBudget::default() };
        budget.count_as(Counting::All, &used);
        assert_eq!(budget.tokens_used, 1_020, "what came from elsewhere stays");
        budget.count_as(Counting::Uncached, &used);
        assert_eq!(budget.tokens_used, 20);
    }

    #[test]
    fn an_older_budget_keeps_its_meaning() {
        let stored = r#"{"total_budget":10,"tokens_used":1,"warn_percent":80,"hard":true}"#;
        let budget: TokenBudget = serde_json::from_str(stored).unwrap();
        assert_eq!(budget.count, Counting::All);
        assert_eq!(serde_json::to_string(&budget).unwrap(), stored);
        let new = serde_json::to_value(TokenBudget::default()).unwrap();
        assert_eq!(new["count"], "uncached");
    }

    #[test]
    fn a_cap_goes_along_with_what_was_used_of_it() {
        let soft = TokenBudget { total_budget: 10, tokens_used: 7, ..TokenBudget::default() };
        assert_eq!(soft.carried_over().tokens_used, 0);
        assert_eq!(TokenBudget { hard: true, ..soft }.carried_over().tokens_used, 7);
    }

    #[test]
    fn four_characters_make_a_token() {
        assert_eq!(estimate_tokens(""), 0);
        assert_eq!(estimate_tokens("äöüß"), 1);
        assert_eq!(estimate_tokens("hello"), 2);
    }

    #[test]
    fn only_a_hard_budget_is_ever_exhausted() {
        let soft = TokenBudget { total_budget: 10, tokens_used: 11, ..TokenBudget::default() };
        assert!(soft.is_over() && !soft.is_exhausted());
        assert!(TokenBudget { hard: true, tokens_used: 10, ..soft }.is_exhausted());
        let cost = CostBudget { limit_micros: Some(5), used_micros: 5, hard: true, ..CostBudget::default() };
        assert!(cost.is_exhausted() && !cost.is_over());
    }
}
