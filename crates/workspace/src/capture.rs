//! Puts a working tree into the store: lists it, reads what changed, builds the trees.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use rustix::fs::FileType;

use crate::Workspace;
use crate::beneath::as_path;
use crate::beneath::join;
use crate::cache;
use crate::cache::Cache;
use crate::content::Outcome;
use crate::content::hold;
use crate::error::Error;
use crate::id::Kind;
use crate::id::ObjectId;
use crate::id::hash;
use crate::manifest::Exception;
use crate::manifest::Manifest;
use crate::manifest::Reason;
use crate::manifest::Sort;
use crate::objects::Objects;
use crate::objects::Sink;
use crate::record::*;
use crate::stat::Stat;
use crate::walk::Tree;
use crate::walk::Walk;
use crate::walk::threads;

/// A file that is in the store.
#[derive(Clone, Copy)]
struct Held {
    id: ObjectId,
    stat: Stat,
    settled: bool,
}

/// What became of the files of each directory, in the order they were listed.
type HeldFiles = Vec<Vec<Option<Held>>>;

/// A tree that is in the store. Nothing refers to it yet.
pub(crate) struct Captured {
    pub(crate) tree: ObjectId,
    pub(crate) manifest: Manifest,
    pub(crate) manifest_id: ObjectId,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) changed: u64,
    listed: Tree,
    held: HeldFiles,
    trees: Vec<Option<ObjectId>>,
    /// Whether the cache has to be written again.
    news: bool,
}

impl Workspace {
    /// Captures the tree into `sink`, reading only what `cache` does not know.
    pub(crate) fn capture(&self, cache: &Cache, sink: &Sink) -> Result<Captured, Error> {
        let walk = Walk {
            root: &self.root,
            top: &self.options.root,
            home: self.options.home.as_deref(),
            global: self.options.global_excludes.as_deref(),
            wanted: &self.wanted,
            never: &self.never,
            largest: self.options.largest_file,
        };
        let mut listed = walk.run().map_err(|(path, why)| Error::Io {
            what: "cannot list",
            path: self.root.absolute(&path),
            source: why.into(),
        })?;
        let (mut held, unknown) = known(&listed, cache);
        let known_before = cache.len();
        let mut seen_before = held.iter().flatten().flatten().count();
        let mut changed = 0;
        for (directory, file, outcome) in self.read_all(&listed, &unknown, sink)? {
            let Some(found) = listed.directories.get(directory) else { continue };
            let Some(name) = found.files.get(file).map(|file| file.name.clone()) else { continue };
            let path = join(&found.path, &name);
            let remembered = cache
                .directory(&found.path)
                .and_then(|remembered| cache.file(remembered, &name).and_then(|index| remembered.at(index)));
            seen_before += usize::from(remembered.is_some());
            let mut left_out = |reason, size| {
                listed.exceptions.push(Exception { path: as_path(&path).to_owned(), reason, size });
            };
            match outcome {
                Outcome::Gone => changed += u64::from(remembered.is_some()),
                Outcome::LeftOut(reason, size) => {
                    changed += u64::from(remembered.is_some());
                    left_out(reason, size);
                }
                Outcome::Held { id, stat, settled, stable } => {
                    if !stable {
                        left_out(Reason::Unstable, stat.size);
                    }
                    changed += u64::from(remembered.is_none_or(|remembered| remembered.id != id));
                    if let Some(slot) = held.get_mut(directory).and_then(|files| files.get_mut(file)) {
                        *slot = Some(Held { id, stat, settled });
                    }
                }
            }
        }
        changed += known_before.saturating_sub(seen_before) as u64;
        self.build(listed, held, cache, sink, changed, !unknown.is_empty() || changed > 0)
    }

    /// Reads files, several at once.
    fn read_all(
        &self,
        listed: &Tree,
        unknown: &[(usize, usize)],
        sink: &Sink,
    ) -> Result<Vec<(usize, usize, Outcome)>, Error> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new((Vec::with_capacity(unknown.len()), None));
        let work = || {
            let mut mine = Vec::new();
            while let Some((directory, file)) = unknown.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                let Some(found) = listed.directories.get(directory) else { continue };
                let Some(name) = found.files.get(file).map(|file| &file.name) else { continue };
                let held = self.shadow.check_wanted().and_then(|()| {
                    hold(&self.root, &join(&found.path, name), self.options.largest_file, sink)
                });
                match held {
                    Ok(outcome) => mine.push((directory, file, outcome)),
                    Err(why) => {
                        done.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(why);
                        // The others need not go on either.
                        next.store(unknown.len(), Ordering::Relaxed);
                    }
                }
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).0.append(&mut mine);
        };
        if unknown.len() < 8 {
            work();
        } else {
            std::thread::scope(|scope| (0..threads()).for_each(|_| drop(scope.spawn(work))));
        }
        match done.into_inner().unwrap_or_else(PoisonError::into_inner) {
            (_, Some(why)) => Err(why),
            (outcomes, None) => Ok(outcomes),
        }
    }

    fn build(
        &self,
        listed: Tree,
        held: HeldFiles,
        cache: &Cache,
        sink: &Sink,
        changed: u64,
        mut news: bool,
    ) -> Result<Captured, Error> {
        let indexes: HashMap<&[u8], usize> = listed
            .directories
            .iter()
            .enumerate()
            .map(|(index, found)| (found.path.as_slice(), index))
            .collect();
        let mut trees: Vec<Option<ObjectId>> = vec![None; listed.directories.len()];
        let mut empty = BTreeSet::new();
        let mut permissions = Vec::new();
        let (mut files, mut bytes) = (0, 0);
        // What is in a directory comes after it in the order of paths, so backwards it comes before.
        for (index, found) in listed.directories.iter().enumerate().rev() {
            let mut entries = Vec::with_capacity(found.files.len() + found.directories.len());
            for (file, held) in found.files.iter().zip(held.get(index).map_or(&[][..], Vec::as_slice)) {
                let Some(held) = held else { continue };
                files += 1;
                bytes += held.stat.size;
                let (mode, sort) = sort_of(&held.stat);
                entries.push(TreeEntry { mode, name: &file.name, id: held.id });
                if let Some(sort) = sort {
                    permissions.push((join(&found.path, &file.name), sort, held.stat.permissions()));
                }
            }
            for name in &found.directories {
                let tree =
                    indexes.get(join(&found.path, name).as_slice()).and_then(|index| trees.get(*index));
                if let Some(Some(id)) = tree {
                    entries.push(TreeEntry { mode: MODE_TREE, name, id: *id });
                }
            }
            if !found.path.is_empty() {
                permissions.push((found.path.clone(), Sort::Directory, found.permissions));
                if entries.is_empty() {
                    empty.insert(found.path.clone());
                    continue;
                }
            }
            let tree = encode_tree(&mut entries);
            let id = hash(Kind::Tree, &tree);
            if cache.directory(&found.path).is_none_or(|remembered| remembered.tree != Some(id)) {
                news = true;
                sink.put(Kind::Tree, &tree)?;
            }
            if let Some(slot) = trees.get_mut(index) {
                *slot = Some(id);
            }
        }
        let exceptions = listed.exceptions.clone();
        let all = permissions.iter().map(|(path, sort, mode)| (path.as_slice(), *sort, *mode));
        let manifest = Manifest::new(all, empty, exceptions);
        let manifest_id = sink.put(Kind::Blob, &manifest.write())?;
        let tree = trees.first().copied().flatten().unwrap_or_else(|| hash(Kind::Tree, b""));
        Ok(Captured { tree, manifest, manifest_id, files, bytes, changed, listed, held, trees, news })
    }
}

impl Captured {
    /// Remembers everything for the next time. `packs` hold it all.
    pub(crate) fn remember(&self, path: &Path, packs: &Objects) -> Result<(), Error> {
        if !self.news && path.exists() {
            return Ok(());
        }
        let mut writer = cache::Writer::new(packs.packs());
        for ((found, held), tree) in self.listed.directories.iter().zip(&self.held).zip(&self.trees) {
            let files = found.files.iter().zip(held);
            let files: Vec<_> = files
                .filter_map(|(file, held)| {
                    held.map(|held| (file.name.as_slice(), held.stat, held.id, held.settled))
                })
                .collect();
            writer.directory(&found.path, *tree, files.into_iter());
        }
        writer.save(path)
    }
}

/// What the cache knows of the files, and where the others are.
fn known(listed: &Tree, cache: &Cache) -> (HeldFiles, Vec<(usize, usize)>) {
    let mut unknown = Vec::new();
    let mut all = Vec::with_capacity(listed.directories.len());
    for (directory, found) in listed.directories.iter().enumerate() {
        let remembered = cache.directory(&found.path);
        let mut files = Vec::with_capacity(found.files.len());
        for (index, file) in found.files.iter().enumerate() {
            let hit = remembered
                .and_then(|remembered| cache.file(remembered, &file.name).and_then(|at| remembered.at(at)))
                .filter(|remembered| remembered.settled && remembered.stat == file.stat)
                .map(|remembered| Held { id: remembered.id, stat: file.stat, settled: true });
            if hit.is_none() {
                unknown.push((directory, index));
            }
            files.push(hit);
        }
        all.push(files);
    }
    (all, unknown)
}

fn sort_of(stat: &Stat) -> (&'static str, Option<Sort>) {
    match stat.kind() {
        FileType::Symlink => (MODE_LINK, None),
        _ if stat.mode & 0o100 != 0 => (MODE_EXECUTABLE, Some(Sort::Executable)),
        _ => (MODE_FILE, Some(Sort::File)),
    }
}
