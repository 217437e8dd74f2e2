//! What a segno session is: its events, its folded state and the rules that decide between them.
//!
//! Nothing in this crate does I/O, reads a clock or draws a random number: time and ids come in as
//! arguments, so folding the same journal twice always gives the same state.
//!
//! The way round: a [`Command`] or a [`Fact`] and the present [`State`] go into [`decide()`], which answers with the
//! [`Event`]s that follow or, for a command, a [`Refusal`]. The events are stored, and [`State::apply`] folds them in.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod budget;
pub mod call;
pub mod command;
pub mod day;
pub mod decide;
pub mod detect;
pub mod event;
pub mod fact;
pub mod fingerprint;
pub mod fnv;
pub mod id;
pub mod input;
pub mod insights;
pub mod lately;
pub mod limits;
pub mod live;
pub mod looping;
pub mod origin;
pub mod project;
pub mod rates;
pub mod refusal;
pub mod rows;
pub mod state;
pub mod status;
#[cfg(test)]
mod story;
pub mod suggest;
pub mod summary;
pub mod text;
pub mod time;

pub use budget::CostBudget;
pub use budget::TokenBudget;
pub use budget::TokenUse;
pub use command::Command;
pub use decide::create;
pub use decide::decide;
pub use event::Encoded;
pub use event::Event;
pub use event::FactEvent;
pub use fact::Fact;
pub use fingerprint::fingerprint;
pub use id::CheckpointId;
pub use id::EventKey;
pub use id::RunId;
pub use id::SessionId;
pub use id::StoreId;
pub use id::Uid;
pub use id::UserKey;
pub use input::Input;
pub use project::ItemChange;
pub use project::List;
pub use project::project;
pub use refusal::Refusal;
pub use state::FOLD_VERSION;
pub use state::Mark;
pub use state::State;
pub use status::Status;
pub use summary::Summary;
pub use text::Text;
pub use time::Timestamp;
