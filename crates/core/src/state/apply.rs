//! The fold: one event into the state. It decides nothing and refuses nothing.

use super::AgentMark;
use super::Breakpoint;
use super::CheckpointMark;
use super::Driver;
use super::OpenRequest;
use super::OutputMark;
use super::Position;
use super::State;
use super::action::action;
use super::plan::step_of;
use super::used::warn;
use crate::event::Change;
use crate::event::Event;
use crate::event::LimitSeen;
use crate::event::MemoryUse;
use crate::event::Recovery;
use crate::event::SessionArranged;
use crate::event::Unit;
use crate::limits;
use crate::status::Status;
use crate::time::Timestamp;

/// How every brief begins.
pub const BRIEF_BEGINS: &str = "You are resuming work that was interrupted.";

/// Where an event stands in its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number, from 1.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The run it belongs to.
    pub run: Option<String>,
}

/// What folding an event in did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It counted.
    Counted,
    /// It said again what another source had said already.
    Repeated,
    /// It told better what another source had said.
    Corrected,
    /// This program does not know it.
    Skipped,
}

/// A journal that cannot be folded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The first event makes no session.
    #[error("the first event is {0}, which makes no session")]
    NoBeginning(String),
}

impl State {
    /// Folds one more event in.
    pub fn apply(&mut self, mark: &Mark, event: &Event) -> Applied {
        self.seq = mark.seq;
        let earliest = self.completed_at.unwrap_or(self.created_at).max(self.created_at);
        // Nothing happens in a session when its texts are forgotten, a checkpoint of it is cleared away or somebody tidies up: it
        // does not become the one that was used last.
        if !matches!(
            event,
            Event::TextsForgotten(_) | Event::CheckpointDropped(_) | Event::SessionArranged(_)
        ) {
            self.updated_at = changed_at(self.updated_at, mark.at).max(earliest);
        }
        let applied = self.fold(mark, event);
        if applied == Applied::Counted {
            if crate::project::is_history(event) {
                count(&mut self.counts.history);
            }
            if let Some(action) = action(event) {
                self.last_action = Some(action);
                // A change in a run that no call tells of was found by comparing files: what did it was counted before.
                if !matches!(event, Event::FileChanged(e) if e.call.is_none() && mark.run.is_some()) {
                    count(&mut self.actions_since_checkpoint);
                    count(&mut self.actions);
                }
            }
        }
        applied
    }

    fn arranged(&mut self, e: &SessionArranged) {
        if e.topic.is_some() {
            self.topic.clone_from(&e.topic);
        }
        self.tags.retain(|tag| !e.tags_removed.contains(tag));
        let room = limits::TAGS.saturating_sub(self.tags.len());
        self.tags.extend(e.tags_added.iter().take(room).cloned());
        self.pinned = e.pinned.unwrap_or(self.pinned);
        self.archived = e.archived.unwrap_or(self.archived);
    }

    fn fold(&mut self, mark: &Mark, event: &Event) -> Applied {
        match event {
            // A second beginning cannot come from us; keep what is there.
            Event::SessionCreated(_) | Event::SessionImported(_) => return Applied::Repeated,
            Event::ItemsImported(_) | Event::TextsForgotten(_) => {}
            Event::JournalImported(e) => self.arrive(mark, e),
            Event::SessionPaused(e) => {
                self.stop_at(mark.at, e.reason.as_str());
                self.stand(Status::Paused, mark, Some(e.reason.as_str()), e.details.as_ref())
            }
            Event::SessionResumed(e) => {
                self.stand(Status::Active, mark, None, None);
                self.archived = false;
                // Whoever only goes on takes what is there.
                if let Some(recovery) = self.recovery.as_mut().filter(|stop| stop.recovery_type.is_none()) {
                    recovery.recovery_type = Some(Recovery::Live);
                    recovery.recovered_at = Some(mark.at);
                }
                self.loop_goes_on(mark.at);
                if e.breaker_reset {
                    self.errors.in_a_row = 0;
                    self.loop_breaker_reset(mark);
                }
            }
            Event::SessionInterrupted(e) => {
                let at = e.at.map_or(mark.at, |at| at.clamp(self.created_at, mark.at.max(self.created_at)));
                self.stop_at(at, e.reason.as_str());
                self.stand(Status::Interrupted, mark, Some(e.reason.as_str()), e.details.as_ref());
                self.driver = None;
                self.questions.clear();
            }
            Event::SessionHalted(e) => {
                self.stop_at(mark.at, "circuit breaker");
                self.stand(Status::Halted, mark, Some("circuit breaker"), Some(&e.reason))
            }
            Event::SessionCompleted(e) => self.stand(Status::Completed, mark, None, e.summary.as_ref()),
            Event::SessionAborted(e) => self.stand(Status::Aborted, mark, None, e.reason.as_ref()),
            Event::SessionFailed(e) => self.stand(Status::Failed, mark, None, e.reason.as_ref()),
            Event::DriverAttached(e) => {
                self.driver = Some(Driver { epoch: e.epoch, holder: e.holder.clone(), since: mark.at });
            }
            Event::DriverDetached(e) => {
                if self.driver.as_ref().is_some_and(|driver| driver.epoch == e.epoch) {
                    self.driver = None;
                }
            }
            Event::RequestMade(e) => {
                if self.requests.len() < limits::ENTRIES {
                    let details = e.details.as_ref().map(|details| details.short(limits::LINE));
                    self.requests.push(OpenRequest { seq: mark.seq, request: e.request, details });
                }
            }
            Event::RequestAnswered(e) => self.requests.retain(|open| open.seq != e.request),
            Event::LateRecorded(_) => count(&mut self.late),
            Event::QuestionAsked(e) => self.question_asked(mark, e),
            Event::QuestionAnswered(e) => self.question_answered(e),
            Event::QuestionClosed(e) => self.questions.retain(|open| open.id != e.id),
            Event::TopicSet(e) => self.topic = Some(e.topic.clone()),
            Event::SessionArranged(e) => self.arranged(e),
            Event::IntentSet(e) => self.intent = Some(e.intent.short(limits::LINE)),
            Event::ProjectSet(e) => self.project = e.project.clone(),
            Event::GitBranchSet(e) => self.branch.clone_from(&e.branch),
            Event::WorkflowSet(e) => {
                (self.step, self.of) = step_of(Some(&e.workflow), self.phase.as_deref());
                self.workflow = Some(e.workflow.clone());
            }
            Event::PhaseAdvanced(e) => {
                self.leave_phase(e.from.as_deref(), &e.to);
                self.phase = Some(e.to.clone());
                self.phase_since = mark.at;
                (self.step, self.of) = (e.step, e.of);
                self.iteration = 0;
                self.attempt = 1;
                self.verification.clear();
                self.loop_phase_advanced(mark, e);
            }
            Event::StepSet(e) => (self.step, self.of) = (Some(e.step), e.of),
            Event::IterationStarted(e) => {
                self.iteration = e.iteration;
                self.loop_iteration_started(mark);
            }
            Event::AttemptStarted(e) => self.attempt = e.attempt,
            Event::PhaseVerified(e) => {
                let room = self.verification.len() < limits::ENTRIES;
                if e.phase == self.phase && (room || self.verification.contains_key(&e.check)) {
                    self.verification.insert(e.check.clone(), e.verdict);
                }
            }
            // Nothing is kept as nothing: a stored state reads `null` back as none.
            Event::WorkflowStateSet(e) => {
                self.workflow_state = Some(e.state.clone()).filter(|state| !state.is_null());
            }
            Event::ProgressSet(e) => self.progress_set = Some(e.percent),
            Event::TokensRecorded(e) => {
                if e.tokens.total() > 0 {
                    self.loop_got_through();
                }
                return self.tokens_recorded(mark, e);
            }
            Event::CostRecorded(e) => self.cost_recorded(mark, e),
            Event::BudgetSet(e) => self.budget_set(e),
            Event::BudgetExtended(e) => self.budget_extended(e),
            Event::BudgetWarned(e) => {
                return match e.unit {
                    Unit::Tokens => warn(&mut self.warned.tokens, self.budget.is_warning()),
                    Unit::Cost => warn(&mut self.warned.cost, self.cost.is_warning()),
                };
            }
            Event::BudgetExceeded(e) => {
                return match e.unit {
                    Unit::Tokens => warn(&mut self.warned.tokens_over, self.budget.is_over()),
                    Unit::Cost => warn(&mut self.warned.cost_over, self.cost.is_over()),
                };
            }
            Event::ArtifactRecorded(_) => count(&mut self.counts.artifacts),
            Event::FileChanged(e) => match e.change {
                Change::Created => count(&mut self.counts.files_created),
                Change::Modified => count(&mut self.counts.files_modified),
                Change::Deleted => count(&mut self.counts.files_deleted),
            },
            Event::HistoryNoted(_) => {}
            Event::OutputRecorded(e) => {
                self.outputs.insert(e.name.clone(), OutputMark { kind: e.kind, bytes: e.content.bytes() });
            }
            Event::MetricSet(e) => {
                self.metrics.insert(e.name.clone(), e.value);
                self.note_phase_metric(&e.name, e.value);
            }
            Event::TaskAdded(e) => {
                self.tasks.added = self.tasks.added.max(e.task);
                self.tasks.open.insert(e.task, e.text.short(limits::NAME));
            }
            Event::TaskEnded(e) => {
                if self.tasks.open.remove(&e.task).is_none() {
                    return Applied::Repeated;
                }
                if e.done {
                    count(&mut self.tasks.done);
                } else {
                    count(&mut self.tasks.dropped);
                }
            }
            Event::AgentSwitched(e) => {
                if let Some(mark) = e.from.as_ref().and_then(|from| self.agents.get_mut(from)) {
                    mark.active = false;
                }
                self.agents.entry(e.to.clone()).or_default().active = true;
                self.agent = Some(e.to.clone());
            }
            Event::AgentStateSet(e) => {
                let mark = AgentMark { active: e.active, state: e.state.clone() };
                self.agents.insert(e.agent.clone(), mark);
            }
            Event::PositionSet(e) => {
                self.position = e.file.clone().map(|file| Position { file, line: e.line });
            }
            Event::MilestoneReached(e) => {
                self.milestone = Some(e.name.clone());
                count(&mut self.counts.milestones);
            }
            Event::BreakpointReached(e) => {
                self.breakpoint = Some(Breakpoint { name: e.name.clone(), since: mark.at });
            }
            Event::BreakpointContinued(_) => self.breakpoint = None,
            Event::DecisionMade(e) => {
                self.decisions.count = self.decisions.count.max(e.decision);
                self.decisions.branch.clone_from(&e.branch);
                self.decisions.heads.insert(e.branch.clone(), e.decision);
            }
            Event::BranchSwitched(e) => {
                if let Some(from) = e.from {
                    self.decisions.heads.insert(e.branch.clone(), from);
                }
                self.decisions.branch.clone_from(&e.branch);
            }
            Event::ToolStarted(e) => {
                self.loop_got_through();
                return self.calls.begin(mark, e);
            }
            Event::ToolEnded(e) => {
                let applied = self.calls.end(e);
                if let Some(recovery) = &mut self.recovery
                    && applied == Applied::Counted
                    && e.evidence.is_some()
                {
                    count(&mut recovery.settled);
                }
                return applied;
            }
            Event::RecoveryChosen(e) => {
                if let Some(recovery) = &mut self.recovery {
                    recovery.offered.clone_from(&e.offered);
                    recovery.recovery_type = Some(e.recovery);
                    recovery.target.clone_from(&e.target);
                    recovery.recovered_at = Some(mark.at);
                    if !e.automatic {
                        recovery.attempts = 0;
                    }
                }
            }
            Event::ResumeAttempted(e) => {
                if let Some(recovery) = &mut self.recovery {
                    recovery.attempts = e.attempt;
                }
            }
            Event::MemoryUsed(e) => match e.usage {
                MemoryUse::Query => count(&mut self.counts.memory_queries),
                MemoryUse::Lookup => count(&mut self.counts.memory_lookups),
            },
            Event::CacheSet(e) => {
                self.cache.insert(e.key.clone(), e.value.clone());
            }
            Event::CacheRemoved(e) => {
                self.cache.remove(&e.key);
            }
            Event::ErrorRecorded(e) => {
                count(&mut self.errors.count);
                let same = self.errors.last.as_deref() == Some(&e.fingerprint);
                self.errors.in_a_row = if same { self.errors.in_a_row.saturating_add(1) } else { 1 };
                self.errors.last = Some(e.fingerprint.clone());
                self.errors.message = Some(e.message.short(limits::NAME));
            }
            Event::CheckpointCreated(e) => {
                self.counts.checkpoints = self.counts.checkpoints.max(e.ordinal);
                self.checkpoint = Some(CheckpointMark { id: e.id.clone(), seq: mark.seq, at: mark.at });
                self.actions_since_checkpoint = 0;
            }
            Event::CheckpointReady(e) if e.safety_only => {}
            Event::CheckpointReady(e) => {
                if let Some(snapshot) = &e.snapshot {
                    self.tree.at = Some(e.ordinal);
                    self.tree.tree = Some(snapshot.tree.clone());
                    if e.tree_changed {
                        self.tree.redo.clear();
                    }
                }
            }
            Event::CheckpointFailed(_)
            | Event::CheckpointPinned(_)
            | Event::CheckpointDropped(_)
            | Event::CheckpointsInvalidated(_) => {}
            Event::FilesRestored(e) => self.went(mark, e),
            Event::StateRestored(e) => self.take_plan_of(&e.state, mark),
            Event::RunStarted(e) => {
                self.archived = false;
                self.run_started(mark, e);
            }
            Event::RunNamed(e) => self.run_named(e),
            Event::RunAdopted(e) => {
                if let Some(run) = self.run.as_mut().filter(|run| run.id == e.run) {
                    run.adopted = Some(e.epoch);
                }
            }
            Event::RunEnded(e) => return self.run_ended(mark, e),
            Event::TurnCompleted(_) => {
                count(&mut self.counts.turns);
                if let Some(run) = self.run.as_mut().filter(|run| mark.run.as_ref() == Some(&run.id)) {
                    count(&mut run.turns);
                }
            }
            Event::LoopStarted(e) => self.loop_started(mark, e),
            Event::LoopBaselineTaken(e) => self.loop_baseline_taken(mark, e),
            Event::IterationEnded(e) => self.loop_iteration_ended(mark, e),
            Event::BreakerChanged(e) => self.breaker_changed(mark, e),
            Event::GateMeasured(e) => self.gate_measured(e),
            Event::GateAccepted(e) => self.gate_accepted(e),
            Event::GatePassed(e) => self.gate_passed(mark, e),
            Event::LoopParked(e) => self.loop_parked(mark, e),
            Event::LoopWoken(_) => self.loop_woken(mark.at),
            Event::OperatorNoted(e) => self.operator_noted(mark, e),
            Event::PhaseSkipped(e) => self.phase_skipped(e),
            Event::HandedOver(e) => self.handed_over(e),
            Event::ItemTaken(e) => self.item_taken(mark, e),
            Event::ItemEnded(e) => self.item_ended(mark, e),
            Event::QueueListed(e) => self.queue_listed(mark, e),
            Event::Reported(e) => {
                if let Some(seen) = LimitSeen::of_report(&e.what, &e.body) {
                    self.limit_seen(mark, &seen);
                }
            }
            Event::Said(_) => {}
            Event::Unknown(_) => {
                count(&mut self.unknown);
                return Applied::Skipped;
            }
        }
        Applied::Counted
    }
}

/// One more. What was imported may claim to have counted further than anybody can.
pub(super) fn count(n: &mut u64) {
    *n = n.saturating_add(1);
}

/// The moment of the last change. What is taken in late happened before it, and does not set it back; but a moment that
/// lies a day ahead of what is recorded now came from a clock that was wrong, and would stand there until that day.
fn changed_at(before: Timestamp, now: Timestamp) -> Timestamp {
    const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;
    if before.micros_since(now) > DAY_MICROS { now } else { before.max(now) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumped_does_not_stick() {
        let day = |n: i64| Timestamp::from_micros(1_767_225_600_000_000).plus_seconds(n * 86_400);
        assert_eq!(changed_at(day(0), day(1)), day(1));
        // Taken in late.
        assert_eq!(changed_at(day(1), day(0)), day(1));
        // The clock stood in another year, and was put right.
        assert_eq!(changed_at(day(900), day(2)), day(2));
    }
}
