//! Carries a plan out.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::Workspace;
use crate::batch::Batch;
use crate::beneath::as_path;
use crate::beneath::split;
use crate::changes::Difference;
use crate::changes::Differences;
use crate::changes::Node;
use crate::error::Error;
use crate::fault::step;
use crate::id::Kind;
use crate::plan::Kept;
use crate::plan::Plan;
use crate::plan::Why;
use crate::shadow::Lock;
use crate::stat::Stat;
use crate::tree_writer::Done;
use crate::tree_writer::TreeWriter;
use crate::tree_writer::beside;
use crate::tree_writer::blocked;

/// So many files are prepared, made durable together, and put in place.
const GROUP: usize = 1024;
/// From so many on, syncing the whole file system is quicker than syncing each.
const MANY: usize = 16;

/// The lock of a project's snapshots, as long as it lives.
pub struct Hold {
    _lock: Lock,
}

/// What a restore has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Files, links and directories that were written or got other permissions.
    pub written: Vec<PathBuf>,
    /// What was removed.
    pub removed: Vec<PathBuf>,
    /// What was left as it is, those of the plan included.
    pub kept: Vec<Kept>,
}

impl Workspace {
    /// Carries a plan out. Whatever is not as the safety snapshot has it is left alone. Both snapshots must still be
    /// there and whole as far as they are needed, or nothing is touched. If it fails on the way, what was done is taken
    /// back. If the process dies, [`Workspace::pending`] tells, and the restore can be finished or taken back.
    pub fn apply(&self, plan: &Plan) -> Result<Applied, Error> {
        self.apply_held(&self.hold_tree()?, plan)
    }

    /// Holds the lock of the snapshots. Whoever begins to work in the tree makes a snapshot first, and waits for it.
    pub fn hold_tree(&self) -> Result<Hold, Error> {
        Ok(Hold { _lock: self.shadow.lock(self.options.patience)? })
    }

    /// Carries a plan out while the lock is held.
    pub fn apply_held(&self, _hold: &Hold, plan: &Plan) -> Result<Applied, Error> {
        self.refuse_pending()?;
        if plan.is_empty() {
            return Ok(Applied { kept: plan.kept.clone(), ..Applied::default() });
        }
        for snapshot in [&plan.safety, &plan.target] {
            if self.shadow.read_ref(&snapshot.name)? != Some(snapshot.commit) {
                return Err(Error::NotFound(snapshot.name.clone()));
            }
        }
        self.verify_needed(plan)?;
        self.write_intent(plan)?;
        let mut applied = match self.carry_out(&plan.steps, false) {
            Ok(applied) => applied,
            Err(why) => {
                return Err(match self.take_back(plan) {
                    Ok(_) => Error::GivenUp(Box::new(why)),
                    Err(_) => Error::Halfway(Box::new(why)),
                });
            }
        };
        self.remove_intent()?;
        applied.kept.extend(plan.kept.iter().cloned());
        applied.kept.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(applied)
    }

    /// Does the steps that are not done yet. `again` clears up after an earlier attempt first.
    pub(crate) fn carry_out(&self, steps: &Differences, again: bool) -> Result<Applied, Error> {
        let mut work = Work {
            writer: TreeWriter::new(&self.root),
            workspace: self,
            steps,
            again,
            applied: Applied::default(),
            touched: BTreeSet::new(),
            kept: BTreeSet::new(),
            progress: std::fs::File::options().append(true).create(true).open(self.shadow.progress()).ok(),
            trouble: None,
        };
        if again {
            for (path, step) in steps {
                if let Some(why) = work.try_on(path, |work| work.writer.settle(path, step)).flatten() {
                    work.keep(path, why);
                }
            }
        }
        // First what goes, from the inside out; then what comes, from the outside in; permissions of directories
        // last, because they may forbid the rest.
        for (path, step) in steps.iter().rev() {
            work.take_away(path, step);
        }
        for (path, step) in steps {
            work.make_dir(path, step);
        }
        work.write(steps)?;
        for (path, step) in steps {
            work.set_file_permissions(path, step);
        }
        for (path, step) in steps.iter().rev() {
            work.set_dir_permissions(path, step);
        }
        work.check()?;
        work.sync()?;
        Ok(work.applied)
    }
}

struct Work<'a> {
    writer: TreeWriter<'a>,
    workspace: &'a Workspace,
    steps: &'a Differences,
    again: bool,
    applied: Applied,
    /// Directories whose names changed.
    touched: BTreeSet<Vec<u8>>,
    /// Paths that were given up.
    kept: BTreeSet<Vec<u8>>,
    /// Where is noted what was begun.
    progress: Option<std::fs::File>,
    /// What the disk has refused. From then on nothing more is done.
    trouble: Option<Error>,
}

impl Work<'_> {
    fn keep(&mut self, path: &[u8], why: Why) {
        if self.kept.insert(path.to_vec()) {
            self.applied.kept.push(Kept::new(path, why));
        }
    }

    fn touch(&mut self, path: &[u8]) {
        self.touched.insert(split(path).0.to_vec());
    }

    /// What the system refuses for this path concerns it alone; what the disk refuses concerns all.
    fn try_on<T>(&mut self, path: &[u8], act: impl FnOnce(&mut Self) -> Result<T, Errno>) -> Option<T> {
        if self.trouble.is_some() || self.kept.contains(path) {
            return None;
        }
        match act(self) {
            Ok(done) => return Some(done),
            Err(why) if concerns_the_path(why) => self.keep(path, blocked(why)),
            Err(why) => {
                let path = self.workspace.root.absolute(path);
                self.trouble = Some(Error::Io { what: "cannot change", path, source: why.into() });
            }
        }
        None
    }

    /// An error if the disk has refused something.
    fn check(&mut self) -> Result<(), Error> {
        self.trouble.take().map_or(Ok(()), Err)
    }

    /// Notes that a path is about to change.
    fn begin(&mut self, path: &[u8]) {
        if let Some(file) = &mut self.progress {
            // Without the note a restore that is cut short is asked about instead of finished.
            let _ = file.write_all(&[path, b"\0"].concat());
        }
    }

    /// What is there, if it is what the step starts from. Keeps the path if it is neither that nor the result.
    fn expect(&mut self, path: &[u8], step: &Difference) -> Option<Stat> {
        let found = self.try_on(path, |work| work.writer.look(path))?;
        match (found, step.from) {
            (Some(stat), Some(from)) if self.writer.is(path, &stat, &from) => Some(stat),
            (None, _) if step.to.is_none() => None,
            // An earlier attempt took the file away and did not come to making the directory.
            (None, _) if self.again && step.to.is_some_and(|to| to.is_directory()) => None,
            (Some(stat), _) if step.to.is_some_and(|to| self.writer.is(path, &stat, &to)) => None,
            _ => {
                self.keep(path, Why::Edited);
                None
            }
        }
    }

    /// Whether a path went when a directory above it made way for a file, in an earlier attempt.
    fn went_with_parent(&self, path: &[u8]) -> bool {
        if !matches!(self.writer.look(path), Err(Errno::NOTDIR | Errno::LOOP)) {
            return false;
        }
        let above = std::iter::successors(Some(split(path).0), |path| Some(split(path).0));
        let mut nodes = above.take_while(|path| !path.is_empty()).filter_map(|path| self.steps.get(path)?.to);
        nodes.any(|node| !node.is_directory())
    }

    fn take_away(&mut self, path: &[u8], step: &Difference) {
        if step.to.is_none() && self.went_with_parent(path) {
            return;
        }
        let done = match (step.from, step.to) {
            (Some(Node::Directory { .. }), Some(Node::Directory { .. })) => return,
            (Some(Node::Directory { .. }), _) => self.try_on(path, |work| work.writer.remove_dir(path)),
            (Some(_), None | Some(Node::Directory { .. })) => {
                let Some(stat) = self.expect(path, step) else { return };
                self.try_on(path, |work| {
                    work.begin(path);
                    work.writer.take_away(path, &stat)
                })
            }
            _ => return,
        };
        let is_dir = step.from.is_some_and(|node| node.is_directory());
        match done {
            Some(Done::Yes) => {
                self.touch(path);
                if step.to.is_none() {
                    self.applied.removed.push(as_path(path).to_owned());
                }
            }
            Some(Done::Edited) => self.keep(path, if is_dir { Why::NotEmpty } else { Why::Edited }),
            Some(Done::Aside) => self.keep(path, Why::Aside(as_path(&beside(path)).to_owned())),
            Some(Done::Already) | None => {}
        }
    }

    fn make_dir(&mut self, path: &[u8], step: &Difference) {
        let Some(Node::Directory { .. }) = step.to else { return };
        if step.from.is_some_and(|node| node.is_directory()) {
            return;
        }
        match self.try_on(path, |work| work.writer.make_dir(path)) {
            Some(Done::Yes) => {
                self.touch(path);
                self.applied.written.push(as_path(path).to_owned());
            }
            Some(Done::Edited | Done::Aside) => self.keep(path, Why::Edited),
            Some(Done::Already) | None => {}
        }
    }

    fn write(&mut self, steps: &Differences) -> Result<(), Error> {
        let wanted: Vec<(&Vec<u8>, &Difference, Node)> = steps
            .iter()
            .filter_map(|(path, step)| step.to.map(|to| (path, step, to)))
            .filter(|(_, step, to)| to.id().is_some() && !is_mode_only(step))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::start(&self.workspace.git)?;
        for group in wanted.chunks(GROUP) {
            let mut ready = Vec::new();
            for (path, step, to) in group {
                if self.kept.contains(*path) {
                    continue;
                }
                let Some(stat) = self.starting_point(path, step) else { continue };
                if self.prepare(path, to, group.len() > MANY, &mut batch)? {
                    ready.push((*path, stat));
                }
            }
            if ready.len() > 1 && group.len() > MANY {
                self.sync_file_system()?;
            }
            self.check()?;
            for (path, stat) in ready {
                let put = self.try_on(path, |work| {
                    work.begin(path);
                    work.writer.put(path, stat.as_ref())
                });
                if put.is_none()
                    && let Some(step) = steps.get(path)
                {
                    // Nothing of ours stays beside what was left as it is.
                    let _ = self.writer.settle(path, step);
                }
                match put {
                    Some(Done::Yes | Done::Already) => {
                        self.touch(path);
                        self.applied.written.push(as_path(path).to_owned());
                    }
                    Some(Done::Edited) => self.keep(path, Why::Edited),
                    Some(Done::Aside) => self.keep(path, Why::Aside(as_path(&beside(path)).to_owned())),
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// What is to be replaced, or nothing if the place is free. None if the file must not be written.
    fn starting_point(&mut self, path: &[u8], step: &Difference) -> Option<Option<Stat>> {
        let replaces_file = step.from.is_some_and(|node| !node.is_directory());
        if replaces_file {
            return self.expect(path, step).map(Some);
        }
        match self.try_on(path, |work| work.writer.look(path))? {
            None => Some(None),
            Some(stat) if step.to.is_some_and(|to| self.writer.is(path, &stat, &to)) => None,
            Some(_) => {
                self.keep(path, Why::NotCaptured);
                None
            }
        }
    }

    /// Writes the content beside its place. False if the system refuses; an error if the disk or the snapshot fails.
    fn prepare(&mut self, path: &[u8], to: &Node, together: bool, batch: &mut Batch) -> Result<bool, Error> {
        match to {
            Node::File { id, permissions } => {
                let Some(mut file) = self.try_on(path, |work| work.writer.prepare(path)) else {
                    return Ok(false);
                };
                let failed = |source| {
                    let path = self.workspace.root.absolute(path);
                    Error::Io { what: "cannot write", path, source }
                };
                let written = match batch.copy(*id, Kind::Blob, &mut file) {
                    // It is this file that could not be written, not the object.
                    Err(Error::Io { source, .. }) => Err(failed(source)),
                    Err(why) => Err(why),
                    Ok(_) => {
                        let finish = |mut file: std::fs::File| -> std::io::Result<()> {
                            file.flush()?;
                            rustix::fs::fchmod(&file, Mode::from_raw_mode(*permissions as _))?;
                            step();
                            if together { Ok(()) } else { file.sync_all() }
                        };
                        finish(file).map_err(failed)
                    }
                };
                if written.is_err() {
                    let _ = self.writer.discard(path);
                }
                written.map(|()| true)
            }
            Node::Link { id } => {
                let target = batch.read(*id, Kind::Blob)?;
                Ok(self.try_on(path, |work| work.writer.prepare_link(path, &target)).is_some())
            }
            Node::Directory { .. } => Ok(false),
        }
    }

    fn set_file_permissions(&mut self, path: &[u8], step: &Difference) {
        let Some(Node::File { permissions, .. }) = step.to.filter(|_| is_mode_only(step)) else { return };
        let Some(stat) = self.expect(path, step) else { return };
        let set = self.try_on(path, |work| {
            work.begin(path);
            work.writer.set_permissions(path, Some(&stat), permissions)
        });
        match set {
            Some(Done::Yes) => self.applied.written.push(as_path(path).to_owned()),
            Some(Done::Edited) => self.keep(path, Why::Edited),
            _ => {}
        }
    }

    fn set_dir_permissions(&mut self, path: &[u8], step: &Difference) {
        let Some(Node::Directory { permissions }) = step.to else { return };
        let done = self.try_on(path, |work| work.writer.set_permissions(path, None, permissions));
        if done == Some(Done::Yes) && step.from.is_some_and(|node| node.is_directory()) {
            self.applied.written.push(as_path(path).to_owned());
        }
    }

    fn sync_file_system(&self) -> Result<(), Error> {
        step();
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(self.workspace.root.fd()).map_err(|why| Error::Io {
            what: "cannot sync",
            path: self.workspace.options.root.clone(),
            source: why.into(),
        })?;
        Ok(())
    }

    /// Makes every name durable. Other file systems beneath the root are synced directory by directory.
    fn sync(&mut self) -> Result<(), Error> {
        let touched = std::mem::take(&mut self.touched);
        let device = |fd: &std::os::fd::OwnedFd| rustix::fs::fstat(fd).map(|stat| stat.st_dev);
        let home = device(self.workspace.root.fd());
        let together = cfg!(target_os = "linux") && touched.len() > MANY;
        for directory in touched {
            // It may have gone since.
            let Ok(fd) = self.workspace.root.dir(&directory) else { continue };
            if together && device(&fd) == home {
                continue;
            }
            step();
            rustix::fs::fsync(&fd).map_err(|why| Error::Io {
                what: "cannot sync",
                path: self.workspace.root.absolute(&directory),
                source: why.into(),
            })?;
        }
        if together { self.sync_file_system() } else { Ok(()) }
    }
}

/// Whether the content stays and only permissions change.
fn is_mode_only(step: &Difference) -> bool {
    matches!((step.from, step.to), (Some(Node::File { id: one, .. }), Some(Node::File { id: other, .. })) if one == other)
}

/// Whether an error says something of this path and not of the disk.
fn concerns_the_path(why: Errno) -> bool {
    matches!(
        why,
        Errno::ACCESS
            | Errno::PERM
            | Errno::ROFS
            | Errno::LOOP
            | Errno::NOENT
            | Errno::NOTDIR
            | Errno::ISDIR
            | Errno::NOTEMPTY
            | Errno::EXIST
            | Errno::BUSY
            | Errno::TXTBSY
            | Errno::NAMETOOLONG
            | Errno::XDEV
    )
}
