//! Signals for a process that follows a run.

use segno_engine::run::Ask;
use segno_engine::run::Stop;
use signal_hook::consts::SIGCONT;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGQUIT;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Handle;
use signal_hook::iterator::Signals;

use crate::error::CommandError;
use crate::error::Outcome;

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
    let ignored: Vec<i32> = which.iter().copied().filter(|it| crate::signals::is_ignored(*it)).collect();
    // A script ignores Ctrl-C for what it starts in the background. An agent would inherit that and could not be asked
    // to stop, so it is caught here, and nothing is done about it. What `nohup` ignores stays ignored for the agent too.
    let caught = which.iter().filter(|signal| **signal != SIGHUP || !ignored.contains(signal));
    let mut signals =
        Signals::new(caught).map_err(|why| CommandError::io("cannot listen to signals", why))?;
    let handle = signals.handle();
    std::thread::spawn(move || signals.forever().filter(|signal| !ignored.contains(signal)).for_each(hear));
    Ok(Listening(handle))
}
