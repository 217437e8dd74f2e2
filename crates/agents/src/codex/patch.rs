//! The headers of a patch in Codex's own format.

use crate::event::AgentEvent;
use crate::event::ChangeKind;

/// The files a patch touches.
pub(super) fn changes(patch: &str, call_id: &str) -> Vec<AgentEvent> {
    let mut events: Vec<AgentEvent> = Vec::new();
    for line in patch.lines() {
        let Some(header) = line.strip_prefix("*** ") else { continue };
        let Some((word, path)) = header.split_once(": ") else { continue };
        let change = match word {
            "Add File" => ChangeKind::Created,
            "Update File" => ChangeKind::Modified,
            "Delete File" => ChangeKind::Deleted,
            "Move to" => {
                if let Some(AgentEvent::FileChanged { change, moved_to, .. }) = events.last_mut() {
                    *change = ChangeKind::Moved;
                    *moved_to = Some(path.trim().to_owned());
                }
                continue;
            }
            _ => continue,
        };
        events.push(AgentEvent::FileChanged {
            path: path.trim().to_owned(),
            change,
            call_id: Some(call_id.to_owned()),
            moved_to: None,
        });
    }
    events
}
