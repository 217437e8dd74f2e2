//! The rules of budgets: recording never refuses, and each line that is crossed warns once.

use super::check::check_percent;
use super::no_rule;
use super::one;
use crate::command::Command;
use crate::event as ev;
use crate::event::Event;
use crate::event::Unit;
use crate::limits;
use crate::refusal::Refusal;
use crate::state::State;

/// What follows from using tokens and money, and from changing what may be used.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`decide` sends only these here; a test asks for every rule"
)]
pub(super) fn decide_budget(state: &State, command: Command) -> Result<Vec<Event>, Refusal> {
    let mut events: Vec<Event> = Vec::new();
    // What the budgets will be, to see whether a line is crossed.
    let (mut tokens, mut cost) = (state.budget, state.cost);
    match command {
        Command::RecordTokens { tokens: used, estimated, source } => {
            tokens.record_usage(used.counted(tokens.count));
            events.push(ev::TokensRecorded { tokens: used, estimated, source, below: None }.into());
        }
        Command::RecordCost { micros, source } => {
            cost.used_micros = cost.used_micros.saturating_add(micros);
            events.push(ev::CostRecorded { micros, source, below: None }.into());
        }
        Command::CountBelow { run, tokens: all, micros: whole } => {
            limits::name("run", &run)?;
            // What is told is a total, so telling it again counts nothing twice.
            let known = state.below.get(&run).copied().unwrap_or_default();
            let used = all.since(&known.tokens);
            let micros = whole.saturating_sub(known.micros);
            if used.total() == 0 && micros == 0 {
                return Err(Refusal::Already(format!("what run {run} used is counted already")));
            }
            let (estimated, source) = (false, ev::Source::Hand);
            if used.total() > 0 {
                tokens.record_usage(used.counted(tokens.count));
                let below = Some(run.clone());
                events.push(ev::TokensRecorded { tokens: used, estimated, source, below }.into());
            }
            if micros > 0 {
                cost.used_micros = cost.used_micros.saturating_add(micros);
                events.push(ev::CostRecorded { micros, source, below: Some(run) }.into());
            }
        }
        Command::SetBudget { unit, total, hard, warn_percent, count } => {
            let (old_total, old_hard, old_warn) = match unit {
                Unit::Tokens => (Some(tokens.total_budget), tokens.hard, tokens.warn_percent),
                Unit::Cost => (cost.limit_micros, cost.hard, cost.warn_percent),
            };
            let total = total.or(old_total).filter(|total| *total > 0);
            let total = total.ok_or_else(|| Refusal::bad("budget", "a budget is more than 0"))?;
            let (hard, warn_percent) = (hard.unwrap_or(old_hard), warn_percent.unwrap_or(old_warn));
            check_percent(warn_percent)?;
            let count = count.filter(|_| unit == Unit::Tokens);
            return one(ev::BudgetSet { unit, total, hard, warn_percent, count });
        }
        Command::ExtendBudget { unit, added } => {
            if added == 0 {
                return Err(Refusal::bad("extension", "it is 0"));
            }
            // Without this, allowing more would put a limit where there was none.
            if unit == Unit::Cost && cost.limit_micros.is_none() {
                return Err(Refusal::bad("extension", "no cost budget is set"));
            }
            return one(ev::BudgetExtended { unit, added });
        }
        other => return no_rule(&other),
    }
    let warned = state.warned;
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
    Ok(events)
}
