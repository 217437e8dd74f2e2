//! The rules of budgets: recording never refuses, and each line that is crossed warns once.

use super::check::check_percent;
use super::no_rule;
use super::one;
use crate::budget::TokenUse;
use crate::command::Command;
use crate::event as ev;
use crate::event::Event;
use crate::event::FactEvent;
use crate::event::Unit;
use crate::limits;
use crate::rates::Rates;
use crate::refusal::Refusal;
use crate::state::RunMark;
use crate::state::State;

/// What follows from changing what may be used, and from what runs below have used.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`decide` sends only these here; a test asks for every rule"
)]
pub(super) fn decide_budget(state: &State, command: Command) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::CountBelow { run, tokens: all, micros: whole } => {
            limits::name("run", &run)?;
            // What is told is a total, so telling it again counts nothing twice.
            let known = state.below.get(&run).copied().unwrap_or_default();
            let tokens = all.since(&known.tokens);
            let micros = whole.saturating_sub(known.micros);
            if tokens.total() == 0 && micros == 0 {
                return Err(Refusal::Already(format!("what run {run} used is counted already")));
            }
            let (estimated, source) = (false, ev::Source::Hand);
            let mut events: Vec<Event> = Vec::new();
            if tokens.total() > 0 {
                let below = Some(run.clone());
                events.push(ev::TokensRecorded { tokens, estimated, source, below }.into());
            }
            if micros > 0 {
                events.push(ev::CostRecorded { micros, source, below: Some(run), list: None }.into());
            }
            let used = (tokens.total() > 0).then_some(tokens);
            events.extend(crossed(state, used, micros).into_iter().map(FactEvent::into_event));
            Ok(events)
        }
        Command::PriceByList { rates } => {
            limits::name("model", &rates.model)?;
            limits::name("day of a price list", &rates.as_of)?;
            listed(state, &rates)
        }
        Command::SetBudget { unit, total, hard, warn_percent, count } => {
            let (old_total, old_hard, old_warn) = match unit {
                Unit::Tokens => {
                    (Some(state.budget.total_budget), state.budget.hard, state.budget.warn_percent)
                }
                Unit::Cost => (state.cost.limit_micros, state.cost.hard, state.cost.warn_percent),
            };
            let total = total.or(old_total).filter(|total| *total > 0);
            let total = total.ok_or_else(|| Refusal::bad("budget", "a budget is more than 0"))?;
            let (hard, warn_percent) = (hard.unwrap_or(old_hard), warn_percent.unwrap_or(old_warn));
            check_percent(warn_percent)?;
            let count = count.filter(|_| unit == Unit::Tokens);
            one(ev::BudgetSet { unit, total, hard, warn_percent, count })
        }
        Command::ExtendBudget { unit, added } => {
            if added == 0 {
                return Err(Refusal::bad("extension", "it is 0"));
            }
            // Without this, allowing more would put a limit where there was none.
            if unit == Unit::Cost && state.cost.limit_micros.is_none() {
                return Err(Refusal::bad("extension", "no cost budget is set"));
            }
            one(ev::BudgetExtended { unit, added })
        }
        other => no_rule(&other),
    }
}

/// The lines that are crossed when this is used: each warns once.
pub(super) fn crossed(state: &State, used: Option<TokenUse>, micros: u64) -> Vec<FactEvent> {
    let (mut tokens, mut cost) = (state.budget, state.cost);
    if let Some(used) = used {
        tokens.record_usage(used.counted(tokens.count));
    }
    cost.used_micros = cost.used_micros.saturating_add(micros);
    let warned = state.warned;
    let mut events: Vec<FactEvent> = Vec::new();
    if tokens.is_warning() && !warned.tokens {
        let (used, total) = (tokens.tokens_used, tokens.total_budget);
        events.push(ev::BudgetWarned { unit: Unit::Tokens, used, total }.into());
    }
    if tokens.is_over() && !warned.tokens_over {
        let (used, total) = (tokens.tokens_used, tokens.total_budget);
        events.push(ev::BudgetExceeded { unit: Unit::Tokens, used, total }.into());
    }
    if let Some(total) = cost.limit_micros {
        let used = cost.used_micros;
        if cost.is_warning() && !warned.cost {
            events.push(ev::BudgetWarned { unit: Unit::Cost, used, total }.into());
        }
        if cost.is_over() && !warned.cost_over {
            events.push(ev::BudgetExceeded { unit: Unit::Cost, used, total }.into());
        }
    }
    events
}

/// What tokens cost by a price list that nobody has told the cost of: those of the newest run, and those of runs before it
/// that had the same model.
fn listed(state: &State, rates: &Rates) -> Result<Vec<Event>, Refusal> {
    let own = |run: &RunMark| run.model.as_ref().is_none_or(|model| *model == rates.model);
    let newest = state.run.as_ref().filter(|run| own(run)).map(|run| run.unpriced);
    let earlier = state.unpriced.get(&rates.model).copied();
    let (mut events, mut whole): (Vec<Event>, u64) = (Vec::new(), 0);
    for (tokens, earlier) in [(newest, false), (earlier, true)] {
        let tokens = tokens.filter(|tokens| tokens.total() > 0);
        let Some(micros) = tokens.and_then(|tokens| rates.micros(&tokens)) else { continue };
        let list = Some(ev::ListPrice { model: rates.model.clone(), as_of: rates.as_of.clone(), earlier });
        events.push(ev::CostRecorded { micros, source: ev::Source::Stream, below: None, list }.into());
        whole = whole.saturating_add(micros);
    }
    if events.is_empty() {
        return Err(Refusal::Already(format!("nothing of {} is without a price", rates.model)));
    }
    events.extend(crossed(state, None, whole).into_iter().map(FactEvent::into_event));
    Ok(events)
}
