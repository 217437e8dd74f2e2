//! Ignore rules, read as data.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;

use ignore::Match;
use ignore::gitignore::Gitignore;
use ignore::gitignore::GitignoreBuilder;

use crate::beneath::as_bytes;
use crate::beneath::as_path;
use crate::beneath::join;
use crate::durable::read_plain;
use crate::tracked::Tracked;
use crate::tracked::common_dir;
use crate::tracked::git_dir;

/// Files of rules are small; a larger one is not one.
const MOST: u64 = 8 << 20;

/// The rules that hold in one directory: its own, then those of the directories above.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    /// How to see a path from the directory that the rules are of.
    view: View,
    own: Option<Gitignore>,
    repository: Option<Repository>,
    /// At the very top: the user's rules for all repositories.
    global: Option<Gitignore>,
}

#[derive(Debug)]
enum View {
    /// The rules are of a directory beneath the root: so many bytes of the path lead to it.
    Below(usize),
    /// The rules are of a directory above the root: this leads from it to the root.
    Above(Vec<u8>),
}

impl Default for View {
    fn default() -> Self {
        Self::Below(0)
    }
}

#[derive(Debug)]
struct Repository {
    git_dir: PathBuf,
    exclude: Option<Gitignore>,
    tracked: OnceLock<Tracked>,
}

impl Repository {
    fn open(top: &Path) -> Option<Self> {
        let git_dir = git_dir(top)?;
        let exclude =
            compile(&read_plain(&common_dir(&git_dir).join("info/exclude"), MOST).unwrap_or_default());
        Some(Self { git_dir, exclude, tracked: OnceLock::new() })
    }

    fn tracked(&self) -> &Tracked {
        self.tracked.get_or_init(|| Tracked::read(&self.git_dir))
    }
}

/// Rules from the text of a file; nothing if there are none. A line that is no rule is passed over, as git does.
pub(crate) fn compile(text: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let _ = builder.add_line(None, &String::from_utf8_lossy(line));
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

impl Rules {
    /// What holds at the root of a working tree: the user's own rules, and those of the repository it is in.
    /// A repository of the whole home directory, such as one for settings, is not around a project in it.
    pub(crate) fn at_root(root: &Path, home: Option<&Path>, global: Option<&Path>) -> Arc<Self> {
        let global = global.and_then(|path| compile(&read_plain(path, MOST).unwrap_or_default()));
        let mut rules = Arc::new(Self { global, ..Self::default() });
        // The root may lie inside a repository. The directories above it, down from the repository's top.
        let Some(top) = top_around(root, home).filter(|top| *top != root) else { return rules };
        let mut between: Vec<&Path> =
            root.ancestors().skip(1).take_while(|dir| dir.starts_with(top)).collect();
        between.reverse();
        for dir in between {
            let own = compile(&read_plain(&dir.join(".gitignore"), MOST).unwrap_or_default());
            let repository = if dir == top { Repository::open(dir) } else { None };
            let lead = root.strip_prefix(dir).map(as_bytes).unwrap_or_default().to_vec();
            rules =
                Arc::new(Self { above: Some(rules), view: View::Above(lead), own, repository, global: None });
        }
        rules
    }

    /// What holds in the directory `path` beneath `root`, given what holds above it and which names are in it.
    pub(crate) fn enter(
        self: &Arc<Self>,
        root: &Path,
        path: &[u8],
        ignore_file: Option<&[u8]>,
        has_git: bool,
    ) -> Arc<Self> {
        let own = ignore_file.and_then(compile);
        let repository = if has_git { Repository::open(&root.join(as_path(path))) } else { None };
        if own.is_none() && repository.is_none() {
            return Arc::clone(self);
        }
        let lead = if path.is_empty() { 0 } else { path.len() + 1 };
        Arc::new(Self {
            above: Some(Arc::clone(self)),
            view: View::Below(lead),
            own,
            repository,
            global: None,
        })
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rules| rules.above.as_deref())
    }

    /// Runs `look` with the path as it is seen from the directory of these rules.
    fn seen<T>(&self, path: &[u8], look: impl FnOnce(&[u8]) -> T) -> T {
        match &self.view {
            View::Below(lead) => look(path.get(*lead..).unwrap_or_default()),
            View::Above(lead) => look(&join(lead, path)),
        }
    }

    /// Whether the rules say that a path is to be ignored. The innermost rule that matches decides.
    pub(crate) fn ignores(&self, path: &[u8], is_dir: bool) -> bool {
        for rules in self.chain() {
            let repository = rules.repository.as_ref().and_then(|repository| repository.exclude.as_ref());
            for matcher in [rules.own.as_ref(), repository, rules.global.as_ref()].into_iter().flatten() {
                match rules.seen(path, |seen| matcher.matched(as_path(seen), is_dir).map(drop)) {
                    Match::Ignore(()) => return true,
                    Match::Whitelist(()) => return false,
                    Match::None => {}
                }
            }
        }
        false
    }

    /// Whether a repository around this path tracks it.
    pub(crate) fn tracks(&self, path: &[u8]) -> bool {
        self.ask_repositories(path, Tracked::contains)
    }

    /// Whether a repository around this directory tracks anything in it.
    pub(crate) fn tracks_below(&self, path: &[u8]) -> bool {
        self.ask_repositories(path, Tracked::reaches_below)
    }

    fn ask_repositories(&self, path: &[u8], ask: fn(&Tracked, &[u8]) -> bool) -> bool {
        self.chain().any(|rules| {
            let repository = rules.repository.as_ref();
            repository.is_some_and(|repository| rules.seen(path, |seen| ask(repository.tracked(), seen)))
        })
    }
}

/// The top of the repository that a directory is in. As git does it, one above that belongs to somebody else does not
/// count: whoever may write to a directory above, such as `/tmp`, could say there what is left out.
pub(crate) fn top_around<'d>(directory: &'d Path, home: Option<&Path>) -> Option<&'d Path> {
    let mut above = directory.ancestors().take_while(|dir| Some(*dir) != home);
    above.find(|dir| git_dir(dir).is_some() && (*dir == directory || is_ours(dir)))
}

/// Whether a work tree and its `.git` belong to us.
fn is_ours(top: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let me = rustix::process::geteuid().as_raw();
    let owner = |path: &Path| std::fs::symlink_metadata(path).map(|meta| meta.uid());
    owner(top).is_ok_and(|uid| uid == me) && owner(&top.join(".git")).is_ok_and(|uid| uid == me)
}

/// Ignored files that the user wants to have all the same, named as in an ignore file.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    matcher: Option<Gitignore>,
    /// The part before the first wildcard, of patterns that name a place.
    prefixes: Vec<Vec<u8>>,
}

impl Wanted {
    pub(crate) fn new(patterns: &[String]) -> Self {
        let mut prefixes = Vec::new();
        for pattern in patterns {
            let named = pattern.trim_start_matches('/');
            let plain = named.split(['*', '?', '[']).next().unwrap_or_default();
            if pattern.trim_end_matches('/').contains('/') {
                prefixes.push(plain.trim_end_matches('/').as_bytes().to_vec());
            }
        }
        Self { matcher: compile(patterns.join("\n").as_bytes()), prefixes }
    }

    pub(crate) fn has(&self, path: &[u8], is_dir: bool) -> bool {
        self.matcher.as_ref().is_some_and(|matcher| matcher.matched(as_path(path), is_dir).is_ignore())
    }

    /// Whether a path, or a directory above it, is wanted.
    pub(crate) fn reaches(&self, path: &[u8]) -> bool {
        let above = std::iter::successors(Some(crate::beneath::split(path).0), |path| {
            Some(crate::beneath::split(path).0)
        });
        self.has(path, false) || above.take_while(|path| !path.is_empty()).any(|path| self.has(path, true))
    }

    /// Whether something below an ignored directory may be wanted. A pattern without a slash names files wherever we
    /// go anyway; it is no reason to search every ignored directory.
    pub(crate) fn reaches_below(&self, directory: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| {
            crate::beneath::is_under(prefix, directory) || crate::beneath::is_under(directory, prefix)
        })
    }
}
