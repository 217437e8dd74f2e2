//! Points in time, to the microsecond, always UTC.
//!
//! The time library is wrapped here so that a new major version of it is a change to one file.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

/// A moment in UTC with microsecond precision, between the years 1970 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The last moment that the time library takes: it must have a four-digit year in every zone.
const MAX_MICROS: i64 = 253_402_207_200_000_000;

/// A text or number that is not a moment we can keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a timestamp: {0}")]
pub struct BadTimestamp(String);

impl Timestamp {
    /// The start of 1970, the earliest moment there is.
    pub const EPOCH: Self = Self(0);

    /// From microseconds since the start of 1970; moments out of range are moved to its border.
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(0, MAX_MICROS))
    }

    /// Microseconds since the start of 1970.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment one microsecond later.
    pub fn next_micro(self) -> Self {
        Self::from_micros(self.0 + 1)
    }

    /// This moment moved by a number of seconds, backwards if negative.
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self::from_micros(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }

    /// Microseconds from `earlier` to this moment; 0 if it is not earlier.
    pub fn micros_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// Year, month, day, hour, minute, second and microsecond.
    pub fn parts(self) -> (i16, i8, i8, i8, i8, i8, i32) {
        let civil = self.civil();
        (
            civil.year(),
            civil.month(),
            civil.day(),
            civil.hour(),
            civil.minute(),
            civil.second(),
            civil.subsec_nanosecond() / 1_000,
        )
    }

    fn civil(self) -> jiff::civil::DateTime {
        jiff::Timestamp::from_microsecond(self.0)
            .map(|t| jiff::tz::Offset::UTC.to_datetime(t))
            .unwrap_or(jiff::civil::DateTime::MIN)
    }

    /// From parts of a UTC date and time, if they name a real one.
    pub fn from_parts(date: (i16, i8, i8), time: (i8, i8, i8), micros: i32) -> Option<Self> {
        let civil = jiff::civil::DateTime::new(
            date.0,
            date.1,
            date.2,
            time.0,
            time.1,
            time.2,
            micros.checked_mul(1_000)?,
        )
        .ok()?;
        let micros = jiff::tz::Offset::UTC.to_timestamp(civil).ok()?.as_microsecond();
        (0..=MAX_MICROS).contains(&micros).then_some(Self(micros))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day, hour, minute, second, micros) = self.parts();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let bad = || BadTimestamp(text.chars().take(60).collect());
        let parsed: jiff::Timestamp = text.parse().map_err(|_| bad())?;
        let micros = parsed.as_microsecond();
        if (0..=MAX_MICROS).contains(&micros) { Ok(Self(micros)) } else { Err(bad()) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an ISO 8601 date and time")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_back_with_microseconds() {
        let at: Timestamp = "2026-11-15T14:35:12.804211Z".parse().unwrap();
        assert_eq!(at.to_string(), "2026-11-15T14:35:12.804211Z");
        assert_eq!(at.parts(), (2026, 11, 15, 14, 35, 12, 804_211));
        assert_eq!(Timestamp::from_parts((2026, 11, 15), (14, 35, 12), 804_211), Some(at));
    }

    #[test]
    fn other_offsets_are_turned_into_utc() {
        let at: Timestamp = "2026-01-16T10:00:00-03:00".parse().unwrap();
        assert_eq!(at.to_string(), "2026-01-16T13:00:00.000000Z");
    }

    #[test]
    fn both_borders_read_back() {
        for (micros, text) in
            [(i64::MIN, "1970-01-01T00:00:00.000000Z"), (i64::MAX, "9999-12-30T22:00:00.000000Z")]
        {
            let at = Timestamp::from_micros(micros);
            assert_eq!(at.to_string(), text);
            assert_eq!(text.parse(), Ok(at));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-02-30T00:00:00Z"]
        {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }
}
