//! Processes that die. This binary starts itself again as writers, kills them, and looks at what they left.
//!
//! `SEGNO_KILLS` says how often (25), `SEGNO_SEED` with which moments, `SEGNO_FULL=1` asks for everything that takes
//! long. What fails prints its seed.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/home.rs"]
mod home;

#[path = "crash/errors.rs"]
mod errors;
#[path = "crash/kills.rs"]
mod kills;
#[path = "crash/many.rs"]
mod many;
#[path = "crash/steps.rs"]
mod steps;
#[path = "crash/trace.rs"]
mod trace;
#[path = "crash/writer.rs"]
mod writer;

/// A number from the environment.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Whether everything is asked for.
pub(crate) fn is_full() -> bool {
    setting("SEGNO_FULL", 0) == 1
}

/// Numbers that look like chance and are the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        dice.below(2);
        dice
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}
