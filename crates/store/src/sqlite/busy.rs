//! Waiting for other writers.

use std::cell::Cell;
use std::time::Duration;
use std::time::Instant;

use rusqlite::Connection;

thread_local! {
    // SQLite's handler takes no data of ours, but it runs in the thread that waits.
    static PATIENCE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// SQLite's own waiting sleeps up to 100 ms at a time, long after the other writer has gone. Commits take a
/// millisecond or two, so we look again soon, and less often the longer it takes.
pub(super) fn wait(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(look_again))
}

/// How long this thread waits from now on. Said before every use of a connection: each has its own patience.
pub(super) fn patience(patience: Duration) {
    PATIENCE.set(patience);
}

fn look_again(tries: i32) -> bool {
    if tries == 0 {
        BEGAN.set(Some(Instant::now()));
    }
    let waited = BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed());
    let left = PATIENCE.get().saturating_sub(waited);
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
