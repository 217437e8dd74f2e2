//! What proves that files and processes are a run's own.
//!
//! A store may come from anywhere: a friend, a backup, another machine. So nothing that a store says is enough to
//! remove a file or to end a process here. What is removed or ended bears the run's id itself, and the note in our own
//! directory and the store have to tell the same of it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use segno_core::RunId;
use segno_core::SessionId;
use segno_core::state::RunMark;
use segno_store::EventRow;

use super::capture;
use super::capture::Capture;
use super::capture::Note;
use super::cgroup;
use super::spawn;
use super::tree;
use super::tree::Member;
use super::tree::Tree;
use super::unrecorded;
use crate::Engine;
use crate::Error;

/// No process at all: what belongs to a run is then found by its mark and its control group only.
pub(super) const NOBODY: Member = Member { pid: 0, start: 0 };

/// A capture that is known to be the run's.
pub(super) struct OwnCapture {
    pub(super) run: RunId,
    pub(super) dir: PathBuf,
    pub(super) note: Note,
}

impl OwnCapture {
    /// A note that agrees with the run it is asked for. What it says is the run's, and is not, is taken out of it.
    fn believe(run: RunId, dir: PathBuf, mut note: Note) -> Self {
        note.cgroup = note.cgroup.filter(|group| cgroup::is_of(group, &run));
        note.scratch = note.scratch.filter(|scratch| spawn::is_scratch_of(scratch, &run));
        Self { run, dir, note }
    }

    /// The captured output, from where the journal has it.
    pub(super) fn open(&self) -> Result<Capture, Error> {
        Capture::reopen(&self.dir)
    }
}

impl Engine {
    /// The capture of a run that this store tells of, if it is that run's and on this machine.
    pub(super) fn own_capture(&self, session: SessionId, mark: &RunMark) -> Result<OwnCapture, Error> {
        let run: RunId =
            mark.id.parse().map_err(|why| Error::NoRun(format!("its run has no capture: {why}")))?;
        let dir = capture::directory(self.captures()?, &run);
        let recorded_by = self.epoch_of_start(session, mark);
        // Whoever finds a start that its driver could not record, records it under a later number.
        let note = self.believed(session, &dir, |epoch| recorded_by.is_none_or(|by| epoch <= by))?;
        Ok(OwnCapture::believe(run, dir, note))
    }

    /// A capture that was found in our directory, if it is of this session, this store and this driver.
    pub(super) fn found_capture(&self, session: SessionId, dir: PathBuf, epoch: u64) -> Option<OwnCapture> {
        let run: RunId = dir.file_name()?.to_str()?.parse().ok()?;
        let note = self.believed(session, &dir, |noted| noted == epoch).ok()?;
        Some(OwnCapture::believe(run, dir, note))
    }

    fn believed(
        &self,
        session: SessionId,
        dir: &Path,
        is_driver: impl FnOnce(u64) -> bool,
    ) -> Result<Note, Error> {
        let not_ours = |what: &str| Error::NoRun(format!("{}: {what}", dir.display()));
        let meta = std::fs::symlink_metadata(dir).map_err(|why| Error::file(dir, why))?;
        if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(not_ours("it is no directory of this user"));
        }
        let note = capture::read_note(dir)?;
        if dir.file_name().and_then(|name| name.to_str()) != Some(note.run.as_str()) {
            return Err(not_ours("its note is of another run"));
        }
        if note.session != session {
            return Err(not_ours("its note is of another session"));
        }
        if !is_driver(note.epoch) {
            return Err(not_ours("its note is of another driver"));
        }
        if !self.is_our_store(&note) {
            return Err(not_ours("its note is of another store"));
        }
        Ok(note)
    }

    /// Whether a note is of this store. One of a program that knew no ids of stores is, if the store is where it says.
    pub(crate) fn is_our_store(&self, note: &Note) -> bool {
        if let Some(id) = note.store_id {
            return id == self.store_id();
        }
        let location = self.store().location();
        let real = |location: &str| std::fs::canonicalize(location).ok();
        note.store == location || real(&note.store).is_some_and(|noted| Some(noted) == real(&location))
    }

    /// The number of the driver that recorded the start of a run; none if the journal does not say.
    fn epoch_of_start(&self, session: SessionId, mark: &RunMark) -> Option<u64> {
        match self.store().events(session, mark.seq.checked_sub(1)?, 1).ok()?.pop()? {
            EventRow::Whole(stored) if stored.kind == "run_started" => stored.epoch,
            _ => None,
        }
    }

    /// All processes of a run that this store tells of, as far as something other than the store says so: the root only
    /// if it bears the run's mark or its driver wrote it down.
    pub(super) fn own_processes(&self, session: SessionId, mark: &RunMark) -> Option<Tree> {
        let run: RunId = mark.id.parse().ok()?;
        let own = self.own_capture(session, mark).ok();
        let told = Member { pid: mark.pid, start: mark.process_start };
        let noted = own.as_ref().and_then(|own| unrecorded::noted(&own.dir));
        let is_own = told.is_alive() && (noted == Some(told) || tree::is_marked(told.pid, &run));
        let cgroup = own.and_then(|own| own.note.cgroup);
        Some(Tree::new(&run, if is_own { told } else { NOBODY }, false, cgroup))
    }
}
