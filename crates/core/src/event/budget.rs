//! Tokens and money.

use serde::Deserialize;
use serde::Serialize;

use crate::budget::Counting;
use crate::budget::TokenUse;

/// Where a count of tokens comes from. Within one run only the first source counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Said by hand or by a library call.
    #[default]
    Hand,
    /// Read in the agent's stream.
    Stream,
    /// Reported by a hook.
    Hook,
}

/// Tokens were used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensRecorded {
    /// How many of each kind.
    pub tokens: TokenUse,
    /// Whether that is a guess from the length of the text.
    pub estimated: bool,
    /// Who says so.
    pub source: Source,
    /// The run of another session that used them, started by an agent of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
}

/// Money was spent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostRecorded {
    /// In millionths of a dollar.
    pub micros: u64,
    /// Who says so.
    pub source: Source,
    /// The run of another session that spent it, started by an agent of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
    /// It is reckoned by a price list, because the agent has not said what it costs. If it does so later, that counts
    /// instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<ListPrice>,
}

/// The price list that money was reckoned by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPrice {
    /// The model.
    pub model: String,
    /// The day of the list.
    pub as_of: String,
    /// It is for tokens of runs before the newest one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier: bool,
}

/// Which budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Tokens.
    Tokens,
    /// Money, in millionths of a dollar.
    Cost,
}

/// A budget was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSet {
    /// Which one.
    pub unit: Unit,
    /// The allowance.
    pub total: u64,
    /// Whether it stops, not only warns.
    pub hard: bool,
    /// From which percentage on a warning is due.
    pub warn_percent: u8,
    /// Which tokens count from now on; none leaves that as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Counting>,
}

/// A budget was extended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetExtended {
    /// Which one.
    pub unit: Unit,
    /// By how much.
    pub added: u64,
}

/// A budget reached its warning threshold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetWarned {
    /// Which one.
    pub unit: Unit,
    /// Used so far.
    pub used: u64,
    /// The allowance.
    pub total: u64,
}

/// More was used than allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetExceeded {
    /// Which one.
    pub unit: Unit,
    /// Used so far.
    pub used: u64,
    /// The allowance.
    pub total: u64,
}
