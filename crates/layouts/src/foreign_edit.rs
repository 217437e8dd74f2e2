//! Whether a file that we wrote is as we wrote it, and if not, what somebody else changed.
//!
//! The main file of each family has two hashes in its extension member: one over all of it, one over all but the members
//! that the documents let other tools change. Every other file has such a member too, with its session and the hashes. So no
//! record beside the files is needed, a set that is half written is no change by others, and a file that was only laid out
//! anew is still ours.

use segno_core::SessionId;
use sha2::Digest as _;
use sha2::Sha256;

use crate::EXTENSION;
use crate::agentforge;
use crate::family::Family;
use crate::fields::moment;
use crate::go_team;
use crate::node::Node;
use crate::node::write_text;
use crate::packed::hex;

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

/// The members of an entry in a registry of go-team that another tool may change.
const OBEYED_IN_ENTRY: &[&str] = &["status", "updated_at", "resumable"];

/// The hashes of a document without them. The order of members says nothing: not every program keeps it, so they are taken by
/// name.
fn hashes(obeyed: &[&str], node: &Node) -> (String, String) {
    let mut whole = Sha256::new();
    let mut rest = Sha256::new();
    let Node::Map(members) = node else {
        let mut text = Vec::new();
        node.write_canonical(&mut text, &|_| true);
        let hash = hex(Sha256::digest(text));
        return (hash.clone(), hash);
    };
    let is_hashed = |name: &str| name != SEAL;
    let mut members: Vec<&(String, Node)> = members.iter().collect();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    let (mut in_whole, mut in_rest) = (b'{', b'{');
    for (name, member) in members {
        let mut text = Vec::new();
        write_text(&mut text, name);
        text.push(b':');
        // Only our own member has hashes in it; a member of that name elsewhere is somebody's word like any other.
        let is_own = name == EXTENSION;
        member.write_canonical(&mut text, &|inner| !is_own || is_hashed(inner));
        whole.update([std::mem::replace(&mut in_whole, b',')]);
        whole.update(&text);
        if !obeyed.contains(&name.as_str()) {
            rest.update([std::mem::replace(&mut in_rest, b',')]);
            rest.update(&text);
        }
    }
    for (hash, before) in [(&mut whole, in_whole), (&mut rest, in_rest)] {
        hash.update(if before == b'{' { b"{}".as_slice() } else { b"}" });
    }
    (hex(whole.finalize()), hex(rest.finalize()))
}

/// Puts the hashes into a main file.
pub(crate) fn seal(family: Family, node: &mut Node) {
    match family {
        Family::AgentForge => {
            let mut alike = spelled_alike(node.clone());
            seal_with(obeyed(family), &mut alike);
            let sealed = alike.member(EXTENSION).and_then(|own| own.member(SEAL)).cloned();
            put_seal(node, sealed);
        }
        _ => seal_with(obeyed(family), node),
    }
}

/// Moments in the one spelling: a program that reads and writes YAML may make dates of them, which come back in its own.
fn spelled_alike(node: Node) -> Node {
    match node {
        Node::Text(text) => Node::Text(match moment(&text) {
            Some(at) => at.to_string(),
            None => text,
        }),
        Node::List(items) => Node::List(items.into_iter().map(spelled_alike).collect()),
        Node::Map(members) => {
            Node::Map(members.into_iter().map(|(name, member)| (name, spelled_alike(member))).collect())
        }
        other => other,
    }
}

/// The same for an entry of a registry.
pub(crate) fn seal_entry(node: &mut Node) {
    seal_with(OBEYED_IN_ENTRY, node);
}

/// Puts the name of the session and the hashes into a file that is not the main one.
pub(crate) fn mark(node: &mut Node, session: SessionId) {
    let Node::Map(members) = node else { return };
    members.retain(|(name, _)| name != EXTENSION);
    let own = Node::Map(vec![("session_id".to_owned(), Node::Text(session.to_string()))]);
    members.push((EXTENSION.to_owned(), own));
    seal_with(&[], node);
}

/// What a file of a set says of itself. It follows from the bytes alone, so whoever sees the same bytes again need not look
/// again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether it can be read at all.
    pub is_readable: bool,
    /// The name of the session in the words of its family.
    pub named: Option<String>,
    /// The session by our own member in it.
    pub session_id: Option<String>,
    /// How often others had changed it when it was written.
    pub changed: u32,
    /// How the session stood when we wrote it.
    pub status: Option<String>,
    /// What was changed since; a file that has nothing of ours is somebody else's as a whole.
    pub edit: ForeignEdit,
}

impl Facts {
    /// Looks at a file. A compressed one says what is in it.
    pub fn of(family: Family, name: &str, bytes: &[u8]) -> Self {
        let unpacked;
        let bytes = match name.ends_with(".gz").then(|| crate::packed::gunzip(name, bytes)) {
            None => Some(bytes),
            Some(Ok(bytes)) => {
                unpacked = bytes;
                Some(unpacked.as_slice())
            }
            Some(Err(_)) => None,
        };
        let is_yaml = name.ends_with(".yaml");
        let node = bytes.and_then(|bytes| match is_yaml {
            true => {
                agentforge::parse_node(bytes).filter(|node| matches!(node, Node::Map(_))).map(spelled_alike)
            }
            false => Node::read_json(bytes).ok(),
        });
        let Some((bytes, node)) = bytes.zip(node) else { return Self::unreadable() };
        let own = node.member(EXTENSION);
        let changed = match own.and_then(|own| own.member("changed")) {
            Some(Node::Number(number)) => number.parse().unwrap_or(0),
            _ => 0,
        };
        let base = name.rsplit('/').next().unwrap_or(name);
        let edit = match base.starts_with("cp-") {
            false => edit(obeyed(family), &node),
            true if crate::go_team::is_whole(bytes) => ForeignEdit::None,
            true => ForeignEdit::Other,
        };
        Self {
            is_readable: true,
            named: text(node.member("session_id")),
            session_id: text(own.and_then(|own| own.member("session_id"))),
            changed,
            status: text(own.and_then(|own| own.member("state")?.member("status"))),
            edit,
        }
    }

    fn unreadable() -> Self {
        Self {
            is_readable: false,
            named: None,
            session_id: None,
            changed: 0,
            status: None,
            edit: ForeignEdit::Other,
        }
    }

    /// The same of a main file; none if it has nothing of ours in it.
    pub fn looked(&self) -> Option<Looked> {
        let session_id = self.session_id.clone()?;
        let (changed, edit, status) = (self.changed, self.edit.clone(), self.status.clone());
        Some(Looked { session_id, changed, edit, status })
    }
}

/// Whether somebody else wrote to a log that is there. It is only ever added to, so what is there is the beginning of what
/// we would write now.
pub fn is_log_touched(present: &[u8], wanted: &[u8]) -> bool {
    !wanted.starts_with(present) && !is_cut(wanted, present)
}

/// Whether the oldest part of a long log is gone, and nothing else.
fn is_cut(wanted: &[u8], present: &[u8]) -> bool {
    let tail = &present[present.len().saturating_sub(2_000)..];
    present.len() > wanted.len() && wanted.windows(tail.len().max(1)).any(|window| window == tail)
}

fn seal_with(obeyed: &[&str], node: &mut Node) {
    let (whole, rest) = hashes(obeyed, node);
    let seal = [("whole".to_owned(), Node::Text(whole)), ("rest".to_owned(), Node::Text(rest))];
    put_seal(node, Some(Node::Map(seal.into())));
}

fn put_seal(node: &mut Node, seal: Option<Node>) {
    let Node::Map(members) = node else { return };
    let Some((_, Node::Map(own))) = members.iter_mut().find(|(name, _)| name == EXTENSION) else { return };
    own.retain(|(name, _)| name != SEAL);
    own.extend(seal.map(|seal| (SEAL.to_owned(), seal)));
}

/// Who wrote the entry of a session in a registry of go-team; none if it is not there, or has nothing of ours in it.
pub fn look_entry(registry: &[u8], id: &str) -> Option<ForeignEdit> {
    let registry = Node::read_json(registry).ok()?;
    let entry = go_team::entry_in(&registry, id)?;
    entry.member(EXTENSION)?;
    Some(edit(OBEYED_IN_ENTRY, entry))
}

/// What another program changed in a main file that it wrote without our member: a program may write only the members that
/// it knows itself. What it leaves out is no change; `ours` is what we would write. None if it cannot be read.
pub fn look_bare(
    family: Family,
    (name, theirs): (&str, &[u8]),
    ours: &[u8],
    session: SessionId,
    changed: u32,
) -> Option<Looked> {
    let read = |bytes: &[u8]| match name.ends_with(".yaml") {
        true => agentforge::parse_node(bytes),
        false => Node::read_json(bytes).ok(),
    };
    let (theirs, ours) = (read(theirs)?, read(ours)?);
    let edit = bare_edit(obeyed(family), &theirs, &ours);
    let word = obeyed(family).first().and_then(|name| text(theirs.member(name)));
    let status = word.and_then(|word| crate::status_of(family, &word));
    let status = status.map(|status| status.as_str().to_owned());
    Some(Looked { session_id: session.to_string(), changed, edit, status })
}

/// The same for the entry of a session in a registry; none if it is not there, or has something of ours in it.
pub fn look_bare_entry(theirs: &[u8], ours: &[u8], id: &str) -> Option<ForeignEdit> {
    let (theirs, ours) = (Node::read_json(theirs).ok()?, Node::read_json(ours).ok()?);
    let theirs = go_team::entry_in(&theirs, id).filter(|entry| entry.member(EXTENSION).is_none())?;
    Some(bare_edit(OBEYED_IN_ENTRY, theirs, go_team::entry_in(&ours, id)?))
}

fn bare_edit(obeyed: &[&str], theirs: &Node, ours: &Node) -> ForeignEdit {
    let Node::Map(members) = theirs else { return ForeignEdit::Other };
    let mut members = members.iter().filter(|(name, _)| !obeyed.contains(&name.as_str()));
    if !members.all(|(name, member)| says_the_same(member, ours.member(name))) {
        return ForeignEdit::Other;
    }
    let word = |node: &Node| obeyed.first().and_then(|name| text(node.member(name)));
    match word(theirs) {
        Some(said) if Some(&said) != word(ours).as_ref() => ForeignEdit::Status(said),
        _ => ForeignEdit::None,
    }
}

/// Whether a value says nothing that ours does not. Nothing is the same as a member that is not there, and a moment is the
/// same however it is spelled.
fn says_the_same(theirs: &Node, ours: Option<&Node>) -> bool {
    match (theirs, ours) {
        (Node::Null, None | Some(Node::Null)) => true,
        (Node::Map(members), Some(ours @ Node::Map(_))) => {
            members.iter().all(|(name, member)| says_the_same(member, ours.member(name)))
        }
        (Node::List(theirs), Some(Node::List(ours))) => {
            theirs.len() == ours.len()
                && theirs.iter().zip(ours).all(|(theirs, ours)| says_the_same(theirs, Some(ours)))
        }
        (Node::Text(theirs), Some(Node::Text(ours))) => {
            theirs == ours || moment(theirs).is_some_and(|at| Some(at) == moment(ours))
        }
        (Node::Number(theirs), Some(Node::Number(ours))) => {
            theirs == ours || theirs.parse::<f64>().is_ok_and(|number| ours.parse() == Ok(number))
        }
        (theirs, Some(ours)) => theirs == ours,
        (_, None) => false,
    }
}

/// Who wrote a document, by the hashes in it. The first of the obeyed members says where the session stands.
fn edit(obeyed: &[&str], node: &Node) -> ForeignEdit {
    let seal = node.member(EXTENSION).and_then(|own| own.member(SEAL));
    let said = |name: &str| text(seal.and_then(|seal| seal.member(name)));
    let (whole, rest) = hashes(obeyed, node);
    if said("whole") == Some(whole) {
        return ForeignEdit::None;
    }
    match obeyed.first().and_then(|name| text(node.member(name))) {
        Some(word) if said("rest") == Some(rest) => ForeignEdit::Status(word),
        _ => ForeignEdit::Other,
    }
}

fn text(node: Option<&Node>) -> Option<String> {
    match node {
        Some(Node::Text(text)) => Some(text.clone()),
        _ => None,
    }
}
