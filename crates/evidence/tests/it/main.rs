//! The readers against real output, made-up output and broken output.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod command;
mod invariants;
mod made_up;
mod mutations;
mod recordings;
mod status;
mod words;
mod work;
