//! Taking files out of snapshots that are there, without the tree they were made of.

use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use crate::batch::Batch;
use crate::beneath::as_path;
use crate::error::Error;
use crate::git::Git;
use crate::id::Kind;
use crate::id::ObjectId;
use crate::manifest::Exception;
use crate::manifest::Manifest;
use crate::manifest::Reason;
use crate::objects::Objects;
use crate::objects::Sink;
use crate::record::FILES;
use crate::record::MANIFEST;
use crate::record::MODE_EXECUTABLE;
use crate::record::MODE_FILE;
use crate::record::MODE_LINK;
use crate::record::MODE_TREE;
use crate::record::Snapshot;
use crate::record::TreeEntry;
use crate::record::encode_tree;
use crate::retention::parse_tree;
use crate::shadow::Shadow;

/// Whether the content of a file is what is looked for.
pub(crate) type Holds<'h> = &'h dyn Fn(&[u8]) -> bool;

/// The snapshots in one shadow directory. The project may be gone.
#[derive(Debug)]
pub struct Snapshots {
    shadow: Shadow,
    git: Git,
    patience: Duration,
}

/// A snapshot with files that hold what is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The files, from the top of the tree.
    pub paths: Vec<PathBuf>,
}

impl Snapshots {
    /// Opens a shadow directory that is there.
    pub fn open(directory: &Path, git: &Path, patience: Duration) -> Result<Self, Error> {
        if !directory.join("git/HEAD").is_file() {
            return Err(Error::NotADirectory(directory.to_owned()));
        }
        let shadow = Shadow::open(directory, patience, None)?;
        let git = Git::new(git, &shadow.git())?;
        Ok(Self { shadow, git, patience })
    }

    /// The snapshots that hold it.
    pub fn holding(&self, holds: Holds<'_>) -> Result<Vec<Holding>, Error> {
        let _lock = self.shadow.lock_shared(self.patience)?;
        let refs = self.shadow.refs_in_order()?;
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let mut search = Search { batch: Batch::start(&self.git)?, holds, known: HashMap::new() };
        let mut found = Vec::new();
        for (name, commit) in refs {
            let object = search.batch.read(commit, Kind::Commit)?;
            let snapshot = Snapshot::decode(&name, commit, &object)?;
            let mut paths = Vec::new();
            search
                .tree(snapshot.tree, &mut Vec::new(), &mut |path, _| paths.push(as_path(path).to_owned()))?;
            // Names of what is no file: empty directories, and what was left out.
            let manifest = Manifest::read(&search.batch.read(snapshot.manifest, Kind::Blob)?)?;
            paths.extend(manifest.paths().filter(|path| holds(path)).map(|path| as_path(path).to_owned()));
            paths.sort();
            paths.dedup();
            if !paths.is_empty() {
                found.push(Holding { snapshot, paths });
            }
        }
        Ok(found)
    }

    /// Makes a snapshot like this one, without the files that hold it, under another name. They are noted as left out, so
    /// that going back to it leaves them as they are.
    pub fn without(&self, snapshot: &Snapshot, name: &str, holds: Holds<'_>) -> Result<Snapshot, Error> {
        let _lock = self.shadow.lock(self.patience)?;
        self.refuse_pending()?;
        let mut search = Search { batch: Batch::start(&self.git)?, holds, known: HashMap::new() };
        let mut gone = HashMap::new();
        search.tree(snapshot.tree, &mut Vec::new(), &mut |path, size| {
            gone.insert(path.to_vec(), size);
        })?;
        let mut manifest = Manifest::read(&search.batch.read(snapshot.manifest, Kind::Blob)?)?;
        let packs = self.shadow.packs();
        let sink = Sink::new(Objects::open(&packs)?, &packs, 0, u64::MAX)?;
        let mut made = snapshot.clone();
        let mut rewrite = Rewrite { batch: &mut search.batch, sink: &sink, gone: &gone, empty: Vec::new() };
        made.tree = match rewrite.tree(snapshot.tree, &mut Vec::new())? {
            Some(tree) => tree,
            None => sink.put(Kind::Tree, b"")?,
        };
        manifest.empty.extend(rewrite.empty.into_iter().filter(|path| !path.is_empty()));
        manifest.leave_out(&|path| holds(path));
        for (path, size) in &gone {
            manifest.unusual.remove(path);
            if !holds(path) {
                let path = as_path(path).to_owned();
                manifest.exceptions.push(Exception { path, reason: Reason::Forgotten, size: *size });
            }
            made.files = made.files.saturating_sub(1);
            made.bytes = made.bytes.saturating_sub(*size);
            made.left_out += 1;
        }
        manifest.exceptions.sort();
        name.clone_into(&mut made.name);
        made.manifest = sink.put(Kind::Blob, &manifest.write())?;
        let mut entries = [
            TreeEntry { mode: MODE_TREE, name: FILES, id: made.tree },
            TreeEntry { mode: MODE_FILE, name: MANIFEST, id: made.manifest },
        ];
        let tree = sink.put(Kind::Tree, &encode_tree(&mut entries))?;
        made.commit = sink.put(Kind::Commit, &made.encode(tree))?;
        sink.finish()?;
        // One that was cut short before it was recorded made the same.
        if self.shadow.read_ref(name)? != Some(made.commit) {
            self.shadow.remove_ref(name)?;
            self.shadow.write_ref(name, made.commit)?;
        }
        Ok(made)
    }

    /// Takes a snapshot's name away. False if there was none.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let _lock = self.shadow.lock(self.patience)?;
        self.refuse_pending()?;
        self.shadow.remove_ref(name)
    }

    /// Writes anew what snapshots need, and removes everything else, however young it is. What was remembered of the tree
    /// goes too: it has the names of all files.
    pub fn purge(&self) -> Result<(), Error> {
        let _lock = self.shadow.lock(self.patience)?;
        self.refuse_pending()?;
        for remembered in [self.shadow.cache(), self.shadow.progress()] {
            crate::durable::remove(&remembered)?;
        }
        self.git.run(&["repack", "-q", "-a", "-d", "-F", "--no-write-bitmap-index"])?;
        self.git.run(&["prune", "--expire=now"])?;
        crate::durable::sync_dir(&self.shadow.packs())
    }

    fn refuse_pending(&self) -> Result<(), Error> {
        if self.shadow.intent().exists() { Err(Error::Pending) } else { Ok(()) }
    }
}

/// Looks into files, each once.
struct Search<'h> {
    batch: Batch,
    holds: Holds<'h>,
    /// The size of each file that was looked into and holds it.
    known: HashMap<ObjectId, Option<u64>>,
}

impl Search<'_> {
    fn tree(
        &mut self,
        id: ObjectId,
        path: &mut Vec<u8>,
        found: &mut dyn FnMut(&[u8], u64),
    ) -> Result<(), Error> {
        let tree = self.batch.read(id, Kind::Tree)?;
        let entries = parse_tree(&tree).ok_or_else(|| damaged(id))?;
        for entry in entries {
            let length = path.len();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(entry.name);
            if entry.mode == MODE_TREE.as_bytes() {
                self.tree(entry.id, path, found)?;
            } else if let Some(size) = self.file(entry.id, path)? {
                found(path, size);
            }
            path.truncate(length);
        }
        Ok(())
    }

    fn file(&mut self, id: ObjectId, path: &[u8]) -> Result<Option<u64>, Error> {
        let known = match self.known.get(&id) {
            Some(known) => *known,
            None => {
                let mut content = Vec::new();
                self.batch.copy(id, Kind::Blob, &mut content)?;
                let size = (self.holds)(&content).then_some(content.len() as u64);
                self.known.insert(id, size);
                size
            }
        };
        // A name can tell it too, its own or that of a directory.
        Ok(known.or_else(|| (self.holds)(path).then_some(0)))
    }
}

fn damaged(id: ObjectId) -> Error {
    Error::damaged(format!("object {id}"), "a tree cannot be understood")
}

/// Makes trees without what is gone.
struct Rewrite<'r> {
    batch: &'r mut Batch,
    sink: &'r Sink,
    gone: &'r HashMap<Vec<u8>, u64>,
    /// Directories in which nothing is left.
    empty: Vec<Vec<u8>>,
}

impl Rewrite<'_> {
    /// The tree as it will be; none if nothing is left in it.
    fn tree(&mut self, id: ObjectId, path: &mut Vec<u8>) -> Result<Option<ObjectId>, Error> {
        let tree = self.batch.read(id, Kind::Tree)?;
        let entries = parse_tree(&tree).ok_or_else(|| damaged(id))?;
        let mut kept = Vec::new();
        for entry in entries {
            let length = path.len();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(entry.name);
            let mode = [MODE_FILE, MODE_EXECUTABLE, MODE_LINK, MODE_TREE]
                .into_iter()
                .find(|mode| mode.as_bytes() == entry.mode)
                .ok_or_else(|| damaged(id))?;
            if mode == MODE_TREE {
                if let Some(id) = self.tree(entry.id, path)? {
                    kept.push(TreeEntry { mode, name: entry.name, id });
                }
            } else if !self.gone.contains_key(path.as_slice()) {
                kept.push(TreeEntry { mode, name: entry.name, id: entry.id });
            }
            path.truncate(length);
        }
        if kept.is_empty() {
            self.empty.push(path.clone());
            return Ok(None);
        }
        self.sink.put(Kind::Tree, &encode_tree(&mut kept)).map(Some)
    }
}
