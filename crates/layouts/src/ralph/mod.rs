//! `.ralph/` of Ralph for Claude Code: read, so that its sessions can be taken over.

mod read;

pub use read::read;

/// The folder in a project.
pub const FOLDER: &str = ".ralph";
