//! Times and delays in the words of agents.
//!
//! `resets 8:45am (Europe/Paris)`, `try again at Nov 20th, 2026 9:53 PM.`, `It will reset in 2 hours 14 minutes`.

use super::reset::ClockDate;
use super::reset::ClockTime;
use super::reset::ClockZone;
use super::reset::ResetTime;

/// What stands before a delay.
const BEFORE_DELAY: &[&str] = &[
    "try again in ",
    "retry in ",
    "reset in ",
    "resets in ",
    "reset after ",
    "resets after ",
    "retry after ",
];

/// What stands before a time. The first says whose time it is, where a line tells of two.
const BEFORE_TIME: &[&str] =
    &["limit resets ", "try again at ", "reset at ", "resets at ", "resets on ", "resets "];

/// When a text says that a limit ends, and in which words if they are a clock's.
pub(crate) fn reset_in(text: &str) -> Option<(ResetTime, Option<String>)> {
    // Only ASCII changes, so that places in one are places in the other.
    let lower = text.to_ascii_lowercase();
    if let Some(ms) = after(&lower, BEFORE_DELAY).find_map(|at| delay(&lower[at..])) {
        return Some((ResetTime::After(ms), None));
    }
    if let Some(seconds) = epoch(&lower) {
        return Some((ResetTime::At(seconds), None));
    }
    after(&lower, BEFORE_TIME).find_map(|at| {
        let (clock, length) = clock(&text[at..])?;
        let words = text[at..at + length].trim().to_owned();
        Some((ResetTime::Clock(clock), Some(words)))
    })
}

/// The places after each of these words.
fn after<'a>(lower: &'a str, words: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
    words.iter().flat_map(|word| lower.match_indices(word).map(|(at, word)| at + word.len()))
}

/// Seconds since 1970 after a bar, as older versions wrote them.
fn epoch(lower: &str) -> Option<i64> {
    let (before, after) = lower.rsplit_once('|')?;
    let digits = digits(after);
    let seconds = digits.parse().ok()?;
    (before.ends_with("limit reached") && (9..=11).contains(&digits.len())).then_some(seconds)
}

/// `19h14m47s`, `3h 12min`, `2 hours 14 minutes`, `11.054s`, `28ms`, `less than a minute`.
pub(crate) fn delay(lower: &str) -> Option<u64> {
    if lower.starts_with("less than a minute") {
        return Some(60_000);
    }
    let (mut rest, mut sum, mut some) = (lower, 0.0, false);
    while let Some((ms, length)) = part_of_delay(rest) {
        (sum, some) = (sum + ms, true);
        rest = rest[length..].trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    // A year is more than any limit takes.
    (some && sum <= 31_622_400_000.0).then(|| sum.round() as u64)
}

fn part_of_delay(text: &str) -> Option<(f64, usize)> {
    let number = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let value: f64 = text[..number].parse().ok()?;
    let spaced = text[number..].len() - text[number..].trim_start_matches(' ').len();
    let from = number + spaced;
    let unit = text[from..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len() - from);
    let scale = match &text[from..from + unit] {
        "ms" | "millisecond" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000.0,
        "d" | "day" | "days" => 86_400_000.0,
        _ => return None,
    };
    Some((value * scale, from + unit))
}

/// A clock's time at the beginning of a text, and how long its words are.
fn clock(text: &str) -> Option<(ClockTime, usize)> {
    let mut words = Words { text, at: 0 };
    let date = words.date();
    let time = words.time();
    // A day alone begins at midnight.
    let (hour, minute) = time.or(date.map(|_| (0, 0)))?;
    let zone = words.zone();
    Some((ClockTime { date, hour, minute, zone }, words.at))
}

/// Reads on as far as it understands.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Goes on by what `read` took after these separators; stays where it is if it took nothing.
    fn take<T>(&mut self, between: &[char], read: impl Fn(&'a str) -> Option<(T, usize)>) -> Option<T> {
        let rest = self.rest();
        let from = rest.len() - rest.trim_start_matches(between).len();
        let (value, length) = read(&rest[from..])?;
        self.at += from + length;
        Some(value)
    }

    /// `Nov 20th, 2026`, `Jul 15`, `Jan 3, 2027,`.
    fn date(&mut self) -> Option<ClockDate> {
        let start = self.at;
        let month = self.take(&[' '], month)?;
        let Some(day) = self.take(&[' ', '.'], day) else {
            self.at = start;
            return None;
        };
        let year = self.take(&[' ', ','], year);
        Some(ClockDate { year, month, day })
    }

    /// `3pm`, `8:46 AM`, `17:30`, after `at` or a comma.
    fn time(&mut self) -> Option<(i8, i8)> {
        let start = self.at;
        self.take(&[' ', ','], |text| text.get(..3)?.eq_ignore_ascii_case("at ").then_some(((), 3)));
        let time = self.take(&[' ', ','], time);
        if time.is_none() {
            self.at = start;
        }
        time
    }

    /// `(Europe/Paris)`, `GMT+1`, `UTC`.
    fn zone(&mut self) -> Option<ClockZone> {
        self.take(&[' '], |text| match text.strip_prefix('(') {
            Some(inner) => {
                let end = inner.find(')')?;
                let name = inner[..end].trim();
                let zone =
                    offset(name).map(|(zone, _)| zone).or_else(|| is_zone(name).then(|| named(name)))?;
                Some((zone, end + 2))
            }
            None => offset(text),
        })
    }
}

fn named(name: &str) -> ClockZone {
    ClockZone::Named(name.to_owned())
}

/// Letters as in the names of zones, and no path that leads elsewhere.
fn is_zone(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.len() <= 64 && name.chars().all(letters)
}

/// `GMT+1`, `UTC-3:30`, or either alone.
fn offset(text: &str) -> Option<(ClockZone, usize)> {
    let name = text.get(..3).filter(|name| ["GMT", "UTC"].contains(name))?;
    let rest = &text[3..];
    let east = match rest.chars().next() {
        Some('+') => 1,
        Some('-' | '\u{2212}') => -1,
        Some(c) if c.is_ascii_alphanumeric() => return None,
        _ => return Some((named(name), 3)),
    };
    let sign = rest.chars().next().map_or(0, char::len_utf8);
    let hours = digits(&rest[sign..]);
    let after = &rest[sign + hours.len()..];
    let minutes = after.strip_prefix(':').map(digits).filter(|minutes| minutes.len() == 2);
    let length = 3 + sign + hours.len() + minutes.map_or(0, |minutes| minutes.len() + 1);
    let hours: i32 = hours.parse().ok().filter(|hours| *hours <= 14)?;
    let minutes: i32 = minutes.and_then(|minutes| minutes.parse().ok()).unwrap_or(0);
    Some((ClockZone::Offset(east * (hours * 3600 + minutes * 60)), length))
}

fn month(text: &str) -> Option<(i8, usize)> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let length = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let word = text[..length].to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| word.len() >= 3 && month.starts_with(&word))?;
    Some((i8::try_from(at + 1).ok()?, length))
}

fn day(text: &str) -> Option<(i8, usize)> {
    let number = digits(text);
    let day: i8 = number.parse().ok().filter(|day| (1..=31).contains(day))?;
    let rest = &text[number.len()..];
    let ordinal = ["st", "nd", "rd", "th"].iter().any(|end| rest.starts_with(end));
    Some((day, number.len() + if ordinal { 2 } else { 0 }))
}

fn year(text: &str) -> Option<(i16, usize)> {
    let number = digits(text);
    let is_time = text[number.len()..].starts_with(':');
    let year = number.parse().ok().filter(|year| (2000..=9000).contains(year))?;
    (number.len() == 4 && !is_time).then_some((year, 4))
}

fn time(text: &str) -> Option<((i8, i8), usize)> {
    let hour = digits(text);
    let minute = text[hour.len()..].strip_prefix(':').map(digits).filter(|minute| minute.len() == 2);
    let mut length = hour.len() + minute.map_or(0, |minute| minute.len() + 1);
    let hour: i8 = hour.parse().ok()?;
    let minutes: i8 = minute.map_or(Some(0), |minute| minute.parse().ok())?;
    let rest = &text[length..];
    // Some languages' formats have a narrow space here.
    let half = rest.trim_start_matches([' ', '\u{202f}', '\u{a0}']);
    let word: String = half.chars().take_while(char::is_ascii_alphabetic).collect();
    let hour = match word.to_ascii_lowercase().as_str() {
        // Noon and midnight are the first hour of their half.
        half @ ("am" | "pm") if (1..=12).contains(&hour) => {
            length += rest.len() - rest.trim_start_matches([' ', '\u{202f}', '\u{a0}']).len() + 2;
            hour % 12 + if half == "pm" { 12 } else { 0 }
        }
        _ if minute.is_some() && hour <= 23 => hour,
        _ => return None,
    };
    (minutes <= 59).then_some(((hour, minutes), length))
}

fn digits(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> Option<u64> {
        match reset_in(text)?.0 {
            ResetTime::After(ms) => Some(ms),
            ResetTime::At(_) | ResetTime::Clock(_) => None,
        }
    }

    #[test]
    fn delays() {
        for (text, expected) in [
            ("Please try again in 11.054s. Visit", 11_054),
            ("Try again in 35 seconds.", 35_000),
            ("Please try again in 28ms.", 28),
            ("try again in 5 minutes", 300_000),
            ("Please retry in 44.097740004s.", 44_098),
            ("reset after 19h14m47s.", 69_287_000),
            ("Resets in 3h 12min. To", 11_520_000),
            ("It will reset in 2 hours 14 minutes. To", 8_040_000),
            ("It will reset in 1 day 3 hours.", 97_200_000),
            ("It will reset in less than a minute.", 60_000),
            ("Suggested retry after 600s.", 600_000),
        ] {
            assert_eq!(ms(text), Some(expected), "{text}");
        }
        for text in ["try again in a while", "try again in 99999999999 days", "retry in .", "resets in 3"] {
            assert_eq!(reset_in(text), None, "{text}");
        }
    }

    #[test]
    fn clocks_read_to_their_end_and_no_further() {
        for (text, words) in [
            ("resets 7:04pm (UTC) · progress saved", "7:04pm (UTC)"),
            ("resets Aug 8 · request an increase at https://x", "Aug 8"),
            ("try again at Nov 20th, 2026 9:53 PM.", "Nov 20th, 2026 9:53 PM"),
            ("Try again at 8:46 AM.", "8:46 AM"),
            ("resets Jul 15 at 12am (Australia/Melbourne)", "Jul 15 at 12am (Australia/Melbourne)"),
            ("resets Jan 3, 2027, 5am (Europe/Paris)", "Jan 3, 2027, 5am (Europe/Paris)"),
            ("Access resets at 3:27 PM GMT+1.", "3:27 PM GMT+1"),
            ("resets 10pm", "10pm"),
            ("resets 22:15", "22:15"),
            ("resets 8:45\u{202f}PM (UTC)", "8:45\u{202f}PM (UTC)"),
        ] {
            assert_eq!(reset_in(text).unwrap().1.as_deref(), Some(words), "{text}");
        }
        for text in
            ["resets soon", "resets 25:00", "resets 7", "try again at your own risk", "resets Mayor 3"]
        {
            assert_eq!(reset_in(text), None, "{text}");
        }
    }

    #[test]
    fn odd_zones_are_left_out() {
        let zone = |text: &str| match reset_in(text).unwrap().0 {
            ResetTime::Clock(clock) => clock.zone,
            other => panic!("{other:?}"),
        };
        assert_eq!(zone("resets 3pm (../../etc/passwd)"), None);
        assert_eq!(zone("resets 3pm (your time)"), None);
        assert_eq!(zone("resets 3pm UTC-3:30"), Some(ClockZone::Offset(-12_600)));
        assert_eq!(zone("resets 3pm (GMT+11)"), Some(ClockZone::Offset(39_600)));
    }
}
