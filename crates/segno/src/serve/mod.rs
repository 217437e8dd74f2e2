//! The face in a browser: one process, one page that needs nothing from anywhere else.
//!
//! What is shown is read through the engine's board; what is done is one of the program's own commands, given as a value. Requests
//! are taken by one thread that never waits for the store: all work on it is done on threads that may.

mod actions;
mod api;
mod app;
mod asked;
mod assets;
mod chart;
mod check;
pub(crate) mod file;
mod keys;
mod listen;
mod live;
mod metrics;
mod otlp;
mod pages;
pub(crate) mod picture;
mod places;
mod problem;
mod rate;
mod routes;
mod session;
mod start;
mod views;

pub(crate) use start::Wish;
pub(crate) use start::openapi;
pub(crate) use start::serve;
