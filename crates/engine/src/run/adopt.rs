//! Taking over a run whose driver died while its agent lives on.

use std::time::Duration;
use std::time::Instant;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;

use super::Feed;
use super::Report;
use super::Stop;
use super::capture;
use super::drive::Running;
use super::heartbeat::Heartbeat;
use super::open::Opening;
use super::settle::Unseen;
use super::tree::Member;
use crate::Engine;
use crate::Error;
use crate::act::Acting;

/// How long an agent that is asked to stop may take for each step.
const POLITE: Duration = Duration::from_secs(2);
/// An agent that has just said something may still be writing it down; it gets this long.
const WRITES_DOWN: Duration = Duration::from_millis(500);
/// One that goes on talking is waited for no longer than this.
const TALKS_ON: Duration = Duration::from_secs(3);

/// The agent of a session's newest run, if its end is not recorded and it still lives on this machine.
pub fn living_agent(state: &State) -> Option<Member> {
    let run = state.run.as_ref().filter(|run| run.is_running())?;
    Some(Member { pid: run.pid, start: run.process_start }).filter(|member| member.is_alive())
}

impl Engine {
    /// The state of a session that has a run which is not over: without one there is nothing to follow, and nothing is
    /// recorded of the attempt.
    ///
    /// # Errors
    /// If no agent runs in it.
    pub fn check_adoptable(&self, session: SessionId) -> Result<State, Error> {
        let state = self.load(session)?.state;
        let runs = state.run.as_ref().is_some_and(segno_core::state::RunMark::is_running);
        if runs { Ok(state) } else { Err(no_run()) }
    }

    /// Follows the agent of a run whose driver died, to its end, within the limits that it was started with.
    ///
    /// # Errors
    /// If somebody else drives the session, or there is no such agent.
    pub fn adopt(&self, session: SessionId, stop: Stop, feed: Feed) -> Result<Report, Error> {
        if let Some(waits) = &self.options.at_start {
            waits.until_asked(&stop);
        }
        self.check_adoptable(session)?;
        let driver = self.drive(session, "segno attach")?;
        super::drive::tell_taken_over(&driver, &feed);
        tracing::info!(%session, epoch = driver.epoch(), "an agent is to be adopted");
        let state = self.check_adoptable(session)?;
        let Some(run) = state.run.clone() else { return Err(no_run()) };
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
        let mut commands = vec![Command::AdoptRun { run: run.id.clone(), epoch: driver.epoch() }];
        if state.status != Status::Active {
            commands.push(Command::Resume { reset_breaker: false, details: Some("adopted".into()) });
        }
        let acted = self.act_as(session, commands, Acting::in_run(driver.epoch(), &run.id))?;
        if let Some(waits) = &self.options.at_start {
            waits.begun();
        }
        own.read_anew();
        let open = self.open_run(Opening::found(own)?, acted.state, driver.epoch(), feed);
        let mut running = Running::new(&driver, open, tree, member, stop);
        // The time that it may take began when it did.
        let worked = Duration::from_micros(self.now().micros_since(run.started_at));
        running.limits.max_duration = running.limits.max_duration.map(|most| most.saturating_sub(worked));
        // No hook server: the hooks were told what the dead driver knew of secrets, and this one may know less.
        std::thread::scope(|scope| {
            let heart = Heartbeat::start(scope, &driver);
            running.follow(None, &heart, Instant::now())
        })
    }

    /// Records the end of a run that nobody drives and whose agent is gone. Answers with whose place was taken for that,
    /// if that one may live.
    ///
    /// # Errors
    /// If somebody drives the session, or its agent still lives.
    pub fn settle_run(&self, session: SessionId) -> Result<Option<String>, Error> {
        let driver = self.drive(session, "segno kill")?;
        // Whoever ends it has seen to it that it is ended, wherever it was.
        self.end_dead_run(session, driver.epoch(), Unseen::Left)?;
        Ok(driver.took_over().map(ToOwned::to_owned))
    }

    /// The same, if there is such a run at all.
    ///
    /// # Errors
    /// If somebody drives the session, or its agent still lives.
    pub fn settle_run_if_dead(&self, session: SessionId) -> Result<Option<String>, Error> {
        let running = self.store().load(session)?.state.run.is_some_and(|run| run.is_running());
        if running { self.settle_run(session) } else { Ok(None) }
    }

    /// Stops the agent of a session whose driver died, to go on with it: all it said is taken in first, and what it is
    /// in the middle of is in doubt afterwards, whatever it says of being stopped.
    /// Answers with whose place was taken for that, if that one may live.
    pub(crate) fn stop_to_go_on(&self, session: SessionId) -> Result<Option<String>, Error> {
        // From now on its hooks allow no further call.
        let driver = self.drive(session, "segno resume")?;
        // What cannot be taken in now is taken in at its end.
        let _ = self.hear_before_stop(session, driver.epoch());
        self.stop_run(&self.store().load(session)?.state);
        self.end_stopped_run(session, driver.epoch())?;
        Ok(driver.took_over().map(ToOwned::to_owned))
    }

    /// Sees to it that nothing of a session that is to end goes on: an agent that outlived its driver is stopped, and what
    /// it said is taken in. Answers with its pid if there was one.
    pub(crate) fn end_left_agent(&self, session: SessionId) -> Result<Option<u32>, Error> {
        let state = self.store().load(session)?.state;
        let Some(run) = state.run.as_ref().filter(|run| run.is_running()) else { return Ok(None) };
        // Who is below the run itself would end itself with it.
        let inside = self.options.actor.run.as_deref() == Some(run.id.as_str());
        if inside || self.store().lease(session)?.is_some() {
            return Ok(None);
        }
        let agent = living_agent(&state).map(|member| member.pid);
        if !state.status.is_open() {
            self.stop_run(&state);
            self.settle_left(session, &run.id)?;
        } else if agent.is_some() {
            self.stop_to_go_on(session)?;
        } else {
            self.settle_left(session, &run.id)?;
        }
        Ok(agent)
    }

    /// Takes in what was said so far. An agent whose call has just ended gets a moment to write that down: what is not
    /// in its own record it does not know when it goes on.
    fn hear_before_stop(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        let state = self.store().load(session)?.state;
        let Some(run) = state.run.clone() else { return Ok(()) };
        let own = self.own_capture(session, &run)?;
        let _alone = capture::alone_at(&own.dir);
        let mut open = self.open_run(Opening::found(own)?, state, epoch, Feed::default());
        let until = Instant::now() + TALKS_ON;
        loop {
            open.read_all()?;
            open.recorder.refresh()?;
            let is_at_work = !open.recorder.state.calls.open.is_empty();
            let is_quiet = open.capture.quiet_for().is_none_or(|quiet| quiet >= WRITES_DOWN);
            if is_at_work || is_quiet || Instant::now() >= until {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the agent of a session that nobody drives: politely first, so that it writes down what it still can, then
    /// at once, with all its processes.
    fn stop_run(&self, state: &State) {
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
                std::thread::sleep(Duration::from_millis(20));
            }
            if !member.is_alive() {
                break;
            }
        }
        self.kill_run(state);
        // A killed process is gone a moment later.
        let until = Instant::now() + POLITE;
        while member.is_alive() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
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

fn no_run() -> Error {
    Error::NoRun("no agent runs in this session".to_owned())
}
