//! Token counts by kind, with one meaning for every agent.

use serde::Deserialize;
use serde::Serialize;

/// Tokens by kind. The four kinds do not overlap, so [`TokenCounts::total`] may add them up.
///
/// Vendors disagree: some count cached input inside the input, others beside it. The adapters resolve that, so that
/// `input` is always what was neither read from nor written to a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCounts {
    /// Input that met no cache.
    pub input: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning; already counted there.
    pub reasoning: u64,
}

impl TokenCounts {
    /// All tokens, each counted once.
    pub fn total(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
            .saturating_add(self.output)
    }

    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Adds each kind; never overflows, because the numbers come from outside.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// Subtracts each kind; never below zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// What was added since `earlier`. A counter that went backwards was restarted, so everything in it is new.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let restarted = self.input < earlier.input
            || self.cache_read < earlier.cache_read
            || self.cache_write < earlier.cache_write
            || self.output < earlier.output;
        if restarted { self } else { self.minus(earlier) }
    }

    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: f(self.input, other.input),
            cache_read: f(self.cache_read, other.cache_read),
            cache_write: f(self.cache_write, other.cache_write),
            output: f(self.output, other.output),
            reasoning: f(self.reasoning, other.reasoning),
        }
    }
}

/// What a native session had already counted before this run began.
///
/// Some agents report totals of the whole conversation, over every resume and fork. Without the number from before,
/// the first report of a resumed run says nothing about what this run used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Baseline {
    /// A new conversation: it began at zero.
    #[default]
    Fresh,
    /// A resumed or forked conversation, with its last known total.
    Known(TokenCounts),
    /// A resumed or forked conversation whose total nobody knows.
    Unknown,
}

impl Baseline {
    /// The total to subtract, if there is one.
    pub fn counts(self) -> Option<TokenCounts> {
        match self {
            Self::Fresh => Some(TokenCounts::default()),
            Self::Known(counts) => Some(counts),
            Self::Unknown => None,
        }
    }
}
