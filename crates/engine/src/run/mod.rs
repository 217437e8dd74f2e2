//! Running an agent: spawned, captured, journaled, watched, stopped and cleaned up after.
//!
//! No runtime is needed: one thread follows one agent. What the agent prints goes to files that this thread reads, so
//! the agent never waits for us, and what it printed outlives us.

mod adopt;
pub mod ancestry;
mod background;
pub mod capture;
mod capture_process;
pub(crate) mod cgroup;
mod changes;
mod checkpoint;
mod drive;
mod end_run;
mod feed;
mod finish;
pub(crate) mod guard;
mod heartbeat;
pub mod hook_server;
mod interactive;
mod journal;
pub mod limit;
mod log_beside;
mod log_copy;
pub(crate) mod log_find;
mod log_helpers;
mod log_tail;
mod open;
mod pace;
pub mod permission;
mod program;
mod proof;
mod question;
mod raw;
mod request;
pub mod resources;
mod secrets;
mod settle;
mod spawn;
mod stop;
mod supervisor;
mod texts;
mod translate;
pub mod tree;
mod unrecorded;
mod used_up;
mod watch;
mod watched;

/// The variable that names the file with what the hooks of a run need.
pub const HOOK: &str = "SEGNO_HOOK";

pub use adopt::living_agent;
pub use capture_process::keep_output;
pub(crate) use checkpoint::after_watched;
pub use end_run::EndedRun;
pub use end_run::Ending;
pub use feed::Feed;
pub use feed::Heard;
pub use feed::News;
pub use feed::Subscription;
pub use guard::GUARD;
pub use guard::guard_command;
pub(crate) use heartbeat::Heartbeat;
pub use interactive::Terminal;
pub(crate) use journal::token_use;
pub(crate) use log_copy::followed_log;
pub use program::ask_version;
pub use program::find_program;
pub use program::start_background;
pub use request::Limits;
pub use request::Report;
pub use request::Request;
pub(crate) use settle::STOPPED_TO_GO_ON;
pub(crate) use settle::Unseen;
pub use settle::outcome_word;
pub use stop::Ask;
pub use stop::Stop;
pub use translate::facts_of;
pub(crate) use translate::fit;
pub(crate) use translate::task_ended;
pub(crate) use watch::REST;
pub(crate) use watched::WatchedRun;
pub(crate) use watched::WatchedStanding;
