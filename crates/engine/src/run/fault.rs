//! Moments in the start of a run at which a test may let the driver die.
//!
//! In debug builds `SEGNO_RUN_DIE_AT=NAME` kills the process when it passes the moment of that name, the way the kernel
//! does it: nothing is flushed, nothing is cleaned up.

/// This moment is passed.
pub(super) fn moment(name: &str) {
    #[cfg(debug_assertions)]
    die_at(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "only debug builds look, and only tests set it")]
fn die_at(name: &str) {
    if std::env::var("SEGNO_RUN_DIE_AT").is_ok_and(|at| at == name) {
        // Nobody can refuse this signal, so the wait is never over.
        let me = rustix::process::getpid();
        let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}
