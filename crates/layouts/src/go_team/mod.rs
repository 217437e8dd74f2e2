//! `checkpoints/`: a registry of sessions, and a folder for each.

mod checkpoint;
mod read;
mod wire;
mod write;

use segno_core::Status;

pub use read::read;
pub use write::session_name;
pub use write::write;

/// The folder in a project, as the document's storage section has it.
pub const FOLDER: &str = ".claude/agents/microai/teams/go-team/checkpoints";
/// The shorter one that its other sections use.
pub const SHORT_FOLDER: &str = "checkpoints";
/// The registry.
pub const REGISTRY: &str = "sessions.json";

/// Whether a checkpoint file is as it was written: its checksum is over itself.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    let file: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(bytes).unwrap_or_default();
    file.get("checksum").and_then(|said| said.as_str()) == Some(checkpoint::checksum(&file).as_str())
}

/// What the document calls where a session of ours stands.
pub(crate) fn word(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Paused | Status::Halted => "paused",
        Status::Interrupted => "interrupted",
        Status::Completed => "completed",
        Status::Aborted => "abandoned",
        Status::Failed => "failed",
    }
}
