//! Switches that tests set and no shipped program has: debug builds look for them, others are built without.
//!
//! - `SEGNO_RUN_DIE_AT=NAME` kills the process when it passes the moment of that name, the way the kernel does it:
//!   nothing is flushed, nothing is cleaned up.
//! - `SEGNO_BREAK=GUARD` takes one guard away, so that a campaign can show that it would notice.
//! - `SEGNO_CLOCK_SHIFT=FILE` moves the clock by the seconds that the file says, while processes look at it.

/// A guard that a campaign can break on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Collecting garbage spares what is young, needed or pending.
    Collect,
    /// Nobody goes back in a tree in which an agent works.
    Right,
    /// A store takes in what was spooled for it and nothing else.
    Spool,
    /// What cannot be read denies a call of a driven session.
    Hook,
    /// Who cannot be seen counts as alive.
    Life,
    /// A used-up hard cap starts nothing.
    Cap,
}

#[cfg(debug_assertions)]
impl Guard {
    fn name(self) -> &'static str {
        match self {
            Self::Collect => "collect",
            Self::Right => "right",
            Self::Spool => "spool",
            Self::Hook => "hook",
            Self::Life => "life",
            Self::Cap => "cap",
        }
    }
}

/// Whether this guard was broken on purpose.
pub(crate) fn broken(guard: Guard) -> bool {
    #[cfg(debug_assertions)]
    return variable("SEGNO_BREAK").is_some_and(|name| name == guard.name());
    #[cfg(not(debug_assertions))]
    {
        let _ = guard;
        false
    }
}

/// By how many seconds the clock is moved.
pub(crate) fn clock_shift() -> i64 {
    #[cfg(debug_assertions)]
    return variable("SEGNO_CLOCK_SHIFT")
        .and_then(|path| std::fs::read_to_string(path).ok())
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    #[cfg(not(debug_assertions))]
    0
}

/// This moment is passed.
pub(crate) fn moment(name: &str) {
    #[cfg(debug_assertions)]
    if variable("SEGNO_RUN_DIE_AT").is_some_and(|at| at == name) {
        // Nobody can refuse this signal, so the wait is never over.
        let me = rustix::process::getpid();
        let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "only debug builds look, and only tests set it")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
