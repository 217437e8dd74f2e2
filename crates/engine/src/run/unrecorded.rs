//! Runs that were started, and whose driver did not live to record that.
//!
//! Before an agent is started, its capture holds all that will be recorded of the start, and the agent carries the run's
//! id as a mark. So whoever finds the dead driver finds the agent too, and nothing has to be synced before the start:
//! what takes the files along takes the agent along as well.

use std::path::Path;

use segno_core::Command;
use segno_core::List;
use segno_core::SessionId;
use segno_core::event::RunStarted;
use segno_core::rows::RunRow;

use super::capture;
use super::proof::NOBODY;
use super::proof::OwnCapture;
use super::spawn;
use super::tree::Member;
use super::tree::Tree;
use crate::Engine;
use crate::Error;
use crate::act::Acting;

const START: &str = "start.json";
const PID: &str = "pid";

/// Writes down what will be recorded of a start.
pub(super) fn intend(dir: &Path, start: &RunStarted) -> Result<(), Error> {
    let text = serde_json::to_vec(start).map_err(|why| Error::file(dir, why))?;
    capture::write_private(dir, START, &text).map(|_| ())
}

/// Writes down which process it is. Whoever does not find this looks for the mark.
pub(super) fn begun(dir: &Path, member: Member) {
    let text = format!("{} {}", member.pid, member.start);
    let _ = capture::write_private(dir, PID, text.as_bytes());
}

/// Which process it is, as its driver wrote it down.
pub(super) fn noted(dir: &Path) -> Option<Member> {
    let text = std::fs::read_to_string(dir.join(PID)).ok()?;
    let (pid, start) = text.split_once(' ')?;
    Some(Member { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

impl Engine {
    /// Records the start of a run that its driver, which is dead, could not record. The agent is then like any other
    /// whose driver died: it can be adopted while it lives, and is settled when it does not.
    /// `dead` is the number of the driver that died, `epoch` that of whoever settles it.
    pub(crate) fn take_in_unrecorded(&self, session: SessionId, dead: u64, epoch: u64) -> Result<(), Error> {
        let Some(entries) = self.captures().ok().and_then(|dir| std::fs::read_dir(dir).ok()) else {
            return Ok(());
        };
        for dir in entries.flatten().map(|entry| entry.path()) {
            // What another store tells of the same session, or another driver began, is not ours to end.
            let Some(own) = self.found_capture(session, dir, dead) else { continue };
            if !self.is_recorded(session, own.run.as_str())? {
                self.take_in_run(&own, epoch)?;
            }
        }
        Ok(())
    }

    pub(crate) fn is_recorded(&self, session: SessionId, run: &str) -> Result<bool, Error> {
        if self.store().load(session)?.state.run.is_some_and(|known| known.id == run) {
            return Ok(true);
        }
        let rows = self.items(session, List::Runs)?;
        Ok(rows.iter().any(|row| row.row::<RunRow>().run == run))
    }

    fn take_in_run(&self, own: &OwnCapture, epoch: u64) -> Result<(), Error> {
        let OwnCapture { run, dir, note } = own;
        let tree = Tree::new(run, NOBODY, false, note.cgroup.clone());
        let start = std::fs::read(dir.join(START)).ok();
        let start = start.and_then(|text| serde_json::from_slice::<RunStarted>(&text).ok());
        let start = start.filter(|start| start.run == run.as_str());
        // One that is gone and whose number nobody wrote down has run all the same if it printed something.
        let printed = ["stdout", "stderr"]
            .iter()
            .any(|name| std::fs::metadata(dir.join(name)).is_ok_and(|meta| meta.len() > 0));
        let member = noted(dir).or_else(|| tree.eldest()).or(printed.then_some(NOBODY));
        if let (Some(start), Some(member)) = (start, member) {
            let start = RunStarted { pid: member.pid, process_start: member.start, ..start };
            let commands = vec![Command::StartRun(Box::new(start))];
            match self.act_as(note.session, commands, Acting::in_run(epoch, run.as_str())) {
                Ok(_) => return Ok(()),
                // Another one runs there, or the session takes none: this one may not run.
                Err(Error::Refused(_) | Error::InvalidStateTransition { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        // It was never started, or may not be.
        tree.sweep();
        spawn::remove(note.scratch.as_deref());
        let _ = std::fs::remove_dir_all(dir);
        Ok(())
    }
}
