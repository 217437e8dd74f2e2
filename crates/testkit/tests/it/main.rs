//! Tests of the kit itself, and of real agents when they are installed.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a failing test shows what it saw")]

mod claude;
mod claude_hooks;
mod claude_launch;
mod client;
mod codex;
mod codex_launch;
mod gemini;
mod gemini_launch;
mod load;
mod opencode;
mod opencode_launch;
mod programs;
mod scripted;
mod server;
mod server_apis;
mod support;
