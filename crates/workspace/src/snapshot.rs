//! Makes snapshots.

use std::path::Path;
use std::time::SystemTime;

use crate::Workspace;
use crate::cache::Cache;
use crate::capture::Captured;
use crate::error::Error;
use crate::id::Kind;
use crate::objects::Objects;
use crate::objects::Sink;
use crate::record::*;
use crate::shadow::is_name;

/// So many packs are left alone; more are put together, because git looks into each of them.
const PACKS: usize = 50;

impl Workspace {
    /// Captures the tree as it is now under a new name. When this returns it is on the disk.
    pub fn snapshot(&self, name: &str) -> Result<Taken, Error> {
        self.take(name, false)
    }

    /// The same before something dangerous: the quota does not hold it up.
    pub fn safety_snapshot(&self, name: &str) -> Result<Taken, Error> {
        self.take(name, true)
    }

    fn take(&self, name: &str, over_quota: bool) -> Result<Taken, Error> {
        if !is_name(name) {
            return Err(Error::BadName(name.to_owned()));
        }
        let _lock = self.shadow.lock(self.options.patience)?;
        if self.shadow.read_ref(name)?.is_some() {
            return Err(Error::NameTaken(name.to_owned()));
        }
        let (used, quota) = match self.options.quota.filter(|_| !over_quota) {
            Some(quota) => (self.shadow.size()?, quota),
            None => (0, u64::MAX),
        };
        if used >= quota {
            return Err(Error::OverQuota { used, quota });
        }
        let packs = self.shadow.packs();
        let (captured, sink) = self.capture_into(&packs, used, quota)?;
        let snapshot = self.commit(name, &captured, &sink)?;
        // First the objects, then the name: whoever sees the name finds the objects.
        sink.finish()?;
        self.shadow.write_ref(name, snapshot.commit)?;
        self.tidy_up(&captured, &packs);
        Ok(Taken { snapshot, exceptions: captured.manifest.exceptions })
    }

    /// Captures the tree into a directory of packs. The lock must be held.
    pub(crate) fn capture_into(
        &self,
        packs: &Path,
        used: u64,
        quota: u64,
    ) -> Result<(Captured, Sink), Error> {
        let objects = Objects::open(&self.shadow.packs())?;
        let cache = Cache::load(&self.shadow.cache(), &objects)?;
        let sink = Sink::new(objects, packs, used, quota)?;
        let captured = self.capture(&cache, &sink)?;
        Ok((captured, sink))
    }

    /// Adds the commit and the tree that it needs.
    fn commit(&self, name: &str, captured: &Captured, sink: &Sink) -> Result<Snapshot, Error> {
        let mut entries = [
            TreeEntry { mode: MODE_TREE, name: FILES, id: captured.tree },
            TreeEntry { mode: MODE_FILE, name: MANIFEST, id: captured.manifest_id },
        ];
        let tree = sink.put(Kind::Tree, &encode_tree(&mut entries))?;
        let made =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut snapshot = Snapshot {
            name: name.to_owned(),
            commit: captured.tree,
            tree: captured.tree,
            manifest: captured.manifest_id,
            made,
            files: captured.files,
            bytes: captured.bytes,
            changed: captured.changed,
            left_out: captured.manifest.exceptions.len() as u64,
        };
        snapshot.commit = sink.put(Kind::Commit, &snapshot.encode(tree))?;
        Ok(snapshot)
    }

    /// Makes the next snapshot quick. This one is there already, so failing here is no failure of it.
    fn tidy_up(&self, captured: &Captured, packs: &Path) {
        let Ok(objects) = Objects::open(packs) else { return };
        let _ = captured.remember(&self.shadow.cache(), &objects);
        if objects.packs().len() > PACKS {
            // Small packs become larger ones; nothing is removed that was in one.
            let _ = self.git.run(&["repack", "-q", "-d", "--geometric=2", "--no-write-bitmap-index"]);
        }
    }
}
