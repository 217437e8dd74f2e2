//! What was used, counted once, and the warnings about it.

use super::BelowMark;
use super::State;
use super::TokenSource;
use super::apply::Applied;
use super::apply::Mark;
use crate::event::BudgetExtended;
use crate::event::BudgetSet;
use crate::event::CostRecorded;
use crate::event::Source;
use crate::event::TokensRecorded;
use crate::event::Unit;
use crate::limits;

impl State {
    /// Tokens were used.
    pub(super) fn tokens_recorded(&mut self, mark: &Mark, e: &TokensRecorded) -> Applied {
        if !self.counts_tokens(mark, e.source) {
            return Applied::Repeated;
        }
        self.tokens = self.tokens.plus(&e.tokens);
        // What a run estimates while it goes on, its end makes exact or does not.
        self.tokens_estimated |= e.estimated && e.source == Source::Hand;
        self.budget.record_usage(e.tokens.counted(self.budget.count));
        if let Some(below) = self.below(e.below.as_deref()) {
            below.tokens = below.tokens.plus(&e.tokens);
        }
        Applied::Counted
    }

    /// Money was spent.
    pub(super) fn cost_recorded(&mut self, e: &CostRecorded) {
        self.cost.used_micros = self.cost.used_micros.saturating_add(e.micros);
        if let Some(below) = self.below(e.below.as_deref()) {
            below.micros = below.micros.saturating_add(e.micros);
        }
    }

    /// A budget was set; what it did not say stays.
    pub(super) fn budget_set(&mut self, e: &BudgetSet) {
        match e.unit {
            Unit::Tokens => {
                self.budget.total_budget = e.total;
                self.budget.hard = e.hard;
                self.budget.warn_percent = e.warn_percent;
                if let Some(count) = e.count {
                    self.budget.count_as(count, &self.tokens);
                }
                self.rearm();
            }
            Unit::Cost => {
                self.cost.limit_micros = Some(e.total);
                self.cost.hard = e.hard;
                self.cost.warn_percent = e.warn_percent;
                self.rearm();
            }
        }
    }

    /// More is allowed.
    pub(super) fn budget_extended(&mut self, e: &BudgetExtended) {
        match e.unit {
            Unit::Tokens => self.budget.extend(e.added),
            Unit::Cost => {
                let limit = self.cost.limit_micros;
                self.cost.limit_micros = limit.map(|limit| limit.saturating_add(e.added));
            }
        }
        self.rearm();
    }

    /// What a run below this session has used so far.
    fn below(&mut self, run: Option<&str>) -> Option<&mut BelowMark> {
        let run = run?;
        if self.below.len() >= limits::ENTRIES && !self.below.contains_key(run) {
            // Ids of runs sort by time: the oldest has ended long ago.
            self.below.pop_first();
        }
        Some(self.below.entry(run.to_owned()).or_default())
    }

    /// Tokens said by hand always count; those of a run count from the source that spoke first.
    fn counts_tokens(&mut self, mark: &Mark, source: Source) -> bool {
        let Some(run) = mark.run.as_ref().filter(|_| source != Source::Hand) else { return true };
        let known =
            self.token_source.iter().chain(&self.earlier_token_sources).find(|known| known.run == *run);
        if let Some(known) = known {
            return known.source == source;
        }
        if let Some(before) = self.token_source.replace(TokenSource { run: run.clone(), source }) {
            self.earlier_token_sources.push_back(before);
        }
        if self.earlier_token_sources.len() > limits::EARLIER_RUNS {
            self.earlier_token_sources.pop_front();
        }
        true
    }

    /// After a change of budgets a warning may be due again.
    fn rearm(&mut self) {
        self.warned.tokens &= self.budget.is_warning();
        self.warned.tokens_over &= self.budget.is_over();
        self.warned.cost &= self.cost.is_warning();
        self.warned.cost_over &= self.cost.is_over();
    }
}

/// A warning counts once, and only if the line was crossed: tokens that were heard of twice may have raised
/// it before anybody knew that they do not count.
pub(super) fn warn(given: &mut bool, crossed: bool) -> Applied {
    if *given || !crossed {
        return Applied::Repeated;
    }
    *given = true;
    Applied::Counted
}
