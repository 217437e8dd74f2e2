//! A scripted agent: a program that commits the faults no real agent commits on demand.
//!
//! The program `scripted-agent` plays [`Step`]s. It takes them from the file that `--script` or the variable
//! `SCRIPTED_AGENT` names, or from `--steps` itself, as a JSON list; all other arguments are left for the steps to use,
//! so it can stand in for a real agent behind that agent's own command line.
//!
//! In all texts `${session}` stands for the id of the conversation (from `--session-id`, `--resume` or `resume`, else
//! a fresh one), `${pid}`, `${cwd}`, `${stdin}` (what a `stdin` step read) and `${env:NAME}` for what they say.
//!
//! ```
//! use segno_testkit::{lines::claude, scripted::Step};
//!
//! let steps = [
//!     Step::Json(claude::init("${session}")),
//!     Step::Raw("{\"type\":\"assist".to_owned()),
//!     Step::Exit(0),
//! ];
//! let json = serde_json::to_string(&steps).unwrap();
//! assert_eq!(serde_json::from_str::<Vec<Step>>(&json).unwrap(), steps);
//! ```
//!
//! Whatever the script says, the program ends after 120 seconds, or as many as `SCRIPTED_AGENT_SECONDS` says. Exit
//! codes of its own: 97 for a wait in vain, 98 for the end of its time, 99 for a script it cannot play.

mod children;
mod hooks;
mod output;
mod play;
mod scene;
mod signals;
mod step;

pub use play::main;
pub use step::How;
pub use step::Shape;
pub use step::SignalName;
pub use step::Step;
