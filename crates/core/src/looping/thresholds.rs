//! When the breaker of a phase opens.

use serde::Deserialize;
use serde::Serialize;

/// When the breaker opens. A count of 0 switches a rule off, except for `no_progress` and `start_failures`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thresholds {
    /// Iterations without progress.
    pub no_progress: u32,
    /// Iterations in a row with the same error.
    pub same_error: u32,
    /// Iterations without progress at which it is half open: a warning.
    pub half_open_at: u32,
    /// Iterations in which everything that was tried was denied; then a person is asked.
    pub denials: u32,
    /// Starts in a row that failed.
    pub start_failures: u32,
    /// Iterations that ended with a question and brought no progress.
    pub questions: u32,
    /// The same call with the same result, so many times in one iteration.
    pub identical_calls: u32,
    /// Calls in one iteration that only went round in a circle.
    pub cycles: u32,
    /// How many times dearer than usual an iteration without progress may be.
    pub spend_factor: u32,
    /// Seconds after which one more iteration is tried by itself.
    pub cooldown_seconds: u64,
    /// How often that is tried before only a person can close it.
    pub probes: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::of(3, 5)
    }
}

impl Thresholds {
    /// The usual ones with these two.
    pub fn of(no_progress: u32, same_error: u32) -> Self {
        Self {
            no_progress,
            same_error,
            half_open_at: 2,
            denials: 3,
            start_failures: 3,
            questions: 3,
            identical_calls: 5,
            cycles: 10,
            spend_factor: 3,
            cooldown_seconds: 30 * 60,
            probes: 3,
        }
    }

    /// Those of a phase by its name, as the PRP workflow has them.
    pub fn for_phase(name: &str) -> Self {
        match name.to_ascii_uppercase().as_str() {
            "GREEN" => Self::of(2, 3),
            "REFACTOR" => Self::of(5, 5),
            "QA" => Self::of(3, 3),
            // RED, DOCUMENT and every phase that nobody named.
            _ => Self::of(3, 5),
        }
    }

    /// When it is half open: one below the threshold at the latest, so that there is a warning in every phase.
    pub fn half_open(&self) -> u32 {
        self.half_open_at.min(self.no_progress.saturating_sub(1)).max(1)
    }
}
