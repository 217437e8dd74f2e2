//! The engine's tests: one binary, a module per topic.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "the second process answers on its standard output")]

mod acceptance;
mod acceptance_lifecycle;
mod acceptance_work;
mod board;
mod child;
mod common;
mod counting;
mod damaged_views;
mod drivers;
mod edge_cases;
mod emit;
mod example;
mod face;
mod going_back;
mod going_on;
mod hook_calls;
mod insights;
mod install;
mod layouts;
mod layouts_taken_over;
mod leases;
mod looping;
mod markdown;
mod memory;
mod metrics;
mod native;
mod recovery;
mod resume;
mod retry;
mod secrets;
mod transfer;
mod two_runs;
mod upkeep;
mod view;
mod view_files;
mod why;
