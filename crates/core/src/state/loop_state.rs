//! How each part of a loop's state changes, below what its events do to the session.

use super::apply::Mark;
use super::apply::count;
use crate::event as ev;
use crate::limits;
use crate::looping::Acceptance;
use crate::looping::Breaker;
use crate::looping::BreakerChange;
use crate::looping::BreakerState;
use crate::looping::GateRule;
use crate::looping::HourWindow;
use crate::looping::ItemStand;
use crate::looping::LimitClass;
use crate::looping::LoopState;
use crate::looping::LoopVerdict;
use crate::looping::PhaseEnd;
use crate::looping::PhaseStand;
use crate::looping::Recent;
use crate::text::shorten;
use crate::time::Timestamp;

/// An hour, in microseconds.
const HOUR_MICROS: u64 = 3_600_000_000;

impl LoopState {
    pub(super) fn begin(at: Timestamp, e: &ev::LoopStarted, phase: String, phases: Vec<PhaseStand>) -> Self {
        Self {
            plan: (*e.plan).clone(),
            parent: e.parent,
            item: e.item.clone(),
            started_at: at,
            phase,
            phases,
            total: 0,
            open: false,
            agent: None,
            tokens: 0,
            micros: 0,
            unpriced: 0,
            parked_seconds: 0,
            breaker: Default::default(),
            breaker_changes: Default::default(),
            progress: Default::default(),
            gate: None,
            verdict: None,
            line: None,
            last: None,
            tests: None,
            new_tests: 0,
            metrics: Default::default(),
            open_items: None,
            green_runs: 0,
            promised: 0,
            baseline: None,
            first: None,
            accepted: None,
            skip: false,
            replanned: false,
            passed: false,
            recent: Default::default(),
            notes: Default::default(),
            told: 0,
            context_percent: None,
            parked: None,
            tries: None,
            windows_waited: 0,
            waited_for: None,
            limited: Default::default(),
            backoffs: 0,
            hour: e.plan.hour,
            items: Default::default(),
            items_done: 0,
            listed: None,
        }
    }

    /// What measures, as it is now, is what the next measurements are compared with: a person looked at it.
    pub(super) fn accept_changes(&mut self, conditions: &[String]) {
        let Some((gate, baseline)) = self.gate.as_ref().zip(self.baseline.as_mut()) else { return };
        let marked = |name: &str| {
            let one =
                gate.conditions.iter().find(|one| one.name == name && conditions.contains(&one.name))?;
            one.mark.clone()
        };
        for mark in &mut baseline.evidence {
            if let Some(hash) = marked(&crate::looping::evidence_condition(&mark.name)) {
                mark.command_hash = hash;
            }
            if let Some(hash) = marked(&crate::looping::settings_condition(&mark.name)) {
                mark.settings_hash = hash;
            }
        }
        if let Some(hash) = marked(crate::looping::PROTECTED) {
            baseline.protected = Some(hash);
        }
    }

    /// The present phase is left; how, the newest verdict says.
    pub(super) fn leave(&mut self, at: Timestamp) {
        let back = matches!(self.verdict, Some(LoopVerdict::BackTo { .. }));
        let skip = self.skip;
        let phase = self.phase.clone();
        if let Some(stand) = self.stand_mut(&phase).filter(|stand| stand.end.is_none()) {
            stand.ended_at = Some(at);
            // Without a gate it was skipped, also if somebody moved the session by hand.
            stand.end = Some(if back && !skip { PhaseEnd::SentBack } else { PhaseEnd::Skipped });
        }
    }

    /// A phase begins: what was counted and measured in the one before says nothing of it.
    pub(super) fn enter(&mut self, at: Timestamp, phase: &str) {
        phase.clone_into(&mut self.phase);
        let sent_back = matches!(&self.verdict, Some(LoopVerdict::BackTo { phase: to, .. }) if to == phase);
        if let Some(stand) = self.stand_mut(phase) {
            stand.started_at = Some(at);
            (stand.ended_at, stand.end, stand.parked_seconds) = (None, None, 0);
            stand.sent_back = stand.sent_back.saturating_add(u32::from(sent_back));
        }
        let before = self.breaker.state;
        self.breaker = Breaker::default();
        self.note_breaker(at, before, "another phase began");
        (self.gate, self.tests, self.accepted) = (None, None, None);
        // Whoever sent it back may have changed what measures it: that is compared with what there was before the review.
        if !sent_back {
            self.baseline = None;
        }
        (self.open, self.skip, self.passed) = (false, false, false);
        (self.green_runs, self.new_tests) = (0, 0);
        self.metrics.clear();
    }

    pub(super) fn iteration_ended(&mut self, mark: &Mark, e: &ev::IterationEnded) {
        let seen = (*e.observation).clone().bounded();
        let counts = seen.end.counts();
        self.open = false;
        self.accepted = self.accepted.take().and_then(Acceptance::after_measurement);
        self.tries = None;
        self.spent(&e.phase, &seen);
        if counts {
            count(&mut self.total);
            let phase = e.phase.clone();
            if let Some(stand) = self.stand_mut(&phase) {
                count(&mut stand.iterations);
            }
            self.context_percent = seen.context_percent;
            let told = self.told;
            self.notes.retain(|note| note.seq > told);
            (self.backoffs, self.windows_waited, self.waited_for) = (0, 0, None);
            let recent = Recent {
                iteration: self.total,
                phase,
                tests: seen.tests.as_ref().map(|tests| (tests.passed, tests.total)),
                spend: seen.spend(),
                tree: seen.tree_after.clone(),
                progress: e.progress.made,
                committed: seen.commits > 0,
            };
            push(&mut self.recent, recent, limits::LOOP_RECENT);
        }
        self.met_limit(e, &seen, mark.at);
        if e.phase == self.phase {
            self.measured(e, &seen);
        }
        let before = self.breaker.state;
        self.breaker = (*e.breaker).clone().bounded();
        self.note_breaker(mark.at, before, &e.line);
        self.progress = e.progress.clone().bounded();
        self.verdict = Some(e.verdict.clone());
        self.line = Some(shorten(&e.line, limits::LOOP_TEXT));
        self.last = Some(Box::new(seen));
    }

    /// Remembers whose limit it is and until when.
    pub(super) fn met_limit(
        &mut self,
        e: &ev::IterationEnded,
        seen: &crate::looping::Observation,
        at: Timestamp,
    ) {
        if matches!(e.verdict, LoopVerdict::BackOff { .. }) {
            self.backoffs = self.backoffs.saturating_add(1);
        }
        let Some(limit) = seen.limit.as_ref().filter(|limit| limit.class == LimitClass::Plan) else { return };
        if matches!(e.verdict, LoopVerdict::Park { .. }) {
            self.waited_for = limit.until.or(self.waited_for);
        }
        let until = limit.until.unwrap_or_else(|| at.plus_seconds(crate::looping::UNKNOWN_WAIT));
        if let Some(agent) = &e.agent {
            self.limited.retain(|_, until| *until > at);
            self.limit_agent(agent, until);
        }
    }

    pub(super) fn limit_agent(&mut self, agent: &str, until: Timestamp) {
        let agent = shorten(agent, limits::NAME);
        if self.limited.len() < limits::LOOP_NAMES || self.limited.contains_key(&agent) {
            self.limited.insert(agent, until);
        }
    }

    /// Keeps what was measured, for the next iteration to be compared with.
    pub(super) fn measured(&mut self, e: &ev::IterationEnded, seen: &crate::looping::Observation) {
        self.gate = Some(e.gate.clone().bounded());
        self.green_runs = e.gate.runs;
        if let Some(tests) = &seen.tests {
            self.tests = Some(tests.clone());
            let new = seen.changes.new_failing.count.saturating_add(seen.changes.new_passing.count);
            self.new_tests = new;
        }
        for (name, value) in &seen.metrics {
            if self.metrics.len() < limits::PHASE_METRICS || self.metrics.contains_key(name) {
                self.metrics.insert(name.clone(), *value);
            }
        }
        self.open_items = seen.open_items.or(self.open_items);
        let red = self.phase_plan().is_some_and(|plan| matches!(plan.gate, GateRule::Red { .. }));
        if red && e.gate.can_exit {
            self.promised = seen.changes.new_failing.count.max(1);
        }
    }

    pub(super) fn spent(&mut self, phase: &str, seen: &crate::looping::Observation) {
        self.tokens = self.tokens.saturating_add(seen.tokens);
        self.micros = self.micros.saturating_add(seen.micros.unwrap_or(0));
        if seen.micros.is_none() && seen.tokens > 0 {
            count(&mut self.unpriced);
        }
        self.hour.tokens = self.hour.tokens.saturating_add(seen.tokens);
        if let Some(stand) = self.stand_mut(phase) {
            stand.tokens = stand.tokens.saturating_add(seen.tokens);
            stand.micros = stand.micros.saturating_add(seen.micros.unwrap_or(0));
        }
    }

    pub(super) fn note_breaker(&mut self, at: Timestamp, from: BreakerState, reason: &str) {
        let to = self.breaker.state;
        if from != to {
            let opened = self.breaker.reason.as_deref().filter(|_| to == BreakerState::Open);
            let reason = shorten(opened.unwrap_or(reason), limits::NAME);
            let change = BreakerChange { at, iteration: self.total, from, to, reason };
            push(&mut self.breaker_changes, change, limits::BREAKER_CHANGES);
        }
    }

    /// The place of an item; when all are taken, one that is done makes room.
    pub(super) fn item_stand(&mut self, item: &ev::WorkItemMark) -> Option<&mut ItemStand> {
        let id = shorten(&item.id, limits::NAME);
        if !self.items.contains_key(&id) && self.items.len() >= limits::LOOP_ITEMS {
            let done = |stand: &ItemStand| matches!(stand.end, Some(ev::ItemEnd::Done));
            let gone = self.items.iter().find(|(_, stand)| done(stand)).map(|(id, _)| id.clone())?;
            self.items.remove(&gone);
        }
        let stand = self.items.entry(id).or_default();
        stand.title = shorten(&item.title, limits::NAME);
        Some(stand)
    }
}

impl HourWindow {
    /// The window that holds at this moment: this one, or a new one. A window from the future came from a wrong clock.
    pub(crate) fn at(self, now: Timestamp) -> Self {
        match self.start {
            Some(start) if start <= now && now.micros_since(start) < HOUR_MICROS => self,
            Some(_) | None => Self { start: Some(now), calls: 0, tokens: 0 },
        }
    }
}

pub(super) fn push<T>(list: &mut std::collections::VecDeque<T>, item: T, most: usize) {
    while list.len() >= most {
        list.pop_front();
    }
    list.push_back(item);
}
