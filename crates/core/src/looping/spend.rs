//! The caps on tokens and money, as a loop looks at them after an iteration.

use super::observation::Observation;
use super::plan::LoopCaps;
use super::verdict::CapKind;
use super::verdict::LoopVerdict;
use crate::budget::TokenBudget;
use crate::budget::dollars;
use crate::state::State;

/// The cap on tokens or money that an iteration has reached, if one is. What a loop was told and what holds for the whole
/// day both count.
pub(super) fn spend_cap(caps: &LoopCaps, seen: &Observation) -> Option<LoopVerdict> {
    let day_tokens = lower(caps.day_tokens, seen.day.most_tokens);
    let day_micros = lower(caps.day_micros, seen.day.most_micros);
    let reached = |which: CapKind, why: Option<String>| why.map(|why| LoopVerdict::Cap { which, why });
    let iteration_tokens = caps.iteration_tokens.filter(|most| seen.tokens > *most);
    let iteration_tokens =
        iteration_tokens.map(|most| format!("{} of {most} tokens in one iteration", seen.tokens));
    let micros = seen.micros.unwrap_or(0);
    let iteration_money = caps.iteration_micros.filter(|most| micros > *most);
    let iteration_money =
        iteration_money.map(|most| format!("{} of {} in one iteration", dollars(micros), dollars(most)));
    let tokens = day_tokens.filter(|most| seen.day.tokens >= *most);
    let tokens = tokens.map(|most| format!("{} of {most} tokens today", seen.day.tokens));
    let money = day_micros.filter(|most| seen.day.micros >= *most);
    let money = money.map(|most| format!("{} of {} today", dollars(seen.day.micros), dollars(most)));
    let unknown = |capped: bool| {
        let unpriced = capped && seen.micros.is_none() && seen.tokens > 0;
        unpriced.then(|| COST_UNKNOWN.to_owned())
    };
    reached(CapKind::IterationTokens, iteration_tokens)
        .or_else(|| reached(CapKind::IterationMoney, iteration_money))
        .or_else(|| reached(CapKind::IterationMoney, unknown(caps.iteration_micros.is_some())))
        .or_else(|| reached(CapKind::DayTokens, tokens))
        .or_else(|| reached(CapKind::DayMoney, money))
        .or_else(|| reached(CapKind::DayMoney, unknown(day_micros.is_some())))
        .or_else(|| reached(CapKind::Budget, seen.over_budget.clone()))
}

/// Why a cap on money stops though nobody knows what was spent.
pub const COST_UNKNOWN: &str = "what it cost is not known, so a cap on money cannot hold";

fn lower(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// A budget of the session that stops it, in words.
pub fn over_budget(state: &State) -> Option<String> {
    let TokenBudget { tokens_used, total_budget, .. } = state.budget;
    if state.budget.is_exhausted() {
        return Some(format!("{tokens_used} of {total_budget} tokens"));
    }
    if let Some(limit) = state.cost.limit_micros.filter(|_| state.cost.is_exhausted()) {
        return Some(format!("{} of {}", dollars(state.cost.used_micros), dollars(limit)));
    }
    state.is_cost_unknown().then(|| COST_UNKNOWN.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::looping::DayUse;

    fn seen(tokens: u64, micros: Option<u64>) -> Observation {
        Observation { tokens, micros, ..Observation::default() }
    }

    fn day(most_tokens: Option<u64>, most_micros: Option<u64>) -> DayUse {
        DayUse { tokens: 100, micros: 3_000_000, most_tokens, most_micros }
    }

    #[rstest]
    #[case::as_much_as_allowed(seen(10, Some(20)), None)]
    #[case::more_tokens(seen(11, Some(20)), Some((CapKind::IterationTokens, "11 of 10 tokens in one iteration")))]
    #[case::more_money(seen(9, Some(2_000_000)), Some((CapKind::IterationMoney, "$2.00 of $0.00002 in one iteration")))]
    #[case::nobody_knows(seen(9, None), Some((CapKind::IterationMoney, COST_UNKNOWN)))]
    #[case::nothing_used(seen(0, None), None)]
    fn of_one_iteration(#[case] seen: Observation, #[case] expected: Option<(CapKind, &str)>) {
        let caps = LoopCaps { iteration_tokens: Some(10), iteration_micros: Some(20), ..LoopCaps::default() };
        let expected = expected.map(|(which, why)| LoopVerdict::Cap { which, why: why.to_owned() });
        assert_eq!(spend_cap(&caps, &seen), expected);
    }

    #[rstest]
    #[case::of_the_plan(Some(100), None, day(None, None), "100 of 100 tokens today")]
    #[case::of_the_day(None, None, day(Some(100), None), "100 of 100 tokens today")]
    #[case::the_lower_one(Some(500), None, day(Some(90), None), "100 of 90 tokens today")]
    #[case::money(None, Some(9_000_000), day(None, Some(2_500_000)), "$3.00 of $2.50 today")]
    fn of_one_day(
        #[case] tokens: Option<u64>,
        #[case] micros: Option<u64>,
        #[case] day: DayUse,
        #[case] expected: &str,
    ) {
        let caps = LoopCaps { day_tokens: tokens, day_micros: micros, ..LoopCaps::default() };
        let seen = Observation { day, ..seen(1, Some(1)) };
        let Some(LoopVerdict::Cap { why, .. }) = spend_cap(&caps, &seen) else { panic!("no cap") };
        assert_eq!(why, expected);
    }
}
