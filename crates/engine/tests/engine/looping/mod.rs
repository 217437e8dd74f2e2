//! Loops with a scripted agent: what it claims does not count, what is measured does.

mod constant;
pub(crate) mod counted_store;
mod halted;
mod kills;
mod measured;
mod phases;
mod queue;
mod queue_kills;
mod queue_left;
mod simple;
mod tampering;
mod voices;
mod waiting;
mod yard;

pub(crate) use yard::Yard;
