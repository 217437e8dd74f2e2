//! `~/.ultra-create/sessions/`: the present session, checkpoints and archived sessions, each with a compressed copy.

mod config;
mod read;
mod wire;
mod write;

use segno_core::Status;

pub use config::CONFIG;
pub use config::CONFIG_FOLDERS;
pub use config::Config;
pub use config::Hooks;
pub use read::read;
pub use write::file_names;
pub use write::write;

/// The folder in the user's home.
pub const FOLDER: &str = ".ultra-create/sessions";
/// The present session.
pub const CURRENT: &str = "current-session.json";

/// What the document calls where a session of ours stands: it knows four words, and none for one that was given up.
pub(crate) fn word(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Paused | Status::Halted => "paused",
        Status::Completed | Status::Aborted => "completed",
        Status::Interrupted | Status::Failed => "crashed",
    }
}
