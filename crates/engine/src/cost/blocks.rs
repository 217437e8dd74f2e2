//! The five hours that plans count together.
//!
//! A block begins with the hour of the first use and lasts five hours; the next use begins another. What a run used is
//! spread over the moments at which its agent told of tokens, and its money with them.

use std::collections::BTreeMap;
use std::collections::HashMap;

use jiff::tz::TimeZone;
use segno_core::Event;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_store::EventRow;

use super::Sum;
use super::Sums;
use super::Used;
use crate::Engine;
use crate::Error;

/// Events that are read at once.
const PAGE: usize = 500;
const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;
const BLOCK: i64 = 5 * HOUR;

impl Engine {
    /// Adds what a session used, minute by minute.
    pub(super) fn add_blocks(
        &self,
        session: SessionId,
        used: impl Iterator<Item = Used>,
        since: Option<Timestamp>,
        sums: &mut Sums<'_>,
    ) -> Result<(), Error> {
        let mut told: HashMap<String, BTreeMap<i64, TokenUse>> = HashMap::new();
        let mut after = 0;
        loop {
            let rows = self.events(session, after, PAGE)?;
            let Some(last) = rows.last() else { break };
            after = last.seq();
            for row in rows {
                let EventRow::Whole(stored) = row else { continue };
                if stored.kind != "tokens_recorded" {
                    continue;
                }
                let (Some(run), Ok(Event::TokensRecorded(tokens))) = (stored.run.clone(), stored.event())
                else {
                    continue;
                };
                if tokens.below.is_none() {
                    let minute = stored.at.as_micros().div_euclid(MINUTE);
                    let sum = told.entry(run).or_default().entry(minute).or_default();
                    *sum = sum.plus(&tokens.tokens);
                }
            }
        }
        let since = since.map_or(i64::MIN, |since| since.as_micros().div_euclid(MINUTE));
        for used in used {
            let moments = used.run.as_ref().and_then(|run| told.remove(&run.run)).unwrap_or_default();
            let minute = used.at.as_micros().div_euclid(MINUTE);
            for (minute, sum) in spread(&used.sum, minute, &moments) {
                if minute >= since {
                    sums.total.add(&sum);
                    sums.minutes.entry(minute).or_default().add(&sum);
                }
            }
        }
        Ok(())
    }
}

/// Spreads a sum over the minutes in which tokens were told; what nobody told a moment of was used in the first.
fn spread(sum: &Sum, first: i64, moments: &BTreeMap<i64, TokenUse>) -> BTreeMap<i64, Sum> {
    let told = moments.values().fold(TokenUse::default(), |all, tokens| all.plus(tokens));
    // What is told twice, as a sum and in parts, is no more than the sum.
    let fits = told.since(&sum.tokens).total() == 0;
    let mut parts: BTreeMap<i64, TokenUse> = BTreeMap::new();
    let rest = match fits {
        true => {
            parts.extend(moments.iter().map(|(minute, tokens)| (*minute, *tokens)));
            sum.tokens.since(&told)
        }
        false => sum.tokens,
    };
    if rest.total() > 0 || parts.is_empty() {
        let part = parts.entry(first).or_default();
        *part = part.plus(&rest);
    }
    let (mut left, mut weight) = (sum.clone(), sum.tokens.total());
    let mut spread = BTreeMap::new();
    let mut runs = sum.runs;
    for (minute, tokens) in parts {
        let share = |amount: u64| match weight {
            0 => amount,
            weight => {
                let part = u128::from(amount) * u128::from(tokens.total()) / u128::from(weight);
                u64::try_from(part).unwrap_or(amount)
            }
        };
        let part = Sum {
            runs: std::mem::take(&mut runs),
            tokens,
            micros: share(left.micros),
            by_list_price_micros: share(left.by_list_price_micros),
            unpriced_tokens: share(left.unpriced_tokens),
            estimated: sum.estimated,
        };
        weight = weight.saturating_sub(tokens.total());
        left.micros -= part.micros;
        left.by_list_price_micros -= part.by_list_price_micros;
        left.unpriced_tokens -= part.unpriced_tokens;
        spread.insert(minute, part);
    }
    spread
}

/// The blocks, by time: when they begin, by the user's clock.
pub(super) fn blocks(minutes: BTreeMap<i64, Sum>, zone: &TimeZone) -> Vec<(String, Sum)> {
    let mut blocks: Vec<(i64, Sum)> = Vec::new();
    for (minute, sum) in minutes {
        let at = minute.saturating_mul(MINUTE);
        match blocks.last_mut() {
            Some((begin, block)) if at - *begin < BLOCK => block.add(&sum),
            _ => blocks.push((at.div_euclid(HOUR) * HOUR, sum)),
        }
    }
    let name = |begin: i64| match jiff::Timestamp::from_microsecond(begin) {
        Ok(moment) => moment.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => begin.to_string(),
    };
    blocks.into_iter().map(|(begin, sum)| (name(begin), sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input: u64) -> TokenUse {
        TokenUse { input, ..TokenUse::default() }
    }

    fn sum(input: u64, micros: u64) -> Sum {
        Sum { runs: 1, tokens: tokens(input), micros, ..Sum::default() }
    }

    #[test]
    fn nothing_is_lost_by_spreading() {
        let moments = BTreeMap::from([(10, tokens(3)), (400, tokens(4))]);
        let spread = spread(&sum(10, 101), 5, &moments);
        let parts: Vec<_> = spread.iter().map(|(at, part)| (*at, part.tokens.input, part.micros)).collect();
        assert_eq!(parts, [(5, 3, 30), (10, 3, 30), (400, 4, 41)]);
        assert_eq!(spread.values().map(|part| part.runs).sum::<u64>(), 1);
    }

    #[test]
    fn parts_that_are_more_than_the_sum_are_not_believed() {
        let spread = spread(&sum(10, 7), 5, &BTreeMap::from([(10, tokens(11))]));
        assert_eq!(spread, BTreeMap::from([(5, sum(10, 7))]));
    }

    #[test]
    fn a_block_begins_with_the_hour_and_lasts_five() {
        let day = 20_000 * 24 * 60;
        let at = |hour: i64, minute: i64| day + hour * 60 + minute;
        let used = [at(9, 59), at(10, 0), at(13, 59), at(14, 0), at(18, 59), at(19, 30)];
        let minutes = used.into_iter().map(|minute| (minute, sum(1, 0))).collect();
        let zone = TimeZone::posix("XXX-1").unwrap();
        let found: Vec<(String, u64)> =
            blocks(minutes, &zone).into_iter().map(|(name, sum)| (name, sum.tokens.input)).collect();
        let expected = [("2024-10-04 10:00", 3), ("2024-10-04 15:00", 2), ("2024-10-04 20:00", 1)];
        assert_eq!(found, expected.map(|(name, used)| (name.to_owned(), used)));
    }
}
