//! Taking over a run whose driver died while its agent lives on.

use std::time::Instant;

use segno_agents::Agent;
use segno_agents::Baseline;
use segno_agents::Reader;
use segno_agents::ReaderOptions;
use segno_agents::plain::Plain;
use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;

use super::Feed;
use super::Limits;
use super::Report;
use super::Stop;
use super::capture::Capture;
use super::capture::Note;
use super::cgroup::Resources;
use super::drive::Process;
use super::drive::Running;
use super::drive::pidfd;
use super::heart::Heart;
use super::interactive::Person;
use super::journal::Recorder;
use super::log_beside::LogBeside;
use super::settle::Unseen;
use super::texts::Marks;
use super::tree::Member;
use crate::Engine;
use crate::Error;

/// How long an agent that is asked to stop may take for each step.
const POLITE: std::time::Duration = std::time::Duration::from_secs(2);

/// The agent a note tells of.
pub(super) fn agent(note: &Note) -> Box<dyn Agent> {
    match &note.plain {
        Some(config) => Box::new(Plain::new(config.clone())),
        None => segno_agents::by_name(&note.agent).unwrap_or_else(|| Box::new(Plain::default())),
    }
}

/// A reader that goes on where the capture does.
pub(super) fn reader(engine: &Engine, note: &Note, capture: &Capture) -> Reader {
    let start = capture.offset();
    let options = ReaderOptions {
        line_limit: engine.options.line_limit,
        start_offset: start,
        expected_native_id: note.expected_native_id.clone().filter(|_| note.attended.is_none()),
        // From the middle of its output nobody can tell what its running totals began with.
        baseline: if start > 0 || note.resumed { Baseline::Unknown } else { Baseline::Fresh },
    };
    match &note.attended {
        Some(attended) => {
            segno_agents::attended_reader(agent(note).as_ref(), &options, Some(&attended.since))
        }
        None => agent(note).reader(&options),
    }
}

/// The agent's own record, read again from where the run began in it.
pub(super) fn record(
    agent: &dyn Agent,
    note: &Note,
    native_id: Option<String>,
    recorder: &mut Recorder<'_>,
) -> LogBeside {
    let baseline = if note.resumed { Baseline::Unknown } else { Baseline::Fresh };
    LogBeside::new(agent, note, baseline, native_id, recorder)
}

/// The agent of a session's newest run, if its end is not recorded and it still lives on this machine.
pub fn living_agent(state: &State) -> Option<Member> {
    let run = state.run.as_ref().filter(|run| run.is_running())?;
    Some(Member { pid: run.pid, start: run.process_start }).filter(|member| member.is_alive())
}

impl Engine {
    /// Follows the agent of a run whose driver died, to its end.
    ///
    /// # Errors
    /// If somebody else drives the session, or there is no such agent.
    pub fn adopt(&self, session: SessionId, limits: Limits, stop: Stop, feed: Feed) -> Result<Report, Error> {
        let driver = self.drive(session, "segno attach")?;
        let state = self.store().load(session)?.state;
        let Some(run) = state.run.clone().filter(|run| run.is_running()) else {
            return Err(Error::NoRun("no agent runs in this session".to_owned()));
        };
        let Some(member) = living_agent(&state) else {
            self.end_dead_run(session, driver.epoch(), driver.may_leave_agent())?;
            let text =
                format!("{} (pid {}) has ended; what it printed last is recorded now", run.agent, run.pid);
            return Err(Error::NoRun(text));
        };
        let own = self.own_capture(session, &run)?;
        let Some(tree) = self.own_processes(session, &run).filter(|tree| tree.root() == member) else {
            let text = format!("nothing but the store says that process {} is this session's agent", run.pid);
            return Err(Error::NoRun(text));
        };
        let (capture, note) = (own.open()?, own.note);
        self.learn_secrets_of(capture.dir());
        let mut commands = vec![Command::AdoptRun { run: run.id.clone(), epoch: driver.epoch() }];
        if state.status != Status::Active {
            commands.push(Command::Resume { reset_breaker: false, details: Some("adopted".into()) });
        }
        let acted = self.act_in_run(session, commands, driver.epoch(), &run.id)?;
        let reader = reader(self, &note, &capture);
        let agent = agent(&note);
        let person = note.attended.as_ref();
        let person = person.map(|attended| Person::is_elsewhere(agent.as_ref(), attended, capture.dir()));
        let mut recorder =
            Recorder::new(self, agent.as_ref(), acted.state, driver.epoch(), &run.id, feed.clone())
                .with_lasting_ids(person.is_some())
                .taken_over();
        let record = record(agent.as_ref(), &note, run.native_id.clone(), &mut recorder);
        let running = Running {
            driver: &driver,
            completes: note.completes,
            process: Process::Adopted,
            reaps: false,
            exit: pidfd(member),
            member,
            tree,
            capture,
            // Its keeper is somebody else's child, and outlived its driver too.
            keeping: None,
            scratch: note.scratch.clone(),
            reader,
            recorder,
            record,
            person,
            // What it still asks, nobody can answer: its standard input was the dead driver's.
            asking: None,
            agent,
            // Nobody knows how long a person thinks.
            limits: Limits { silence: limits.silence.filter(|_| note.attended.is_none()), ..limits },
            resources: Resources::default(),
            stop,
            feed,
            stderr_seen: 0,
            swept: 0,
            behind: None,
            given: 0,
            marks: Marks::default(),
        };
        // No door: the hooks were told what the dead driver knew of secrets, and this one may know less.
        std::thread::scope(|scope| {
            let heart = Heart::start(scope, &driver);
            running.follow(None, &heart, Instant::now())
        })
    }

    /// Records the end of a run that nobody drives and whose agent is gone.
    ///
    /// # Errors
    /// If somebody drives the session, or its agent still lives.
    pub fn settle_run(&self, session: SessionId) -> Result<(), Error> {
        let driver = self.drive(session, "segno kill")?;
        // Whoever ends it has seen to it that it is ended, wherever it was.
        self.end_dead_run(session, driver.epoch(), Unseen::Left)
    }

    /// The same, if there is such a run at all.
    ///
    /// # Errors
    /// If somebody drives the session, or its agent still lives.
    pub fn settle_run_if_dead(&self, session: SessionId) -> Result<(), Error> {
        let running = self.store().load(session)?.state.run.is_some_and(|run| run.is_running());
        if running { self.settle_run(session) } else { Ok(()) }
    }

    /// Stops the agent of a session that nobody drives: politely first, so that it writes down what it still can, then
    /// at once, with all its processes.
    pub(crate) fn stop_run(&self, state: &State) {
        let Some(member) = living_agent(state) else { return };
        let agent = state.run.as_ref().and_then(|run| segno_agents::by_name(&run.agent));
        let ladder = agent.as_ref().map_or(&[][..], |agent| agent.stop_ladder());
        for step in ladder {
            match step.signal {
                segno_agents::Signal::Interrupt => member.signal(rustix::process::Signal::INT),
                segno_agents::Signal::Terminate => member.signal(rustix::process::Signal::TERM),
                segno_agents::Signal::Kill => break,
            }
            let until = Instant::now() + POLITE;
            while member.is_alive() && Instant::now() < until {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            if !member.is_alive() {
                break;
            }
        }
        self.kill_run(state);
        // A killed process is gone a moment later.
        let until = Instant::now() + POLITE;
        while member.is_alive() && Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Ends the processes of a session's newest run at once, whoever drives it. Answers with how many there were.
    pub fn kill_run(&self, state: &State) -> u64 {
        let Some(run) = state.run.as_ref() else { return 0 };
        let Some(tree) = self.own_processes(state.session_id, run) else { return 0 };
        let root = tree.root();
        let alive = u64::from(root.is_alive());
        root.signal(rustix::process::Signal::KILL);
        alive + tree.sweep()
    }
}
