//! Where agents keep their conversations, and which there are.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::ConversationLog;
use segno_agents::Keeping;
use segno_agents::Lineage;
use segno_agents::LogLocation;
use segno_store::index::FileNote;

use super::lines;
use crate::Engine;

/// Most entries of directories that are looked at; more are nobody's.
const ENTRIES: usize = 500_000;
/// How deep a directory that somebody names is looked into.
const DEEPEST: usize = 8;

/// A file with a conversation, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct FoundFile {
    pub(super) agent: &'static str,
    pub(super) path: PathBuf,
    /// The conversation whose directory of sub-agents it is in.
    pub(super) below: Option<String>,
    /// The directory of its project, where the agent says so beside it.
    pub(super) project: Option<String>,
    pub(super) stat: Stat,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) device: i64,
    pub(super) inode: i64,
    pub(super) size: i64,
    pub(super) modified_ns: i64,
    /// When it came to be, as far as the system tells.
    pub(super) born_ns: i64,
}

impl Stat {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let modified_ns = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
        let born = meta.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        Some(Self {
            device: i64::try_from(meta.dev()).unwrap_or(0),
            inode: i64::try_from(meta.ino()).unwrap_or(0),
            size: i64::try_from(meta.len()).unwrap_or(i64::MAX),
            modified_ns,
            born_ns: born.map_or(modified_ns, |at| i64::try_from(at.as_nanos()).unwrap_or(modified_ns)),
        })
    }

    /// What is kept of a file to know it again while it does not change.
    pub(super) fn note(&self) -> FileNote {
        FileNote {
            device: self.device,
            inode: self.inode,
            size: self.size,
            modified_ns: self.modified_ns,
            ..FileNote::default()
        }
    }
}

/// The log of an agent, by its name.
pub(super) fn log_of(agent: &str) -> Option<&'static dyn ConversationLog> {
    segno_agents::by_name(agent)?.conversation_log()
}

/// Where the conversations of an agent are on this machine.
pub(super) enum Place {
    Files(LogLocation, PathBuf),
    Database(segno_agents::KeptDatabase, PathBuf),
}

pub(super) fn place(engine: &Engine, agent: &str) -> Option<Place> {
    let variable = |name: &str| engine.options.variables.get(name).cloned();
    match log_of(agent)?.keeping()? {
        Keeping::Files(files) => {
            let root = files.location.root(&variable).map(PathBuf::from).filter(|root| root.is_absolute())?;
            Some(Place::Files(files.location, root))
        }
        Keeping::Database(database) => {
            let path = database.path(&variable).map(PathBuf::from).filter(|path| path.is_absolute())?;
            Some(Place::Database(database, path))
        }
    }
}

/// The files of an agent below its own directory.
pub(super) fn files(agent: &'static str, location: &LogLocation, root: &Path) -> Vec<FoundFile> {
    let mut found = Vec::new();
    let mut left = ENTRIES;
    walk(agent, location, root, location.depth, None, &mut left, &mut found);
    found
}

fn walk(
    agent: &'static str,
    location: &LogLocation,
    dir: &Path,
    depth: usize,
    project: Option<&String>,
    left: &mut usize,
    found: &mut Vec<FoundFile>,
) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(*left).collect();
    *left = left.saturating_sub(paths.len());
    paths.sort_unstable();
    // One that is not named after its project says in a file which it is.
    let said = std::fs::read_to_string(dir.join(".project_root")).ok().map(|text| text.trim().to_owned());
    let project = said.as_ref().or(project);
    for path in paths {
        if depth > 0 {
            if path.is_dir() {
                walk(agent, location, &path, depth - 1, project, left, found);
            }
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if location.is_log(name) {
            put(agent, &path, None, project.cloned(), found);
        } else if let Some(folder) = location.sub_agents
            && let Ok(below) = std::fs::read_dir(path.join(folder))
        {
            let conversation = name.to_owned();
            let mut subs: Vec<PathBuf> = below.flatten().map(|entry| entry.path()).take(*left).collect();
            *left = left.saturating_sub(subs.len());
            subs.sort_unstable();
            for sub in subs.iter().filter(|sub| sub.extension().is_some_and(|end| end == "jsonl")) {
                put(agent, sub, Some(conversation.clone()), project.cloned(), found);
            }
        }
    }
}

fn put(
    agent: &'static str,
    path: &Path,
    below: Option<String>,
    project: Option<String>,
    found: &mut Vec<FoundFile>,
) {
    if let Some(stat) = Stat::of(path).filter(|stat| stat.size > 0) {
        found.push(FoundFile { agent, path: path.to_owned(), below, project, stat });
    }
}

/// Every log in a file or directory that somebody names, whichever agent's it is.
pub(super) fn anywhere(path: &Path, agents: &[&'static str]) -> Vec<FoundFile> {
    let mut found = Vec::new();
    let mut left = ENTRIES;
    look(path, agents, DEEPEST, &mut left, &mut found);
    found
}

fn look(path: &Path, agents: &[&'static str], depth: usize, left: &mut usize, found: &mut Vec<FoundFile>) {
    if path.is_dir() {
        let Ok(entries) = std::fs::read_dir(path) else { return };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(*left).collect();
        *left = left.saturating_sub(paths.len());
        paths.sort_unstable();
        let deeper = depth.checked_sub(1);
        for path in paths.iter().filter(|path| !path.is_symlink()) {
            if let Some(depth) = deeper {
                look(path, agents, depth, left, found);
            }
        }
        return;
    }
    if path.extension().is_none_or(|end| end != "jsonl") {
        return;
    }
    let Some(agent) = agent_of(&lines::head_of(path)).filter(|agent| agents.contains(agent)) else { return };
    let sub_agents = log_of(agent).and_then(|log| log.location()).and_then(|location| location.sub_agents);
    let parent = path.parent();
    let is_below = sub_agents.is_some_and(|name| {
        parent.and_then(Path::file_name).is_some_and(|folder| folder.to_str() == Some(name))
    });
    let below = parent.filter(|_| is_below).and_then(Path::parent).and_then(Path::file_name);
    let below = below.and_then(|name| name.to_str()).map(ToOwned::to_owned);
    let project = parent.and_then(Path::parent).map(|folder| folder.join(".project_root"));
    let project =
        project.and_then(|file| std::fs::read_to_string(file).ok()).map(|text| text.trim().to_owned());
    put(agent, path, below, project, found);
}

/// Whose log a file is that begins like this.
pub(super) fn agent_of(head: &[u8]) -> Option<&'static str> {
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |word: &str| memchr::memmem::find(first, word.as_bytes()).is_some();
    let says = |agent: &str| log_of(agent).map(|log| log.lineage(head)).unwrap_or_default();
    let agents = segno_agents::CODING;
    let known = |name: &str| agents.iter().find(|agent| **agent == name).copied();
    if has("\"session_meta\"") && says("codex").id.is_some() {
        known("codex")
    } else if has("\"projectHash\"") && says("gemini").id.is_some() {
        known("gemini")
    } else if says("claude").root.is_some() {
        known("claude")
    } else {
        None
    }
}

/// What the beginning of a file says of its conversation; its name says it where nothing else does.
pub(super) fn lineage(file: &FoundFile) -> Lineage {
    let head = lines::head_of(&file.path);
    let mut lineage = log_of(file.agent).map(|log| log.lineage(&head)).unwrap_or_default();
    let stem = file.path.file_stem().and_then(|stem| stem.to_str()).map(ToOwned::to_owned);
    let is_named = log_of(file.agent).and_then(|log| log.location()).is_some_and(|at| at.prefix.is_empty());
    if is_named && file.below.is_none() {
        lineage.id = stem.clone().or(lineage.id);
    }
    lineage.id = lineage.id.or(stem);
    lineage.sub_agent_of = file.below.clone().or(lineage.sub_agent_of);
    lineage.cwd = lineage.cwd.or_else(|| file.project.clone());
    lineage
}
