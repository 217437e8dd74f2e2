//! Signals for a process that follows a run.

use segno_engine::run::{Ask, Stop};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::error::{CommandError, Outcome};

/// Passes Ctrl-C, SIGTERM and SIGHUP on as requests to stop, until it is dropped.
pub(super) struct Listening(Handle);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Listens in a thread of its own.
///
/// # Errors
/// If the system does not let it.
pub(super) fn listen(stop: &Stop) -> Outcome<Listening> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|why| CommandError::io("cannot listen to signals", why))?;
    let handle = signals.handle();
    let stop = stop.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            stop.ask(match signal {
                SIGTERM => Ask::Terminate,
                SIGHUP => Ask::Hangup,
                _ => Ask::Interrupt,
            });
        }
    });
    Ok(Listening(handle))
}
