//! `checkpoints/`: a registry of sessions, and a folder for each.

mod checkpoint;
mod read;
mod then;
mod wire;
mod write;

use segno_core::Status;

use crate::node::Node;

pub use read::read;
pub use then::Then;
pub use write::checkpoints_to_make;
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

/// The entry of a session in a registry.
pub(crate) fn entry_in<'a>(registry: &'a Node, id: &str) -> Option<&'a Node> {
    let Some(Node::List(entries)) = registry.member("sessions") else { return None };
    entries.iter().find(|entry| matches!(entry.member("id"), Some(Node::Text(known)) if known == id))
}

/// Whether a file is a checkpoint file that we made.
pub fn is_checkpoint_of_ours(name: &str, bytes: &[u8]) -> bool {
    let own = || Node::read_json(bytes).ok()?.member(crate::EXTENSION)?.member("checkpoint").cloned();
    name.starts_with("cp-") && own().is_some()
}

/// A registry without the entry that shows a session of ours; none if it has none, and nothing at all if it was the only
/// entry and the registry says nothing else.
pub fn registry_without(registry: &[u8], session_id: &str) -> Option<Option<Vec<u8>>> {
    let text = |node: &Node, name: &str| match node.member(name) {
        Some(Node::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let Node::Map(mut members) = Node::read_json(registry).ok()? else { return None };
    let Some((_, Node::List(entries))) = members.iter_mut().find(|(name, _)| name == "sessions") else {
        return None;
    };
    let is_its = |entry: &Node| {
        entry.member(crate::EXTENSION).and_then(|own| text(own, "session_id")).as_deref() == Some(session_id)
    };
    let gone = text(entries.iter().find(|entry| is_its(entry))?, "id");
    entries.retain(|entry| !is_its(entry));
    let left = entries.last().and_then(|entry| text(entry, "id"));
    const OURS: [&str; 3] = ["version", "sessions", "last_active_session"];
    if left.is_none() && members.iter().all(|(name, _)| OURS.contains(&name.as_str())) {
        return Some(None);
    }
    for (name, last) in &mut members {
        if name == "last_active_session" && matches!(last, Node::Text(last) if Some(&*last) == gone.as_ref())
        {
            *last = left.clone().map_or(Node::Null, Node::Text);
        }
    }
    Some(Some(Node::Map(members).to_json()))
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
