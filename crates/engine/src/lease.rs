//! Who drives, and whether they live.

use segno_core::Command;

use segno_core::Fact;
use segno_core::Input;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::event::CallEnd;
use segno_core::event::Holder;
use segno_core::event::InterruptReason;
use segno_core::event::Source;
use segno_store::Lease;

use crate::Engine;
use crate::Error;
use crate::act::Acting;
use crate::life;
use crate::life::Death;
use crate::life::Life;
use crate::run::Unseen;
use crate::run::WatchedStanding;

/// Whoever wants to drive may take the place of a holder that cannot be seen and was silent for longer, in seconds by
/// the store's clock. Such a driver stops its agent before that if it can know of it, and as soon as it does know.
pub const SILENCE_SECONDS: u64 = 60;

/// This process as a holder.
pub fn here(what: &str) -> Holder {
    let here = life::here();
    Holder {
        host: here.host,
        pid_namespace: here.pid_namespace,
        boot_id: here.boot_id,
        pid: std::process::id(),
        process_start: life::own_start(),
        what: what.to_owned(),
    }
}

/// Whether the holder of a lease lives.
pub fn life(lease: &Lease) -> Life {
    life::judge(&lease.holder, &life::here(), life::look)
}

/// For how many seconds the holder of a lease has been silent, if it cannot be told whether it lives and it should
/// have been heard of long ago.
pub fn silent_seconds(lease: &Lease) -> Option<u64> {
    if life(lease) != Life::Unknown {
        return None;
    }
    // Where it can be, that is told by a clock that nobody sets back or forward.
    let silent = lease.silent_for(&life::here().boot_id) / 1_000_000;
    (silent > SILENCE_SECONDS).then_some(silent)
}

/// The right to drive one session. Dropping it lets go.
pub struct Driver<'a> {
    engine: &'a Engine,
    session: SessionId,
    epoch: u64,
    /// It took the place of one that cannot be seen from here, in words.
    over_silent: Option<String>,
}

impl Driver<'_> {
    /// The fencing number that appends of this driver carry.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What becomes of an agent that cannot be seen: the one of a driver that fell silent is left to that driver, which
    /// stops it as soon as it hears that it was replaced.
    pub(crate) fn may_leave_agent(&self) -> Unseen {
        if self.over_silent.is_some() { Unseen::Left } else { Unseen::MayLive }
    }

    /// Whose place it took that may still live, and for how long that one was silent: whoever drives now has to know.
    pub fn took_over(&self) -> Option<&str> {
        self.over_silent.as_deref()
    }

    /// The session it drives.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Says that this driver lives; fails when another took over.
    pub fn heartbeat(&self) -> Result<(), Error> {
        Ok(self.engine.store().renew(self.session, self.epoch)?)
    }

    /// Does what others asked this driver for while none of its agents runs: pause, complete, abort. Answers with why the
    /// session stands still then, in words; nothing is left to drive after that.
    pub fn obey(&self) -> Result<Option<String>, Error> {
        self.engine.stop_between_runs(self, &crate::run::Stop::default())
    }

    /// Does something as this driver; refused when another took over.
    pub fn act(&self, input: impl Into<Input>) -> Result<crate::Acted, Error> {
        self.act_all([input])
    }

    /// Does several things at once as this driver: all of them, or none.
    pub fn act_all(&self, inputs: impl IntoIterator<Item = impl Into<Input>>) -> Result<crate::Acted, Error> {
        let acting = Acting::driver(&self.engine.options.actor, Some(self.epoch), None);
        self.engine.act_as(self.session, inputs, acting)
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        // If another took over there is nothing left to let go of, and nothing to say.
        if matches!(self.heartbeat(), Err(Error::Store(segno_store::Error::StaleEpoch { .. }))) {
            return;
        }
        // If the store fails now, whoever comes next finds no lease, or one whose holder is dead.
        let _ = self.act(Fact::DriverDetached { epoch: self.epoch });
        // What was asked of it after it last looked is done now: from here on nobody asks a driver any more.
        let _ = self.engine.stop_between_runs(self, &crate::run::Stop::default());
        let _ = self.engine.store().release(self.session, self.epoch);
    }
}

/// What a process is called that holds a session for an agent which keeps its own.
pub const KEEPER: &str = "segno mcp";

/// What a process was called that took a dead holder's place to say that it died.
const SETTLER: &str = "segno settle";

/// A driver, by its number and what it said of itself.
struct Driven {
    epoch: u64,
    holder: Holder,
}

/// How far a dead driver is settled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// It is said that it died; its lease stays until the rest is done.
    OnlyMark,
    /// Its run is brought to its end too.
    Whole,
}

/// A holder in words.
fn described(holder: &Holder) -> String {
    format!("{} (pid {} on {})", holder.what, holder.pid, holder.host)
}

impl Engine {
    /// Whether an error means that a driver has nothing left to drive: it was replaced, or the session is gone. Every
    /// other one is waited out.
    pub fn ends_driving(why: &Error) -> bool {
        matches!(why, Error::Store(segno_store::Error::StaleEpoch { .. }) | Error::SessionNotFound { .. })
    }

    /// Takes the right to drive a session, or says who has it. One whose process is dead is replaced, and one that
    /// cannot be seen and has been silent for too long.
    pub fn drive(&self, session: SessionId, what: &str) -> Result<Driver<'_>, Error> {
        self.settle_session(session)?;
        let holder = here(what);
        let silent = self.store().lease(session)?.filter(|lease| silent_seconds(lease).is_some());
        let lease = self.store().acquire(session, &holder, silent.as_ref().map(segno_store::Over::from))?;
        let mut commands = Vec::new();
        let fell_silent = silent.as_ref().map(|before| {
            let seconds = silent_seconds(before).unwrap_or_default();
            format!("{} was silent for {seconds} s", described(&before.holder))
        });
        if let (Some(before), Some(details)) = (&silent, &fell_silent)
            && self.store().load(session)?.state.status == Status::Active
        {
            // What it was doing is in doubt from now on, and its session goes on with us.
            let reason = InterruptReason::Unknown;
            let at = Some(before.heartbeat_at);
            let details = Some(details.as_str().into());
            commands.push(Command::Interrupt { reason, details, at });
            commands.push(Command::Resume { reset_breaker: false, details: Some(what.into()) });
        }
        commands.push(Command::AttachDriver { epoch: lease.epoch, holder });
        tracing::info!(%session, epoch = lease.epoch, what, over_silent = silent.is_some(), "lease taken");
        if let Err(why) =
            self.act_as(session, commands, Acting::driver(&self.options.actor, Some(lease.epoch), None))
        {
            tracing::warn!(%session, epoch = lease.epoch, %why, "the lease is given back: the driver could not be recorded");
            // It never drove, so there is nothing to tell but that the right is free again.
            self.store().release(session, lease.epoch)?;
            return Err(why);
        }
        let over_silent = fell_silent.map(|who| {
            format!("{who} and may live on; {what} takes its place, and leaves its agent and what that prints alone")
        });
        Ok(Driver { engine: self, session, epoch: lease.epoch, over_silent })
    }

    /// Marks as interrupted every session whose driver died, and ends runs that are over. Any command may do it: there is no daemon. Nobody's place
    /// is taken by it, so an agent that outlived its driver goes on unhindered until somebody takes over.
    pub fn settle(&self) -> Result<Vec<SessionId>, Error> {
        // Who drives what a copy tells of is the other store's business.
        if self.is_copy() {
            return Ok(Vec::new());
        }
        self.settle_all(How::Whole)
    }

    fn settle_all(&self, how: How) -> Result<Vec<SessionId>, Error> {
        let mut settled = Vec::new();
        let mut failed = None;
        for (session, lease) in self.store().leases()? {
            match self.settle_lease(session, &lease, how) {
                Ok(true) => settled.push(session),
                Ok(false) => {}
                // One that is damaged is named by whoever looks for damage, and keeps nobody from settling the others.
                Err(why @ (Error::SessionCorrupted { .. } | Error::SessionNotFound { .. })) => {
                    tracing::warn!(%session, %why, "a damaged session is not settled");
                }
                Err(why) => {
                    tracing::warn!(%session, %why, "a session could not be settled");
                    failed = failed.or(Some(why));
                }
            }
        }
        if how == How::Whole {
            for (session, run) in self.left_runs() {
                failed = failed.or(self.settle_left(session, &run).err());
            }
        }
        match failed {
            Some(why) if settled.is_empty() => Err(why),
            _ => Ok(settled),
        }
    }

    /// Ends a run that its driver left open, or that outlived it and is over now. No driver takes part: nothing but the
    /// run's end is recorded.
    pub(crate) fn settle_left(&self, session: SessionId, run: &str) -> Result<(), Error> {
        let lease = match self.store().acquire(session, &here(SETTLER), None) {
            // Somebody drives it or settles it already.
            Err(segno_store::Error::Held(_) | segno_store::Error::NotFound(_)) => return Ok(()),
            other => other?,
        };
        let running = self.store().load(session).map(|loaded| loaded.state.run);
        let ended = match running {
            Ok(Some(known)) if known.id == run => self.end_run_of_dead(session, lease.epoch),
            _ => Ok(()),
        };
        self.store().release(session, lease.epoch)?;
        ended
    }

    /// Only says which sessions were interrupted, for somebody who waits for an answer. Their runs are brought to an end
    /// by [`Engine::settle`], which takes as long as there is to be read and captured.
    pub fn mark_interrupted(&self) -> Result<Vec<SessionId>, Error> {
        self.settle_all(How::OnlyMark)
    }

    /// Marks one session as interrupted if its driver died; true if it was.
    pub(crate) fn settle_one(&self, session: SessionId) -> Result<bool, Error> {
        match self.store().lease(session)? {
            Some(lease) => self.settle_lease(session, &lease, How::Whole),
            None => Ok(false),
        }
    }

    pub(crate) fn settle_session(&self, session: SessionId) -> Result<(), Error> {
        if let Some(lease) = self.store().lease(session)? {
            self.settle_lease(session, &lease, How::Whole)?;
        }
        Ok(())
    }

    fn settle_lease(&self, session: SessionId, lease: &Lease, how: How) -> Result<bool, Error> {
        match self.settle_dead(session, lease, how) {
            // Somebody took the session over meanwhile: it is theirs to settle.
            Err(Error::Store(segno_store::Error::StaleEpoch { .. })) => {
                tracing::info!(%session, "somebody took the session over while it was settled");
                Ok(false)
            }
            other => other,
        }
    }

    /// Settles what a dead holder left, under its own number: nobody else is fenced by that, and whatever a living
    /// holder does, or another one that settles, has its place in the same order.
    fn settle_dead(&self, session: SessionId, lease: &Lease, how: How) -> Result<bool, Error> {
        let driver = self.driver_meant(session, lease)?;
        let watched = self.watched_standing(session);
        let death = match life::judge(&driver.holder, &life::here(), life::look) {
            Life::Dead(death) => death,
            // The agent may live on with another conversation.
            Life::Alive | Life::Unknown if watched == Some(WatchedStanding::Left) => Death::Ended,
            Life::Alive | Life::Unknown => return Ok(false),
        };
        let epoch = lease.epoch;
        // When it was last known to live. Whoever took its place to settle it has a heartbeat of its own.
        let heartbeat = (driver.epoch == epoch).then_some(lease.heartbeat_at);
        let at = Some(self.store().load(session)?.state.updated_at).max(heartbeat);
        self.take_in_unrecorded(session, driver.epoch, epoch)?;
        let mut details = described(&driver.holder);
        if let Some(agent) = self.living_agent(session) {
            details.push_str(&format!("; its agent (pid {agent}) lives on"));
        }
        let reason = match death {
            Death::Ended => InterruptReason::Crash,
            Death::Rebooted => InterruptReason::PowerLoss,
        };
        tracing::info!(%session, epoch, reason = reason.as_str(), driver = details, "a driver died");
        let state = self.store().load(session)?.state;
        // It was done with what it was asked for, or was made to stop and did: nothing was interrupted.
        let was_stopped =
            !state.requests.is_empty() && state.calls.open.is_empty() && state.calls.open_beyond == 0;
        if matches!(watched, Some(WatchedStanding::Waits | WatchedStanding::Left))
            || (watched.is_some() && was_stopped)
        {
            let ends = crate::run::after_watched(&state);
            let key = format!("ended-driver-{epoch}").parse().unwrap_or_else(|_| crate::fresh_key());
            let at = crate::tree::At { epoch: Some(epoch), ..Default::default() };
            // Nobody need be asked, least of all the one that is gone.
            match self.act_as(session, ends, Acting::step(&at).keyed(key)) {
                // It had been paused or had ended before.
                Ok(_) | Err(Error::Refused(_) | Error::InvalidStateTransition { .. }) => {}
                Err(other) => return Err(other),
            }
            if how == How::Whole {
                self.detach_dead(session, epoch)?;
                self.end_run_of_dead(session, epoch)?;
                self.store().release(session, epoch)?;
            }
            return Ok(false);
        }
        let command = Command::Interrupt { reason, details: Some(details.into()), at };
        // Of several that find it dead at once, one says so.
        let key = format!("dead-driver-{epoch}").parse().ok();
        let said = match self.act_as(
            session,
            vec![command],
            Acting::driver(&self.options.actor, Some(epoch), key),
        ) {
            Ok(acted) => !acted.repeated,
            // It had been paused or had ended before its driver died: there is nothing to interrupt.
            Err(Error::Refused(_) | Error::InvalidStateTransition { .. }) => {
                self.detach_dead(session, epoch)?;
                false
            }
            // Not recorded: the lease stays, so that the next command tries again.
            Err(other) => return Err(other),
        };
        if how == How::Whole {
            self.end_run_of_dead(session, epoch)?;
            self.store().release(session, epoch)?;
        }
        Ok(said)
    }

    /// The driver that a lease tells of. Versions before this one took a dead driver's place to settle it; if they
    /// were cut short, whom it was about is in the journal.
    fn driver_meant(&self, session: SessionId, lease: &Lease) -> Result<Driven, Error> {
        let held = Driven { epoch: lease.epoch, holder: lease.holder.clone() };
        let cut_short =
            lease.holder.what == SETTLER && (lease.holder == here(SETTLER) || !life(lease).may_live());
        if !cut_short {
            return Ok(held);
        }
        let driver = self.store().load(session)?.state.driver;
        Ok(driver.map_or(held, |driver| Driven { epoch: driver.epoch, holder: driver.holder }))
    }

    /// The agent of a session that lives on without its driver.
    fn living_agent(&self, session: SessionId) -> Option<u32> {
        let state = self.store().load(session).ok()?.state;
        crate::run::living_agent(&state).map(|member| member.pid)
    }

    /// What the agent of a dead driver printed last is taken in, if it is dead too.
    fn end_run_of_dead(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        match self.end_dead_run(session, epoch, Unseen::MayLive) {
            Err(Error::AgentAlive { .. }) => Ok(()),
            other => other,
        }
    }

    /// Nobody will hear any more how the calls of a dead driver ended, whatever the session's status.
    fn detach_dead(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        let state = self.store().load(session)?.state;
        let Some(driver) = state.driver else { return Ok(()) };
        let doubt = state.calls.open.into_keys().map(|call| Fact::ToolEnded {
            call,
            tool: None,
            end: CallEnd::InDoubt,
            output: None,
            source: Source::Hand,
        });
        let facts = doubt.chain([Fact::DriverDetached { epoch: driver.epoch }]);
        self.act_as(session, facts, Acting::driver(&self.options.actor, Some(epoch), None)).map(|_| ())
    }
}
