//! A tree in a temporary directory, and ways to look at it from outside.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use segno_workspace::Options;
use segno_workspace::Snapshot;
use segno_workspace::Workspace;

pub(crate) struct Home {
    _dir: Option<tempfile::TempDir>,
    base: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("project")).unwrap();
        Self { _dir: Some(dir), base }
    }

    /// Somebody else's, who also removes it.
    pub(crate) fn at(base: &Path) -> Self {
        Self { _dir: None, base: base.to_owned() }
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.base.join("project").join(path)
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(self.path(""), self.base.join("shadow"), git_program())
    }

    pub(crate) fn open(&self) -> Workspace {
        Workspace::open(&self.options()).unwrap()
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(std::fs::read(self.path(path)).unwrap()).unwrap()
    }

    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    pub(crate) fn remove(&self, path: impl AsRef<Path>) {
        let path = self.path(path);
        if path.symlink_metadata().unwrap().is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    pub(crate) fn chmod(&self, path: impl AsRef<Path>, mode: u32) {
        std::fs::set_permissions(self.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn mode(&self, path: impl AsRef<Path>) -> u32 {
        self.path(path).symlink_metadata().unwrap().mode() & 0o7777
    }

    /// Runs git in the project the way a user does.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.path(""), arguments)
    }

    /// Goes to a snapshot, with a safety snapshot of that name.
    pub(crate) fn restore(&self, to: &Snapshot, safety: &str) -> segno_workspace::Applied {
        let workspace = self.open();
        let safety = workspace.safety_snapshot(safety).unwrap().snapshot;
        let plan = workspace.plan(to, &segno_workspace::Selection::All, &safety).unwrap();
        workspace.apply(&plan).unwrap()
    }

    /// What is in the tree, without `.git`s.
    pub(crate) fn look(&self) -> BTreeMap<PathBuf, Print> {
        let mut prints = BTreeMap::new();
        look_into(&self.path(""), Path::new(""), &mut prints);
        prints
    }
}

pub(crate) fn git_program() -> PathBuf {
    segno_workspace::git::find(&std::env::var_os("PATH").unwrap()).unwrap()
}

pub(crate) fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=u", "-c", "user.email=u@localhost", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Everything about a path that must come back.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Print {
    pub(crate) kind: &'static str,
    pub(crate) mode: u32,
    pub(crate) content: Vec<u8>,
}

impl std::fmt::Debug for Print {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = self.content.get(..self.content.len().min(40)).unwrap();
        write!(f, "{} {:o} {} {}", self.kind, self.mode, self.content.len(), start.escape_ascii())
    }
}

fn look_into(top: &Path, path: &Path, prints: &mut BTreeMap<PathBuf, Print>) {
    for entry in std::fs::read_dir(top.join(path)).unwrap() {
        let name = entry.unwrap().file_name();
        if name.as_bytes().eq_ignore_ascii_case(b".git") {
            continue;
        }
        let inside = path.join(&name);
        let whole = top.join(&inside);
        let meta = whole.symlink_metadata().unwrap();
        let (kind, content) = if meta.is_dir() {
            ("directory", Vec::new())
        } else if meta.is_symlink() {
            ("link", std::fs::read_link(&whole).unwrap().as_os_str().as_bytes().to_vec())
        } else if meta.is_file() {
            ("file", std::fs::read(&whole).unwrap_or_default())
        } else {
            ("other", Vec::new())
        };
        let mode = if meta.is_symlink() { 0 } else { meta.mode() & 0o7777 };
        prints.insert(inside.clone(), Print { kind, mode, content });
        if meta.is_dir() {
            look_into(top, &inside, prints);
        }
    }
}

/// Says where two looks at a tree differ.
pub(crate) fn assert_same(before: &BTreeMap<PathBuf, Print>, after: &BTreeMap<PathBuf, Print>, what: &str) {
    for (path, print) in before {
        assert_eq!(Some(print), after.get(path), "{what}: {}", path.display());
    }
    for path in after.keys() {
        assert!(before.contains_key(path), "{what}: {} is new", path.display());
    }
}

/// A number from the environment.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Numbers that look random and come again with the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
