//! Moments at which a test may let the process die.
//!
//! Every change to the disk is announced here first. In debug builds `SEGNO_WORKSPACE_DIE_AT=N` kills the process at
//! the Nth announcement, the way the kernel does it: nothing is flushed, nothing is cleaned up.

#[cfg(debug_assertions)]
mod counter {
    use std::sync::LazyLock;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;

    static PASSED: AtomicU64 = AtomicU64::new(0);
    #[expect(clippy::disallowed_methods, reason = "only debug builds look, and only tests set it")]
    static DIE_AT: LazyLock<Option<u64>> =
        LazyLock::new(|| std::env::var("SEGNO_WORKSPACE_DIE_AT").ok().and_then(|text| text.parse().ok()));

    pub(crate) fn step() {
        let passed = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
        if *DIE_AT == Some(passed) {
            let me = rustix::process::getpid();
            // Nobody can refuse this signal, so the wait is never over.
            let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
            loop {
                std::thread::park();
            }
        }
    }

    /// How many moments this process has passed.
    pub(crate) fn passed() -> u64 {
        PASSED.load(Ordering::SeqCst)
    }
}

/// Here something is about to change on disk.
pub(crate) fn step() {
    #[cfg(debug_assertions)]
    counter::step();
}

/// How many moments this process has passed; 0 in release builds.
#[doc(hidden)]
pub fn steps_passed() -> u64 {
    #[cfg(debug_assertions)]
    return counter::passed();
    #[cfg(not(debug_assertions))]
    0
}
