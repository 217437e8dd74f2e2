//! What differs between two captured trees, git's part and the manifest's part together.

use std::collections::BTreeMap;

use crate::beneath::is_sound;
use crate::error::Error;
use crate::git::Git;
use crate::id::ObjectId;
use crate::manifest::Manifest;
use crate::manifest::Sort;

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File { id: ObjectId, permissions: u32 },
    Link { id: ObjectId },
    Directory { permissions: u32 },
}

impl Node {
    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// The content, of what has any.
    pub(crate) fn id(&self) -> Option<ObjectId> {
        match self {
            Self::File { id, .. } | Self::Link { id } => Some(*id),
            Self::Directory { .. } => None,
        }
    }
}

/// What is at a path on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Difference {
    pub(crate) from: Option<Node>,
    pub(crate) to: Option<Node>,
}

impl Difference {
    pub(crate) fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// Paths with what they were and are, in order.
pub(crate) type Differences = BTreeMap<Vec<u8>, Difference>;

/// A captured tree.
#[derive(Clone, Copy)]
pub(crate) struct CapturedTree<'a> {
    pub(crate) tree: ObjectId,
    pub(crate) manifest: &'a Manifest,
}

/// Everything that differs. Directories count too, each as itself.
pub(crate) fn differences(
    git: &Git,
    from: CapturedTree<'_>,
    to: CapturedTree<'_>,
) -> Result<Differences, Error> {
    let mut found = Differences::new();
    if from.tree != to.tree {
        let (from_tree, to_tree) = (from.tree.to_string(), to.tree.to_string());
        let command =
            ["diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--no-abbrev", &from_tree, &to_tree];
        let raw = git.run(&command)?;
        for (path, old, new) in parse_raw(&raw).ok_or_else(|| odd("diff-tree"))? {
            if !is_sound(path) {
                return Err(Error::damaged("a snapshot", "it has a path that leads elsewhere"));
            }
            let difference = found.entry(path.to_vec()).or_default();
            // A file that became a directory comes as two lines.
            difference.from = difference.from.or(node(path, old, from.manifest));
            difference.to = difference.to.or(node(path, new, to.manifest));
        }
    }
    for (captive, is_to) in [(from, false), (to, true)] {
        for path in &captive.manifest.empty {
            let difference = found.entry(path.clone()).or_default();
            let permissions = captive.manifest.permissions(path, Sort::Directory);
            let side = if is_to { &mut difference.to } else { &mut difference.from };
            *side = side.or(Some(Node::Directory { permissions }));
        }
    }
    add_permissions(git, from, to, &mut found)?;
    found.retain(|_, difference| difference.from != difference.to);
    Ok(found)
}

/// Paths whose permissions alone differ.
fn add_permissions(
    git: &Git,
    from: CapturedTree<'_>,
    to: CapturedTree<'_>,
    found: &mut Differences,
) -> Result<(), Error> {
    let mut add = |path: &[u8], sort: Sort, id: Option<ObjectId>| {
        if found.contains_key(path) {
            return;
        }
        let (old, new) = (from.manifest.permissions(path, sort), to.manifest.permissions(path, sort));
        if old != new {
            let node = |permissions| match id {
                Some(id) => Node::File { id, permissions },
                None => Node::Directory { permissions },
            };
            found.insert(path.to_vec(), Difference { from: Some(node(old)), to: Some(node(new)) });
        }
    };
    let listed = || from.manifest.unusual.iter().chain(&to.manifest.unusual);
    if from.manifest.usual == to.manifest.usual && listed().all(|(_, (sort, _))| *sort == Sort::Directory) {
        listed().for_each(|(path, (sort, _))| add(path, *sort, None));
        return Ok(());
    }
    if from.manifest.usual == to.manifest.usual && from.manifest.unusual == to.manifest.unusual {
        return Ok(());
    }
    // The ids of unchanged files are needed, and perhaps every file differs.
    let raw = git.run(&["ls-tree", "-r", "-t", "-z", "--full-tree", &to.tree.to_string()])?;
    for line in raw.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let (path, (mode, id)) = parse_listed(line).ok_or_else(|| odd("ls-tree"))?;
        match mode {
            0o100_644 => add(path, Sort::File, Some(id)),
            0o100_755 => add(path, Sort::Executable, Some(id)),
            0o040_000 => add(path, Sort::Directory, None),
            _ => {}
        }
    }
    Ok(())
}

fn odd(command: &str) -> Error {
    Error::Git { command: command.to_owned(), said: "its answer cannot be understood".to_owned() }
}

fn node(path: &[u8], (mode, id): (u32, ObjectId), manifest: &Manifest) -> Option<Node> {
    match mode {
        0o100_644 => Some(Node::File { id, permissions: manifest.permissions(path, Sort::File) }),
        0o100_755 => Some(Node::File { id, permissions: manifest.permissions(path, Sort::Executable) }),
        0o120_000 => Some(Node::Link { id }),
        0o040_000 => Some(Node::Directory { permissions: manifest.permissions(path, Sort::Directory) }),
        _ => None,
    }
}

type Raw = (u32, ObjectId);

/// Lines of the form `:mode mode id id letter NUL path NUL`.
fn parse_raw(raw: &[u8]) -> Option<Vec<(&[u8], Raw, Raw)>> {
    let mut parts = raw.strip_suffix(b"\0").unwrap_or(raw).split(|byte| *byte == 0);
    let mut lines = Vec::new();
    while let Some(head) = parts.next().filter(|head| !head.is_empty()) {
        let head = std::str::from_utf8(head.strip_prefix(b":")?).ok()?;
        let mut fields = head.split(' ');
        let mut mode = || fields.next().and_then(|mode| u32::from_str_radix(mode, 8).ok());
        let modes = (mode()?, mode()?);
        let mut id = || fields.next().and_then(ObjectId::parse);
        let ids = (id()?, id()?);
        lines.push((parts.next()?, (modes.0, ids.0), (modes.1, ids.1)));
    }
    Some(lines)
}

/// A line of the form `mode kind id TAB path`.
fn parse_listed(line: &[u8]) -> Option<(&[u8], Raw)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(line.get(..tab)?).ok()?;
    let mut fields = head.split(' ');
    let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
    let id = ObjectId::parse(fields.nth(1)?)?;
    Some((line.get(tab + 1..)?, (mode, id)))
}
