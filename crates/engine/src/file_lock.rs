//! Waiting for the lock of a file, but not for ever: a stopped process must not stop everybody else.

use std::fs::TryLockError;
use std::time::Duration;
use std::time::Instant;

/// Whether it could be locked in time.
pub(crate) fn wait_for_lock(
    patience: Duration,
    attempt: impl Fn() -> Result<(), TryLockError>,
) -> std::io::Result<bool> {
    let until = Instant::now() + patience;
    loop {
        match attempt() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::Error(why)) => return Err(why),
        }
    }
}
