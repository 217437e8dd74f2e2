//! Which version an agent's program has, remembered: asking costs its whole start.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use segno_core::SessionId;
use segno_files::Access;
use segno_files::Links;
use serde::Deserialize;
use serde::Serialize;

use crate::Engine;

/// How many programs are remembered.
const MOST: usize = 50;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    stamp: String,
    version: String,
}

/// The version of a program, if it is the same file as when it was last asked.
pub(super) fn known(state: &Path, program: &Path) -> Option<String> {
    let entry = read(state).remove(&program.display().to_string())?;
    (Some(entry.stamp) == stamp(program)).then_some(entry.version)
}

impl Engine {
    /// Remembers which version ran: the agent said so itself, or it is asked now, when nobody waits for it to start.
    pub fn learn_version(
        &self,
        session: SessionId,
        agent: &str,
        program: &Path,
        state: &Path,
        environment: &[(OsString, OsString)],
    ) {
        let said = self.load(session).ok().and_then(|loaded| loaded.state.run?.version);
        let version = said.or_else(|| {
            let agent = segno_agents::by_name(agent)?;
            crate::run::ask_version(agent.as_ref(), program, environment)
        });
        if let Some(version) = version {
            remember(state, program, &version);
        }
    }
}

/// Remembers a version.
fn remember(state: &Path, program: &Path, version: &str) {
    let Some(stamp) = stamp(program) else { return };
    let mut entries = read(state);
    let entry = Entry { stamp, version: version.to_owned() };
    if entries.insert(program.display().to_string(), entry.clone()).as_ref() == Some(&entry) {
        return;
    }
    while entries.len() > MOST {
        entries.pop_first();
    }
    // If it cannot be kept, the program is asked again next time.
    if let Ok(text) = serde_json::to_vec(&entries)
        && segno_files::private_directory(state).is_ok()
    {
        let _ = segno_files::replace(&state.join("versions.json"), &text, Access::Private);
    }
}

fn read(state: &Path) -> BTreeMap<String, Entry> {
    segno_files::read_bounded(&state.join("versions.json"), 1 << 20, Links::Refuse)
        .ok()
        .flatten()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

/// Changes when the file does, through links too.
fn stamp(program: &Path) -> Option<String> {
    let meta = std::fs::metadata(program).ok()?;
    Some(format!("{}-{}-{}-{}", meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
}
