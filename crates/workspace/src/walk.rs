//! Lists a working tree: several directories at once, nothing through links, nothing that is ignored.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;

use rustix::fs::AtFlags;
use rustix::fs::Dir;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::beneath::Root;
use crate::beneath::as_path;
use crate::beneath::is_reserved;
use crate::beneath::join;
use crate::historic_ignore::read_rules;
use crate::manifest::Exception;
use crate::manifest::Reason;
use crate::rules::Rules;
use crate::rules::Wanted;
use crate::stat::Stat;

/// A file or a symbolic link that is to be captured.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: Vec<u8>,
    pub(crate) stat: Stat,
}

/// A directory that was listed.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) path: Vec<u8>,
    pub(crate) permissions: u32,
    /// Files and links, in the order of their names.
    pub(crate) files: Vec<Found>,
    /// Names of the directories in it.
    pub(crate) directories: Vec<Vec<u8>>,
}

/// What to list.
pub(crate) struct Walk<'a> {
    pub(crate) root: &'a Root,
    pub(crate) top: &'a Path,
    pub(crate) home: Option<&'a Path>,
    pub(crate) global: Option<&'a Path>,
    pub(crate) wanted: &'a Wanted,
    /// Paths that are passed over.
    pub(crate) never: &'a HashSet<Vec<u8>>,
    pub(crate) largest: u64,
}

/// What was listed: directories in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) directories: Vec<Listed>,
    pub(crate) exceptions: Vec<Exception>,
}

/// How the contents of a directory are chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// By the rules.
    Rules,
    /// It is ignored: only what is tracked or wanted.
    OnlyNamed,
    /// All of it is wanted.
    All,
}

struct Job {
    path: Vec<u8>,
    rules: Arc<Rules>,
    choice: Choice,
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    running: usize,
    done: Tree,
    failed: Option<(Vec<u8>, Errno)>,
}

/// How many threads are worth starting.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).min(8)
}

impl Walk<'_> {
    /// Lists everything. Fails only if the top itself cannot be read.
    pub(crate) fn run(&self) -> Result<Tree, (Vec<u8>, Errno)> {
        let rules = Rules::at_root(self.top, self.home, self.global);
        let first = Job { path: Vec::new(), rules, choice: Choice::Rules };
        let queue = Mutex::new(Queue { jobs: vec![first], ..Queue::default() });
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            for _ in 0..threads() {
                scope.spawn(|| self.work(&queue, &changed));
            }
        });
        let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(failed) = queue.failed {
            return Err(failed);
        }
        let mut done = queue.done;
        done.directories.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        done.exceptions.sort_unstable();
        Ok(done)
    }

    fn work(&self, queue: &Mutex<Queue>, changed: &Condvar) {
        let mut held = queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(job) = held.jobs.pop() else {
                if held.running == 0 {
                    changed.notify_all();
                    return;
                }
                held = changed.wait(held).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            held.running += 1;
            drop(held);
            let (mut jobs, mut exceptions) = (Vec::new(), Vec::new());
            let listed = self.list(&job, &mut jobs, &mut exceptions);
            held = queue.lock().unwrap_or_else(PoisonError::into_inner);
            held.running -= 1;
            held.jobs.append(&mut jobs);
            held.done.exceptions.append(&mut exceptions);
            match listed {
                Ok(listed) => held.done.directories.push(listed),
                Err(why) if job.path.is_empty() => held.failed = Some((job.path, why)),
                // It went away while we were on our way to it, or is no directory any more.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => held.done.exceptions.push(exception(&job.path, Reason::Unreadable, 0)),
            }
            changed.notify_all();
        }
    }

    fn list(&self, job: &Job, jobs: &mut Vec<Job>, exceptions: &mut Vec<Exception>) -> Result<Listed, Errno> {
        let fd = self.root.dir(&job.path)?;
        let permissions = Stat::from(&rustix::fs::fstat(&fd)?).permissions();
        let mut dir = Dir::new(fd)?;
        let (mut entries, mut has_rules, mut has_git) = (Vec::new(), false, false);
        for entry in dir.by_ref() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            has_git |= name == b".git";
            has_rules |= name == b".gitignore";
            if name != b"." && name != b".." && !is_reserved(name) {
                entries.push((name.to_vec(), entry.file_type()));
            }
        }
        entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let ignore_file = if has_rules { read_rules(self.root, &job.path) } else { None };
        let rules = job.rules.enter(self.top, &job.path, ignore_file.as_deref(), has_git);
        let mut listed =
            Listed { path: job.path.clone(), permissions, files: Vec::new(), directories: Vec::new() };
        for (name, kind) in entries {
            let path = join(&job.path, &name);
            if self.never.contains(&path) {
                continue;
            }
            // What is ignored need not be looked at, and a directory is when its turn comes.
            let mut choice = None;
            if kind != FileType::Unknown {
                choice = self.choose(job.choice, &rules, &path, kind == FileType::Directory);
                if choice.is_none() {
                    continue;
                }
            }
            let stat = if kind == FileType::Directory { Ok(None) } else { look(&dir, &name).map(Some) };
            let stat = match stat {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(_) => {
                    exceptions.push(exception(&path, Reason::Unreadable, 0));
                    continue;
                }
            };
            let kind = stat.map_or(FileType::Directory, |stat| stat.kind());
            let is_dir = kind == FileType::Directory;
            let Some(choice) = choice.or_else(|| self.choose(job.choice, &rules, &path, is_dir)) else {
                continue;
            };
            let Some(stat) = stat.filter(|_| !is_dir) else {
                listed.directories.push(name);
                jobs.push(Job { path, rules: Arc::clone(&rules), choice });
                continue;
            };
            match self.cannot_hold(kind, stat.size) {
                Some(reason) => exceptions.push(exception(&path, reason, stat.size)),
                None => listed.files.push(Found { name, stat }),
            }
        }
        Ok(listed)
    }

    fn cannot_hold(&self, kind: FileType, size: u64) -> Option<Reason> {
        match kind {
            FileType::RegularFile if size > self.largest => Some(Reason::TooLarge),
            FileType::RegularFile | FileType::Symlink => None,
            FileType::Socket => Some(Reason::Socket),
            FileType::Fifo => Some(Reason::Fifo),
            _ => Some(Reason::Device),
        }
    }

    /// How a path is captured; nothing if it is not.
    fn choose(&self, choice: Choice, rules: &Rules, path: &[u8], is_dir: bool) -> Option<Choice> {
        let ignored = match choice {
            Choice::All => return Some(Choice::All),
            Choice::OnlyNamed => true,
            Choice::Rules => rules.ignores(path, is_dir),
        };
        if !ignored {
            return Some(Choice::Rules);
        }
        if self.wanted.has(path, is_dir) {
            return Some(Choice::All);
        }
        let reached = if is_dir {
            rules.tracks_below(path) || rules.tracks(path) || self.wanted.reaches_below(path)
        } else {
            rules.tracks(path)
        };
        reached.then_some(Choice::OnlyNamed)
    }
}

fn look(dir: &Dir, name: &[u8]) -> Result<Stat, Errno> {
    let stat = rustix::fs::statat(dir.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(Stat::from(&stat))
}

fn exception(path: &[u8], reason: Reason, size: u64) -> Exception {
    Exception { path: as_path(path).to_owned(), reason, size }
}
