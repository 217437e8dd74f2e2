//! A working tree through snapshots, diffs, restores and crashes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "tests run git the plain way and read their settings")]

mod basics;
mod crashes;
mod forget;
mod hostile;
mod ignored;
mod keeping;
mod random;
mod restore;
mod support;
mod undo;
mod user;
