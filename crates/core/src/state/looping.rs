//! What the events of a loop do to it.

use super::State;
use super::apply::Mark;
use super::apply::count;
use crate::event as ev;
use crate::limits;
use crate::looping::Acceptance;
use crate::looping::BaselineMark;
use crate::looping::Breaker;
use crate::looping::BreakerChange;
use crate::looping::BreakerState;
use crate::looping::GateRule;
use crate::looping::HourWindow;
use crate::looping::ItemStand;
use crate::looping::LimitClass;
use crate::looping::LoopPlan;
use crate::looping::LoopState;
use crate::looping::LoopVerdict;
use crate::looping::Note;
use crate::looping::ParkReason;
use crate::looping::Parked;
use crate::looping::PhaseEnd;
use crate::looping::PhaseStand;
use crate::looping::QueueListing;
use crate::looping::Recent;
use crate::text::shorten;
use crate::time::Timestamp;

/// An hour, in microseconds.
const HOUR_MICROS: u64 = 3_600_000_000;

impl State {
    /// Whether the breaker that halted it still holds: a loop's own tells, any other session is halted until it is reset.
    pub fn breaker_holds(&self) -> bool {
        self.looping.as_ref().is_none_or(|looping| looping.breaker.state == BreakerState::Open)
    }

    /// A loop begins, or goes on by another plan. What it has done so far stays.
    pub(super) fn loop_started(&mut self, mark: &Mark, e: &ev::LoopStarted) {
        let known = self.phase.as_ref().filter(|phase| e.plan.phase(phase).is_some());
        let first = e.plan.phases.first().map(|phase| phase.name.clone()).unwrap_or_default();
        let phase = known.cloned().unwrap_or(first);
        let before = self.looping.take();
        let stands = e.plan.phases.iter().take(limits::LOOP_PHASES).map(|plan| {
            let earlier = before.as_ref().and_then(|l| l.phases.iter().find(|stand| stand.name == plan.name));
            let mut stand = earlier
                .cloned()
                .unwrap_or_else(|| PhaseStand { name: plan.name.clone(), ..PhaseStand::default() });
            if plan.name == phase && stand.started_at.is_none() {
                stand.started_at = Some(mark.at);
            }
            stand
        });
        let phases = stands.collect();
        self.looping = Some(Box::new(match before {
            Some(mut before) => {
                // What is measured by other commands is measured anew.
                let evidence = |plan: &LoopPlan| plan.phase(&phase).map(|phase| phase.evidence.clone());
                if evidence(&before.plan) != evidence(&e.plan) {
                    (before.baseline, before.gate, before.tests, before.green_runs) = (None, None, None, 0);
                }
                LoopState {
                    replanned: before.replanned || before.breaker.state == BreakerState::Open,
                    plan: (*e.plan).clone(),
                    parent: e.parent.or(before.parent),
                    item: e.item.clone().or_else(|| before.item.clone()),
                    phase,
                    phases,
                    ..*before
                }
            }
            None => LoopState::begin(mark.at, e, phase, phases),
        }));
    }

    pub(super) fn loop_phase_advanced(&mut self, mark: &Mark, e: &ev::PhaseAdvanced) {
        let Some(state) = &mut self.looping else { return };
        state.leave(mark.at);
        state.enter(mark.at, &e.to);
    }

    pub(super) fn loop_iteration_started(&mut self, mark: &Mark) {
        let Some(state) = &mut self.looping else { return };
        state.open = true;
        state.told = mark.seq;
        state.hour = state.hour.at(mark.at);
        count(&mut state.hour.calls);
    }

    pub(super) fn loop_iteration_ended(&mut self, mark: &Mark, e: &ev::IterationEnded) {
        if !e.observation.end.counts() {
            // The next one has the same number.
            self.iteration = self.iteration.min(e.iteration.saturating_sub(1));
        }
        if let Some(state) = &mut self.looping {
            state.iteration_ended(mark, e);
        }
    }

    pub(super) fn loop_baseline_taken(&mut self, mark: &Mark, e: &ev::LoopBaselineTaken) {
        let Some(state) = &mut self.looping else { return };
        let mut evidence: Vec<_> = e.evidence.iter().take(limits::EVIDENCE).cloned().collect();
        evidence.iter_mut().for_each(crate::looping::EvidenceMark::bound);
        let baseline = BaselineMark {
            seq: mark.seq,
            phase: e.phase.clone(),
            tree: e.tree.clone(),
            tests: e.tests.clone(),
            named: !e.names.is_empty(),
            evidence,
            protected: e.protected.as_ref().map(|mark| shorten(&mark.hash, limits::NAME)),
        };
        state.first.get_or_insert_with(|| baseline.clone());
        if state.phase == e.phase {
            state.tests = Some(e.tests.clone()).filter(|tests| tests.total > 0 || tests.build_failed);
            state.baseline = Some(baseline);
        }
    }

    pub(super) fn breaker_changed(&mut self, mark: &Mark, e: &ev::BreakerChanged) {
        let Some(state) = &mut self.looping else { return };
        let before = state.breaker.state;
        state.replanned = false;
        match e.to {
            BreakerState::Closed => state.breaker = Breaker::default(),
            // What was counted stays: one more iteration without progress opens it again.
            BreakerState::HalfOpen => {
                state.breaker.state = BreakerState::HalfOpen;
                state.breaker.probing = before == BreakerState::Open;
            }
            BreakerState::Open => {
                state.breaker.state = BreakerState::Open;
                state.breaker.opened_at = Some(mark.at);
                state.breaker.reason = Some(shorten(&e.reason, limits::LOOP_TEXT));
            }
        }
        state.note_breaker(mark.at, before, &e.reason);
    }

    pub(super) fn loop_breaker_reset(&mut self, mark: &Mark) {
        let Some(state) = &mut self.looping else { return };
        let before = state.breaker.state;
        state.replanned = false;
        state.breaker = Breaker::default();
        state.note_breaker(mark.at, before, "reset by a person");
    }

    pub(super) fn gate_measured(&mut self, e: &ev::GateMeasured) {
        let Some(state) = &mut self.looping else { return };
        if state.phase == e.phase {
            state.gate = Some(e.result.clone().bounded());
            // What was accepted holds for one measurement. One by hand is only a look.
            if !e.by_hand {
                state.accepted = None;
            }
        }
    }

    pub(super) fn gate_accepted(&mut self, e: &ev::GateAccepted) {
        let Some(state) = &mut self.looping else { return };
        if state.phase == e.phase {
            state.accept_changes(&e.conditions);
            state.accepted = Some(Acceptance {
                tree: e.tree.clone(),
                conditions: e.conditions.iter().take(limits::CONDITIONS).cloned().collect(),
                because: e.because.short(limits::LOOP_TEXT),
            });
        }
    }

    pub(super) fn gate_passed(&mut self, mark: &Mark, e: &ev::GatePassed) {
        let Some(state) = &mut self.looping else { return };
        if let Some(stand) = state.stand_mut(&e.phase) {
            stand.receipt = Some(mark.seq);
            stand.end = Some(PhaseEnd::Passed);
            stand.ended_at = Some(mark.at);
        }
        state.passed |= state.phase == e.phase;
    }

    pub(super) fn loop_parked(&mut self, mark: &Mark, e: &ev::LoopParked) {
        let Some(state) = &mut self.looping else { return };
        let since = state.parked.as_ref().map_or(mark.at, |before| before.since);
        state.tries = None;
        if e.class == ParkReason::Plan {
            state.windows_waited = e.windows_waited;
        }
        state.parked = Some(Parked {
            since,
            until: e.until,
            class: e.class,
            account: e.account.as_deref().map(|text| shorten(text, limits::NAME)),
            window: e.window.as_deref().map(|text| shorten(text, limits::NAME)),
            words: shorten(&e.words, limits::LOOP_TEXT),
        });
    }

    /// It goes on after a wait. Whether the account that it waited for is open again, nobody knows yet.
    pub(super) fn loop_woken(&mut self, at: Timestamp) {
        if let Some(state) = &mut self.looping {
            let parked = state.parked.as_ref().filter(|parked| parked.class == ParkReason::Plan);
            state.tries = parked.and_then(|parked| parked.account.clone());
        }
        self.loop_goes_on(at);
    }

    /// The model answered: the account is open.
    pub(super) fn loop_got_through(&mut self) {
        if let Some(state) = &mut self.looping {
            state.tries = None;
        }
    }

    /// It waits no more, whoever says so.
    pub(super) fn loop_goes_on(&mut self, at: Timestamp) {
        let Some(state) = &mut self.looping else { return };
        let Some(parked) = state.parked.take() else { return };
        let seconds = at.micros_since(parked.since) / 1_000_000;
        state.parked_seconds = state.parked_seconds.saturating_add(seconds);
        let phase = state.phase.clone();
        if let Some(stand) = state.stand_mut(&phase) {
            stand.parked_seconds = stand.parked_seconds.saturating_add(seconds);
        }
    }

    pub(super) fn operator_noted(&mut self, mark: &Mark, e: &ev::OperatorNoted) {
        let Some(state) = &mut self.looping else { return };
        push(
            &mut state.notes,
            Note { seq: mark.seq, text: e.text.short(limits::LOOP_TEXT) },
            limits::LOOP_NOTES,
        );
    }

    pub(super) fn phase_skipped(&mut self, e: &ev::PhaseSkipped) {
        let Some(state) = &mut self.looping else { return };
        state.skip |= state.phase == e.phase;
    }

    pub(super) fn handed_over(&mut self, e: &ev::HandedOver) {
        let Some(state) = &mut self.looping else { return };
        if let (Some(from), Some(until)) = (&e.from_agent, e.until) {
            state.limit_agent(from, until);
        }
        state.agent = Some(shorten(&e.to_agent, limits::NAME));
        state.tries = None;
        // Another account, and another one's conversation.
        (state.backoffs, state.windows_waited) = (0, 0);
        state.context_percent = None;
    }

    pub(super) fn item_taken(&mut self, mark: &Mark, e: &ev::ItemTaken) {
        let Some(state) = &mut self.looping else { return };
        let Some(stand) = state.item_stand(&e.item) else { return };
        if e.follow_up {
            stand.followed_up = true;
            stand.follow_up = e.session.or(stand.follow_up);
            return;
        }
        if stand.end.take().is_some() {
            // It is begun anew, in a session of its own.
            (stand.session, stand.followed_up, stand.follow_up) = (None, false, None);
        }
        stand.session = e.session.or(stand.session);
        stand.group = e.group.clone().or(stand.group.take());
        stand.failures = e.failures.unwrap_or(stand.failures);
        (stand.retry_at, stand.at) = (None, Some(mark.at));
    }

    pub(super) fn item_ended(&mut self, mark: &Mark, e: &ev::ItemEnded) {
        let Some(state) = &mut self.looping else { return };
        if e.end == ev::ItemEnd::Done {
            count(&mut state.items_done);
        }
        if !e.used.is_nothing() {
            state.total = state.total.saturating_add(e.used.iterations);
            state.tokens = state.tokens.saturating_add(e.used.tokens);
            state.micros = state.micros.saturating_add(e.used.micros);
            state.hour = e.used.hour;
        }
        let Some(stand) = state.item_stand(&e.item) else { return };
        stand.failures = e.failures;
        stand.end = Some(e.end);
        stand.retry_at = e.retry_at;
        stand.at = Some(mark.at);
        stand.why = shorten(&e.why, limits::LOOP_TEXT);
        stand.used = stand.used.and(e.used);
    }

    pub(super) fn queue_listed(&mut self, mark: &Mark, e: &ev::QueueListed) {
        let Some(state) = &mut self.looping else { return };
        let fit = |item: &ev::WorkItemMark| ev::WorkItemMark {
            id: shorten(&item.id, limits::NAME),
            title: shorten(&item.title, limits::NAME),
        };
        state.listed = Some(QueueListing {
            at: mark.at,
            ready: e.ready.iter().take(limits::LISTED_ITEMS).map(fit).collect(),
            total: e.total,
            skipped: e.skipped,
        });
    }
}

impl LoopState {
    fn begin(at: Timestamp, e: &ev::LoopStarted, phase: String, phases: Vec<PhaseStand>) -> Self {
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
    fn accept_changes(&mut self, conditions: &[String]) {
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
    fn leave(&mut self, at: Timestamp) {
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
        (self.gate, self.tests, self.baseline, self.accepted) = (None, None, None, None);
        (self.open, self.skip, self.passed) = (false, false, false);
        (self.green_runs, self.new_tests) = (0, 0);
        self.metrics.clear();
    }

    fn iteration_ended(&mut self, mark: &Mark, e: &ev::IterationEnded) {
        let seen = (*e.observation).clone().bounded();
        let counts = seen.end.counts();
        self.open = false;
        self.accepted = None;
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
    fn met_limit(&mut self, e: &ev::IterationEnded, seen: &crate::looping::Observation, at: Timestamp) {
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

    fn limit_agent(&mut self, agent: &str, until: Timestamp) {
        let agent = shorten(agent, limits::NAME);
        if self.limited.len() < limits::LOOP_NAMES || self.limited.contains_key(&agent) {
            self.limited.insert(agent, until);
        }
    }

    /// Keeps what was measured, for the next iteration to be compared with.
    fn measured(&mut self, e: &ev::IterationEnded, seen: &crate::looping::Observation) {
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

    fn spent(&mut self, phase: &str, seen: &crate::looping::Observation) {
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

    fn note_breaker(&mut self, at: Timestamp, from: BreakerState, reason: &str) {
        let to = self.breaker.state;
        if from != to {
            let opened = self.breaker.reason.as_deref().filter(|_| to == BreakerState::Open);
            let reason = shorten(opened.unwrap_or(reason), limits::NAME);
            let change = BreakerChange { at, iteration: self.total, from, to, reason };
            push(&mut self.breaker_changes, change, limits::BREAKER_CHANGES);
        }
    }

    /// The place of an item; when all are taken, one that is done makes room.
    fn item_stand(&mut self, item: &ev::WorkItemMark) -> Option<&mut ItemStand> {
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

fn push<T>(list: &mut std::collections::VecDeque<T>, item: T, most: usize) {
    while list.len() >= most {
        list.pop_front();
    }
    list.push_back(item);
}
