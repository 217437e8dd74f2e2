//! Which paths a repository tracks, read from its index file as data.
//!
//! Git captures what is tracked even where an ignore rule matches it, and so do we.

use std::path::Path;
use std::path::PathBuf;

use crate::beneath::as_path;
use crate::durable::read_plain;

/// No index is larger than this; what claims to be is not read.
const MOST: u64 = 1 << 30;
/// No path is longer, and no project's paths are longer together: an index may say a path by what it shares with the
/// one before, and a small one could fill the memory.
const LONGEST_PATH: usize = 4096;
const MOST_PATH_BYTES: usize = 256 << 20;

/// Tracked paths, in order, from the top of their repository.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    paths: Vec<Vec<u8>>,
}

impl Tracked {
    /// Reads the index of a git directory. Whatever cannot be understood tracks nothing.
    pub(crate) fn read(git_dir: &Path) -> Self {
        let common = common_dir(git_dir);
        let config = read_plain(&common.join("config"), 1 << 20).unwrap_or_default();
        let hash = if is_sha256(&String::from_utf8_lossy(&config)) { 32 } else { 20 };
        let mut paths = Vec::new();
        if let Some(bytes) = read_plain(&git_dir.join("index"), MOST) {
            let shared = parse(&bytes, hash, &mut paths).unwrap_or_default();
            // A split index keeps most entries in a second file. Those deleted since are in it too, which does no harm.
            if let Some(shared) = shared
                && let Some(bytes) = read_plain(&git_dir.join(format!("sharedindex.{shared}")), MOST)
            {
                let _ = parse(&bytes, hash, &mut paths);
            }
        }
        paths.sort_unstable();
        Self { paths }
    }

    pub(crate) fn contains(&self, path: &[u8]) -> bool {
        self.paths.binary_search_by(|tracked| tracked.as_slice().cmp(path)).is_ok()
    }

    /// Whether anything below a directory is tracked.
    pub(crate) fn reaches_below(&self, directory: &[u8]) -> bool {
        let start = [directory, b"/"].concat();
        let from = self.paths.partition_point(|tracked| *tracked < start);
        self.paths.get(from).is_some_and(|tracked| tracked.starts_with(&start))
    }
}

/// Where a repository keeps what its work trees share.
pub(crate) fn common_dir(git_dir: &Path) -> PathBuf {
    let named = read_plain(&git_dir.join("commondir"), 4096);
    named.map_or_else(|| git_dir.to_owned(), |name| git_dir.join(as_path(name.trim_ascii_end())))
}

/// The git directory of a work tree: `.git` itself, or what a file of that name points to.
pub(crate) fn git_dir(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    let meta = std::fs::symlink_metadata(&dot_git).ok()?;
    if meta.is_file() {
        let text = read_plain(&dot_git, 4096)?;
        let path = text.strip_prefix(b"gitdir:")?.trim_ascii();
        return Some(top.join(as_path(path)));
    }
    dot_git.join("HEAD").exists().then_some(dot_git)
}

fn is_sha256(config: &str) -> bool {
    config.lines().any(|line| {
        let mut sides = line.split('=').map(str::trim);
        sides.next().is_some_and(|key| key.eq_ignore_ascii_case("objectformat"))
            && sides.next().is_some_and(|value| value.eq_ignore_ascii_case("sha256"))
    })
}

/// Adds the paths of an index file; answers with the shared index it builds on, if any.
fn parse(bytes: &[u8], hash: usize, paths: &mut Vec<Vec<u8>>) -> Option<Option<String>> {
    let number = |at: usize| -> Option<u32> {
        bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_be_bytes)
    };
    if !bytes.starts_with(b"DIRC") {
        return None;
    }
    let (version, count) = (number(4)?, number(8)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut previous: Vec<u8> = Vec::new();
    let mut bytes_left = MOST_PATH_BYTES;
    for _ in 0..count {
        let start = at;
        at += 40 + hash;
        let flags = *bytes.get(at)?;
        at += 2;
        if version >= 3 && flags & 0x40 != 0 {
            at += 2;
        }
        let mut path = Vec::new();
        if version == 4 {
            let cut = variable_number(bytes, &mut at)?;
            path.extend_from_slice(previous.get(..previous.len().checked_sub(cut)?)?);
        }
        let rest = bytes.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(rest.get(..end)?);
        at += end + 1;
        if version < 4 {
            // Entries are padded to a multiple of eight.
            at = start + (at - start).div_ceil(8) * 8;
        }
        bytes_left = bytes_left.checked_sub(path.len()).filter(|_| path.len() <= LONGEST_PATH)?;
        if version == 4 {
            previous.clone_from(&path);
        }
        if !path.is_empty() {
            paths.push(path);
        }
    }
    let mut shared = None;
    while let (Some(name), Some(size)) = (bytes.get(at..at + 4), number(at + 4)) {
        if at + hash >= bytes.len() {
            break;
        }
        if name == b"link" {
            let id = bytes.get(at + 8..at + 8 + hash)?;
            let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            shared = id.iter().any(|byte| *byte != 0).then_some(hex);
        }
        at = at.checked_add(8)?.checked_add(size as usize)?;
    }
    Some(shared)
}

/// A number as index version 4 writes it.
fn variable_number(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        let byte = bytes.get(*at).copied();
        *at += 1;
        byte
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}
