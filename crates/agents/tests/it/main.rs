//! What real agents write: hand-written streams in small, recordings, and what they mean.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod chunks;
mod claude;
mod codex;
mod conversation_logs;
mod gemini;
mod hooks;
mod invariants;
mod launch;
mod limits;
mod lines;
mod mutations;
mod opencode;
mod plain;
mod recordings;
mod rollout;
mod support;
mod transcripts;
