//! Shows what changed between two snapshots, or since one.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::Selection;
use crate::Workspace;
use crate::beneath::as_path;
use crate::changes::CapturedTree;
use crate::changes::Difference;
use crate::changes::Node;
use crate::changes::differences;
use crate::durable;
use crate::error::Error;
use crate::git::Git;
use crate::id::ObjectId;
use crate::manifest::Manifest;
use crate::record::Snapshot;
use crate::shadow::Lock;
use crate::shadow::remove_all;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a> {
    /// A snapshot.
    Snapshot(&'a Snapshot),
    /// The tree as it is now.
    Present,
}

/// How a path changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content is another.
    Modified,
    /// It has gone.
    Deleted,
    /// It is another kind of thing: a link where a file was.
    TypeChanged,
    /// Only its permissions are others.
    ModeChanged,
}

/// Lines of a text that came and went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// How many came.
    pub added: u64,
    /// How many went.
    pub removed: u64,
}

/// One path that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where, from the top of the tree.
    pub path: PathBuf,
    /// How.
    pub kind: ChangeKind,
    /// Whether it is, or was, a directory.
    pub directory: bool,
    /// Size before, of a file or link.
    pub size_before: Option<u64>,
    /// Size after, of a file or link.
    pub size_after: Option<u64>,
    /// Permissions before and after, where there are any.
    pub permissions: (Option<u32>, Option<u32>),
    /// Lines that came and went, of a text, if asked for.
    pub lines: Option<Lines>,
}

/// A tree to compare with, and where its objects are.
pub(crate) struct Held {
    pub(crate) git: Git,
    tree: ObjectId,
    manifest: Manifest,
    scratch: Option<PathBuf>,
    lock: Option<Lock>,
}

impl Held {
    pub(crate) fn captive(&self) -> CapturedTree<'_> {
        CapturedTree { tree: self.tree, manifest: &self.manifest }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(scratch) = &self.scratch {
            // Whoever takes the lock next removes what is left.
            let _ = remove_all(scratch);
        }
        drop(self.lock.take());
    }
}

impl Workspace {
    /// What changed from `before` to `after`, in the order of paths. Counting lines takes longer.
    pub fn diff(&self, before: &Snapshot, after: Side<'_>, lines: bool) -> Result<Vec<Change>, Error> {
        let old = self.manifest(before)?;
        let after = self.hold(after)?;
        let from = CapturedTree { tree: before.tree, manifest: &old };
        let found = differences(&after.git, from, after.captive())?;
        let ids = found.values().flat_map(|difference| [difference.from, difference.to]);
        let sizes = sizes(&after.git, ids.flatten().filter_map(|node| node.id()))?;
        let lines = if lines { count_lines(&after.git, before.tree, after.tree)? } else { HashMap::new() };
        let changes = found.into_iter().filter_map(|(path, difference)| {
            let kind = kind(&difference)?;
            // Directories that hold files are told by their files.
            let is_implied = difference.from.or(difference.to).is_some_and(|node| node.is_directory())
                && matches!(kind, ChangeKind::Added | ChangeKind::Deleted)
                && !old.empty.contains(&path)
                && !after.manifest.empty.contains(&path);
            let size =
                |node: Option<Node>| node.and_then(|node| node.id()).and_then(|id| sizes.get(&id)).copied();
            (!is_implied).then(|| Change {
                path: as_path(&path).to_owned(),
                kind,
                directory: difference.to.or(difference.from).is_some_and(|node| node.is_directory()),
                size_before: size(difference.from),
                size_after: size(difference.to),
                permissions: (permissions(difference.from), permissions(difference.to)),
                lines: lines.get(&path).copied(),
            })
        });
        Ok(changes.collect())
    }

    /// The same as text that people and `patch` can read. Control characters in it are the files' own.
    pub fn diff_text(
        &self,
        before: &Snapshot,
        after: Side<'_>,
        selection: &Selection,
    ) -> Result<Vec<u8>, Error> {
        let after = self.hold(after)?;
        let mut command: Vec<OsString> =
            ["diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color"]
                .map(OsString::from)
                .to_vec();
        command.extend([before.tree.to_string().into(), after.tree.to_string().into(), "--".into()]);
        if let Selection::Paths(paths) = selection {
            command.extend(paths.iter().map(|path| path.clone().into_os_string()));
        }
        after.git.run(&command)
    }

    /// The tree of the files as they are now: equal trees have equal files. Nothing is kept of it.
    pub fn present_tree(&self) -> Result<ObjectId, Error> {
        let _lock = self.shadow.lock(self.options.patience)?;
        Ok(self.present()?.tree)
    }

    /// The files and links that are not now as they were in a snapshot.
    pub fn files_changed_since(&self, before: &Snapshot) -> Result<BTreeSet<PathBuf>, Error> {
        let after = self.hold(Side::Present)?;
        if after.tree == before.tree {
            return Ok(BTreeSet::new());
        }
        let old = self.manifest(before)?;
        let found =
            differences(&after.git, CapturedTree { tree: before.tree, manifest: &old }, after.captive())?;
        let is_file = |difference: &Difference| {
            difference.to.or(difference.from).is_some_and(|node| !node.is_directory())
        };
        let files = found.into_iter().filter(|(_, difference)| is_file(difference));
        Ok(files.map(|(path, _)| as_path(&path).to_owned()).collect())
    }

    fn hold(&self, side: Side<'_>) -> Result<Held, Error> {
        match side {
            Side::Snapshot(snapshot) => Ok(Held {
                lock: Some(self.shadow.lock_shared(self.options.patience)?),
                git: self.git.clone(),
                tree: snapshot.tree,
                manifest: self.manifest(snapshot)?,
                scratch: None,
            }),
            Side::Present => {
                let lock = self.shadow.lock(self.options.patience)?;
                let mut held = self.present()?;
                held.lock = Some(lock);
                Ok(held)
            }
        }
    }

    /// The tree as it is now. The lock must be held.
    pub(crate) fn present(&self) -> Result<Held, Error> {
        let scratch = self.shadow.scratch();
        let packs = scratch.join("pack");
        durable::make_dirs(&packs)?;
        let (captured, sink) = self.capture_into(&packs, 0, u64::MAX)?;
        sink.finish()?;
        let git = self
            .git
            .with("GIT_OBJECT_DIRECTORY", &scratch)
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.shadow.git().join("objects"));
        let (tree, manifest) = (captured.tree, captured.manifest);
        Ok(Held { git, tree, manifest, scratch: Some(scratch), lock: None })
    }
}

fn kind(difference: &Difference) -> Option<ChangeKind> {
    let Some(from) = difference.from else { return difference.to.map(|_| ChangeKind::Added) };
    let Some(to) = difference.to else { return Some(ChangeKind::Deleted) };
    Some(if std::mem::discriminant(&from) != std::mem::discriminant(&to) {
        ChangeKind::TypeChanged
    } else if from.id() == to.id() {
        ChangeKind::ModeChanged
    } else {
        ChangeKind::Modified
    })
}

fn permissions(node: Option<Node>) -> Option<u32> {
    match node? {
        Node::File { permissions, .. } | Node::Directory { permissions } => Some(permissions),
        Node::Link { .. } => None,
    }
}

fn sizes(git: &Git, ids: impl Iterator<Item = ObjectId>) -> Result<HashMap<ObjectId, u64>, Error> {
    let mut ids: Vec<ObjectId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let said = git.feed(&["cat-file", "--batch-check=%(objectname) %(objectsize)"], asked.as_bytes())?;
    let said = String::from_utf8_lossy(&said);
    let parsed = said.lines().filter_map(|line| {
        let (id, size) = line.split_once(' ')?;
        Some((ObjectId::parse(id)?, size.parse().ok()?))
    });
    Ok(parsed.collect())
}

fn count_lines(git: &Git, from: ObjectId, to: ObjectId) -> Result<HashMap<Vec<u8>, Lines>, Error> {
    let (from, to) = (from.to_string(), to.to_string());
    let said = git.run(&[
        "diff-tree",
        "-r",
        "-z",
        "--numstat",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        &from,
        &to,
    ])?;
    let parsed = said.split(|byte| *byte == 0).filter_map(|line| {
        let mut fields = line.splitn(3, |byte| *byte == b'\t');
        // A binary file has dashes here.
        let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
        let lines = Lines { added: number()?, removed: number()? };
        Some((fields.next()?.to_vec(), lines))
    });
    Ok(parsed.collect())
}
