//! The loop itself: one iteration after another, what stops it, and who hears of it.

pub(super) mod drive;
pub(super) mod driven;
pub(super) mod halted;
pub(super) mod news;
pub(super) mod turn;
pub(super) mod unrunnable;
