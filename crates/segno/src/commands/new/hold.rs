//! A process that holds the session that it made.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use segno_engine::Driver;
use segno_engine::Engine;
use segno_engine::core::Command;
use segno_engine::core::SessionId;
use segno_engine::core::event::PauseReason;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;

use crate::error::CommandError;
use crate::error::Outcome;

/// How often it is looked whether a signal came.
const LOOK: Duration = Duration::from_millis(50);
/// How often requests of others are looked at, and the lease renewed.
const TICK: Duration = Duration::from_secs(1);

/// A session that this process holds.
pub(super) struct Held<'e> {
    driver: Driver<'e>,
    signal: Arc<AtomicUsize>,
}

impl<'e> Held<'e> {
    /// Holds it from now on.
    pub(super) fn begin(engine: &'e Engine, session: SessionId) -> Outcome<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for wanted in [SIGINT, SIGTERM, SIGHUP] {
            if !crate::signals::is_ignored(wanted) {
                let number = usize::try_from(wanted).unwrap_or_default();
                signal_hook::flag::register_usize(wanted, Arc::clone(&signal), number)
                    .map_err(|why| CommandError::io("cannot listen to signals", why))?;
            }
        }
        Ok(Self { driver: engine.drive(session, "segno new --hold")?, signal })
    }

    /// Waits until somebody pauses or ends the session, or this process is to end.
    pub(super) fn wait(self) -> Outcome {
        let mut looked: Option<Instant> = None;
        loop {
            let reason = match i32::try_from(self.signal.load(Ordering::Relaxed)) {
                Ok(SIGINT) => Some(PauseReason::Signal),
                Ok(SIGTERM) => Some(PauseReason::Terminated),
                Ok(SIGHUP) => Some(PauseReason::Hangup),
                _ => None,
            };
            if let Some(reason) = reason {
                self.driver.act(Command::Pause { reason, details: None })?;
                return Ok(());
            }
            if looked.is_none_or(|looked| looked.elapsed() >= TICK) {
                looked = Some(Instant::now());
                match self.driver.heartbeat().and_then(|()| self.driver.obey()) {
                    Ok(None) => {}
                    Ok(Some(_)) => return Ok(()),
                    Err(why) if Engine::ends_driving(&why) => return Err(why.into()),
                    // A store that cannot be written now does not end it.
                    Err(why) => tracing::warn!(%why, "the lease was not renewed"),
                }
            }
            std::thread::sleep(LOOK);
        }
    }
}
