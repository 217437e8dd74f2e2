//! The project's own repository: where it stands, read as data, and moving its branch when the user asks.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::path::PathBuf;

use crate::Workspace;
use crate::durable;
use crate::durable::read_plain;
use crate::error::Context as _;
use crate::error::Error;
use crate::git::Git;
use crate::rules::top_around;
use crate::shadow::is_name;
use crate::tracked::Tracked;
use crate::tracked::common_dir;
use crate::tracked::git_dir;

/// Where a repository stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The top of its work tree.
    pub top: PathBuf,
    /// Its git directory.
    pub git_dir: PathBuf,
    /// The commit, in hexadecimal; nothing before the first one.
    pub commit: Option<String>,
    /// The branch, such as `refs/heads/main`; nothing if the commit was checked out without one.
    pub branch: Option<String>,
}

/// A branch that was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The branch, or `HEAD` if there was none.
    pub what: String,
    /// Where it was.
    pub from: String,
    /// Where it is.
    pub to: String,
    /// The ref that keeps where it was.
    pub kept_as: String,
}

/// The branch that the repository around a directory is on, as far as a file says so. Nothing is run.
pub fn branch_around(directory: &Path, home: Option<&Path>) -> Option<String> {
    let head = read_ref_file(&git_dir(top_around(directory, home)?)?.join("HEAD"))?;
    let branch = head.strip_prefix("ref:")?.trim();
    // Where refs are in a table, this file only says so. Git has no names with control characters.
    let is_name = branch != "refs/heads/.invalid" && !branch.chars().any(char::is_control);
    is_name.then(|| branch.to_owned())
}

impl Workspace {
    /// Where the repository around the tree stands; nothing if there is none. Nothing is run that it configures.
    pub fn head(&self) -> Result<Option<Head>, Error> {
        let top = top_around(&self.options.root, self.options.home.as_deref());
        let Some((top, git_dir)) = top.and_then(|top| Some((top, git_dir(top)?))) else { return Ok(None) };
        let (commit, branch) = if common_dir(&git_dir).join("reftable").is_dir() {
            let git = self.git.in_dir(&git_dir);
            let ask = |arguments: &[&str]| {
                let said = git.run(arguments).ok()?;
                Some(String::from_utf8_lossy(&said).trim().to_owned()).filter(|said| !said.is_empty())
            };
            (ask(&["rev-parse", "--verify", "--quiet", "HEAD"]), ask(&["symbolic-ref", "--quiet", "HEAD"]))
        } else {
            let head = read_ref_file(&git_dir.join("HEAD"));
            match head.as_deref().and_then(|head| head.strip_prefix("ref:")).map(str::trim) {
                Some(branch) => (resolve(&common_dir(&git_dir), branch), Some(branch.to_owned())),
                None => (head.filter(|head| is_hex(head)), None),
            }
        };
        Ok(Some(Head { top: top.to_owned(), git_dir, commit, branch }))
    }

    /// How many commits `to` has that `from` has not; all of them if there was none before. One that cannot be counted,
    /// such as after history was written anew and cleaned up, counts as one.
    pub fn commits_between(&self, from: Option<&str>, to: &str) -> Result<u64, Error> {
        let Some(head) = self.head()?.filter(|_| is_hex(to) && from.is_none_or(is_hex)) else { return Ok(0) };
        let without = from.map(|from| format!("^{from}"));
        let mut arguments = vec!["rev-list", "--count", to];
        arguments.extend(without.as_deref());
        let said = self.git.in_dir(&head.git_dir).run(&arguments).ok();
        let count = said.and_then(|said| String::from_utf8_lossy(&said).trim().parse().ok());
        Ok(count.unwrap_or(1))
    }

    /// Whether tracked files differ from the last commit. We look through a repository of our own at copies, so
    /// nothing that theirs configures can run.
    pub fn is_dirty(&self, head: &Head) -> Result<bool, Error> {
        self.differs(head, "--untracked-files=no")
    }

    /// The same, with files that git does not know yet and does not ignore.
    pub fn has_uncommitted(&self, head: &Head) -> Result<bool, Error> {
        self.differs(head, "--untracked-files=normal")
    }

    /// Those of some files of the project that its repository tracks. What cannot be told of is not among them.
    pub fn tracked_among(&self, head: &Head, files: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let tracked = Tracked::read(&head.git_dir);
        let root = self.options.root.strip_prefix(&head.top).unwrap_or_else(|_| Path::new(""));
        let is_tracked = |path: &&PathBuf| tracked.contains(root.join(path).as_os_str().as_bytes());
        files.iter().filter(is_tracked).cloned().collect()
    }

    /// Where the repository keeps what all its work trees share: the same for each of them.
    pub fn shared_dir(&self, head: &Head) -> PathBuf {
        let common = common_dir(&head.git_dir);
        common.canonicalize().unwrap_or(common)
    }

    fn differs(&self, head: &Head, untracked: &str) -> Result<bool, Error> {
        let _lock = self.shadow.lock(self.options.patience)?;
        let probe = self.shadow.probe();
        for part in ["objects/info", "refs"] {
            durable::make_dirs(&probe.join(part))?;
        }
        let format = match head.commit.as_ref().map(String::len) {
            Some(64) => "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n",
            _ => "[core]\n\trepositoryformatversion = 0\n",
        };
        let put = |name: &str, bytes: &[u8]| durable::replace_lazily(&probe.join(name), bytes);
        put("config", format.as_bytes())?;
        put("HEAD", format!("{}\n", head.commit.as_deref().unwrap_or("ref: refs/heads/none")).as_bytes())?;
        let mut objects = crate::beneath::as_bytes(&common_dir(&head.git_dir).join("objects")).to_vec();
        objects.push(b'\n');
        put("objects/info/alternates", &objects)?;
        durable::make_dirs(&probe.join("info"))?;
        let exclude = read_plain(&common_dir(&head.git_dir).join("info/exclude"), 1 << 20);
        put("info/exclude", &exclude.unwrap_or_default())?;
        for entry in std::fs::read_dir(&head.git_dir).context("cannot list", &head.git_dir)?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == "index" || name.starts_with("sharedindex.") {
                put(&name, &read_plain(&entry.path(), 1 << 30).unwrap_or_default())?;
            }
        }
        let git = self.git.in_dir(&probe).with("GIT_WORK_TREE", &head.top);
        let said =
            git.run(&["status", "--porcelain", "-z", "--no-renames", untracked, "--ignore-submodules=all"]);
        crate::shadow::remove_all(&probe)?;
        Ok(!said?.is_empty())
    }

    /// Begins a branch at the present commit and makes it the present one. Files, index and the branch before stay as
    /// they are. Fails if there is a branch of that name. Answers with its whole name.
    pub fn start_branch(&self, name: &str) -> Result<String, Error> {
        let refuse = |why: &str| Err(Error::Repository(format!("{name}: {why}")));
        let head = self.head()?.ok_or_else(|| Error::Repository("there is none".to_owned()))?;
        let Some(commit) = head.commit.clone() else { return refuse("there is no commit to begin it at") };
        let git = self.git.in_dir(&head.git_dir);
        let whole = format!("refs/heads/{name}");
        if git.run(&["check-ref-format", &whole]).is_err() || name.starts_with('-') {
            return refuse("that cannot name a branch");
        }
        let input = format!("start\noption no-deref\ncreate {whole} {commit}\nprepare\ncommit\n");
        if git.feed(&["update-ref", "-m", "segno: branch of a session", "--stdin"], input.as_bytes()).is_err()
        {
            return refuse("there is such a branch already, or it cannot be made");
        }
        git.run(&["symbolic-ref", "-m", "segno: branch of a session", "HEAD", &whole])?;
        Ok(whole)
    }

    /// Goes to a branch as its user would: the files go with it. Fails, and changes nothing, if something that is not
    /// committed would be lost, an ignored file too. No hook is run.
    pub fn checkout_branch(&self, name: &str) -> Result<(), Error> {
        let refuse = |why: &str| Error::Repository(format!("{name}: {why}"));
        let head = self.head()?.ok_or_else(|| Error::Repository("there is none".to_owned()))?;
        if name.starts_with('-') {
            return Err(refuse("that cannot name a branch"));
        }
        let git = self.git.in_dir(&head.git_dir).with("GIT_WORK_TREE", &head.top);
        let going = ["checkout", "--quiet", "--no-guess", "--no-overwrite-ignore", name, "--"];
        git.run(&going).map(drop).map_err(|why| match why {
            Error::Git { said, .. } => refuse(said.lines().next().unwrap_or("it cannot be checked out")),
            other => other,
        })
    }

    /// Moves the present branch to `to` and keeps where it was as `refs/segno/<keep_as>`. Files and index stay as they
    /// are. Fails if the branch is not at `from` any more.
    pub fn move_branch(&self, from: &str, to: &str, keep_as: &str) -> Result<Moved, Error> {
        if !is_name(keep_as) {
            return Err(Error::BadName(keep_as.to_owned()));
        }
        let head = self.head()?.ok_or_else(|| Error::Repository("there is none".to_owned()))?;
        let git = self.git.in_dir(&head.git_dir);
        for commit in [from, to] {
            check_commit(&git, commit)?;
        }
        let what = head.branch.clone().unwrap_or_else(|| "HEAD".to_owned());
        let kept_as = format!("refs/segno/{keep_as}");
        let input = format!(
            "start\noption no-deref\ncreate {kept_as} {from}\noption no-deref\nupdate {what} {to} {from}\nprepare\ncommit\n"
        );
        git.feed(&["update-ref", "-m", "segno: rollback", "--stdin"], input.as_bytes())?;
        let common = common_dir(&head.git_dir);
        for name in [&kept_as, &what] {
            let parent = common.join(name).parent().map(Path::to_owned);
            if let Some(parent) = parent.filter(|parent| parent.is_dir()) {
                durable::sync_dir(&parent)?;
            }
        }
        Ok(Moved { what, from: from.to_owned(), to: to.to_owned(), kept_as })
    }
}

fn check_commit(git: &Git, commit: &str) -> Result<(), Error> {
    let no_commit = || Error::Repository(format!("{commit} is no commit of it"));
    if !is_hex(commit) {
        return Err(no_commit());
    }
    let kind = git.run(&["cat-file", "-t", commit]).map_err(|_| no_commit())?;
    if kind.trim_ascii() == b"commit" { Ok(()) } else { Err(no_commit()) }
}

fn is_hex(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn read_ref_file(path: &Path) -> Option<String> {
    let bytes = read_plain(path, 4096)?;
    Some(String::from_utf8_lossy(bytes.trim_ascii()).into_owned())
}

/// The commit that a ref stands for: in a file of its own, or in the list of packed refs.
fn resolve(common: &Path, name: &str) -> Option<String> {
    let mut name = name.to_owned();
    // A ref may name another one, but not for ever.
    for _ in 0..5 {
        let sound = name.starts_with("refs/") && name.split('/').all(|part| !part.is_empty() && part != "..");
        if !sound {
            return None;
        }
        let Some(text) = read_ref_file(&common.join(&name)) else {
            let packed = read_plain(&common.join("packed-refs"), 1 << 30)?;
            let packed = String::from_utf8_lossy(&packed);
            let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
            return lines.find(|(_, of)| *of == name).map(|(id, _)| id.to_owned()).filter(|id| is_hex(id));
        };
        match text.strip_prefix("ref:") {
            Some(next) => name = next.trim().to_owned(),
            None => return Some(text).filter(|text| is_hex(text)),
        }
    }
    None
}
