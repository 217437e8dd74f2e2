//! When a limit ends, as it was said, and as a moment.

use jiff::SignedDuration;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::civil::Time;
use jiff::tz::Offset;
use jiff::tz::TimeZone;
use serde::Serialize;

/// A time of day that is past by no more than this means now: clocks differ, and words take a while to arrive.
const GRACE: SignedDuration = SignedDuration::from_mins(5);

/// A day without a year that is past by more than this is one of the next year.
const HALF_A_YEAR: SignedDuration = SignedDuration::from_hours(24 * 182);

/// When a limit ends, as exactly as it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResetTime {
    /// Epoch seconds.
    At(i64),
    /// Milliseconds from when it was said.
    After(u64),
    /// What a clock on the wall will show.
    Clock(ClockTime),
}

/// A time of day, maybe on a day, maybe in a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClockTime {
    /// The day; without one, the next time that clocks show the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<ClockDate>,
    /// The hour, 0 to 23.
    pub hour: i8,
    /// The minute.
    pub minute: i8,
    /// The zone; without one, that of the machine the agent runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<ClockZone>,
}

/// A day, maybe without its year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClockDate {
    /// The year; without one, whichever brings the day nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub year: Option<i16>,
    /// The month, 1 to 12.
    pub month: i8,
    /// The day of the month.
    pub day: i8,
}

/// Whose clocks are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockZone {
    /// The name of a zone, such as `Europe/Paris`.
    Named(String),
    /// Seconds east of UTC.
    Offset(i32),
}

impl ResetTime {
    /// The moment that is meant, if it can be told. `now` is when it was said, `local` the zone of the machine, and
    /// `lookup` finds a zone by its name.
    ///
    /// A time of day that has just passed is given as `now`; one that passed earlier is meant for tomorrow.
    pub fn resolve(
        &self,
        now: Timestamp,
        local: &TimeZone,
        lookup: &dyn Fn(&str) -> Option<TimeZone>,
    ) -> Option<Timestamp> {
        match self {
            Self::At(seconds) => Timestamp::from_second(*seconds).ok(),
            Self::After(ms) => now.checked_add(SignedDuration::from_millis(i64::try_from(*ms).ok()?)).ok(),
            Self::Clock(clock) => {
                let zone = match &clock.zone {
                    None => local.clone(),
                    Some(ClockZone::Named(name)) => named(name, lookup)?,
                    Some(ClockZone::Offset(seconds)) => TimeZone::fixed(Offset::from_seconds(*seconds).ok()?),
                };
                match clock.date {
                    Some(date) => clock.on_day(date, now, &zone),
                    None => clock.next(now, &zone),
                }
            }
        }
    }
}

impl ClockTime {
    /// The moment when clocks in a zone show this time on a day. A time that is left out there, or comes twice, is
    /// taken as most programs take it.
    fn at(&self, day: Date, zone: &TimeZone) -> Option<Timestamp> {
        let time = Time::new(self.hour, self.minute, 0, 0).ok()?;
        zone.to_timestamp(day.to_datetime(time)).ok()
    }

    fn next(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let today = zone.to_datetime(now).date();
        let days = [today.yesterday().ok(), Some(today), today.tomorrow().ok()];
        let moments = days.into_iter().flatten().filter_map(|day| self.at(day, zone));
        // Just after midnight, one of yesterday may have just passed.
        let next = moments.into_iter().find(|at| now.duration_since(*at) <= GRACE)?;
        Some(next.max(now))
    }

    fn on_day(&self, date: ClockDate, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let in_year = |year: i16| self.at(Date::new(year, date.month, date.day).ok()?, zone);
        if let Some(year) = date.year {
            return in_year(year);
        }
        let year = zone.to_datetime(now).year();
        // A leap day may not be there this year.
        let this = in_year(year).filter(|at| now.duration_since(*at) <= HALF_A_YEAR);
        this.or_else(|| (1..=8).find_map(|more| in_year(year.checked_add(more)?)))
    }
}

/// A zone by its name. Programs still use names that systems have given up.
fn named(name: &str, lookup: &dyn Fn(&str) -> Option<TimeZone>) -> Option<TimeZone> {
    if ["UTC", "GMT", "Z", "Etc/UTC"].iter().any(|utc| utc.eq_ignore_ascii_case(name)) {
        return Some(TimeZone::UTC);
    }
    lookup(name).or_else(|| {
        let (_, new) = RENAMED.iter().find(|(old, _)| *old == name)?;
        lookup(new)
    })
}

/// Old names that JavaScript engines still give, and what the zone is called today.
const RENAMED: &[(&str, &str)] = &[
    ("Africa/Asmera", "Africa/Asmara"),
    ("America/Buenos_Aires", "America/Argentina/Buenos_Aires"),
    ("America/Catamarca", "America/Argentina/Catamarca"),
    ("America/Cordoba", "America/Argentina/Cordoba"),
    ("America/Godthab", "America/Nuuk"),
    ("America/Indianapolis", "America/Indiana/Indianapolis"),
    ("America/Jujuy", "America/Argentina/Jujuy"),
    ("America/Louisville", "America/Kentucky/Louisville"),
    ("America/Mendoza", "America/Argentina/Mendoza"),
    ("Asia/Calcutta", "Asia/Kolkata"),
    ("Asia/Katmandu", "Asia/Kathmandu"),
    ("Asia/Rangoon", "Asia/Yangon"),
    ("Asia/Saigon", "Asia/Ho_Chi_Minh"),
    ("Atlantic/Faeroe", "Atlantic/Faroe"),
    ("Europe/Kiev", "Europe/Kyiv"),
    ("Pacific/Enderbury", "Pacific/Kanton"),
    ("Pacific/Ponape", "Pacific/Pohnpei"),
    ("Pacific/Truk", "Pacific/Chuuk"),
    ("US/Central", "America/Chicago"),
    ("US/Eastern", "America/New_York"),
    ("US/Mountain", "America/Denver"),
    ("US/Pacific", "America/Los_Angeles"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Zones without tables: their rules are enough for these days.
    fn zone(name: &str) -> Option<TimeZone> {
        let rule = match name {
            "Europe/Paris" => "CET-1CEST,M3.5.0,M10.5.0/3",
            "Australia/Melbourne" => "AEST-10AEDT,M10.1.0,M4.1.0/3",
            "America/New_York" => "EST5EDT,M3.2.0,M11.1.0",
            "Asia/Kolkata" => "IST-5:30",
            _ => return None,
        };
        TimeZone::posix(rule).ok()
    }

    fn clock(date: Option<(Option<i16>, i8, i8)>, hour: i8, minute: i8, zone: Option<&str>) -> ResetTime {
        ResetTime::Clock(ClockTime {
            date: date.map(|(year, month, day)| ClockDate { year, month, day }),
            hour,
            minute,
            zone: zone.map(|name| ClockZone::Named(name.to_owned())),
        })
    }

    fn resolved(time: &ResetTime, now: &str) -> Option<String> {
        let paris = zone("Europe/Paris").unwrap();
        let at = time.resolve(now.parse().unwrap(), &paris, &zone)?;
        Some(at.to_string())
    }

    #[test]
    fn a_time_of_day_is_the_next_one() {
        let now = "2026-11-17T20:00:00Z";
        for (hour, minute, zone, at) in [
            (8, 45, Some("Europe/Paris"), "2026-11-18T07:45:00Z"),
            (23, 30, Some("Europe/Paris"), "2026-11-17T22:30:00Z"),
            (0, 0, Some("Europe/Paris"), "2026-11-17T23:00:00Z"),
            (0, 0, Some("UTC"), "2026-11-18T00:00:00Z"),
            (19, 4, Some("UTC"), "2026-11-18T19:04:00Z"),
            // Just passed: now.
            (19, 57, Some("UTC"), "2026-11-17T20:00:00Z"),
            (19, 55, Some("UTC"), "2026-11-17T20:00:00Z"),
            (19, 54, Some("UTC"), "2026-11-18T19:54:00Z"),
            // No zone: the machine's.
            (21, 30, None, "2026-11-17T20:30:00Z"),
            // An old name.
            (3, 0, Some("Asia/Calcutta"), "2026-11-17T21:30:00Z"),
        ] {
            assert_eq!(
                resolved(&clock(None, hour, minute, zone), now).as_deref(),
                Some(at),
                "{hour}:{minute}"
            );
        }
    }

    #[test]
    fn just_after_midnight_yesterday_has_just_passed() {
        let time = clock(None, 23, 58, Some("UTC"));
        assert_eq!(resolved(&time, "2026-11-18T00:01:00Z").as_deref(), Some("2026-11-18T00:01:00Z"));
        assert_eq!(resolved(&time, "2026-11-18T00:10:00Z").as_deref(), Some("2026-11-18T23:58:00Z"));
    }

    #[test]
    fn a_day_has_the_year_that_is_near() {
        let melbourne = Some("Australia/Melbourne");
        for (date, hour, zone, now, at) in [
            ((None, 7, 15), 0, melbourne, "2026-07-13T00:00:00Z", "2026-07-14T14:00:00Z"),
            ((None, 1, 3), 5, Some("UTC"), "2026-12-30T00:00:00Z", "2027-01-03T05:00:00Z"),
            ((Some(2027), 1, 3), 5, Some("UTC"), "2026-11-17T00:00:00Z", "2027-01-03T05:00:00Z"),
            ((Some(2026), 11, 20), 21, None, "2026-11-17T00:00:00Z", "2026-11-20T20:00:00Z"),
            // A day that is over stays the day it was.
            ((None, 11, 15), 21, Some("UTC"), "2026-11-17T00:00:00Z", "2026-11-15T21:00:00Z"),
            ((None, 2, 29), 1, Some("UTC"), "2027-02-01T00:00:00Z", "2028-02-29T01:00:00Z"),
            ((None, 1, 12), 10, Some("America/New_York"), "2026-01-10T00:00:00Z", "2026-01-12T15:00:00Z"),
        ] {
            assert_eq!(resolved(&clock(Some(date), hour, 0, zone), now).as_deref(), Some(at), "{date:?}");
        }
    }

    #[test]
    fn clocks_that_are_changed() {
        // 2:30 is left out that night, and comes twice in autumn.
        let time = clock(None, 2, 30, Some("Europe/Paris"));
        assert_eq!(resolved(&time, "2026-03-28T23:30:00Z").as_deref(), Some("2026-03-29T01:30:00Z"));
        assert_eq!(resolved(&time, "2026-10-24T22:30:00Z").as_deref(), Some("2026-10-25T00:30:00Z"));
    }

    #[test]
    fn what_is_exact_needs_no_zone() {
        let now = "2026-11-17T20:00:00Z";
        assert_eq!(resolved(&ResetTime::At(1_794_815_184), now).as_deref(), Some("2026-11-16T07:46:24Z"));
        assert_eq!(resolved(&ResetTime::After(1_500), now).as_deref(), Some("2026-11-17T20:00:01.5Z"));
        let offset = ClockTime { date: None, hour: 22, minute: 0, zone: Some(ClockZone::Offset(3600)) };
        assert_eq!(resolved(&ResetTime::Clock(offset), now).as_deref(), Some("2026-11-17T21:00:00Z"));
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        let now = "2026-11-17T20:00:00Z";
        for time in [
            clock(None, 8, 0, Some("Atlantis/Capital")),
            clock(Some((Some(2026), 2, 30)), 8, 0, None),
            ResetTime::At(i64::MAX),
            ResetTime::After(u64::MAX),
        ] {
            assert_eq!(resolved(&time, now), None, "{time:?}");
        }
    }
}
