//! `segno run` with real agents and with agents that misbehave, in one binary so that it is linked once.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop")]
#![expect(clippy::print_stdout, reason = "what a failing test says, and the figures of those that measure")]

mod cli;
mod faults;
mod gap;
mod hooks;
mod hot_path;
mod lab;
mod limits;
mod loops;
mod matrix;
mod orphans;
mod readers;
mod recovery;
mod table;
mod terminal;
mod watch;
mod watch_at_once;
mod watch_faults;
