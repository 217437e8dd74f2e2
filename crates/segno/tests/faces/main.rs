//! Tests of the page: below the browser, and in one.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "a world that other tests have more use for")]
mod common;

mod agents;
mod attacks;
mod browser;
mod chrome;
mod going_on;
mod large;
mod metrics;
mod served;
mod server;
mod tabs;
