//! Waiting for other writers.

use std::cell::Cell;
use std::cell::RefCell;
use std::time::Duration;
use std::time::Instant;

use rusqlite::Connection;

use crate::KeepWaiting;

thread_local! {
    // SQLite's handler takes no data of ours, but it runs in the thread that waits.
    static PATIENCE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static KEEP_WAITING: RefCell<Option<KeepWaiting>> = const { RefCell::new(None) };
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    // How long it has been waited since patience was last said.
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// SQLite's own waiting sleeps up to 100 ms at a time, long after the other writer has gone. Commits take a
/// millisecond or two, so we look again soon, and less often the longer it takes.
pub(super) fn wait(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(look_again))
}

/// How long this thread waits from now on. Said before every use of a connection: each has its own patience.
pub(super) fn patience(patience: Duration) {
    PATIENCE.set(patience);
    KEEP_WAITING.set(None);
    WAITED.set(Duration::ZERO);
}

/// The same, where somebody may decide otherwise.
pub(super) fn patience_of(options: &crate::OpenOptions) {
    PATIENCE.set(options.busy);
    KEEP_WAITING.set(options.patience.get());
    WAITED.set(Duration::ZERO);
}

/// How long this thread has waited for other writers since its patience was last said.
pub(super) fn waited() -> Duration {
    WAITED.get()
}

/// It waited elsewhere for so long.
pub(super) fn add_waited(waited: Duration) {
    WAITED.set(WAITED.get() + waited);
}

/// How long to wait on after so long, at most; zero is not at all.
pub(super) fn left(waited: Duration) -> Duration {
    KEEP_WAITING.with_borrow(|keep_waiting| match keep_waiting {
        Some(keep_waiting) if keep_waiting(waited) => Duration::MAX,
        Some(_) => Duration::ZERO,
        None => PATIENCE.get().saturating_sub(waited),
    })
}

fn look_again(tries: i32) -> bool {
    if tries == 0 {
        let now = Instant::now();
        BEGAN.set(now.checked_sub(WAITED.get()).or(Some(now)));
    }
    let waited = BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed());
    WAITED.set(waited.max(WAITED.get()));
    let left = left(waited);
    if left.is_zero() {
        return false;
    }
    // Processes that wait must not wake in step.
    let tries = u64::try_from(tries).unwrap_or(0);
    let jitter = u64::from(std::process::id()).wrapping_mul(2_654_435_761).wrapping_add(tries * 97) % 400;
    let pause = if tries < 1_000 { 300 + jitter } else { 4_800 + jitter };
    std::thread::sleep(Duration::from_micros(pause).min(left));
    true
}
