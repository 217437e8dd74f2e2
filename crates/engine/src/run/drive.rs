//! Starting an agent in a session, and following it to its end.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Instant;

use segno_core::Command;
use segno_core::RunId;

use super::Feed;
use super::Limits;
use super::Report;
use super::Request;
use super::Stop;
use super::background::BackgroundWork;
use super::capture_process::CaptureProcess;
use super::heartbeat::Heartbeat;
use super::hook_server::HookServer;
use super::hook_server::RunIdentity;
use super::interactive;
use super::open::Begun;
use super::open::OpenRun;
use super::open::Opening;
use super::pace::Pace;
use super::permission::Asking;
use super::raw::RawTail;
use super::resources::Resources;
use super::spawn;
use super::stop::Cause;
use super::supervisor::Rules;
use super::texts::Marks;
use super::tree;
use super::tree::Member;
use super::tree::Tree;
use crate::Actor;
use crate::Engine;
use crate::Error;
use crate::act::Acting;
use crate::lease::Driver;

impl Engine {
    /// Runs an agent in a session to its end.
    ///
    /// # Errors
    /// If the session cannot be driven or the agent cannot be started. How the run itself went is in the report.
    pub fn run(&self, request: Request) -> Result<Report, Error> {
        let stop = request.stop.clone();
        if let Some(waits) = &self.options.at_start {
            waits.until_asked(&stop);
        }
        self.run_to_end(request).map_err(|why| match (why, stop.asked()) {
            // Whoever asked it to stop while it waited for the store does not want to hear of the store.
            (Error::Store(segno_store::Error::Busy { .. }), (1.., how)) => {
                Error::NotStarted(Cause::Asked(how).text())
            }
            (other, _) => other,
        })
    }

    fn run_to_end(&self, request: Request) -> Result<Report, Error> {
        let what = format!("segno run {}", request.agent.name());
        let driver = self.drive(request.session, &what)?;
        tell_taken_over(&driver, &request.feed);
        let done = std::thread::scope(|scope| {
            let heart = Heartbeat::start(scope, &driver);
            self.run_as(&driver, &heart, request)
        });
        // Nothing is left to drive: whoever still reads what was printed holds up nobody else.
        drop(driver);
        let (report, raw) = done?;
        if let Some(raw) = raw {
            raw.finish();
        }
        Ok(report)
    }

    /// Runs an agent to its end under a lease that this process holds already, and keeps.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub(crate) fn run_held(
        &self,
        driver: &Driver<'_>,
        heart: &Heartbeat,
        request: Request,
    ) -> Result<Report, Error> {
        let (report, raw) = self.run_as(driver, heart, request)?;
        if let Some(raw) = raw {
            raw.finish();
        }
        Ok(report)
    }

    fn run_as(
        &self,
        driver: &Driver<'_>,
        heart: &Heartbeat,
        mut request: Request,
    ) -> Result<(Report, Option<RawTail>), Error> {
        self.end_dead_run(request.session, driver.epoch(), driver.may_leave_agent())?;
        let state = self.load(request.session)?.state;
        self.check_start(&state)?;
        self.check_price(&state, &request)?;
        request.below = self.started_below(request.session);
        let run = RunId::new(uuid::Uuid::now_v7());
        self.checkpoint_start(&request, driver, heart, run.as_str())?;
        let started = Instant::now();
        let model = request.launch.model.clone();
        let (spec, scratch) = spawn::specify(&mut request, &run)?;
        let now = self.now().to_string();
        let (store, store_id) = (self.store().location(), self.store_id());
        let redactor = self.redactor();
        let epoch = driver.epoch();
        let begin = spawn::Begin { run: &run, epoch, now: &now, store, store_id, redactor: &redactor };
        let mut spawned = spawn::spawn(&request, &spec, scratch, begin, self.captures()?)?;
        let start = spawn::started(&request, &spec, &run, spawned.member, &redactor);
        let commands = vec![Command::StartRun(Box::new(start))];
        let acted = self.act_as(request.session, commands, Acting::in_run(driver.epoch(), run.as_str()));
        if let Some(waits) = &self.options.at_start {
            waits.begun();
        }
        crate::fault::moment("recorded");
        let acted = match acted {
            Ok(acted) => acted,
            Err(why) => {
                // Nothing may run that is not in the journal.
                spawned.tree.sweep();
                let _ = spawned.child.wait();
                spawned.capture.discard();
                spawn::remove(spawned.note.scratch.as_deref());
                if let Some(terminal) = spawned.terminal {
                    terminal.restore(true);
                }
                return Err(why);
            }
        };
        let raw = match request.raw.take() {
            Some(to) => {
                let (from, position) =
                    spawned.capture.share().map_err(|why| Error::file(spawned.capture.dir(), why))?;
                Some(RawTail::start(from, position, to))
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
        let opening = Opening {
            agent: request.agent,
            note: spawned.note,
            capture: spawned.capture,
            terminal: spawned.terminal,
            begun: Begun::Here(request.baseline),
        };
        let mut open = self.open_run(opening, acted.state, driver.epoch(), request.feed);
        open.recorder.price_as(model, request.limits.micros.is_some());
        let mut running = Running::new(driver, open, spawned.tree, spawned.member, request.stop);
        running.process = Process::Own(spawned.child);
        running.reaps = request.sole_process;
        running.capturing = spawned.capturing;
        running.asking =
            spawned.voice.map(|voice| Asking::new(voice, request.permissions.take().unwrap_or_default()));
        running.follow(spawned.hook_server, heart, started).map(|report| (report, raw))
    }
}

/// Says whose place a driver took.
pub(super) fn tell_taken_over(driver: &Driver<'_>, feed: &Feed) {
    if let Some(whom) = driver.took_over() {
        feed.publish(super::News::Notice(whom.to_owned()));
    }
}

/// Wakes the loop when the agent ends.
fn pidfd(member: Member) -> Option<OwnedFd> {
    rustix::process::pidfd_open(tree::pid(member.pid)?, rustix::process::PidfdFlags::empty()).ok()
}

/// The agent's process.
pub(super) enum Process {
    /// One that we started.
    Own(Child),
    /// One whose driver died: nobody here can wait for it.
    Adopted,
}

/// A run that goes on.
pub(super) struct Running<'a> {
    pub(super) driver: &'a Driver<'a>,
    pub(super) open: OpenRun<'a>,
    pub(super) process: Process,
    /// Orphans that came to this process are the agent's, and are waited for.
    pub(super) reaps: bool,
    pub(super) member: Member,
    pub(super) exit: Option<OwnedFd>,
    pub(super) tree: Tree,
    /// The pipes that it prints to, if we made them. The capture process of a run that is adopted is somebody else's child, and
    /// outlived its driver too.
    pub(super) capturing: Option<CaptureProcess>,
    /// What the agent asks about its calls, if it asks us. What an adopted one still asks nobody can answer: its standard
    /// input was the dead driver's.
    pub(super) asking: Option<Asking>,
    pub(super) limits: Limits,
    pub(super) resources: Resources,
    pub(super) stop: Stop,
    pub(super) stderr_seen: u64,
    pub(super) swept: u64,
    pub(super) behind: Option<Instant>,
    /// How much of the output was in hand when it was last given to the store.
    pub(super) given: u64,
    /// How far the output was read at each of the last looks.
    pub(super) marks: Marks,
    pub(super) pace: Pace,
}

impl<'a> Running<'a> {
    /// A run as anybody follows it, within the limits that its note names. Who started its process knows more.
    pub(super) fn new(
        driver: &'a Driver<'a>,
        open: OpenRun<'a>,
        tree: Tree,
        member: Member,
        stop: Stop,
    ) -> Self {
        let limits = open.note.limits.unwrap_or_default();
        Self {
            driver,
            process: Process::Adopted,
            reaps: false,
            exit: pidfd(member),
            member,
            tree,
            capturing: None,
            asking: None,
            // A person may think for as long as they like.
            limits: Limits { silence: limits.silence.filter(|_| open.note.interactive.is_none()), ..limits },
            resources: open.note.resources,
            open,
            stop,
            stderr_seen: 0,
            swept: 0,
            behind: None,
            given: 0,
            marks: Marks::default(),
            pace: Pace::default(),
        }
    }
}

impl Running<'_> {
    /// Follows the agent to its end, and serves its hooks meanwhile.
    pub(super) fn follow(
        mut self,
        hook_server: Option<HookServer>,
        heart: &Heartbeat,
        started: Instant,
    ) -> Result<Report, Error> {
        let engine = self.open.recorder.engine;
        let run = Some(self.open.recorder.run.clone());
        let actor = Actor { run, epoch: Some(self.driver.epoch()), ..Actor::default() };
        let identity = RunIdentity { session: self.open.recorder.session, actor };
        std::thread::scope(|scope| {
            let handle = hook_server.and_then(|server| server.serve(scope, engine, identity));
            let beside = BackgroundWork::start(scope, engine);
            let ended = self.watch(heart, &beside);
            // Whatever it left behind is ended first: it may still be printing. Then what its hooks brought is taken
            // in, so that nothing of the run is recorded after its end.
            self.swept += self.tree.sweep();
            if let Some(handle) = handle {
                handle.close();
            }
            for done in beside.finish() {
                self.open.recorder.hear_done(done);
            }
            self.finish(ended, started)
        })
    }

    /// What the supervisor goes by.
    pub(super) fn rules(&self) -> Rules {
        let ladder = self.open.agent.stop_ladder().to_vec();
        let engine = self.open.recorder.engine;
        Rules {
            limits: self.limits,
            resources: self.resources,
            ladder: if self.open.terminal.is_some() { interactive::ladder(&ladder) } else { ladder },
            heartbeats: self.open.agent.silence().heartbeats,
            every_calls: engine.options.tree.as_ref().map_or(0, |tree| tree.every_calls),
            shared_store: engine.store().is_shared(),
        }
    }
}
