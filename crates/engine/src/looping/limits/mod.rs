//! How far a loop may go and when: caps, accounts that are shared, the windows of a plan, and waiting.

pub(super) mod account;
pub(super) mod ask;
pub(super) mod caps;
pub(super) mod due;
pub(super) mod park;
