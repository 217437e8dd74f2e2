//! Which cap of a run is used up, in words.

use segno_core::State;
use segno_core::event::Unit;
use segno_core::refusal::cap_words;

use super::Limits;

/// The cap that is used up, of those that can be told from the session alone: its own, and those of the run.
pub(super) fn used_up(state: &State, limits: &Limits) -> Option<String> {
    let words = |unit: Unit, used: u64, total: u64| format!("{} is used up", cap_words(unit, used, total));
    if state.budget.is_exhausted() {
        return Some(words(Unit::Tokens, state.budget.tokens_used, state.budget.total_budget));
    }
    if state.cost.is_exhausted() {
        let total = state.cost.limit_micros.unwrap_or_default();
        return Some(words(Unit::Cost, state.cost.used_micros, total));
    }
    let before = state.run.as_ref().map(|run| run.before).unwrap_or_default();
    let tokens = state.tokens.since(&before.tokens).counted(state.budget.count);
    let micros = state.cost.used_micros.saturating_sub(before.micros);
    let over = |unit: Unit, used: u64, most: Option<u64>| {
        let most = most.filter(|most| used > *most)?;
        Some(format!("{} of one run is used up", cap_words(unit, used, most)))
    };
    over(Unit::Tokens, tokens, limits.tokens).or_else(|| over(Unit::Cost, micros, limits.micros))
}
