//! What one iteration showed: its tool calls, its words, its documents and its tree.

pub(super) mod calls;
pub(super) mod claims;
pub(super) mod documents;
pub(super) mod iteration;
pub(super) mod measure;
