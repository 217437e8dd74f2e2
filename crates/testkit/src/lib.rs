//! Tools to test segno against real agents, offline.
//!
//! - [`model`] is a scripted model server: it answers the requests of a real agent as a script says, faults included.
//! - [`scripted`] is a scripted agent, for faults that no real agent commits on demand.
//! - [`home`] is a place of a test's own: home, working directory, environment. [`recipe`] says how to run a real
//!   agent there against a scripted model, and [`agents`] where the real agents are.
//! - [`run`] runs a program with a deadline.
//!
//! ```
//! use segno_testkit::model::{Model, Script, Turn};
//!
//! let model = Model::start(Script::new([Turn::sh("echo hi"), Turn::text("done")])).unwrap();
//! assert!(model.url().starts_with("http://127.0.0.1:"));
//! assert!(model.requests().is_empty());
//! ```

pub mod agents;
pub mod home;
pub mod lines;
pub mod model;
mod processes;
pub mod programs;
pub mod recipe;
pub mod run;
pub mod scripted;
mod short;
