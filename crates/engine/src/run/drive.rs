//! The loop of one run: it tails, journals, watches and, in the end, cleans up.

use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Signal;
use segno_agents::Agent;
use segno_agents::EndCause;
use segno_agents::Envelope;
use segno_agents::ExitInfo;
use segno_agents::Reader;
use segno_agents::ReaderOptions;
use segno_agents::StopStep;
use segno_core::Command;
use segno_core::RunId;
use segno_core::event::Request as Asked;
use serde_json::json;

use super::Feed;
use super::Limits;
use super::Report;
use super::Request;
use super::Stop;
use super::capture::Capture;
use super::cgroup::Resources;
use super::door::Door;
use super::door::Porter;
use super::door::Resident;
use super::interactive;
use super::interactive::Person;
use super::journal::Flushed;
use super::journal::Recorder;
use super::permission::Asking;
use super::raw::RawTail;
use super::record::Record;
use super::spawn;
use super::stop::Cause;
use super::stop::Stopping;
use super::tree;
use super::tree::Member;
use super::tree::Tree;
use super::tree::Undertaker;
use crate::Actor;
use crate::Engine;
use crate::Error;
use crate::lease::Driver;

/// How long the loop rests when there is nothing to read. The agent's end wakes it at once.
const REST: Duration = Duration::from_millis(15);
/// How often it looks for what others recorded, such as requests.
const LOOK: Duration = Duration::from_millis(250);
/// How often it looks at what the processes use, if that is limited.
const COUNT: Duration = Duration::from_secs(1);
/// How often the driver says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long it waits before it tries again to write to a store that could not take it.
const RETRY: Duration = Duration::from_millis(500);
/// How long it tries after the agent's end before it leaves the rest in the capture.
const LAST_TRIES: Duration = Duration::from_secs(20);
/// How much of standard error is kept.
const STDERR: u64 = 16 * 1024;

impl Engine {
    /// Runs an agent in a session to its end.
    ///
    /// # Errors
    /// If the session cannot be driven or the agent cannot be started. How the run itself went is in the report.
    pub fn run(&self, mut request: Request) -> Result<Report, Error> {
        let what = format!("segno run {}", request.agent.name());
        let driver = self.drive(request.session, &what)?;
        self.end_dead_run(request.session, driver.epoch(), driver.may_leave_agent())?;
        self.check_start(&self.load(request.session)?.state)?;
        request.below = self.started_below(request.session);
        let run = RunId::new(uuid::Uuid::now_v7());
        self.checkpoint_start(&request, driver.epoch(), run.as_str())?;
        let started = Instant::now();
        let (spec, scratch) = spawn::specify(&mut request, &run)?;
        let now = self.now().to_string();
        let begin = spawn::Begin { run: &run, epoch: driver.epoch(), now: &now, store: self.store().place() };
        let mut spawned = spawn::spawn(&request, &spec, scratch, begin, self.captures()?)?;
        let start = spawn::started(&request, &spec, &run, spawned.member);
        let commands = vec![Command::StartRun(Box::new(start))];
        let acted = self.act_in_run(request.session, commands, driver.epoch(), run.as_str());
        super::fault::moment("recorded");
        let acted = match acted {
            Ok(acted) => acted,
            Err(why) => {
                // Nothing may run that is not in the journal.
                spawned.tree.sweep();
                let _ = spawned.child.wait();
                spawned.capture.discard();
                spawn::remove(spawned.scratch.as_deref());
                if let Some(person) = spawned.person {
                    person.stand_up(true);
                }
                return Err(why);
            }
        };
        let options = ReaderOptions {
            line_limit: self.options.line_limit,
            expected_native_id: spec.native_id.clone().filter(|_| spawned.person.is_none()),
            baseline: request.baseline,
            ..ReaderOptions::default()
        };
        let reader = match &spawned.person {
            Some(_) => request.agent.diary_reader(&options, Some(&now)),
            None => request.agent.reader(&options),
        };
        let raw = match request.raw.take() {
            Some(to) => {
                let (from, place) =
                    spawned.capture.share().map_err(|why| Error::file(spawned.capture.dir(), why))?;
                Some(RawTail::start(from, place, to))
            }
            None => None,
        };
        for event in acted.events {
            request.feed.publish(super::News::Recorded {
                seq: acted.seq,
                at: self.now(),
                event: Box::new(event),
            });
        }
        let mut recorder = Recorder::new(
            self,
            request.agent.as_ref(),
            acted.state,
            driver.epoch(),
            run.as_str(),
            request.feed.clone(),
        )
        .with_lasting_ids(spawned.person.is_some());
        let agent = request.agent.as_ref();
        let record = Record::new(agent, &spawned.note, request.baseline, None, &mut recorder);
        let running = Running {
            driver: &driver,
            completes: request.completes,
            exit: pidfd(spawned.member),
            process: Process::Own(spawned.child),
            member: spawned.member,
            tree: spawned.tree,
            capture: spawned.capture,
            scratch: spawned.scratch,
            reader,
            recorder,
            record,
            person: spawned.person,
            asking: spawned
                .voice
                .map(|voice| Asking::new(voice, request.permissions.take().unwrap_or_default())),
            agent: request.agent,
            limits: request.limits,
            resources: request.resources,
            stop: request.stop,
            feed: request.feed,
            raw,
            turns: 0,
            last_sign: Instant::now(),
            stderr_seen: 0,
            ticks: 0,
            swept: 0,
            behind: None,
            given: 0,
        };
        running.follow_with(spawned.door, started)
    }
}

/// Wakes the loop when the agent ends.
pub(super) fn pidfd(member: Member) -> Option<OwnedFd> {
    rustix::process::pidfd_open(tree::pid(member.pid)?, rustix::process::PidfdFlags::empty()).ok()
}

/// The agent's process.
pub(super) enum Process {
    /// One that we started.
    Own(Child),
    /// One whose driver died: nobody here can wait for it.
    Adopted,
}

pub(super) struct Running<'a> {
    pub(super) driver: &'a Driver<'a>,
    pub(super) completes: bool,
    pub(super) process: Process,
    pub(super) member: Member,
    pub(super) exit: Option<OwnedFd>,
    pub(super) tree: Tree,
    pub(super) capture: Capture,
    pub(super) scratch: Option<PathBuf>,
    pub(super) reader: Reader,
    pub(super) recorder: Recorder<'a>,
    pub(super) record: Record,
    /// The one at the agent's terminal, if it has one.
    pub(super) person: Option<Person>,
    /// What the agent asks about its calls, if it asks us.
    pub(super) asking: Option<Asking>,
    pub(super) agent: Box<dyn Agent>,
    pub(super) limits: Limits,
    pub(super) resources: Resources,
    pub(super) stop: Stop,
    pub(super) feed: Feed,
    pub(super) raw: Option<RawTail>,
    pub(super) turns: u64,
    pub(super) last_sign: Instant,
    pub(super) stderr_seen: u64,
    pub(super) ticks: u64,
    pub(super) swept: u64,
    pub(super) behind: Option<Instant>,
    /// How much of the output was in hand when it was last given to the store.
    pub(super) given: u64,
}

impl Running<'_> {
    /// Follows the agent to its end, and hears its hooks at the door meanwhile.
    pub(super) fn follow_with(self, door: Option<Door>, started: Instant) -> Result<Report, Error> {
        let engine = self.recorder.engine;
        let run = Some(self.recorder.run.clone());
        let actor = Actor { run, epoch: Some(self.driver.epoch()), ..Actor::default() };
        let resident = Resident { session: self.recorder.session, actor };
        std::thread::scope(|scope| {
            let porter = door.and_then(|door| door.attend(scope, engine, resident));
            self.follow(porter, started)
        })
    }

    fn follow(mut self, porter: Option<Porter>, started: Instant) -> Result<Report, Error> {
        let (exit, cause) = self.watch()?;
        // Whatever it left behind is ended first: it may still be printing. Then what its hooks brought is taken in,
        // so that nothing of the run is recorded after its end.
        self.swept += self.tree.sweep();
        if let Some(porter) = porter {
            porter.close();
        }
        self.finish(exit, cause, started)
    }

    /// Follows the agent until it has ended.
    fn watch(&mut self) -> Result<(ExitInfo, Option<Cause>), Error> {
        let begun = Instant::now();
        let (mut beat, mut looked, mut counted) = (Instant::now(), Instant::now(), Instant::now());
        let mut undertaker = Undertaker::default();
        let mut stopping: Option<Stopping> = None;
        loop {
            let busy = self.read()?;
            self.checkpoint_now_and_then()?;
            if let Some(asking) = &mut self.asking {
                asking.settle(self.agent.as_ref(), &mut self.recorder)?;
                if asking.is_open() {
                    self.last_sign = Instant::now();
                }
            }
            if let Some(exit) = self.ended() {
                let cause = match stopping {
                    Some(stopping) => Some(stopping.cause),
                    // Whoever kills from elsewhere asks first and then does it; the request may not be seen yet.
                    None => {
                        self.look()?;
                        self.recorder.state.requests.first().map(|open| Cause::Request(open.request))
                    }
                };
                return Ok((exit, cause));
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look()?;
            }
            let mut used_up = None;
            if self.resources.any() && counted.elapsed() >= COUNT {
                counted = Instant::now();
                used_up = self.used_up();
            }
            if beat.elapsed() >= HEARTBEAT {
                beat = Instant::now();
                self.beat()?;
                undertaker.look(self.member.pid);
            }
            let mut ladder: Vec<StopStep> = self.agent.stop_ladder().to_vec();
            if let Some(person) = &self.person {
                ladder = interactive::ladder(&ladder);
                person.follow_job(self.member, &self.stop);
            }
            let step = match &mut stopping {
                None => match used_up.or_else(|| self.reason_to_stop(begun)) {
                    Some(cause) => {
                        self.tell_cause(&cause);
                        let (begun, step) = Stopping::begin(cause, &ladder);
                        stopping = Some(begun);
                        step
                    }
                    None => None,
                },
                Some(stopping) => {
                    let killed = self.recorder.state.requests.iter().any(|open| open.request == Asked::Kill);
                    stopping.next(&ladder, self.limits.grace, self.stop.asked().0 > 1 || killed)
                }
            };
            if let Some(step) = step {
                self.signal(step);
            }
            if !busy {
                self.rest();
            }
        }
    }

    fn rest(&self) {
        match &self.exit {
            Some(exit) => {
                let mut fds =
                    [rustix::event::PollFd::from_borrowed_fd(exit.as_fd(), rustix::event::PollFlags::IN)];
                let patience = rustix::event::Timespec { tv_sec: 0, tv_nsec: REST.subsec_nanos().into() };
                let _ = rustix::event::poll(&mut fds, Some(&patience));
            }
            None => std::thread::sleep(REST),
        }
    }

    /// How the process ended, if it has.
    fn ended(&mut self) -> Option<ExitInfo> {
        match &mut self.process {
            Process::Own(child) => {
                let status = child.try_wait().ok().flatten()?;
                Some(ExitInfo { code: status.code(), signal: status.signal(), ..ExitInfo::default() })
            }
            Process::Adopted => (!self.member.is_alive()).then(ExitInfo::default),
        }
    }

    /// What others recorded: requests, budgets, calls.
    fn look(&mut self) -> Result<(), Error> {
        match self.recorder.refresh() {
            Ok(()) => Ok(()),
            // A store that is busy now is asked again soon.
            Err(Error::Store(segno_store::Error::Busy { .. }) | Error::WriteError { .. }) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Says that this driver lives. One that was replaced lets go: the agent is its successor's now.
    fn beat(&mut self) -> Result<(), Error> {
        match self.driver.heartbeat() {
            Err(why @ Error::Store(segno_store::Error::StaleEpoch { .. })) => Err(why),
            _ => Ok(()),
        }
    }

    fn reason_to_stop(&mut self, begun: Instant) -> Option<Cause> {
        let (asked, how) = self.stop.asked();
        if asked > 0 {
            return Some(Cause::Asked(how));
        }
        let state = &self.recorder.state;
        if let Some(open) = state.requests.first() {
            return Some(Cause::Request(open.request));
        }
        if state.budget.is_exhausted() || state.cost.is_exhausted() {
            return Some(Cause::Budget);
        }
        if self.limits.turns.is_some_and(|most| self.turns > u64::from(most)) {
            return Some(Cause::Turns);
        }
        if self.limits.wall.is_some_and(|wall| begun.elapsed() >= wall) {
            return Some(Cause::Wall);
        }
        if self.limits.silence.is_some_and(|silence| self.last_sign.elapsed() >= silence) {
            return self.silent();
        }
        None
    }

    /// An agent that says nothing while a tool works is not stuck as long as its processes do something.
    fn silent(&mut self) -> Option<Cause> {
        let quiet_tools = !self.agent.silence().heartbeats && !self.recorder.state.calls.open.is_empty();
        let ticks = self.tree.usage().ticks;
        if quiet_tools && ticks != self.ticks {
            self.ticks = ticks;
            self.last_sign = Instant::now();
            let body = json!({ "cause": "silence", "did": "waited: a tool is at work" });
            self.recorder.note(Command::Report { what: "watchdog".to_owned(), body });
            return None;
        }
        Some(Cause::Silence)
    }

    fn used_up(&self) -> Option<Cause> {
        if !self.resources.any() {
            return None;
        }
        let usage = self.tree.usage();
        let second = rustix::param::clock_ticks_per_second().max(1);
        let over = |what: &str, used: u64, most: Option<u64>| {
            most.filter(|most| used > *most)
                .map(|most| format!("its processes use {used} {what}, more than {most}"))
        };
        over("bytes of memory", usage.memory, self.resources.memory)
            .or_else(|| over("seconds of processor time", usage.ticks / second, self.resources.cpu_seconds))
            .or_else(|| over("processes", usage.processes, self.resources.processes))
            .map(Cause::Resources)
    }

    fn tell_cause(&mut self, cause: &Cause) {
        let text = cause.text();
        self.recorder.say(&format!("{text}; the agent is stopped"));
        let what = match cause {
            Cause::Silence | Cause::Wall => "watchdog",
            _ => "stopping",
        };
        let body = json!({ "cause": cause.word(), "why": text, "did": "stop" });
        self.recorder.note(Command::Report { what: what.to_owned(), body });
    }

    fn signal(&mut self, step: StopStep) {
        use segno_agents::Signal as Named;
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
        self.recorder.note(Command::Report { what: "signal".to_owned(), body });
    }

    /// Reads and journals what is new; false when there is nothing to do.
    fn read(&mut self) -> Result<bool, Error> {
        // While the store cannot take what is in hand, nothing more is read: the capture holds it.
        if let Some(since) = self.behind
            && since.elapsed() < RETRY
        {
            return Ok(false);
        }
        if self.behind.is_none() || !self.recorder.is_behind() {
            self.read_capture()?;
        }
        let read = self.recorder.is_behind();
        // What is held back is not given to the store.
        let in_hand = if self.record.holds() { 0 } else { self.reader.safe_offset() };
        self.advance()?;
        let ahead = self.behind.is_none();
        if read && ahead {
            // What was in hand the last time is in the journal now.
            self.capture.release(self.given);
        }
        self.given = if ahead { in_hand } else { 0 };
        Ok(read && ahead)
    }

    fn read_capture(&mut self) -> Result<bool, Error> {
        if let Some(person) = &mut self.person {
            let native_id = self.recorder.state.run.as_ref().and_then(|run| run.native_id.as_deref());
            person.pump(self.agent.as_ref(), native_id, &self.tree);
        }
        let Self { reader, recorder, record, asking, .. } = self;
        let mut take = |envelope: Envelope| {
            if let Some(asking) = asking {
                asking.hear(&envelope.event);
            }
            record.hear(envelope, recorder);
        };
        let mut read = self
            .capture
            .read(|bytes| reader.feed(bytes, &mut take))
            .map_err(|why| Error::file(self.capture.dir(), why))?;
        read |= record.follow(self.agent.as_ref(), self.capture.dir(), recorder);
        self.turns = record.calls();
        let stderr = self.capture.stderr_bytes();
        if read || stderr != self.stderr_seen {
            self.stderr_seen = stderr;
            self.last_sign = Instant::now();
        }
        Ok(read)
    }

    /// Journals what is in hand while more is read.
    fn advance(&mut self) -> Result<(), Error> {
        match self.recorder.advance()? {
            Flushed::All => {
                if self.behind.take().is_some() {
                    self.recorder.say("the store takes what happens again; nothing is lost");
                }
            }
            Flushed::NotYet(why) => {
                if self.behind.is_none() {
                    let text = format!(
                        "{why}; the run goes on, and what it prints is kept until the store can take it"
                    );
                    self.recorder.say(&text);
                    self.recorder.notices.push(text);
                }
                self.behind = Some(Instant::now());
            }
        }
        Ok(())
    }

    /// Reads the rest and journals it, trying for a while if the store cannot take it. False if it never could.
    fn drain(&mut self) -> Result<bool, Error> {
        let until = Instant::now() + LAST_TRIES;
        loop {
            self.advance()?;
            if self.behind.is_none() && !self.read_capture()? && !self.recorder.is_behind() {
                return Ok(true);
            }
            if self.behind.is_some() {
                if Instant::now() >= until {
                    return Ok(false);
                }
                std::thread::sleep(RETRY);
            }
        }
    }

    fn finish(mut self, exit: ExitInfo, cause: Option<Cause>, started: Instant) -> Result<Report, Error> {
        let swept = self.swept;
        self.record.end();
        if let Some(person) = &mut self.person {
            person.stand_up(exit.signal.is_some());
            // The last that hooks told may name another conversation.
            let _ = self.recorder.refresh();
            let native_id = self.recorder.state.run.as_ref().and_then(|run| run.native_id.as_deref());
            if let Err(why) = person.finish(self.agent.as_ref(), native_id, &self.tree) {
                self.recorder.notices.push(format!("the end of the agent's record could not be read: {why}"));
            }
        }
        let drained = self.drain()?;
        let stderr = self.recorder.engine.redactor().text(&self.capture.stderr_tail(STDERR)).into_owned();
        let mut exit = exit.because(cause.as_ref().map_or(EndCause::Own, Cause::end));
        if !stderr.is_empty() {
            exit = exit.with_stderr(stderr.clone());
        }
        let Self { reader, mut recorder, mut record, capture, .. } = self;
        let at = recorder.at(None);
        let mut outcome = reader.finish(&exit, &mut |envelope| record.hear(envelope, &mut recorder));
        record.finish(&exit, &mut outcome, &mut recorder);
        let end = super::settle::End {
            outcome,
            cause,
            swept,
            took: started.elapsed(),
            stderr,
            completes: self.completes && self.person.is_none(),
            pauses: self.completes && self.person.is_some(),
            moves_session: true,
            last_seen: None,
        };
        super::checkpoint::at_end(&mut recorder, &end, &at);
        let (outcome, kept) = if drained {
            super::settle::record_end(&mut recorder, end.clone(), LAST_TRIES, RETRY)?
        } else {
            // A run is not ended before all of it is read: whoever finds it next reads the rest and ends it.
            recorder
                .notices
                .push("what the run printed last is not recorded yet; the next command does it".into());
            (end.outcome.clone(), true)
        };
        super::checkpoint::after_end(&mut recorder, &at);
        spawn::remove(self.scratch.as_deref());
        if let Some(raw) = self.raw {
            raw.finish();
        }
        let kept_capture = if kept {
            Some(capture.dir().to_owned())
        } else {
            capture.discard();
            None
        };
        recorder.refresh_view(true);
        self.feed.close();
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
}
