//! A scripted model server.
//!
//! It speaks four interfaces on one loopback port: Anthropic Messages, OpenAI Responses and chat completions, and
//! Gemini. Each request is put on a track and gets that track's next turn: text, thinking, tool calls, or a fault. See
//! [`Script`] for the format, which is the same in Rust and in a JSON file.
//!
//! To add an interface: a file beside `anthropic.rs` that implements `api::Wire`, a variant of [`Api`], and its
//! path in `api.rs`.

mod answer;
mod anthropic;
mod api;
mod chat;
mod gemini;
mod handle;
mod http;
mod log;
mod op;
mod pick;
mod play;
mod query;
mod responses;
mod script;
mod server;
mod state;
mod substitute;
mod tools;
mod turn;

pub use api::Api;
pub use handle::Limits;
pub use handle::Model;
pub use log::End;
pub use log::Request;
pub use op::Op;
pub use op::Sh;
pub use script::Index;
pub use script::Script;
pub use script::Then;
pub use script::Track;
pub use script::When;
pub use turn::Fault;
pub use turn::Gate;
pub use turn::Turn;
pub use turn::Usage;
