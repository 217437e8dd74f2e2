//! `.agentforge/sessions/<id>/session.yaml`.

mod read;
mod wire;
mod write;

use segno_core::Status;

pub(crate) use read::parse_node;
pub use read::read;
pub use write::file_name;
pub use write::write;

/// The folder in a project.
pub const FOLDER: &str = ".agentforge/sessions";

/// What the document calls where a session of ours stands: it knows four words.
pub(crate) fn word(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Paused | Status::Interrupted | Status::Halted => "paused",
        Status::Completed => "completed",
        Status::Aborted | Status::Failed => "aborted",
    }
}
