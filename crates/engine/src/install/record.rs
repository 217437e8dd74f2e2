//! What was put into which file, so that it can be taken out to the byte.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;

use segno_files::Access;
use segno_files::Links;
use serde::Deserialize;
use serde::Serialize;

/// Largest such note.
const LARGEST: u64 = 1024 * 1024;

/// What a file is to us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Settings, or a text, of somebody else's with a piece of ours.
    #[default]
    Shared,
    /// All of it is ours.
    Whole,
}

/// What was done to one file of settings. It holds nothing of what stands there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) agent: String,
    pub(super) path: PathBuf,
    /// The file was made for ours.
    pub(super) created: bool,
    /// The folders that were made for it, the innermost first.
    pub(super) folders: Vec<PathBuf>,
    /// The hash of the file with ours in it.
    pub(super) digest: String,
    /// Where ours stands in it.
    pub(super) ranges: Vec<Range<usize>>,
    /// The lists and objects that were made for ours.
    pub(super) made: Vec<String>,
    /// What the file is to us.
    #[serde(default)]
    pub(super) kind: Kind,
    /// A file that was made beside the settings.
    #[serde(default)]
    pub(super) beside: Option<PathBuf>,
}

pub(super) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn folder(state: &Path) -> PathBuf {
    state.join("installed")
}

/// Where it is written down for one file.
pub(super) fn path(state: &Path, agent: &str, path: &Path) -> PathBuf {
    let name = digest(&path.to_string_lossy());
    folder(state).join(format!("{agent}-{}.json", &name[..16]))
}

/// All notes of one agent.
pub(super) fn of_agent(state: &Path, agent: &str) -> Vec<(PathBuf, Record)> {
    let entries = std::fs::read_dir(folder(state)).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut records: Vec<(PathBuf, Record)> =
        paths.filter_map(|path| Some((path.clone(), Record::read(&path)?))).collect();
    records.retain(|(_, record)| record.agent == agent);
    records.sort_by(|one, other| one.1.path.cmp(&other.1.path));
    records
}

/// Whether ours is in another file of settings of the same agent too.
pub(super) fn others(state: &Path, own: &Path, agent: &str) -> bool {
    of_agent(state, agent).iter().any(|(path, record)| path != own && record.kind == Kind::Shared)
}

impl Record {
    pub(super) fn read(path: &Path) -> Option<Self> {
        let bytes = segno_files::read_bounded(path, LARGEST, Links::Refuse).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            segno_files::private_directory(folder)?;
        }
        segno_files::replace(path, &serde_json::to_vec(self)?, Access::Private)
    }
}
