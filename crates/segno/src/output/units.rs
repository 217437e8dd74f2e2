//! Numbers as people read them: short and with a unit. And the way back for what people type.

use std::time::Duration;

pub use segno_engine::core::budget::dollars;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
const YEAR: u64 = 365 * DAY;

/// A count: `950`, `12.4k`, `1.2M`.
pub fn count(n: u64) -> String {
    scaled(n, &["", "k", "M", "G", "T"], "")
}

/// A count that may be known only roughly: `~950`.
pub fn about(n: u64, estimated: bool) -> String {
    format!("{}{}", if estimated { "~" } else { "" }, count(n))
}

/// Tokens: `950 tok`, `12.4k tok`.
pub fn tokens(n: u64) -> String {
    format!("{} tok", count(n))
}

/// A number of things: `1 session`, `3 sessions`.
pub fn things(n: u64, one: &str) -> String {
    let ending = if one.ends_with('s') || one.ends_with("ch") { "es" } else { "s" };
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}{ending}") }
}

/// Bytes: `512 B`, `4.1 kB`, `2.0 MB`.
pub fn bytes(n: u64) -> String {
    scaled(n, &["B", "kB", "MB", "GB", "TB"], " ")
}

/// Divides by thousands until three digits are left; one decimal once a unit was passed.
fn scaled(n: u64, units: &[&str], space: &str) -> String {
    let mut whole = n;
    let mut tenths = 0;
    let mut unit = 0;
    // 999.95 and more would be shown as 1000.0, so the next unit starts there.
    while (whole, tenths) >= (1000, 0) && unit + 1 < units.len() {
        unit += 1;
        let divisor = 1000_u128.pow(u32::try_from(unit).unwrap_or(u32::MAX));
        let rounded = (u128::from(n) * 10 + divisor / 2) / divisor;
        whole = u64::try_from(rounded / 10).unwrap_or(u64::MAX);
        tenths = u64::try_from(rounded % 10).unwrap_or(0);
    }
    let name = units.get(unit).copied().unwrap_or_default();
    if unit == 0 { format!("{n}{space}{name}") } else { format!("{whole}.{tenths}{space}{name}") }
}

/// Money that may not be all of it: `$0.42 + unpriced`, or only `unpriced`, if there are tokens whose price nobody knows.
/// Nothing is never shown as free.
pub fn money(micros: u64, unpriced_tokens: u64) -> String {
    match (unpriced_tokens > 0, micros > 0) {
        (false, _) => dollars(micros),
        (true, true) => format!("{} + unpriced", dollars(micros)),
        (true, false) => "unpriced".to_owned(),
    }
}

/// A duration: `18 ms`, `6.2 s`, `3m 12s`, `2h 05m`, `3d 04h`.
pub fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{millis} ms"),
        1..10 => format!("{}.{} s", seconds, duration.subsec_millis() / 100),
        10..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{}m {:02}s", seconds / MINUTE, seconds % MINUTE),
        HOUR..DAY => format!("{}h {:02}m", seconds / HOUR, seconds % HOUR / MINUTE),
        _ => format!("{}d {:02}h", seconds / DAY, seconds % DAY / HOUR),
    }
}

/// An age in one unit: `now`, `12s`, `2m`, `3h`, `1d`, `6w`, `2y`.
pub fn age(age: Duration) -> String {
    match age.as_secs() {
        0 => "now".to_owned(),
        s @ 1..MINUTE => format!("{s}s"),
        s @ MINUTE..HOUR => format!("{}m", s / MINUTE),
        s @ HOUR..DAY => format!("{}h", s / HOUR),
        // Days stay days for a month: "23d" says more than "3w".
        s if s < 30 * DAY => format!("{}d", s / DAY),
        s if s < YEAR => format!("{}w", s / WEEK),
        s => format!("{}y", s / YEAR),
    }
}

/// A share of a whole in percent, rounded down so that 100 means all: `67 %`. Nothing of nothing is `0 %`.
pub fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0 } else { u128::from(part) * 100 / u128::from(whole) };
    format!("{share} %")
}

/// Reads an age such as `90s`, `15m`, `12h`, `7d`, `2w`, `1y`.
///
/// # Errors
/// If it is not a whole number followed by one unit, with what would have been right.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is not a length of time; write a number and a unit, like 90s, 15m, 12h, 7d, 2w or 1y"
        )
    };
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = match unit {
        "s" => 1,
        "m" | "min" => MINUTE,
        "h" => HOUR,
        "d" => DAY,
        "w" => WEEK,
        "y" => YEAR,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).map(Duration::from_secs).ok_or_else(wrong)
}

/// Reads an amount of dollars such as `0.42`, `$12` or `3.5` as millionths of a dollar, exactly.
///
/// # Errors
/// If it is not an amount, is negative, or has more than six decimals.
pub fn parse_dollars(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not an amount in dollars; write for example 0.42 or 12");
    let amount = text.strip_prefix('$').unwrap_or(text);
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty())
        || !digits(whole)
        || !digits(fraction)
        || fraction.len() > 6
        || amount.ends_with('.')
    {
        return Err(wrong());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    let fraction: u64 = format!("{fraction:0<6}").parse().map_err(|_| wrong())?;
    whole.checked_mul(1_000_000).and_then(|micros| micros.checked_add(fraction)).ok_or_else(wrong)
}

/// Reads a count such as `5000`, `100_000`, `50k` or `1.5M`.
///
/// # Errors
/// If it is not a count, or not a whole one.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a count; write for example 5000, 50k or 1.5M");
    let plain = text.replace(['_', ','], "");
    let (number, zeros) = match plain.as_bytes().last() {
        Some(b'k' | b'K') => (&plain[..plain.len() - 1], 3),
        Some(b'm' | b'M') => (&plain[..plain.len() - 1], 6),
        _ => (plain.as_str(), 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty()
        || !digits(whole)
        || !digits(fraction)
        || fraction.len() > zeros
        || number.ends_with('.')
    {
        return Err(wrong());
    }
    format!("{whole}{fraction:0<zeros$}").parse().map_err(|_| wrong())
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
