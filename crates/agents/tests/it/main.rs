//! What real agents write, in small: hand-written streams and what they mean.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod chunks;
mod claude;
mod codex;
mod hooks;
mod launch;
mod lines;
mod plain;
mod support;
mod transcripts;
