//! The loop of one run: it reads and journals, tells the supervisor what happens, and does what that says.
//!
//! Only three things end it: the end of the process, being replaced, and the session being gone; after the last two the
//! agent is stopped first. Whatever else goes wrong is told and waited out.

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Signal;
use segno_agents::ExitInfo;
use segno_agents::StopStep;
use segno_core::Fact;
use segno_core::event::CheckpointReason;
use serde_json::json;

use super::background::BackgroundWork;
use super::drive::Process;
use super::drive::Running;
use super::heartbeat;
use super::heartbeat::Heartbeat;
use super::journal::Flushed;
use super::stop::Cause;
use super::supervisor::Action;
use super::supervisor::Input;
use super::supervisor::Supervisor;
use super::tree::OrphanReaper;
use super::used_up::used_up;
use crate::Error;

/// How long the loop rests when there is nothing to read. The agent's end wakes it at once.
pub(crate) const REST: Duration = Duration::from_millis(15);
/// How long it rests at most while others write: what else it looks after comes as often.
const LONG_REST: Duration = Duration::from_millis(60);
/// How long it waits before it tries again to write to a store that could not take it.
pub(super) const RETRY: Duration = Duration::from_millis(500);
/// How often it looks for orphans that have ended, and whether what is printed is kept.
const TEND: Duration = Duration::from_secs(1);

/// How the process ended, and why it was stopped if it was.
pub(super) struct Ended {
    pub(super) exit: ExitInfo,
    pub(super) cause: Option<Cause>,
}

impl Running<'_> {
    /// Follows the agent until it has ended.
    pub(super) fn watch(&mut self, heart: &Heartbeat, beside: &BackgroundWork) -> Ended {
        let begun = Instant::now();
        let mut tended = Instant::now();
        let mut reaper = OrphanReaper::default();
        let mut supervisor = Supervisor::new(self.rules());
        let mut inputs: Vec<Input> = Vec::new();
        loop {
            let busy = self.read(&mut inputs);
            self.settle_questions(&mut inputs);
            inputs.extend(heart.news());
            for done in beside.done() {
                inputs.extend(self.open.recorder.hear_done(done));
            }
            if let Some(state) = self.open.recorder.view_to_write() {
                beside.view(state);
            }
            if tended.elapsed() >= TEND {
                tended = Instant::now();
                if self.reaps {
                    reaper.look(&[Some(self.member.pid), self.capture_process()]);
                }
                inputs.extend(self.check_capture_process());
            }
            let (asked, how) = self.stop.asked();
            inputs.push(Input::Asked(asked, how));
            let exit = self.ended();
            if exit.is_some() {
                // The word of whoever ended it from elsewhere may not be known yet.
                self.look(&mut inputs);
            }
            self.open.recorder.look_at_shared_caps();
            inputs.push(self.journal());
            inputs.push(if exit.is_some() { Input::Exited } else { Input::Tick });
            let mut more = Vec::new();
            for input in inputs.drain(..) {
                for action in supervisor.handle(begun.elapsed(), input) {
                    match action {
                        Action::End(cause) => {
                            return Ended { exit: exit.unwrap_or_default(), cause };
                        }
                        other => self.carry_out(other, heart, beside, &mut more),
                    }
                }
            }
            inputs = more;
            if let Some(terminal) = &self.open.terminal {
                terminal.follow_job(self.member, &self.stop);
            }
            if !busy {
                self.rest();
            }
        }
    }

    fn carry_out(
        &mut self,
        action: Action,
        heart: &Heartbeat,
        beside: &BackgroundWork,
        inputs: &mut Vec<Input>,
    ) {
        match action {
            Action::Renew => heart.beat_now(),
            Action::Look => self.look(inputs),
            Action::Count => inputs.push(Input::Usage(self.tree.usage())),
            Action::Signal(step) => self.signal(step),
            Action::Checkpoint(calls) => {
                let at = self.open.recorder.at(Some(self.open.capture.offset()));
                let (session, name) = (self.open.recorder.session, format!("tool {calls}"));
                beside.checkpoint(session, name, CheckpointReason::ToolCount, at);
            }
            Action::Report(what, body) => {
                self.open.recorder.note(Fact::Reported { what: what.to_owned(), body });
            }
            Action::Warn(text) => self.open.recorder.say(&text),
            Action::Remember(text) => self.open.recorder.warn(text),
            // Whoever watches has seen to it.
            Action::End(_) => {}
        }
    }

    fn rest(&self) {
        let rest = self.pace.left(Instant::now()).clamp(REST, LONG_REST);
        match &self.exit {
            Some(exit) => {
                let mut fds =
                    [rustix::event::PollFd::from_borrowed_fd(exit.as_fd(), rustix::event::PollFlags::IN)];
                let patience = rustix::event::Timespec { tv_sec: 0, tv_nsec: rest.subsec_nanos().into() };
                let _ = rustix::event::poll(&mut fds, Some(&patience));
            }
            None => std::thread::sleep(rest),
        }
    }

    /// How the process ended, if it has.
    fn ended(&mut self) -> Option<ExitInfo> {
        match &mut self.process {
            Process::Own(child) => match child.try_wait() {
                Ok(status) => {
                    let status = status?;
                    Some(ExitInfo { code: status.code(), signal: status.signal(), ..ExitInfo::default() })
                }
                // Somebody else in this process waited for it, or the system did.
                Err(_) => (!self.member.is_alive()).then(ExitInfo::default),
            },
            Process::Adopted => (!self.member.is_alive()).then(ExitInfo::default),
        }
    }

    /// What others recorded: requests, budgets, calls.
    fn look(&mut self, inputs: &mut Vec<Input>) {
        if let Err(why) = self.open.recorder.refresh() {
            inputs.push(trouble(&why));
        }
    }

    fn journal(&self) -> Input {
        let state = &self.open.recorder.state;
        Input::Journal {
            requests: state.requests.clone(),
            used_up: self.used_up(),
            tool_open: !state.calls.open.is_empty(),
            calls: state.calls.total,
        }
    }

    /// The cap that is used up or cannot be held, in words.
    fn used_up(&self) -> Option<String> {
        let unknown = || {
            let model = self.open.recorder.cost_unknown()?;
            Some(format!("a cap on money cannot hold: what {model} costs is not known"))
        };
        used_up(&self.open.recorder.state, &self.limits)
            .or_else(unknown)
            .or_else(|| self.open.recorder.shared_cap())
    }

    fn settle_questions(&mut self, inputs: &mut Vec<Input>) {
        let Some(asking) = &mut self.asking else { return };
        if let Err(why) = asking.settle(self.open.agent.as_ref(), &mut self.open.recorder) {
            inputs.push(trouble(&why));
        }
        if asking.is_open() {
            inputs.push(Input::Sign);
        }
    }

    fn capture_process(&self) -> Option<u32> {
        self.capturing.as_ref().and_then(super::capture_process::CaptureProcess::pid)
    }

    fn check_capture_process(&mut self) -> Option<Input> {
        let kept = self.open.capture.kept();
        let capturing = self.capturing.as_mut()?;
        let held_up = capturing.tend(kept);
        self.tree.spare(capturing.pid());
        let dir = self.open.capture.dir().display().to_string();
        held_up
            .then(|| Input::HeldUp(format!("there is no room for what the agent prints in {dir}; it waits")))
    }

    fn signal(&mut self, step: StopStep) {
        use segno_agents::Signal as Named;
        self.open.recorder.is_stopping = true;
        let name = match step.signal {
            // The polite ones are for the agent, which ends its own tools; the last is for everything.
            Named::Interrupt => {
                self.member.signal(Signal::INT);
                "SIGINT"
            }
            Named::Terminate => {
                self.member.signal(Signal::TERM);
                "SIGTERM"
            }
            Named::Kill => {
                self.member.signal(Signal::KILL);
                self.swept += self.tree.sweep();
                "SIGKILL"
            }
        };
        let body = json!({ "signal": name, "pid": self.member.pid });
        self.open.recorder.note(Fact::Reported { what: "signal".to_owned(), body });
    }

    /// Reads and journals what is new; false when there is nothing to do.
    fn read(&mut self, inputs: &mut Vec<Input>) -> bool {
        // While the store cannot take what is in hand, nothing more is read: the capture holds it.
        if let Some(since) = self.behind
            && since.elapsed() < RETRY
        {
            return false;
        }
        let is_behind = self.open.recorder.is_behind();
        if !is_behind && self.keeps_pace() && !self.pace.left(Instant::now()).is_zero() {
            return false;
        }
        // One lot is made ready while the one before is being written, and no more; none if others want to write too.
        let ready = self.behind.is_none()
            && !self.open.recorder.has_pending()
            && !(self.keeps_pace() && self.pace.is_slow());
        if ready || !is_behind {
            self.read_capture(inputs);
        }
        if self.open.recorder.waits_for_answer() {
            return true;
        }
        let read = self.open.recorder.is_behind();
        if is_behind {
            let waited = self.open.recorder.engine.store().waited();
            self.pace.given(Instant::now(), waited);
        }
        // What is held back is not given to the store, nor is anything of the log beside it.
        let in_hand = match self.open.log.holds() {
            true => 0,
            false => {
                self.marks.before_held(self.open.recorder.texts_progress(), self.open.reader.safe_offset())
            }
        };
        self.advance(inputs);
        let ahead = self.behind.is_none();
        if read && ahead {
            // What was in hand the last time is in the journal now.
            self.open.capture.release(self.given);
        }
        self.given = if ahead { in_hand } else { 0 };
        read && ahead
    }

    /// Whether what the agent prints may gather for a moment. Where it asks about its calls in what it prints, it waits for
    /// an answer.
    fn keeps_pace(&self) -> bool {
        self.asking.is_none()
    }

    /// True if there was something new.
    pub(super) fn read_capture(&mut self, inputs: &mut Vec<Input>) -> bool {
        let Self { open, asking, tree, .. } = self;
        if let Some(terminal) = &mut open.terminal {
            let native_id = open.recorder.state.run.as_ref().and_then(|run| run.native_id.as_deref());
            terminal.pump(native_id, tree);
        }
        let hear = |event: &_| {
            if let Some(asking) = asking {
                asking.hear(event);
            }
        };
        let read = open.read_on(hear).unwrap_or_else(|why| {
            inputs.push(Input::StoreTrouble(why.to_string()));
            false
        });
        inputs.push(Input::ToolCalls(open.log.calls()));
        inputs.push(Input::Recorded(open.recorder.recorded));
        open.recorder.give_texts();
        let stderr = self.open.capture.stderr_bytes();
        if read || stderr != self.stderr_seen {
            self.stderr_seen = stderr;
            inputs.push(Input::Sign);
        }
        read
    }

    /// Journals what is in hand while more is read.
    pub(super) fn advance(&mut self, inputs: &mut Vec<Input>) {
        match self.open.recorder.advance() {
            Ok(Flushed::All) => {
                if self.behind.take().is_some() {
                    inputs.push(Input::StoreWell);
                }
            }
            Ok(Flushed::NotYet(why)) => {
                self.behind = Some(Instant::now());
                inputs.push(Input::StoreTrouble(why));
            }
            Err(why) => {
                self.behind = Some(Instant::now());
                inputs.push(trouble(&why));
            }
        }
    }
}

/// What an error means for the watch.
fn trouble(why: &Error) -> Input {
    heartbeat::replaced(why).unwrap_or_else(|| Input::StoreTrouble(why.to_string()))
}
