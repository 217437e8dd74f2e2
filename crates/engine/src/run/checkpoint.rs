//! The checkpoints that a run makes by itself: before it begins, now and then, and at its end.

use segno_agents::OutcomeKind;
use segno_core::Command;
use segno_core::State;
use segno_core::Status;
use segno_core::event::CheckpointReason;

use super::Request;
use super::drive::Running;
use super::journal::Recorder;
use super::settle::End;
use crate::Engine;
use crate::Error;
use crate::engine::fresh_key;
use crate::resume::plan::short_branch;
use crate::tree::At;

impl Engine {
    /// Where the first turn can be taken back to.
    pub(super) fn checkpoint_start(&self, request: &Request, epoch: u64, run: &str) -> Result<(), Error> {
        let Some(options) = &self.options.tree else { return Ok(()) };
        let at = At { epoch: Some(epoch), run: Some(run.to_owned()), ..At::default() };
        self.note_branch(&self.load(request.session)?.state, &at);
        let name = Some("run start".to_owned());
        let acted = self.checkpoint(request.session, name, CheckpointReason::RunStart, &at)?;
        match acted.notices.first() {
            Some(why) if options.stop_on_failure => Err(Error::NoTree(why.clone())),
            _ => {
                for notice in acted.notices {
                    request.feed.publish(super::News::Notice(notice));
                }
                Ok(())
            }
        }
    }
}

impl Engine {
    /// Notes the branch that the project's repository is on, if it is another one than was known. Only while somebody
    /// drives: afterwards a person may be anywhere.
    pub(super) fn note_branch(&self, state: &State, at: &At) {
        let Ok(Some(head)) = self.workspace(state).and_then(|workspace| Ok(workspace.head()?)) else {
            return;
        };
        let branch = head.branch.map(|name| short_branch(&name).to_owned());
        if branch.is_some() && branch != state.branch {
            let command = Command::SetGitBranch { branch, commit: head.commit };
            // Without it, nothing is compared later on; the run goes on.
            let _ = self.act_at(state.session_id, vec![command], fresh_key(), at);
        }
    }
}

impl Running<'_> {
    /// A checkpoint after every so many calls.
    pub(super) fn checkpoint_now_and_then(&mut self) -> Result<(), Error> {
        let recorder = &mut self.recorder;
        let every = recorder.engine.options.tree.as_ref().map_or(0, |tree| tree.every_calls);
        let calls = recorder.state.calls.total;
        if every == 0 || recorder.is_behind() {
            return Ok(());
        }
        let due = *recorder.next_checkpoint.get_or_insert(calls + every);
        if calls < due {
            return Ok(());
        }
        recorder.next_checkpoint = Some(calls + every);
        let name = format!("tool {calls}");
        recorder.checkpoint(Some(name), CheckpointReason::ToolCount, Some(self.capture.offset()));
        Ok(())
    }
}

/// The tree as the run left it, unless the end of the session says so itself.
pub(super) fn at_end(recorder: &mut Recorder<'_>, end: &End, at: &At) {
    if recorder.engine.options.tree.is_none() || recorder.is_behind() {
        return;
    }
    recorder.engine.note_branch(&recorder.state, at);
    let (name, reason) = match end.outcome.outcome {
        OutcomeKind::Completed if end.completes && recorder.state.status == Status::Active => return,
        OutcomeKind::Completed => ("run end", CheckpointReason::RunEnd),
        OutcomeKind::Interrupted => ("interrupt", CheckpointReason::Interrupt),
        _ => ("run end", CheckpointReason::RunEnd),
    };
    recorder.checkpoint(Some(name.to_owned()), reason, at.offset);
    super::changes::record_untold(recorder);
}

/// A session that is completed sets its last sign itself; its files are taken now.
pub(super) fn after_end(recorder: &mut Recorder<'_>, at: &At) {
    if recorder.state.status == Status::Completed && !recorder.is_behind() {
        let engine = recorder.engine;
        engine.make_newest_ready(&mut recorder.state, at, &mut recorder.notices);
        super::changes::record_untold(recorder);
    }
}
