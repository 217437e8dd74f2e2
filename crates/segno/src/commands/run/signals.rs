//! Signals for a process that follows a run.

use segno_engine::run::{Ask, Stop};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::error::{CommandError, Outcome};

/// Passes Ctrl-C, SIGTERM and SIGHUP on as requests to stop, until it is dropped.
pub(in crate::commands) struct Listening(Handle);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Listens in a thread of its own.
///
/// # Errors
/// If the system does not let it.
pub(in crate::commands) fn listen(stop: &Stop) -> Outcome<Listening> {
    let stop = stop.clone();
    spawn(&[SIGINT, SIGTERM, SIGHUP], move |signal| {
        stop.ask(match signal {
            SIGTERM => Ask::Terminate,
            SIGHUP => Ask::Hangup,
            _ => Ask::Interrupt,
        });
    })
}

/// The same beside an agent that has the terminal: what is typed there is the agent's alone.
///
/// # Errors
/// If the system does not let it.
pub(super) fn listen_beside(stop: &Stop) -> Outcome<Listening> {
    let stop = stop.clone();
    spawn(&[SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCONT], move |signal| match signal {
        SIGTERM => stop.ask(Ask::Terminate),
        SIGHUP => stop.ask(Ask::Hangup),
        SIGCONT => stop.continued(),
        _ => {}
    })
}

fn spawn(which: &[i32], hear: impl Fn(i32) + Send + 'static) -> Outcome<Listening> {
    let heard = which.iter().filter(|signal| !crate::signals::is_ignored(**signal));
    let mut signals = Signals::new(heard).map_err(|why| CommandError::io("cannot listen to signals", why))?;
    let handle = signals.handle();
    std::thread::spawn(move || signals.forever().for_each(hear));
    Ok(Listening(handle))
}
