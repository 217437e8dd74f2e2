//! Ignoring, catching and sending signals.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::Signal;
use rustix::process::getpid;
use rustix::process::kill_process;
use signal_hook::consts;

use super::step::SignalName;

impl SignalName {
    fn number(self) -> i32 {
        match self {
            Self::Abrt => consts::SIGABRT,
            Self::Hup => consts::SIGHUP,
            Self::Int => consts::SIGINT,
            Self::Kill => consts::SIGKILL,
            Self::Quit => consts::SIGQUIT,
            Self::Segv => consts::SIGSEGV,
            Self::Stop => consts::SIGSTOP,
            Self::Term => consts::SIGTERM,
            Self::Usr1 => consts::SIGUSR1,
        }
    }
}

/// Catches a signal and does nothing about it. Programs started later do not inherit that.
pub(super) fn ignore(signal: SignalName) -> io::Result<()> {
    signal_hook::flag::register(signal.number(), Arc::default()).map(drop)
}

/// Calls `action` each time the signal comes.
pub(super) fn on(signal: SignalName, action: impl Fn() + Send + 'static) -> io::Result<()> {
    let came = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal.number(), Arc::clone(&came))?;
    std::thread::spawn(move || {
        loop {
            if came.swap(false, Ordering::SeqCst) {
                action();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    Ok(())
}

/// Sends this process a signal.
pub(super) fn send(signal: SignalName) -> io::Result<()> {
    let signal = Signal::from_named_raw(signal.number()).ok_or(io::ErrorKind::InvalidInput)?;
    kill_process(getpid(), signal)?;
    // The first one of this kind meets a handler of the runtime, which looks for an overflow and then steps aside.
    if signal == Signal::SEGV {
        kill_process(getpid(), signal)?;
    }
    Ok(())
}
