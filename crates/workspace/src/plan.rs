//! Decides what a restore or an undo will do, before anything is touched.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use crate::Workspace;
use crate::beneath::as_bytes;
use crate::beneath::as_path;
use crate::beneath::is_under;
use crate::changes::CapturedTree;
use crate::changes::Difference;
use crate::changes::Differences;
use crate::changes::Node;
use crate::changes::differences;
use crate::error::Error;
use crate::historic_ignore::RulesThen;
use crate::manifest::Manifest;
use crate::manifest::Reason;
use crate::record::Snapshot;
use crate::tree_writer::TreeWriter;

/// Which paths are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// These, from the top of the tree, and what is beneath them.
    Paths(Vec<PathBuf>),
}

impl Selection {
    /// Whether a path from the top of the tree is chosen.
    pub fn has_path(&self, path: &Path) -> bool {
        self.has(as_bytes(path))
    }

    fn has(&self, path: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Paths(paths) => paths.iter().any(|chosen| is_under(path, trimmed(as_bytes(chosen)))),
        }
    }
}

/// Without the dot before and the slashes behind that people type.
fn trimmed(mut path: &[u8]) -> &[u8] {
    while let Some(rest) = path.strip_prefix(b"./") {
        path = rest;
    }
    while let Some(rest) = path.strip_suffix(b"/") {
        path = rest;
    }
    if path == b"." { b"" } else { path }
}

/// Why a path is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Something is there that the safety snapshot does not hold: ignored, too large, not a file.
    NotCaptured,
    /// It was there when the target was made, but could not be captured.
    LeftOutThen(Reason),
    /// The rules of the target ignored it, so it may well have been there.
    IgnoredThen,
    /// Somebody changed it after what is to be undone.
    ChangedSince,
    /// It changed while the session did nothing: somebody else did it.
    Others,
    /// It may have been the session or somebody else.
    Unsure,
    /// Somebody changed it after the safety snapshot.
    Edited,
    /// The directory holds something that stays.
    NotEmpty,
    /// The system refused, or the way leads through a link or a file.
    Blocked(String),
    /// Somebody's version was moved aside when a restore died, and something else took its place. It is here.
    Aside(PathBuf),
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotCaptured => f.write_str("what is there is in no snapshot"),
            Self::LeftOutThen(reason) => write!(f, "it was not captured then: {reason}"),
            Self::IgnoredThen => f.write_str("it was ignored then"),
            Self::ChangedSince => f.write_str("it was changed since"),
            Self::Others => f.write_str("somebody else changed it, not this session (--all takes it too)"),
            Self::Unsure => f.write_str("this session or somebody else changed it (--all takes it too)"),
            Self::Edited => f.write_str("it was changed just now"),
            Self::NotEmpty => f.write_str("the directory holds something else"),
            Self::Blocked(why) => f.write_str(why),
            Self::Aside(path) => write!(f, "somebody's version of it is at {}", path.display()),
        }
    }
}

/// A path that is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where, from the top of the tree.
    pub path: PathBuf,
    /// Why.
    pub why: Why,
}

impl Kept {
    pub(crate) fn new(path: &[u8], why: Why) -> Self {
        Self { path: as_path(path).to_owned(), why }
    }
}

/// What a restore will do. It can be shown, and then applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The snapshot to go to.
    pub target: Snapshot,
    /// The snapshot that holds what is there now.
    pub safety: Snapshot,
    /// What stays as it is though the target differs.
    pub kept: Vec<Kept>,
    pub(crate) steps: Differences,
}

impl Plan {
    /// Files, links and empty directories that will be written or get other permissions.
    pub fn writes(&self) -> impl Iterator<Item = PathBuf> {
        self.steps.iter().filter(|(_, step)| step.to.is_some()).map(|(path, _)| as_path(path).to_owned())
    }

    /// What will be removed. The safety snapshot holds all of it.
    pub fn removals(&self) -> impl Iterator<Item = PathBuf> {
        self.steps.iter().filter(|(_, step)| step.to.is_none()).map(|(path, _)| as_path(path).to_owned())
    }

    /// Permissions that will be set, of files that are not plain ones anybody may read.
    pub fn modes(&self) -> impl Iterator<Item = (PathBuf, u32)> {
        self.steps.iter().filter_map(|(path, step)| match step.to {
            Some(Node::File { permissions, .. }) if permissions != 0o644 => {
                Some((as_path(path).to_owned(), permissions))
            }
            _ => None,
        })
    }

    /// The files and links that would be changed.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        let is_file = |step: &Difference| step.from.iter().chain(&step.to).any(|node| !node.is_directory());
        self.steps.iter().filter(move |(_, step)| is_file(step)).map(|(path, _)| as_path(path).to_owned())
    }

    /// Whether another plan finds the same at the paths it changes.
    pub fn starts_from_the_same(&self, other: &Self) -> bool {
        self.steps == other.steps
    }

    /// Leaves files as they are for which `why` has a reason, and the directories that would come or go with them.
    pub fn leave(&mut self, why: impl Fn(&Path) -> Option<Why>) {
        let mut kept = Vec::new();
        let only_directories =
            |step: &Difference| step.from.iter().chain(&step.to).all(|node| node.is_directory());
        let before = self.steps.len();
        self.steps.retain(|path, step| {
            let why = if only_directories(step) { None } else { why(as_path(path)) };
            let Some(why) = why else { return true };
            kept.push(Kept::new(path, why));
            false
        });
        if self.steps.len() < before {
            let files = self.steps.iter().filter(|(_, step)| !only_directories(step));
            let files: Vec<Vec<u8>> = files.map(|(path, _)| path.clone()).collect();
            let left = |path: &[u8]| kept.iter().any(|kept| is_under(as_bytes(&kept.path), path));
            self.steps.retain(|path, step| {
                !only_directories(step) || !left(path) || files.iter().any(|file| is_under(file, path))
            });
        }
        self.kept.append(&mut kept);
        self.kept.sort_by(|one, other| one.path.cmp(&other.path));
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl Workspace {
    /// What going to `target` will do. `safety` is a snapshot of the present tree, made for this.
    pub fn plan(&self, target: &Snapshot, selection: &Selection, safety: &Snapshot) -> Result<Plan, Error> {
        let _lock = self.shadow.lock_shared(self.options.patience)?;
        let (then, now) = (self.manifest(target)?, self.manifest(safety)?);
        let all = differences(&self.git, captive(safety, &now), captive(target, &then))?;
        let chosen = all.keys().filter(|path| selection.has(path)).cloned().collect();
        let rules = self.rules_then(|path| all.get(path).map(|step| step.to), all.keys())?;
        let plan = Plan {
            target: target.clone(),
            safety: safety.clone(),
            kept: Vec::new(),
            steps: only(all, &chosen),
        };
        Ok(self.check(plan, &then, &rules))
    }

    /// What taking back the changes from `before` to `after` will do. Paths that are no more as `after` has them are
    /// kept. With the two swapped it is a redo.
    pub fn plan_undo(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        selection: &Selection,
        safety: &Snapshot,
    ) -> Result<Plan, Error> {
        let _lock = self.shadow.lock_shared(self.options.patience)?;
        let (then, made) = (self.manifest(before)?, self.manifest(after)?);
        let now = self.manifest(safety)?;
        let done = differences(&self.git, captive(before, &then), captive(after, &made))?;
        let since = differences(&self.git, captive(after, &made), captive(safety, &now))?;
        let mut kept = Vec::new();
        let mut chosen = BTreeSet::new();
        for (path, change) in done.iter().filter(|(path, _)| selection.has(path)) {
            match since.get(path) {
                None => drop(chosen.insert(path.clone())),
                Some(later) if later.to == change.from => {}
                Some(_) => kept.push(Kept::new(path, Why::ChangedSince)),
            }
        }
        // A file that did not change in between is as it was before that.
        let before_that = |path: &[u8]| {
            done.get(path).map(|change| change.from).or(since.get(path).map(|later| later.from))
        };
        let rules = self.rules_then(before_that, done.keys().chain(since.keys()))?;
        let steps = done.into_iter().map(|(path, step)| (path, step.reversed()));
        let steps = steps.filter(|(path, _)| !since.contains_key(path)).collect();
        let plan = Plan { target: before.clone(), safety: safety.clone(), kept, steps: only(steps, &chosen) };
        Ok(self.check(plan, &then, &rules))
    }

    /// The same plan again, for a restore that was cut short.
    pub(crate) fn plan_again(
        &self,
        target: &Snapshot,
        safety: &Snapshot,
        paths: &BTreeSet<Vec<u8>>,
    ) -> Result<Plan, Error> {
        let (then, now) = (self.manifest(target)?, self.manifest(safety)?);
        let mut steps = differences(&self.git, captive(safety, &now), captive(target, &then))?;
        steps.retain(|path, _| paths.contains(path));
        Ok(Plan { target: target.clone(), safety: safety.clone(), kept: Vec::new(), steps })
    }

    /// Takes out of a plan what must not be done, going by what is there now.
    fn check(&self, mut plan: Plan, then: &Manifest, rules: &RulesThen) -> Plan {
        let writer = TreeWriter::new(&self.root);
        let left_out: Vec<(&[u8], Reason)> = then
            .exceptions
            .iter()
            .filter(|exception| exception.reason != Reason::Unstable)
            .map(|exception| (as_bytes(&exception.path), exception.reason))
            .collect();
        let mut kept = Vec::new();
        plan.steps.retain(|path, step| {
            if self.never.iter().any(|never| is_under(path, never)) {
                return false;
            }
            // What the target could not capture was there all the same.
            let missed = left_out.iter().find(|(missed, _)| is_under(path, missed) || is_under(missed, path));
            let why = match (step.to, missed) {
                (None, Some((_, reason))) => Some(Why::LeftOutThen(*reason)),
                (None, None)
                    if !self.wanted.reaches(path)
                        && rules.ignored(path, step.from.is_some_and(|node| node.is_directory())) =>
                {
                    Some(Why::IgnoredThen)
                }
                _ => writer.refuse(path, step),
            };
            let Some(why) = why else { return true };
            kept.push(Kept::new(path, why));
            false
        });
        plan.kept.append(&mut kept);
        plan.kept.sort_by(|one, other| one.path.cmp(&other.path));
        plan
    }
}

pub(crate) fn captive<'a>(snapshot: &Snapshot, manifest: &'a Manifest) -> CapturedTree<'a> {
    CapturedTree { tree: snapshot.tree, manifest }
}

/// The chosen steps, and the directories that must come or may go with them.
fn only(mut steps: Differences, chosen: &BTreeSet<Vec<u8>>) -> Differences {
    let mut with_above = chosen.clone();
    for path in chosen {
        let mut above = crate::beneath::split(path).0;
        while !above.is_empty() && with_above.insert(above.to_vec()) {
            above = crate::beneath::split(above).0;
        }
    }
    steps.retain(|path, step| {
        let is_directory = |node: &crate::changes::Node| node.is_directory();
        let only_directories = step.from.iter().chain(&step.to).all(is_directory);
        chosen.contains(path) || (only_directories && with_above.contains(path))
    });
    steps
}
