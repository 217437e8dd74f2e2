//! Times in words.

use crate::time::Timestamp;

/// How long it is until a moment: `Ready to resume`, `42s`, `5m 3s`, `1h 47m 22s` or `3d 2h`.
pub fn countdown(until: Timestamp, now: Timestamp) -> String {
    let seconds = until.micros_since(now).div_ceil(1_000_000);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match seconds {
        0 => "Ready to resume".to_owned(),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m {}s", seconds % 60),
        3_600..86_400 => format!("{hours}h {minutes}m {}s", seconds % 60),
        _ => format!("{days}d {hours}h"),
    }
}

/// A moment in UTC, to the minute.
pub(super) fn moment(at: Timestamp) -> String {
    let (year, month, day, hour, minute, _, _) = at.parts();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}
