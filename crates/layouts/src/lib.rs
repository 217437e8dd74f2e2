//! The file families of other session managers: which one a set of files is, what sessions it holds, and what its files
//! are for a session of ours. Bytes in, values out: reading and writing them is the engine's.
//!
//! Each family has a folder: `wire` has the foreign shapes, `read` turns files into sessions, `write` a session into files.
//! A document of the family says what its files must be; its words about what is wrong with them are used as they are. What
//! a file has that nobody knows stays in it.

pub mod agentforge;
pub mod atari;
mod came;
mod family;
mod fields;
mod files;
mod foreign_edit;
mod found;
pub mod go_team;
pub mod node;
mod packed;
pub mod prp;
pub mod ralph;
mod snapshot;
pub mod ultra_create;
pub mod yaml;

pub use came::Came;
pub use came::came;
pub use family::Family;
pub use family::recognise;
pub use files::Damage;
pub use files::FileSet;
pub use files::MOST_FILE;
pub use files::MOST_FILES;
pub use foreign_edit::Facts;
pub use foreign_edit::ForeignEdit;
pub use foreign_edit::Looked;
pub use foreign_edit::is_log_touched;
pub use foreign_edit::look_bare;
pub use foreign_edit::look_bare_entry;
pub use foreign_edit::look_entry;
pub use found::Claimed;
pub use found::Imported;
pub use found::ImportedSession;
pub use packed::gunzip;
pub use packed::gzip;
pub use snapshot::Snapshot;

use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::Uid;

/// The one member that our own fields travel in.
pub const EXTENSION: &str = "segno";

/// Reads the sessions of a set of files. `now` tells future moments.
///
/// # Errors
/// If a file that the session cannot do without is not what it should be.
pub fn read(family: Family, files: &FileSet, now: Timestamp) -> Result<Imported, Damage> {
    let mut imported = match family {
        Family::Prp => prp::read(files, now),
        Family::AgentForge => agentforge::read(files, now),
        Family::GoTeam => go_team::read(files, now),
        Family::UltraCreate => ultra_create::read(files, now),
        Family::Ralph => ralph::read(files, now),
        Family::Atari => atari::read(files, now),
    }?;
    for session in imported.sessions.iter_mut().filter(|_| family.is_written()) {
        came::remember(family, files, session);
    }
    Ok(imported)
}

/// The file of a family that shows where a session stands.
pub fn main_file(family: Family, snapshot: &Snapshot<'_>) -> String {
    match family {
        Family::Prp => "loop-state.json".to_owned(),
        Family::AgentForge => agentforge::file_name(snapshot),
        Family::GoTeam => format!("{}/state.json", go_team::session_name(snapshot)),
        Family::UltraCreate => ultra_create::CURRENT.to_owned(),
        Family::Ralph | Family::Atari => String::new(),
    }
}

/// The name that a session of ours has in the files of a family, if it came without one.
pub fn own_name(family: Family, session_id: SessionId, uid: Uid) -> String {
    match family {
        Family::GoTeam => {
            let uid = uid.to_string();
            format!("session-{}", &uid[uid.len() - 8..])
        }
        Family::Prp | Family::UltraCreate => uid.to_string(),
        Family::AgentForge | Family::Ralph | Family::Atari => session_id.to_string(),
    }
}

/// The name that a session came with from a family.
pub fn foreign_name(family: Family, state: &State) -> Option<&str> {
    state.workflow_state.as_ref()?.get(family.as_str())?.get("id")?.as_str()
}

/// Where a session stands by the word of a family.
pub fn status_of(family: Family, word: &str) -> Option<segno_core::Status> {
    // Of several that have one word, the first is the plain one.
    segno_core::Status::ALL.into_iter().find(|status| word_of(family, *status) == Some(word))
}

/// The word of a family for where a session stands; none if it is only read.
pub fn word_of(family: Family, status: segno_core::Status) -> Option<&'static str> {
    match family {
        Family::Prp => Some(prp::word(status)),
        Family::AgentForge => Some(agentforge::word(status)),
        Family::GoTeam => Some(go_team::word(status)),
        Family::UltraCreate => Some(ultra_create::word(status)),
        Family::Ralph | Family::Atari => None,
    }
}

/// The names of the files that [`write()`] makes for a session.
///
/// # Errors
/// As for [`write()`].
pub fn file_names(family: Family, snapshot: &Snapshot<'_>) -> Result<Vec<String>, String> {
    match family {
        // Its files hold every call; making them twice would be most of the work.
        Family::UltraCreate => Ok(ultra_create::file_names(snapshot)),
        Family::Prp | Family::AgentForge | Family::GoTeam | Family::Ralph | Family::Atari => {
            let files = write(family, snapshot, &FileSet::default())?;
            Ok(files.into_iter().map(|(name, _)| name).collect())
        }
    }
}

/// The files of a family for a session, in the order in which they are to be written; `existing` are those that are there.
/// The same session and the same files give the same bytes.
///
/// # Errors
/// If the family has no words for where the session stands, or is only read.
pub fn write(
    family: Family,
    snapshot: &Snapshot<'_>,
    existing: &FileSet,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    match family {
        Family::Prp => prp::write(snapshot, existing),
        Family::AgentForge => Ok(agentforge::write(snapshot, existing)),
        Family::GoTeam => Ok(go_team::write(snapshot, existing)),
        Family::UltraCreate => Ok(ultra_create::write(snapshot, existing)),
        Family::Ralph | Family::Atari => Err(format!("{} is only read", family.title())),
    }
}
