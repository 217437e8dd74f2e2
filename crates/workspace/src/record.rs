//! A snapshot as it is kept: a commit without parents, whose tree holds the files and the manifest.

use std::collections::HashMap;

use crate::error::Error;
use crate::id::ObjectId;
use crate::manifest::Exception;

/// The names in a snapshot's outermost tree.
pub(crate) const FILES: &[u8] = b"files";
pub(crate) const MANIFEST: &[u8] = b"manifest";

/// The working tree at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// Its commit: names it for ever.
    pub commit: ObjectId,
    /// The tree of its files: equal trees have equal files.
    pub tree: ObjectId,
    /// The blob with permissions, empty directories and exceptions.
    pub(crate) manifest: ObjectId,
    /// When it was made, in seconds since 1970.
    pub made: u64,
    /// How many files and links it holds.
    pub files: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// How many of them were added, changed or removed since the snapshot made before.
    pub changed: u64,
    /// How many things were left out, or changed while they were read.
    pub left_out: u64,
}

/// A snapshot that was just made, and what it does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// What was left out, or changed while it was read.
    pub exceptions: Vec<Exception>,
}

impl Snapshot {
    /// The commit object.
    pub(crate) fn encode(&self, tree: ObjectId) -> Vec<u8> {
        let who = format!("segno <segno@localhost> {} +0000", self.made);
        format!(
            "tree {tree}\nauthor {who}\ncommitter {who}\n\nsegno snapshot {}\n\nfiles-tree: {}\nmanifest: {}\n\
             files: {}\nbytes: {}\nchanged: {}\nleft-out: {}\n",
            self.name, self.tree, self.manifest, self.files, self.bytes, self.changed, self.left_out
        )
        .into_bytes()
    }

    /// From the commit object. The name may be another than when it was made.
    pub(crate) fn decode(name: &str, commit: ObjectId, object: &[u8]) -> Result<Self, Error> {
        Self::parse(name, commit, object)
            .ok_or_else(|| Error::damaged(format!("snapshot {name}"), "its commit cannot be understood"))
    }

    fn parse(name: &str, commit: ObjectId, object: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(object).ok()?;
        let (head, message) = text.split_once("\n\n")?;
        // One with parents would keep them, or miss them.
        if head.lines().any(|line| line.starts_with("parent ")) {
            return None;
        }
        let made = head.lines().find_map(|line| line.strip_prefix("committer "))?;
        let made = made.rsplit(' ').nth(1)?.parse().ok()?;
        let fields: HashMap<&str, &str> = message.lines().filter_map(|line| line.split_once(": ")).collect();
        let number = |key| fields.get(key).and_then(|value| value.parse::<u64>().ok());
        let id = |key| fields.get(key).and_then(|value| ObjectId::parse(value));
        Some(Self {
            name: name.to_owned(),
            commit,
            tree: id("files-tree")?,
            manifest: id("manifest")?,
            made,
            files: number("files")?,
            bytes: number("bytes")?,
            changed: number("changed")?,
            left_out: number("left-out")?,
        })
    }
}

/// One entry of a tree object.
pub(crate) struct TreeEntry<'a> {
    pub(crate) mode: &'static str,
    pub(crate) name: &'a [u8],
    pub(crate) id: ObjectId,
}

pub(crate) const MODE_FILE: &str = "100644";
pub(crate) const MODE_EXECUTABLE: &str = "100755";
pub(crate) const MODE_LINK: &str = "120000";
pub(crate) const MODE_TREE: &str = "40000";

/// A tree object. Git sorts directories as if their names ended in a slash.
pub(crate) fn encode_tree(entries: &mut [TreeEntry<'_>]) -> Vec<u8> {
    entries.sort_unstable_by(|one, other| sort_key(one).cmp(sort_key(other)));
    let mut out = Vec::with_capacity(entries.len() * 64);
    for entry in entries.iter() {
        out.extend_from_slice(entry.mode.as_bytes());
        out.push(b' ');
        out.extend_from_slice(entry.name);
        out.push(0);
        out.extend_from_slice(entry.id.as_bytes());
    }
    out
}

fn sort_key<'e>(entry: &'e TreeEntry<'_>) -> impl Iterator<Item = &'e u8> {
    let slash: &[u8] = if entry.mode == MODE_TREE { b"/" } else { b"" };
    entry.name.iter().chain(slash)
}
