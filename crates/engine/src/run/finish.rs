//! What is done when the agent of a run has ended.

use std::collections::HashMap;
use std::time::Duration;
use std::time::Instant;

use segno_agents::EndCause;
use segno_agents::ExitInfo;
use segno_agents::OpenCall;
use segno_agents::OutcomeKind;
use segno_core::List;
use segno_core::rows::ToolRow;
use segno_redact::Redactor;

use super::Report;
use super::capture::Capture;
use super::capture_process;
use super::capture_process::Kept;
use super::drive::Running;
use super::journal::Recorder;
use super::open::OpenRun;
use super::spawn;
use super::stop::Cause;
use super::supervisor::Input;
use super::supervisor::WELL;
use super::watch::Ended;
use super::watch::RETRY;
use crate::Error;

/// How long it tries after the agent's end before it leaves the rest in the capture.
const LAST_TRIES: Duration = Duration::from_secs(20);
/// How much of standard error is kept.
const STDERR: u64 = 16 * 1024;
/// How much before that is looked at: a key may begin there.
const STDERR_CONTEXT: u64 = 64 * 1024;
/// What is said of a run whose end is not known because not all that it printed could be read.
const UNREAD: &str = "what it printed last is not recorded yet";

impl Running<'_> {
    /// Takes in the rest, records the end, and cleans up.
    pub(super) fn finish(mut self, ended: Ended, started: Instant) -> Result<Report, Error> {
        let Ended { exit, cause } = ended;
        let swept = self.swept;
        // All who printed are gone; what they printed last may still be on its way.
        let kept = match self.capturing.take() {
            Some(capturing) => capturing.finish(LAST_TRIES),
            None => capture_process::wait_until_kept(self.open.capture.dir(), LAST_TRIES),
        };
        if let Some(terminal) = &self.open.terminal {
            terminal.restore(exit.signal.is_some());
            // The last that hooks told may name another conversation.
            let _ = self.open.recorder.refresh();
        }
        if let Err(why) = self.open.ended(&self.tree) {
            let notice = format!("the end of the agent's own log could not be read: {why}");
            self.open.recorder.notices.push(notice);
        }
        if let Some(Cause::Replaced(why)) = &cause {
            let session = self.open.recorder.session;
            tracing::warn!(%session, why, "this driver was replaced and stops its agent");
            let why = why.clone();
            return Err(self.give_up(why, kept == Kept::All));
        }
        let drained = self.drain(&mut Vec::new());
        let stderr = stderr_tail(&self.open.capture, &self.open.recorder.engine.redactor());
        let mut exit = exit.because(cause.as_ref().map_or(EndCause::Own, Cause::end));
        if !stderr.is_empty() {
            exit = exit.with_stderr(stderr.clone());
        }
        if !drained || kept == Kept::NotYet {
            return Ok(self.leave_open(&exit, started));
        }
        // What looked stuck may be waiting for its provider, and have said so where nobody reads.
        let waits = if cause == Some(Cause::Silence) {
            let (quiet, now) = (self.limits.silence.unwrap_or_default(), self.open.recorder.engine.now());
            super::limit::behind_silence(self.open.agent.as_ref(), &stderr, quiet, now)
        } else {
            None
        };
        let at = self.open.recorder.at(None);
        let (mut outcome, mut recorder, (capture, note)) = self.open.conclude(&exit);
        if let Some(limit) = waits.filter(|_| outcome.outcome == OutcomeKind::TimedOut) {
            outcome.outcome = OutcomeKind::Limit;
            let said = limit.text.as_deref().unwrap_or("a limit");
            outcome.reason = format!("it waited for its provider: {said}");
            outcome.limit = Some(limit);
        }
        recorder.flush()?;
        leave_out_ended(&recorder, &mut outcome.open_calls);
        let end = super::settle::End {
            outcome,
            cause,
            swept,
            took: started.elapsed(),
            stderr,
            completes: note.completes && note.interactive.is_none(),
            pauses: note.completes && note.interactive.is_some(),
            moves_session: true,
            last_seen: None,
        };
        super::checkpoint::at_end(&mut recorder, &end, &at);
        let (outcome, open) = super::settle::record_end(&mut recorder, end.clone(), LAST_TRIES, RETRY)?;
        if open {
            super::capture::write_exit(capture.dir(), &exit);
        }
        super::checkpoint::after_end(&mut recorder, &at);
        // Whoever looks next makes up for what cannot be done now.
        if let Err(why) = recorder.engine.note_memory(recorder.session).and_then(|_| recorder.refresh()) {
            tracing::warn!(session = %recorder.session, %why, "what memories were asked is not recorded yet");
        }
        spawn::remove(note.scratch.as_deref());
        let kept_capture = if open || kept != Kept::All {
            Some(capture.dir().to_owned())
        } else {
            capture.discard();
            None
        };
        recorder.refresh_view(true);
        recorder.feed.close();
        Ok(Report {
            run: recorder.run.clone(),
            outcome,
            state: recorder.state.clone(),
            swept,
            took: end.took,
            stderr: end.stderr,
            notices: std::mem::take(&mut recorder.notices),
            kept_capture,
        })
    }

    /// A run is not ended before all that it printed is read. How its agent ended is written down; whoever looks next
    /// reads the rest and records the end.
    fn leave_open(self, exit: &ExitInfo, started: Instant) -> Report {
        super::capture::write_exit(self.open.capture.dir(), exit);
        let OpenRun { reader, mut recorder, capture, .. } = self.open;
        let mut outcome = reader.finish(exit, &mut |_| {});
        if outcome.outcome != OutcomeKind::Completed {
            UNREAD.clone_into(&mut outcome.reason);
        }
        recorder.make_fit(&mut outcome);
        recorder.feed.close();
        Report {
            run: recorder.run.clone(),
            outcome,
            state: recorder.state.clone(),
            swept: self.swept,
            took: started.elapsed(),
            stderr: exit.stderr.clone().unwrap_or_default(),
            notices: std::mem::take(&mut recorder.notices),
            kept_capture: Some(capture.dir().to_owned()),
        }
    }

    /// Reads the rest and journals it, trying for a while if the store cannot take it. False if it never could.
    fn drain(&mut self, inputs: &mut Vec<Input>) -> bool {
        let until = Instant::now() + LAST_TRIES;
        loop {
            self.open.recorder.wait_for_answer();
            self.advance(inputs);
            if inputs.drain(..).any(|input| input == Input::StoreWell) {
                self.open.recorder.say(WELL);
            }
            if self.behind.is_none() && !self.read_capture(inputs) && !self.open.recorder.is_behind() {
                return true;
            }
            if self.behind.is_some() {
                if Instant::now() >= until {
                    return false;
                }
                std::thread::sleep(RETRY);
            }
        }
    }

    /// Somebody else drives, or nobody can any more: the agent is stopped. What it said is recorded as late, and the run
    /// is not ours to end.
    fn give_up(mut self, why: String, all_kept: bool) -> Error {
        while self.read_capture(&mut Vec::new()) {}
        let told = self.open.recorder.flush_late();
        spawn::remove(self.open.note.scratch.as_deref());
        let (dir, feed) = (self.open.capture.dir().to_owned(), self.open.recorder.feed.clone());
        if told && all_kept {
            self.open.capture.discard();
        } else {
            self.open.recorder.say(&format!("what the agent printed is kept in {}", dir.display()));
        }
        feed.close();
        Error::Replaced(why)
    }
}

/// Leaves out the calls whose end somebody else told of: an agent that is stopped says nothing of the call that its hook
/// has just denied.
fn leave_out_ended(recorder: &Recorder<'_>, calls: &mut Vec<OpenCall>) {
    if calls.is_empty() {
        return;
    }
    // What cannot be read is not known to have ended.
    let began = recorder.state.run.as_ref().filter(|run| run.id == recorder.run).map_or(0, |run| run.seq);
    let rows = recorder.engine.newest_while(recorder.session, List::Tools, |row| row.seq >= began);
    let rows = rows.unwrap_or_default();
    let rows = rows
        .iter()
        .rev()
        .map(|row| row.row::<ToolRow>())
        .filter(|row| row.run.as_deref() == Some(&recorder.run));
    let last: HashMap<String, ToolRow> = rows.map(|row| (row.call.clone(), row)).collect();
    calls.retain(|call| {
        last.get(&call.call_id).is_none_or(|row| ["open", "in_doubt"].contains(&row.state.as_str()))
    });
}

/// The last of standard error. What is cut off may be the beginning of a secret, so that is looked at first.
pub(super) fn stderr_tail(capture: &Capture, redactor: &Redactor) -> String {
    let more = capture.stderr_tail(STDERR + STDERR_CONTEXT);
    let whole = redactor.text(&more).into_owned();
    let most = usize::try_from(STDERR).unwrap_or(usize::MAX);
    let Some(from) = whole.len().checked_sub(most).filter(|_| more.len() > most) else { return whole };
    let tail = &whole[whole.ceil_char_boundary(from)..];
    // Half a line says little, and may be half of what stands for a secret.
    tail.split_once('\n').map_or(tail, |(_, rest)| rest).to_owned()
}
