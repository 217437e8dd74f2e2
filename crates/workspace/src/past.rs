//! Contents of one file in many snapshots, and in commits of the project's repository.

use std::path::Path;
use std::path::PathBuf;

use crate::Workspace;
use crate::beneath::as_bytes;
use crate::beneath::as_path;
use crate::beneath::is_sound;
use crate::error::Error;
use crate::git::Git;
use crate::id::ObjectId;

/// More of one file is not read.
const MOST_BYTES: u64 = 8 << 20;
/// A snapshot of a project has no more files.
const MOST_FILES: usize = 200_000;

/// What a snapshot has at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PastContent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing.
    Absent,
    /// Something that cannot be read, or is too large.
    Unknown,
}

/// A commit of the project's repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// When it was made, in seconds since 1970.
    pub committed: i64,
    /// Its first line.
    pub subject: String,
    /// Files that it changed or made, from the top of the tree.
    pub files: Vec<PathBuf>,
}

impl Workspace {
    /// What each of these trees of snapshots has at a path. All are read by one process.
    ///
    /// # Errors
    /// If git cannot be asked.
    pub fn past_contents(&self, path: &Path, trees: &[ObjectId]) -> Result<Vec<PastContent>, Error> {
        let _lock = self.shadow.lock_shared(self.options.patience)?;
        let names: Vec<String> = trees.iter().map(ToString::to_string).collect();
        contents(&self.git, path, &names)
    }

    /// The files of a snapshot's tree, with what names their content.
    ///
    /// # Errors
    /// If git cannot be asked.
    pub fn files_in(&self, tree: ObjectId) -> Result<Vec<(PathBuf, String)>, Error> {
        let _lock = self.shadow.lock_shared(self.options.patience)?;
        let raw = self.git.run(&["ls-tree", "-r", "-z", "--full-tree", &tree.to_string()])?;
        let lines = raw.split(|byte| *byte == 0).filter(|line| !line.is_empty()).take(MOST_FILES);
        let parse = |line: &[u8]| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let id = std::str::from_utf8(line.get(..tab)?).ok()?.split(' ').nth(2)?.to_owned();
            let path = line.get(tab + 1..)?;
            is_sound(path).then(|| (as_path(path).to_owned(), id))
        };
        Ok(lines.filter_map(parse).collect())
    }

    /// A commit of the project's repository; nothing if it has no such commit.
    ///
    /// # Errors
    /// If the project has no repository.
    pub fn find_commit(&self, name: &str) -> Result<Option<Commit>, Error> {
        // A name that begins like an option is none.
        let is_name = !name.starts_with('-') && name.len() < 256 && !name.contains([' ', ':', '\n', '\0']);
        let Some(head) = self.head()?.filter(|_| is_name) else { return Ok(None) };
        let git = self.git.in_dir(&head.git_dir);
        let asked = format!("{name}^{{commit}}");
        let Ok(id) = git.run(&["rev-parse", "--verify", "--quiet", &asked]) else {
            return Ok(None);
        };
        let id = String::from_utf8_lossy(&id).trim().to_owned();
        let said = git.run(&["log", "-1", "--no-color", "--no-show-signature", "--format=%ct%n%s", &id])?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let (committed, subject) = said.split_once('\n').unwrap_or((&said, ""));
        let list =
            ["diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--no-renames", "--diff-filter=AM"];
        let parent = format!("{id}^");
        let listed = match git.run(&[list.as_slice(), &[parent.as_str(), id.as_str()]].concat()) {
            Ok(listed) => listed,
            // The first commit has none before it.
            Err(_) => git.run(&[list.as_slice(), &["--root", id.as_str()]].concat())?,
        };
        // The tree may be a part of the repository.
        let inside = self.options.root.strip_prefix(&head.top).unwrap_or_else(|_| Path::new("")).to_owned();
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty() && is_sound(path));
        let files = paths.filter_map(|path| as_path(path).strip_prefix(&inside).ok().map(Path::to_owned));
        Ok(Some(Commit {
            committed: committed.trim().parse().unwrap_or(0),
            subject: subject.trim().to_owned(),
            files: files.collect(),
            id,
        }))
    }

    /// What a commit, and the one before it, have at a path.
    ///
    /// # Errors
    /// If git cannot be asked.
    pub fn committed_contents(&self, commit: &str, path: &Path) -> Result<(PastContent, PastContent), Error> {
        let Some(head) = self.head()? else { return Ok((PastContent::Unknown, PastContent::Unknown)) };
        let inside = self.options.root.strip_prefix(&head.top).unwrap_or_else(|_| Path::new(""));
        let git = self.git.in_dir(&head.git_dir);
        let both = contents(&git, &inside.join(path), &[format!("{commit}^"), commit.to_owned()])?;
        let mut both = both.into_iter();
        let before = both.next().unwrap_or(PastContent::Unknown);
        Ok((before, both.next().unwrap_or(PastContent::Unknown)))
    }
}

fn contents(git: &Git, path: &Path, trees: &[String]) -> Result<Vec<PastContent>, Error> {
    let bytes = as_bytes(path);
    if bytes.contains(&b'\n') || !is_sound(bytes) || trees.is_empty() {
        return Ok(vec![PastContent::Unknown; trees.len()]);
    }
    let mut asked = Vec::new();
    for tree in trees {
        asked.extend(tree.as_bytes());
        asked.push(b':');
        asked.extend(bytes);
        asked.push(b'\n');
        // What is not in a tree is missing, and so is a tree that is gone.
        asked.extend(tree.as_bytes());
        asked.push(b'\n');
    }
    let sizes = git.feed(&["cat-file", "--batch-check=%(objecttype) %(objectname) %(objectsize)"], &asked)?;
    let sizes = String::from_utf8_lossy(&sizes).into_owned();
    let mut lines = sizes.lines();
    let mut found: Vec<Result<String, PastContent>> = Vec::new();
    while let (Some(at_path), Some(at_tree)) = (lines.next(), lines.next()) {
        let mut words = at_path.split(' ');
        let (kind, id, size) =
            (words.next(), words.next(), words.next().and_then(|size| size.parse::<u64>().ok()));
        found.push(match (kind, id, size) {
            (Some("blob"), Some(id), Some(size)) if size <= MOST_BYTES => Ok(id.to_owned()),
            (Some("blob"), ..) => Err(PastContent::Unknown),
            (Some("tree"), Some(_), Some(_)) => Err(PastContent::Absent),
            _ if at_path.ends_with(" missing") && !at_tree.ends_with(" missing") => Err(PastContent::Absent),
            _ => Err(PastContent::Unknown),
        });
    }
    let mut ids: Vec<&String> = found.iter().filter_map(|found| found.as_ref().ok()).collect();
    ids.sort();
    ids.dedup();
    let blobs = read_blobs(git, &ids)?;
    let content = |found: &Result<String, PastContent>| match found {
        Ok(id) => blobs.get(id).cloned().map_or(PastContent::Unknown, PastContent::Bytes),
        Err(other) => other.clone(),
    };
    Ok(found.iter().map(content).collect())
}

fn read_blobs(git: &Git, ids: &[&String]) -> Result<std::collections::HashMap<String, Vec<u8>>, Error> {
    let mut blobs = std::collections::HashMap::new();
    if ids.is_empty() {
        return Ok(blobs);
    }
    let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let raw = git.feed(&["cat-file", "--batch"], asked.as_bytes())?;
    let mut rest = raw.as_slice();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
        let mut words = head.split(' ');
        let (id, _, size) =
            (words.next(), words.next(), words.next().and_then(|size| size.parse::<usize>().ok()));
        let (Some(id), Some(size)) = (id, size) else {
            rest = rest.get(end + 1..).unwrap_or_default();
            continue;
        };
        let Some(content) = rest.get(end + 1..end + 1 + size) else { break };
        blobs.insert(id.to_owned(), content.to_vec());
        rest = rest.get(end + 2 + size..).unwrap_or_default();
    }
    Ok(blobs)
}
