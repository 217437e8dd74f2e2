//! What the files of a session were when it was taken over. Until we write them they are as they came, and ask for nothing;
//! one that changes without us was changed by somebody; and what was not taken in from them must not be lost with them.

use segno_core::State;
use segno_core::limits;
use serde_json::Map;
use serde_json::Value;

use crate::family::Family;
use crate::files::FileSet;
use crate::found::ImportedSession;
use crate::go_team;
use crate::node::Node;
use crate::packed::sha256;

/// The member of what an import keeps with the hashes of the files, by their names in the session's folder.
const CAME: &str = "came";
/// The one with the names of those that were not taken in whole.
const PARTLY: &str = "partly";
/// How the words about something end that was not taken in.
const LEFT_OUT: &str = "left out";

/// How much of a file that is as it came is in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// All that a session has a place for.
    Whole,
    /// Some of it was left out, or all of it.
    Partly,
}

/// Keeps with a session what its files were.
pub(crate) fn remember(family: Family, files: &FileSet, session: &mut ImportedSession) {
    let Some(kept) = session.state.workflow_state.as_ref().and_then(|all| all.get(family.as_str()).cloned())
    else {
        return;
    };
    let Value::Object(mut kept) = kept else { return };
    let mut hashes = Map::new();
    let mut partly = Vec::new();
    for name in files.names().filter(|name| is_of(family, name, session)) {
        let short = short(name);
        let hash = match (family, name) {
            (Family::GoTeam, go_team::REGISTRY) => {
                files.get(name).and_then(|bytes| entry_hash(bytes, &session.foreign_id))
            }
            _ => files.hash(name),
        };
        hashes.extend(hash.map(|hash| (short.to_owned(), Value::from(hash))));
        let about = format!("{name}: ");
        if session.warnings.iter().any(|said| said.starts_with(&about) && said.ends_with(LEFT_OUT)) {
            partly.push(Value::from(short));
        }
    }
    kept.insert(CAME.to_owned(), Value::Object(hashes));
    if !partly.is_empty() {
        kept.insert(PARTLY.to_owned(), Value::Array(partly));
    }
    let mut all = session.state.workflow_state.clone().unwrap_or_default();
    all[family.as_str()] = Value::Object(kept);
    // With so many files that there is no room for it, they count as they did before they were remembered.
    if limits::json("workflow state", &all).is_ok() {
        session.state.workflow_state = Some(all);
    }
}

/// How a file of a session that is there came with it; none if it did not come, or is another one by now. Of a session that
/// was taken over before that was kept, every file counts as it came.
pub fn came(family: Family, state: &State, name: &str, bytes: &[u8]) -> Option<Came> {
    let kept = state.workflow_state.as_ref()?.get(family.as_str())?;
    let id = kept.get("id")?.as_str()?;
    let Some(hashes) = kept.get(CAME) else { return Some(Came::Whole) };
    let hash = match (family, name) {
        (Family::GoTeam, go_team::REGISTRY) => entry_hash(bytes, id)?,
        _ => sha256(bytes),
    };
    let name = short(name);
    if hashes.get(name).and_then(Value::as_str) != Some(hash.as_str()) {
        return None;
    }
    let partly = kept.get(PARTLY).and_then(Value::as_array);
    let is_partly = partly.into_iter().flatten().any(|one| one.as_str() == Some(name));
    Some(if is_partly { Came::Partly } else { Came::Whole })
}

/// A registry is everybody's: what counts of it is the entry of a session.
fn entry_hash(registry: &[u8], id: &str) -> Option<String> {
    let entry = go_team::entry_in(&Node::read_json(registry).ok()?, id)?.clone();
    let mut text = Vec::new();
    entry.write_canonical(&mut text, &|_| true);
    Some(sha256(&text))
}

fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether a file of a set is of this session.
fn is_of(family: Family, name: &str, session: &ImportedSession) -> bool {
    match name.split_once('/') {
        Some((folder, _)) => folder == session.foreign_id,
        None if family == Family::UltraCreate => {
            let own = format!("session_{}.json", session.foreign_id);
            !name.starts_with("session_") || name.starts_with(&own)
        }
        None => true,
    }
}
