//! Points in time as trackers write them, so that they can be put in order.

/// Nanoseconds since 1970 of `2026-01-29T10:00:00.5+01:00`, `2026-01-29 10:00:00Z` or `2026-01-29`.
pub(super) fn instant(text: &str) -> Option<i128> {
    let text = text.trim();
    let (year, month, day) = (digits(text.get(..4)?)?, digits(text.get(5..7)?)?, digits(text.get(8..10)?)?);
    if text.get(4..5)? != "-"
        || text.get(7..8)? != "-"
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    let midnight = i128::from(days(year, month, day)) * 86_400;
    let rest = text.get(10..)?;
    if rest.is_empty() {
        return Some(midnight * 1_000_000_000);
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (hour, minute, second) =
        (digits(rest.get(..2)?)?, digits(rest.get(3..5)?)?, digits(rest.get(6..8)?)?);
    if rest.get(2..3)? != ":" || rest.get(5..6)? != ":" || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, zone) = fraction(rest.get(8..)?);
    let seconds = midnight + i128::from(hour * 3600 + minute * 60 + second) - i128::from(offset(zone)?);
    Some(seconds * 1_000_000_000 + i128::from(fraction))
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Nanoseconds in `.5`, and what stands behind them.
fn fraction(text: &str) -> (i64, &str) {
    let Some(rest) = text.strip_prefix('.') else { return (0, text) };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, zone) = rest.split_at(end);
    let nine: String = number.chars().chain(std::iter::repeat('0')).take(9).collect();
    (nine.parse().unwrap_or(0), zone)
}

/// Seconds east of Greenwich. Without a zone it is taken for none.
fn offset(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':').or_else(|| rest.split_at_checked(2))?;
    Some(sign * (digits(hours)? * 3600 + digits(minutes)? * 60))
}

/// Days since 1970 in the calendar of today.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the day that comes and goes is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time() {
        let second = 1_000_000_000;
        assert_eq!(instant("1970-01-01"), Some(0));
        assert_eq!(instant("1970-01-01T00:00:01Z"), Some(second));
        assert_eq!(instant("2000-03-01T00:00:00Z"), Some(951_868_800 * second));
        assert_eq!(instant("2026-01-29T10:00:00.25+01:00"), instant("2026-01-29T09:00:00.250Z"));
        assert_eq!(instant("2026-01-29T10:00:00-0530"), instant("2026-01-29 15:30:00"));
        assert!(instant("2024-02-29").unwrap() < instant("2024-03-01").unwrap());
        for no in [
            "",
            "soon",
            "2026-13-01",
            "2026-01-29T",
            "2026-01-29T10",
            "2026-01-29T10:00:00x",
            "é026-01-29",
            "2026-01-29T10:00:00+é",
        ] {
            assert_eq!(instant(no), None, "{no}");
        }
    }
}
