//! `.prp-session/`: the loop of the PRP document and of its siblings.

mod detect;
mod moment;
mod read;
mod record;
mod status_log;
mod wire;
mod write;

use segno_core::Status;

pub use detect::Detected;
pub use detect::detect;
pub use read::read;
pub use record::Record;
pub use write::write;

/// The folder in a project.
pub const FOLDER: &str = ".prp-session";

/// What the document calls where a session of ours stands. It has no word for one that failed.
pub(crate) fn word(status: Status) -> &'static str {
    match status {
        Status::Active => "running",
        Status::Paused => "paused",
        Status::Interrupted => "suspended",
        Status::Halted => "halted",
        Status::Completed => "completed",
        Status::Aborted | Status::Failed => "aborted",
    }
}

/// What a word of the document is here.
fn status(word: &str) -> Option<Status> {
    Some(match word {
        "created" | "running" => Status::Active,
        "paused" => Status::Paused,
        "suspended" => Status::Interrupted,
        "halted" => Status::Halted,
        "completed" => Status::Completed,
        "aborted" => Status::Aborted,
        _ => return None,
    })
}
