//! Which names a file had before: followed through snapshots by what it holds.

use std::collections::HashMap;
use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;

use segno_core::Timestamp;
use segno_workspace::ObjectId;
use segno_workspace::PastContent;
use segno_workspace::Workspace;

use crate::Error;

/// A file has had at most so many names, and of so many others it is looked whether they were it.
const MOST_NAMES: usize = 16;
const MOST_OTHERS: usize = 40;

/// A content that was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Which of the stories made the snapshot, and its number there; none for the file as it is now.
    pub(super) checkpoint: Option<(usize, u64)>,
    pub(super) tree: Option<ObjectId>,
    /// When it was begun to be read, and when that was over.
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// The event that set the checkpoint.
    pub(super) seq: u64,
    pub(super) content: PastContent,
}

/// A name, and the contents in which the file had it: from this one on.
pub(super) struct Name {
    pub(super) path: PathBuf,
    pub(super) from: usize,
}

/// Fills in what the file was at each moment and says what it was called, the present name first.
pub(super) fn follow(
    workspace: Option<&Workspace>,
    root: &Path,
    path: &Path,
    seen: &mut [Seen],
) -> Result<Vec<Name>, Error> {
    let mut names: Vec<Name> = Vec::new();
    let mut path = path.to_owned();
    let mut upto = seen.len();
    while let Some(workspace) = workspace {
        let trees: Vec<(usize, ObjectId)> =
            seen.iter().take(upto).enumerate().filter_map(|(at, seen)| Some((at, seen.tree?))).collect();
        let ids: Vec<ObjectId> = trees.iter().map(|(_, tree)| *tree).collect();
        for ((at, _), content) in trees.iter().zip(workspace.past_contents(&path, &ids)?) {
            if let Some(seen) = seen.get_mut(*at) {
                seen.content = content;
            }
        }
        let first = seen.iter().take(upto).position(|seen| matches!(seen.content, PastContent::Bytes(_)));
        let Some(first) = first.filter(|first| *first > 0 && names.len() < MOST_NAMES) else { break };
        let Some(before) = renamed_from(workspace, root, seen, first)? else { break };
        names.push(Name { path: std::mem::replace(&mut path, before), from: first });
        upto = first;
    }
    names.push(Name { path, from: 0 });
    Ok(names)
}

/// What the file was called before it was first seen under its name.
fn renamed_from(
    workspace: &Workspace,
    root: &Path,
    seen: &[Seen],
    first: usize,
) -> Result<Option<PathBuf>, Error> {
    let (Some(before), Some(after)) = (seen.get(first - 1), seen.get(first)) else { return Ok(None) };
    let (Some(tree), PastContent::Bytes(content)) = (before.tree, &after.content) else { return Ok(None) };
    let old = workspace.files_in(tree)?;
    let gone: Vec<&(PathBuf, String)> = match after.tree {
        Some(now) => {
            let now: HashSet<PathBuf> = workspace.files_in(now)?.into_iter().map(|(path, _)| path).collect();
            old.iter().filter(|(path, _)| !now.contains(path)).collect()
        }
        None => old.iter().filter(|(path, _)| root.join(path).symlink_metadata().is_err()).collect(),
    };
    let mut best: Option<(usize, PathBuf)> = None;
    for (path, _) in gone.into_iter().take(MOST_OTHERS) {
        let found = workspace.past_contents(path, &[tree])?.into_iter().next();
        let Some(PastContent::Bytes(old)) = found else { continue };
        let alike = alike(&old, content);
        // As git does: half of it is enough.
        if alike >= 50 && best.as_ref().is_none_or(|(most, _)| alike > *most) {
            best = Some((alike, path.clone()));
        }
    }
    Ok(best.map(|(_, path)| path))
}

/// How many of the lines of the longer one are in both, in per cent.
pub(super) fn alike(one: &[u8], other: &[u8]) -> usize {
    if one == other {
        return 100;
    }
    let lines = |text: &[u8]| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (one, other) = (lines(one), lines(other));
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for line in &one {
        *counts.entry(line).or_default() += 1;
    }
    let mut both = 0;
    for line in &other {
        if let Some(count) = counts.get_mut(line.as_slice()).filter(|count| **count > 0) {
            *count -= 1;
            both += 1;
        }
    }
    both * 100 / one.len().max(other.len()).max(1)
}
