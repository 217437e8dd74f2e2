//! Tests of the built program, in one binary so that it is linked once.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop")]

#[path = "../common/mod.rs"]
mod common;

mod concurrency;
mod config;
mod cut_short;
mod damage;
mod day;
mod demo;
mod detect;
mod dist;
mod docs;
mod earlier;
mod going_back;
mod help;
mod init;
mod insights;
mod keep;
mod layers;
mod layouts;
mod layouts_beside;
mod log_file;
mod mcp;
mod memory;
mod new;
mod order;
mod parse;
mod place;
mod rescue;
mod search;
mod secrets;
mod status;
mod statusline;
mod surroundings;
mod terminal;
mod top;
mod transfer;
mod trust;
mod view;
mod which;
mod why;
