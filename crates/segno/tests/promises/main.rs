//! Promises that were once found broken, each as a test of the built program.
//!
//! A promise that does not hold yet stands in `red.txt`; its test must fail. When the promise holds, its line has to go:
//! the list only gets shorter. So what is still wrong is known at any time, and what was mended stays mended.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "shared with the other test programs, which use the rest")]
mod common;
#[path = "../runs/lab.rs"]
#[expect(dead_code, reason = "shared with the other test programs, which use the rest")]
mod lab;
#[path = "../runs/terminal.rs"]
#[expect(dead_code, clippy::print_stdout, reason = "shared with the other test programs, which use the rest")]
mod terminal;
#[macro_use]
mod red;

mod agents;
mod beside;
mod brief;
mod caps;
mod captures;
mod cost;
mod driver;
mod everywhere;
mod first_minute;
mod flags;
mod flips;
mod forget;
mod gate;
mod going_back;
mod hooks;
mod hostile;
mod identity;
mod interleavings;
mod layouts;
mod left_behind;
mod looping;
mod money;
mod notices;
mod phases;
mod queue;
mod recall;
mod redaction;
mod repair;
mod resume;
mod security;
mod setup;
mod store;
mod transfer;
mod undo;
mod waiting;
mod workflows;
