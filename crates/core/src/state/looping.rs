//! What the events of a loop do to it.

use super::State;
use super::apply::Mark;
use super::apply::count;
use super::loop_state::push;
use crate::event as ev;
use crate::limits;
use crate::looping::Acceptance;
use crate::looping::BaselineMark;
use crate::looping::Breaker;
use crate::looping::BreakerState;
use crate::looping::LoopPlan;
use crate::looping::LoopState;
use crate::looping::Note;
use crate::looping::ParkReason;
use crate::looping::Parked;
use crate::looping::PhaseEnd;
use crate::looping::PhaseStand;
use crate::looping::QueueListing;
use crate::status::Status;
use crate::text::shorten;
use crate::time::Timestamp;

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
        // What halted it holds no longer; it stands still until somebody resumes it.
        if e.to == BreakerState::Closed
            && self.status == Status::Halted
            && let Some(reason) = &mut self.reason
        {
            reason.details = Some("closed again; resume goes on".to_owned());
        }
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
            let mut result = e.result.clone().bounded();
            if e.by_hand {
                // Nobody asked the agent then: what it said in its last iteration is still what it said.
                result.gate_2 = state.gate.as_ref().map_or(result.gate_2, |before| before.gate_2);
                result.can_exit = result.gate_1 && result.gate_2.unwrap_or(true);
            }
            state.gate = Some(result);
            // A measurement by hand is only a look.
            if !e.by_hand {
                state.accepted = state.accepted.take().and_then(Acceptance::after_measurement);
            }
        }
    }

    pub(super) fn gate_accepted(&mut self, e: &ev::GateAccepted) {
        let Some(state) = &mut self.looping else { return };
        if state.phase == e.phase {
            state.accept_changes(&e.conditions);
            let because = e.because.short(limits::LOOP_TEXT);
            let mut marks = state.accepted.take().map(|before| before.marks).unwrap_or_default();
            if let Some(gate) = &mut state.gate {
                let open = gate.conditions.iter_mut().filter(|one| !one.holds && one.acceptable);
                for condition in open.filter(|one| e.conditions.contains(&one.name)) {
                    marks.extend(condition.mark.clone().map(|mark| (condition.name.clone(), mark)));
                    condition.accept(&because);
                }
                gate.gate_1 = gate.conditions.iter().all(|one| one.holds);
            }
            state.accepted = Some(Acceptance {
                tree: e.tree.clone(),
                conditions: e.conditions.iter().take(limits::CONDITIONS).cloned().collect(),
                marks,
                because,
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
        // The last one is never left for another.
        if !self.phases_completed.contains(&e.phase) && self.phases_completed.len() < limits::PHASES {
            self.phases_completed.push(e.phase.clone());
        }
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
