//! Forgetting: takes a secret that slipped in, or the texts of a session, out of everything that segno keeps.
//!
//! First everything is looked through and told; only then anything is changed. Each step may be done again, so that one
//! that was cut short is finished by asking for the same once more.

mod apply;
mod files;
mod inspect;

use std::collections::BTreeMap;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_redact::forget::Forget;
use serde::Serialize;

pub use crate::usage::Locations;

/// What is asked for.
#[derive(Debug)]
pub struct Wish {
    /// What is to be forgotten.
    pub what: Forget,
    /// In which session only. All texts can be forgotten of one session only.
    pub session: Option<SessionId>,
    /// Where things are that belong to no session.
    pub locations: Locations,
    /// Where what lasts for a while is kept: spool, captures, logs.
    pub state: PathBuf,
}

/// Where it is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// Sessions whose events hold it.
    pub sessions: Vec<FoundSession>,
    /// Snapshots whose files hold it.
    pub snapshots: Vec<FoundSnapshot>,
    /// Transcripts of agents that were kept.
    pub transcripts: Vec<PathBuf>,
    /// Other files of ours.
    pub files: Vec<FoundFile>,
    /// Rows of the store that hold it, by table.
    pub rows: BTreeMap<String, u64>,
    /// What holds it, or may hold it, and is not ours to change.
    pub beyond: Vec<Beyond>,
}

/// A session whose events hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundSession {
    /// Which.
    pub session_id: SessionId,
    /// Its project.
    pub project: String,
    /// How many events.
    pub events: u64,
}

/// A snapshot whose files hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundSnapshot {
    /// The directory that it is kept in.
    pub directory: PathBuf,
    /// Its name.
    pub name: String,
    /// The files; none if the whole snapshot goes.
    pub paths: Vec<PathBuf>,
}

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// It is written anew from the store.
    Rewritten,
    /// Stars are written over what goes.
    Blanked,
    /// It is removed.
    Removed,
}

/// A file of ours that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundFile {
    /// Where.
    pub path: PathBuf,
    /// What is done with it.
    pub remedy: Remedy,
}

/// Something that holds it, or may, and that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Beyond {
    /// Where, if that is known.
    pub path: Option<PathBuf>,
    /// What it is.
    pub what: String,
}

impl Findings {
    /// Whether there is anything to be done.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.snapshots.is_empty()
            && self.files.is_empty()
            && self.transcripts.is_empty()
            && self.rows.is_empty()
    }

    fn beyond(&mut self, path: impl Into<Option<PathBuf>>, what: impl Into<String>) {
        let beyond = Beyond { path: path.into(), what: what.into() };
        if !self.beyond.contains(&beyond) {
            self.beyond.push(beyond);
        }
    }
}
