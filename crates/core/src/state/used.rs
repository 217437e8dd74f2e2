//! What was used, counted once, and the warnings about it.

use super::BelowMark;
use super::RunMark;
use super::State;
use super::TokenSource;
use super::apply::Applied;
use super::apply::Mark;
use crate::budget::TokenUse;
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
        if e.below.is_none() {
            self.lately.add_tokens(mark.at, &e.tokens);
        }
        if let Some(run) = self.of_newest_run(mark, e.source) {
            run.unpriced = run.unpriced.plus(&e.tokens);
        }
        if let Some(below) = self.below(e.below.as_deref()) {
            below.tokens = below.tokens.plus(&e.tokens);
        }
        Applied::Counted
    }

    /// Money was spent.
    pub(super) fn cost_recorded(&mut self, mark: &Mark, e: &CostRecorded) {
        match &e.list {
            Some(list) if list.earlier => drop(self.unpriced.remove(&list.model)),
            Some(_) => {
                if let Some(run) = &mut self.run {
                    run.unpriced = TokenUse::default();
                    run.list_micros = run.list_micros.saturating_add(e.micros);
                }
            }
            // The agent's own word counts instead of what was reckoned.
            None if e.below.is_none() => {
                let reckoned = self.of_newest_run(mark, e.source).map_or(0, |run| {
                    run.unpriced = TokenUse::default();
                    std::mem::take(&mut run.list_micros)
                });
                self.cost.used_micros = self.cost.used_micros.saturating_sub(reckoned);
                self.lately.take_back(reckoned);
            }
            None => {}
        }
        self.cost.used_micros = self.cost.used_micros.saturating_add(e.micros);
        if e.below.is_none() {
            self.lately.add_money(mark.at, e.micros);
        }
        if let Some(below) = self.below(e.below.as_deref()) {
            below.micros = below.micros.saturating_add(e.micros);
        }
    }

    /// The newest run, if this is about what it used.
    fn of_newest_run(&mut self, mark: &Mark, source: Source) -> Option<&mut RunMark> {
        let run = self.run.as_mut().filter(|_| source != Source::Hand)?;
        (mark.run.as_ref() == Some(&run.id)).then_some(run)
    }

    /// Another run begins: what nobody can price of the one before is kept by its model.
    pub(super) fn keep_unpriced(&mut self) {
        let Some(run) = self.run.as_ref().filter(|run| run.unpriced.total() > 0) else { return };
        let (tokens, named) = (run.unpriced, run.model.clone());
        let known = |model: &String| self.unpriced.contains_key(model);
        let room = self.unpriced.len() < limits::UNPRICED;
        let model = named.filter(|model| room || known(model)).unwrap_or_else(|| "?".to_owned());
        let sum = self.unpriced.entry(model).or_default();
        *sum = sum.plus(&tokens);
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
