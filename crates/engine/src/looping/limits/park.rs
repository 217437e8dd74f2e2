//! Waiting in the foreground until a time, and hearing whoever does not want to wait any longer.

use std::sync::Arc;
use std::time::Duration;

use segno_core::Command;
use segno_core::State;
use segno_core::Status;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::event::PauseReason;
use segno_core::looping::LoopCommand;

use crate::Engine;
use crate::clock::FixedClock;

/// How long it sleeps at a time: whoever wants it to stop is heard that soon.
const NAP: Duration = Duration::from_millis(200);
/// How long it waits for another loop of the account before it looks again.
pub(crate) const BEHIND: Duration = Duration::from_secs(1);

/// Whether a session is a loop that waits without a process.
pub fn is_parked(state: &State) -> bool {
    state.status == Status::Paused && state.looping.as_ref().is_some_and(|looping| looping.parked.is_some())
}

/// What pauses a session. A parked loop stands still already; from now on it does not go on by itself either.
pub fn pause(state: &State, details: Option<Text>) -> Command {
    match is_parked(state) {
        true => Command::Loop(Box::new(LoopCommand::Hold)),
        false => Command::Pause { reason: PauseReason::Asked, details },
    }
}

/// How a waiting loop lets time pass.
pub trait Sleeper: Send + Sync {
    /// Lets some time pass, at most so much.
    fn sleep(&self, most: Duration);
}

/// By the machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemSleeper;

impl Sleeper for SystemSleeper {
    fn sleep(&self, most: Duration) {
        std::thread::sleep(most.min(NAP));
    }
}

/// By a clock that stands still until it is moved: for tests. No time passes but on that clock.
#[derive(Clone, Debug)]
pub struct FakeSleeper(pub Arc<FixedClock>);

impl Sleeper for FakeSleeper {
    fn sleep(&self, most: Duration) {
        self.0.advance(i64::try_from(most.as_secs().clamp(1, 60)).unwrap_or(1));
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The time came.
    Due,
    /// Somebody did not want to wait any longer.
    CalledOff,
}

/// Waits until a time. The clock may be set, and the machine may sleep: what counts is the time of day afterwards.
pub(crate) fn wait_until(
    engine: &Engine,
    until: Timestamp,
    sleeper: &dyn Sleeper,
    called_off: &dyn Fn() -> bool,
    tick: &mut dyn FnMut(Duration),
) -> Waited {
    loop {
        if called_off() {
            return Waited::CalledOff;
        }
        let now = engine.now();
        if now >= until {
            return Waited::Due;
        }
        let left = Duration::from_micros(until.micros_since(now));
        tick(left);
        sleeper.sleep(left);
    }
}
