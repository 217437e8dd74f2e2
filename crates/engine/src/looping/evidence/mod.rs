//! Commands whose results say how the work stands, what they are made of, and gates by hand.

pub(super) mod command;
pub(super) mod fingerprint;
pub(super) mod gather;
pub(super) mod protect;
pub(super) mod receipt;
pub(super) mod tests_read;
pub(crate) mod unloaded;
