//! Whether a file that we wrote is as we wrote it, and if not, what somebody else changed.
//!
//! The main file of each family has two hashes in its extension member: one over all of it, one over all but the members
//! that the documents let other tools change. So no record beside the files is needed, and a file that was only laid out anew
//! is still ours.

use crate::EXTENSION;
use crate::agentforge;
use crate::family::Family;
use crate::node::Node;
use crate::packed::sha256;

/// The member of the extension with the hashes.
const SEAL: &str = "seal";

/// What another program changed in a file since we wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignEdit {
    /// Nothing.
    None,
    /// Where the session stands, and nothing else; this is their word for it.
    Status(String),
    /// Something else.
    Other,
}

/// A main file that has an extension of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The session that it shows.
    pub session_id: String,
    /// How often others had changed it when it was written.
    pub changed: u32,
    /// What was changed since.
    pub edit: ForeignEdit,
    /// How the session stood when we wrote it. It is the last file of its set: all others were written with it.
    pub status: Option<String>,
}

/// The members that another tool may change; the first one says where the session stands.
fn obeyed(family: Family) -> &'static [&'static str] {
    match family {
        Family::Prp => &[
            "status",
            "pause_reason",
            "paused_at",
            "resumed_at",
            "last_activity",
            "halt_reason",
            "completed_at",
        ],
        Family::AgentForge => &["state", "updated_at", "history"],
        Family::UltraCreate => &["status", "updated_at"],
        Family::GoTeam | Family::Ralph | Family::Atari => &[],
    }
}

/// The hashes of a document without them.
fn hashes(family: Family, node: &Node) -> (String, String) {
    let mut node = node.clone();
    if let Node::Map(members) = &mut node
        && let Some((_, Node::Map(own))) = members.iter_mut().find(|(name, _)| name == EXTENSION)
    {
        own.retain(|(name, _)| name != SEAL);
    }
    let hash = |node: &Node| sha256(&serde_json::to_vec(node).unwrap_or_default());
    let whole = hash(&node);
    if let Node::Map(members) = &mut node {
        members.retain(|(name, _)| !obeyed(family).contains(&name.as_str()));
    }
    (whole, hash(&node))
}

/// Puts the hashes into a main file.
pub(crate) fn seal(family: Family, node: &mut Node) {
    let (whole, rest) = hashes(family, node);
    let Node::Map(members) = node else { return };
    let Some((_, Node::Map(own))) = members.iter_mut().find(|(name, _)| name == EXTENSION) else { return };
    own.retain(|(name, _)| name != SEAL);
    let seal = [("whole".to_owned(), Node::Text(whole)), ("rest".to_owned(), Node::Text(rest))];
    own.push((SEAL.to_owned(), Node::Map(seal.into())));
}

/// Looks at a main file; none if it has nothing of ours in it.
pub fn look(family: Family, bytes: &[u8]) -> Option<Looked> {
    let node = match family {
        Family::AgentForge => agentforge::parse_node(bytes)?,
        _ => Node::read_json(bytes).ok()?,
    };
    let own = node.member(EXTENSION)?;
    let text = |node: Option<&Node>| match node {
        Some(Node::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let session_id = text(own.member("session_id"))?;
    let changed = match own.member("changed") {
        Some(Node::Number(number)) => number.parse().unwrap_or(0),
        _ => 0,
    };
    let seal = own.member(SEAL);
    let said = |name: &str| text(seal.and_then(|seal| seal.member(name)));
    let (whole, rest) = hashes(family, &node);
    let edit = if said("whole") == Some(whole) {
        ForeignEdit::None
    } else if said("rest") == Some(rest) && !obeyed(family).is_empty() {
        match text(node.member(obeyed(family)[0])) {
            Some(word) => ForeignEdit::Status(word),
            None => ForeignEdit::Other,
        }
    } else {
        ForeignEdit::Other
    };
    let status = text(own.member("state").and_then(|state| state.member("status")));
    Some(Looked { session_id, changed, edit, status })
}
