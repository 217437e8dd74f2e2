//! What this process inherited of signals, and what it makes of it.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGCHLD;

/// The signals that were ignored when this process was started, one bit for each.
static IGNORED: LazyLock<u64> = LazyLock::new(|| {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status)
});

fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether whoever started this process wants a signal ignored, as `nohup` does.
pub fn is_ignored(signal: i32) -> bool {
    let bit = u32::try_from(signal - 1).ok().and_then(|bit| 1_u64.checked_shl(bit));
    bit.is_some_and(|bit| *IGNORED & bit != 0)
}

/// To be called before anything is started. A parent that ignores the end of its children hands that down, and then the
/// system forgets how ours ended; a handler that does nothing makes it remember.
pub fn at_start() {
    if is_ignored(SIGCHLD) {
        // Without it runs still end, but not all of them say how.
        let _ = signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_read() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000010001\nSigCgt:\t0\n"), 0x1_0001);
        assert_eq!(ignored("nothing"), 0);
    }
}
