//! Driving an agent, iteration after iteration, until the work is really done: the plan, what is observed, and what follows.
//!
//! The engine feeds values in and does what comes out. Nothing here reads a clock or runs anything, so every decision can
//! be made again from the journal.

mod account;
mod breaker;
mod command;
mod context;
mod further;
mod gate;
mod helped;
mod marks;
mod next;
mod observation;
mod plan;
mod progress;
mod prompt;
mod queue;
mod queue_plan;
mod queue_status;
mod spend;
mod state;
mod status;
mod thresholds;
mod verdict;
mod waiter;
mod window;
mod words;

pub use account::*;
pub use breaker::*;
pub use command::LoopCommand;
pub use context::in_same_conversation;
pub use further::Further;
pub use gate::*;
pub use helped::cause_gone;
pub use marks::*;
pub use next::*;
pub use observation::*;
pub use plan::*;
pub use progress::*;
pub use prompt::*;
pub use queue::*;
pub use queue_plan::*;
pub use queue_status::*;
pub use spend::COST_UNKNOWN;
pub use spend::over_budget;
pub use state::*;
pub use status::*;
pub use thresholds::*;
pub use verdict::*;
pub use waiter::*;
pub use window::countdown;
pub(crate) use window::moment;
pub use window::parse_hours;
pub use words::NOT_SAID;
pub use words::why;

#[cfg(test)]
mod tests;
