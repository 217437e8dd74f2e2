//! The checkpoints that a run makes by itself: before it begins, now and then, and at its end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Instant;

use segno_agents::OutcomeKind;
use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::event::CheckpointReason;
use segno_core::event::PauseReason;
use segno_core::state::OpenRequest;

use super::Limits;
use super::Request;
use super::Stop;
use super::heartbeat::Heartbeat;
use super::journal::Recorder;
use super::resources::Resources;
use super::settle::End;
use super::stop::Cause;
use super::supervisor::Action;
use super::supervisor::Input;
use super::supervisor::Rules;
use super::supervisor::RunEnd;
use super::supervisor::Supervisor;
use super::supervisor::session_after;
use super::watch::REST;
use crate::Engine;
use crate::Error;
use crate::act::Acting;
use crate::lease::Driver;
use crate::resume::plan::short_branch;
use crate::tree::At;

impl Engine {
    /// Where the first turn can be taken back to. However long that takes, whoever wants the run to stop is heard, and
    /// then no agent is started.
    pub(super) fn checkpoint_start(
        &self,
        request: &Request,
        driver: &Driver<'_>,
        heart: &Heartbeat,
        run: &str,
    ) -> Result<(), Error> {
        let cancel = Arc::new(AtomicBool::new(false));
        let at = At {
            epoch: Some(driver.epoch()),
            run: Some(run.to_owned()),
            cancel: Some(Arc::clone(&cancel)),
            ..At::default()
        };
        if self.options.tree.is_some() {
            self.note_branch(&self.load(request.session)?.state, &at);
        }
        let mut waiting = Waiting::new(self, request, heart);
        let session = request.session;
        let taken = std::thread::scope(|scope| {
            let work = self.options.tree.as_ref().map(|_| {
                let name = Some("run start".to_owned());
                let at = &at;
                scope.spawn(move || self.checkpoint(session, name, CheckpointReason::RunStart, at))
            });
            // Looked at once in any case: a stop that came before is one too.
            loop {
                if let Some(cause) = waiting.reason_to_stop() {
                    cancel.store(true, Ordering::Relaxed);
                    return Err(cause);
                }
                match work {
                    Some(ref work) if !work.is_finished() => std::thread::sleep(REST),
                    _ => break,
                }
            }
            Ok(work.map(|work| {
                work.join().unwrap_or_else(|_| Err(Error::NoTree("the snapshot died".to_owned())))
            }))
        });
        let acted = match taken {
            Ok(None) => return Ok(()),
            Ok(Some(acted)) => acted?,
            Err(Cause::Replaced(why)) => return Err(Error::Replaced(why)),
            Err(cause) => return Err(self.not_started(request, driver, run, &cause)),
        };
        let stops = self.options.tree.as_ref().is_some_and(|options| options.stop_on_failure);
        match acted.notices.first() {
            Some(why) if stops => Err(Error::NoTree(why.clone())),
            _ => {
                for notice in acted.notices {
                    request.feed.publish(super::News::Notice(notice));
                }
                Ok(())
            }
        }
    }

    /// Records that a run was stopped before its agent was started.
    fn not_started(&self, request: &Request, driver: &Driver<'_>, run: &str, cause: &Cause) -> Error {
        match self.obey(request.session, cause, Acting::in_run(driver.epoch(), run)) {
            Ok(reason) => Error::NotStarted(reason),
            Err(why) => why,
        }
    }

    /// Whether somebody wants the work of a session to stop while none of its agents runs. What they asked for is done
    /// and recorded then; answers with why, in words.
    ///
    /// # Errors
    /// If it cannot be recorded, or this driver was replaced.
    pub(crate) fn stop_between_runs(
        &self,
        driver: &Driver<'_>,
        stop: &Stop,
    ) -> Result<Option<String>, Error> {
        let session = driver.session();
        let cause = match stop.asked() {
            (0, _) => self.store().load(session)?.state.requests.first().cloned().map(Cause::Request),
            (_, how) => Some(Cause::Asked(how)),
        };
        let Some(cause) = cause else { return Ok(None) };
        let acting = Acting::driver(&self.options.actor, Some(driver.epoch()), None);
        self.obey(session, &cause, acting).map(Some)
    }

    /// Does what somebody asked for while no agent runs: requests are answered, and the session is where they want it.
    fn obey(&self, session: SessionId, cause: &Cause, acting: Acting) -> Result<String, Error> {
        let reason = cause.text();
        let state = self.store().load(session)?.state;
        let mut commands = obeyed(&state);
        let end = RunEnd {
            outcome: OutcomeKind::Stopped,
            reason: &reason,
            exit_code: None,
            exit_signal: None,
            cause: Some(cause),
            asked: state.requests.first(),
            completes: false,
            pauses: false,
            in_loop: false,
        };
        commands.extend(session_after(state.status, &end));
        if !commands.is_empty() {
            self.act_as(session, commands, acting)?;
        }
        Ok(reason)
    }
}

/// What becomes of the session of a watched agent that came to its end by itself: what somebody asked for, or else it waits.
pub(crate) fn after_watched(state: &State) -> Vec<Command> {
    let cause = state.requests.first().cloned().map(Cause::Request);
    let mut commands = obeyed(state);
    let end = RunEnd {
        outcome: OutcomeKind::Completed,
        reason: "",
        exit_code: None,
        exit_signal: None,
        cause: cause.as_ref(),
        asked: None,
        completes: false,
        pauses: true,
        in_loop: false,
    };
    let ends = session_after(state.status, &end).map(|command| match command {
        Command::Pause { reason: reason @ PauseReason::Ended, .. } => {
            Command::Pause { reason, details: None }
        }
        other => other,
    });
    commands.extend(ends);
    commands
}

/// That all that was asked for is done.
fn obeyed(state: &State) -> Vec<Command> {
    state.requests.iter().map(answered).collect()
}

fn answered(open: &OpenRequest) -> Command {
    Command::AnswerRequest { request: open.seq, obeyed: true, details: None }
}

impl Engine {
    /// A turn of a watched agent is over, and so is what only that was to be ended for: what its person asks it next is
    /// another matter.
    pub(crate) fn answer_stops(&self, session: SessionId, at: &At) -> Result<(), Error> {
        let state = self.store().load(session)?.state;
        let stops = state.requests.iter().filter(|open| open.request.ends_the_run_only());
        let commands: Vec<Command> = stops.map(answered).collect();
        if !commands.is_empty() {
            self.act_as(session, commands, Acting::step(at))?;
        }
        Ok(())
    }

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
            let _ = self.act_as(state.session_id, vec![command], Acting::step(at));
        }
    }
}

/// Hears whoever wants a run to stop while it is not yet begun.
struct Waiting<'a> {
    engine: &'a Engine,
    request: &'a Request,
    heart: &'a Heartbeat,
    supervisor: Supervisor,
    begun: Instant,
    seq: u64,
}

impl<'a> Waiting<'a> {
    fn new(engine: &'a Engine, request: &'a Request, heart: &'a Heartbeat) -> Self {
        let supervisor = Supervisor::new(Rules {
            // Nothing runs yet that could take too long.
            limits: Limits { silence: None, max_duration: None, ..request.limits },
            resources: Resources::default(),
            ladder: Vec::new(),
            heartbeats: false,
            every_calls: 0,
            shared_store: engine.store().is_shared(),
        });
        Self { engine, request, heart, supervisor, begun: Instant::now(), seq: 0 }
    }

    /// Why the run has to stop, if it has to.
    fn reason_to_stop(&mut self) -> Option<Cause> {
        let (asked, how) = self.request.stop.asked();
        let mut inputs = self.heart.news();
        inputs.push(Input::Asked(asked, how));
        inputs.push(Input::Tick);
        while let Some(input) = (!inputs.is_empty()).then(|| inputs.remove(0)) {
            for action in self.supervisor.handle(self.begun.elapsed(), input) {
                match action {
                    Action::Renew => self.heart.beat_now(),
                    Action::Look => inputs.extend(self.look()),
                    _ => {}
                }
            }
        }
        self.supervisor.cause().cloned()
    }

    /// What others ask for. A store that cannot be read now is looked at again soon.
    fn look(&mut self) -> Option<Input> {
        let session = self.request.session;
        let newest = self.engine.store().wait_after(session, self.seq, std::time::Duration::ZERO).ok()?;
        if newest <= self.seq {
            return None;
        }
        self.seq = newest;
        let state = self.engine.store().load(session).ok()?.state;
        Some(Input::Journal { requests: state.requests, used_up: None, tool_open: false, calls: 0 })
    }
}

/// The tree as the run left it, unless the end of the session says so itself.
pub(super) fn at_end(recorder: &mut Recorder<'_>, end: &End, at: &At) {
    if recorder.engine.options.tree.is_none() {
        return;
    }
    // A last line without its end is read only now, and must not cost the checkpoint.
    if !matches!(recorder.flush(), Ok(super::journal::Flushed::All)) {
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
    super::changes::record_untold(recorder, None);
}

/// A session that is completed sets its last sign itself; its files are taken now.
pub(super) fn after_end(recorder: &mut Recorder<'_>, at: &At) {
    if recorder.state.status == Status::Completed && !recorder.is_behind() {
        let engine = recorder.engine;
        engine.make_newest_ready(&mut recorder.state, at, &mut recorder.notices);
        super::changes::record_untold(recorder, None);
    }
}
