//! Who drives, and whether they live.

use segno_core::Command;
use segno_core::SessionId;
use segno_core::event::CallEnd;
use segno_core::event::Holder;
use segno_core::event::InterruptReason;
use segno_core::event::Source;
use segno_store::Lease;

use crate::Engine;
use crate::Error;

/// A holder elsewhere that was silent for so long counts as dead, in seconds by the store's clock.
pub const SILENCE_SECONDS: i64 = 60;

/// Whether a holder lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It does, or nothing says otherwise.
    Alive,
    /// Its process is gone, or its pid belongs to another process now.
    Dead,
    /// The machine was started anew since.
    Rebooted,
    /// It is elsewhere and has been silent for too long.
    Silent,
}

/// This process as a holder.
pub fn here(what: &str) -> Holder {
    let pid = std::process::id();
    Holder {
        host: host(),
        pid_namespace: namespace(),
        boot_id: boot(),
        pid,
        process_start: start_of(pid).unwrap_or(0),
        what: what.to_owned(),
    }
}

/// Whether the holder of a lease lives: by its process on this machine, by its heartbeat elsewhere.
pub fn life(lease: &Lease) -> Life {
    let holder = &lease.holder;
    if holder.host == host() {
        if holder.boot_id != boot() {
            return Life::Rebooted;
        }
        if holder.pid_namespace == namespace() {
            // A pid alone is not enough: it may have been given to another process.
            let same = start_of(holder.pid).is_some_and(|start| start == holder.process_start);
            return if same { Life::Alive } else { Life::Dead };
        }
    }
    // Where it can be, that is told by a clock that nobody sets back or forward.
    let silent = lease.silent_for(&boot());
    if silent > u64::try_from(SILENCE_SECONDS).unwrap_or(60) * 1_000_000 { Life::Silent } else { Life::Alive }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or(String::new(), |id| id.trim().to_owned())
}

fn namespace() -> String {
    std::fs::read_link("/proc/self/ns/pid").map_or(String::new(), |link| link.to_string_lossy().into_owned())
}

/// When a process started, in clock ticks since boot. None for a process that is gone or only a zombie.
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses; the fields start after the last one.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

/// The right to drive one session. Dropping it lets go.
pub struct Driver<'a> {
    engine: &'a Engine,
    session: SessionId,
    epoch: u64,
}

impl Driver<'_> {
    /// The fencing number that appends of this driver carry.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The session it drives.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Says that this driver lives; fails when another took over.
    pub fn heartbeat(&self) -> Result<(), Error> {
        Ok(self.engine.store().renew(self.session, self.epoch)?)
    }

    /// Does something as this driver; refused when another took over.
    pub fn act(&self, command: Command) -> Result<crate::Acted, Error> {
        self.engine.act_with(self.session, vec![command], None, Some(self.epoch))
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        // If another took over there is nothing left to let go of, and nothing to say.
        if matches!(self.heartbeat(), Err(Error::Store(segno_store::Error::StaleEpoch { .. }))) {
            return;
        }
        // If the store fails now, whoever comes next finds no lease, or one whose holder is dead.
        let _ = self.act(Command::DetachDriver { epoch: self.epoch });
        let _ = self.engine.store().release(self.session, self.epoch);
    }
}

/// What a process is called that takes a dead holder's place to say that it died.
const SETTLER: &str = "segno settle";

impl Engine {
    /// Takes the right to drive a session, or says who has it. A dead holder is replaced.
    pub fn drive(&self, session: SessionId, what: &str) -> Result<Driver<'_>, Error> {
        self.settle_session(session)?;
        let holder = here(what);
        let lease = self.store().acquire(session, &holder, None)?;
        let attach = Command::AttachDriver { epoch: lease.epoch, holder };
        if let Err(why) = self.act_with(session, vec![attach], None, Some(lease.epoch)) {
            // It never drove, so there is nothing to tell but that the right is free again.
            self.store().release(session, lease.epoch)?;
            return Err(why);
        }
        Ok(Driver { engine: self, session, epoch: lease.epoch })
    }

    /// Marks as interrupted every session whose driver died. Any command may do it: there is no daemon.
    pub fn settle(&self) -> Result<Vec<SessionId>, Error> {
        let mut settled = Vec::new();
        for (session, lease) in self.store().leases()? {
            if self.settle_lease(session, &lease)? {
                settled.push(session);
            }
        }
        Ok(settled)
    }

    pub(crate) fn settle_session(&self, session: SessionId) -> Result<(), Error> {
        if let Some(lease) = self.store().lease(session)? {
            self.settle_lease(session, &lease)?;
        }
        Ok(())
    }

    fn settle_lease(&self, session: SessionId, lease: &Lease) -> Result<bool, Error> {
        let me = here(SETTLER);
        // A settling that failed half-way, in this process or in one that died: whom it was about is in the journal.
        let half_way = lease.holder == me || (lease.holder.what == SETTLER && life(lease) != Life::Alive);
        let about = if half_way {
            let driver = self.store().load(session)?.state.driver;
            driver.map_or_else(
                || lease.clone(),
                |driver| Lease { holder: driver.holder, epoch: driver.epoch, ..lease.clone() },
            )
        } else {
            lease.clone()
        };
        let how = life(&about);
        let reason = match how {
            Life::Alive if !half_way => return Ok(false),
            Life::Dead => InterruptReason::Crash,
            Life::Rebooted => InterruptReason::PowerLoss,
            Life::Silent | Life::Alive => InterruptReason::Unknown,
        };
        // Taking over is what decides between two processes that settle at once.
        let taken = match self.store().acquire(session, &me, Some(lease.epoch)) {
            Ok(taken) => taken,
            Err(segno_store::Error::Held(_) | segno_store::Error::NotFound(_)) => return Ok(false),
            Err(other) => return Err(other.into()),
        };
        // Of a holder elsewhere nothing can be said: its agent is not to be found here, and nothing of it is cleaned up.
        let is_ours = matches!(how, Life::Dead | Life::Rebooted);
        if is_ours {
            match self.take_in_unrecorded(session, about.epoch, taken.epoch) {
                // Another thread of this process does the same.
                Err(Error::Store(segno_store::Error::StaleEpoch { .. })) => return Ok(false),
                other => other?,
            }
        }
        let holder = about.holder;
        let mut details = format!("{} (pid {} on {})", holder.what, holder.pid, holder.host);
        if let Some(agent) = self.living_agent(session) {
            details.push_str(&format!("; its agent (pid {agent}) lives on"));
        }
        let command = Command::Interrupt { reason, details: Some(details.into()) };
        match self.act_with(session, vec![command], None, Some(taken.epoch)) {
            Ok(_) => {
                if is_ours {
                    self.end_run_of_dead(session, taken.epoch)?;
                }
                self.store().release(session, taken.epoch)?;
                Ok(true)
            }
            // It had been paused or had ended before its driver died: there is nothing to interrupt.
            Err(Error::Refused(_) | Error::InvalidStateTransition { .. }) => {
                self.detach_dead(session, taken.epoch)?;
                if is_ours {
                    self.end_run_of_dead(session, taken.epoch)?;
                }
                self.store().release(session, taken.epoch)?;
                Ok(false)
            }
            // Another thread of this process does the same.
            Err(Error::Store(segno_store::Error::StaleEpoch { .. })) => Ok(false),
            // Not recorded: the lease stays, so that the next command tries again.
            Err(other) => Err(other),
        }
    }

    /// The agent of a session that lives on without its driver.
    fn living_agent(&self, session: SessionId) -> Option<u32> {
        let state = self.store().load(session).ok()?.state;
        crate::run::living_agent(&state).map(|member| member.pid)
    }

    /// What the agent of a dead driver printed last is taken in, if it is dead too.
    fn end_run_of_dead(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        match self.end_dead_run(session, epoch) {
            Err(Error::AgentAlive { .. }) => Ok(()),
            other => other,
        }
    }

    /// Nobody will hear any more how the calls of a dead driver ended, whatever the session's status.
    fn detach_dead(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        let state = self.store().load(session)?.state;
        let Some(driver) = state.driver else { return Ok(()) };
        let doubt = state.calls.open.into_keys().map(|call| Command::EndTool {
            call,
            tool: None,
            end: CallEnd::InDoubt,
            output: None,
            source: Source::Hand,
        });
        let commands = doubt.chain([Command::DetachDriver { epoch: driver.epoch }]).collect();
        self.act_with(session, commands, None, Some(epoch)).map(|_| ())
    }
}
