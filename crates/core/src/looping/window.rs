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

/// Hours of the day such as `22:00-07:00`, `22:00–07:00` or `9-17`, in minutes from midnight: from, to. The end may lie on
/// the next day.
pub fn parse_hours(text: &str) -> Option<(u16, u16)> {
    let minutes = |time: &str| -> Option<u16> {
        let (hour, minute) = time.trim().split_once(':').unwrap_or((time.trim(), "0"));
        let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour <= 24 && minute < 60 && hour * 60 + minute <= 1_440).then_some(hour * 60 + minute)
    };
    let (from, to) = text.split_once(['-', '–'])?;
    let (from, to) = (minutes(from)?, minutes(to)?);
    (from != to && from != 1_440).then_some((from, to))
}

/// A moment in UTC, to the minute.
pub(crate) fn moment(at: Timestamp) -> String {
    let (year, month, day, hour, minute, _, _) = at.parts();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}
