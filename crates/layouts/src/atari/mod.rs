//! The `state.json` of atari: read, so that its work can be taken over.

mod read;

pub use read::read;
