//! What takes room on the disk: sessions in the store, snapshots of projects, and what lies beside them.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use segno_store::Usage;
use serde::Serialize;

use crate::Engine;
use crate::Error;
use crate::StoreLocation;

/// Directories are looked into this deep; nothing of ours is deeper.
const DEEPEST: u32 = 12;

/// Where things are that do not belong to one session.
#[derive(Clone, Debug)]
pub struct Locations {
    /// The store.
    pub store: StoreLocation,
    /// Archives of sessions that were cleaned up.
    pub archive: PathBuf,
    /// Copies of the store that somebody asked for.
    pub backups: PathBuf,
}

/// What takes room, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiskUsage {
    /// Everything together.
    pub total: u64,
    /// The store with its log. Sessions and free pages are in it.
    pub store: u64,
    /// Snapshots of all projects.
    pub snapshots: u64,
    /// What agents printed and is not journaled yet.
    pub captures: u64,
    /// Facts that wait for the store.
    pub spool: u64,
    /// Copies of the store, made by hand or before its form was changed.
    pub backups: u64,
    /// Archives of sessions that were cleaned up.
    pub archive: u64,
    /// Agents' own transcripts that are kept.
    pub transcripts: u64,
    /// What was set apart because it was damaged.
    pub quarantine: u64,
    /// Each project with its sessions and snapshots, the largest first.
    pub projects: Vec<ProjectUsage>,
    /// Snapshots of projects that no session of this store names.
    pub other_snapshots: u64,
    /// Each session, the largest first.
    pub sessions: Vec<Usage>,
}

/// What a project takes, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProjectUsage {
    /// Where it is.
    pub project: String,
    /// How many sessions it has.
    pub sessions: u64,
    /// They in the store.
    pub store: u64,
    /// Its snapshots.
    pub snapshots: u64,
}

impl Engine {
    /// Finds out what takes room. What cannot be looked at counts as nothing.
    pub fn disk_usage(&self, locations: &Locations) -> Result<DiskUsage, Error> {
        let mut sessions = self.store().usage()?;
        sessions.sort_by_key(|session| std::cmp::Reverse(held(session)));
        let mut projects: BTreeMap<String, ProjectUsage> = BTreeMap::new();
        for session in &sessions {
            let project = projects.entry(session.project.clone()).or_default();
            project.project.clone_from(&session.project);
            project.sessions += 1;
            project.store += held(session);
        }
        let mut usage = DiskUsage::default();
        if let Some(tree) = &self.options.tree {
            usage.snapshots = size(&tree.shadows, 0);
            for project in projects.values_mut() {
                let shadows = tree.shadows_at(Path::new(&project.project));
                project.snapshots = shadows.iter().map(|shadow| size(shadow, 0)).sum();
            }
        }
        let known: u64 = projects.values().map(|project| project.snapshots).sum();
        usage.other_snapshots = usage.snapshots.saturating_sub(known);
        let sum = |files: Vec<PathBuf>| files.iter().map(|file| size(file, DEEPEST)).sum::<u64>();
        usage.store = sum(locations.store.files());
        usage.backups = sum(locations.store.copies()) + size(&locations.backups, 0);
        usage.captures = self.options.captures.as_deref().map_or(0, |path| size(path, 0));
        usage.spool = self.options.spool.as_deref().map_or(0, |path| size(path, 0));
        usage.archive = size(&locations.archive, 0);
        usage.transcripts = size(&self.transcripts_dir(), 0);
        usage.quarantine = locations.store.quarantine().map_or(0, |path| size(&path, 0));
        usage.total = usage.store
            + usage.snapshots
            + usage.captures
            + usage.spool
            + usage.backups
            + usage.archive
            + usage.transcripts
            + usage.quarantine;
        usage.projects = projects.into_values().collect();
        usage.projects.sort_by_key(|project| std::cmp::Reverse(project.store + project.snapshots));
        usage.sessions = sessions;
        Ok(usage)
    }
}

fn held(session: &Usage) -> u64 {
    session.journal + session.lists + session.texts
}

/// The room that a file, or everything in a directory, takes on the disk. Links are not followed.
fn size(path: &Path, depth: u32) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(meta) = std::fs::symlink_metadata(path) else { return 0 };
    if !meta.is_dir() {
        // Captures have holes, and small files take a whole block.
        return meta.blocks() * 512;
    }
    if depth >= DEEPEST {
        return 0;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size(&entry.path(), depth + 1)).sum()
}
