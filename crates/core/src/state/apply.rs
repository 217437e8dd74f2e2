//! The fold: one event into the state. It decides nothing and refuses nothing.

use super::AgentMark;
use super::BelowMark;
use super::Breakpoint;
use super::CheckpointMark;
use super::Driver;
use super::LastKnown;
use super::OpenRequest;
use super::OutputMark;
use super::Position;
use super::Reason;
use super::RecoveryMark;
use super::RestoreMark;
use super::RunMark;
use super::State;
use super::TokenSource;
use crate::budget::CostBudget;
use crate::budget::TokenBudget;
use crate::event::Change;
use crate::event::Event;
use crate::event::FilesRestored;
use crate::event::JournalImported;
use crate::event::Maker;
use crate::event::MemoryUse;
use crate::event::Recovery;
use crate::event::RestoreKind;
use crate::event::SessionCreated;
use crate::event::Source;
use crate::event::Unit;
use crate::event::Verdict;
use crate::event::Workflow;
use crate::limits;
use crate::status::Status;
use crate::text::Text;
use crate::text::shorten;
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
    /// The state after the first event.
    pub fn begin(mark: &Mark, event: &Event) -> Result<Self, FoldError> {
        match event {
            Event::SessionCreated(created) => Ok(Self::created(mark, created)),
            Event::SessionImported(imported) => Ok(Self::imported(mark, &imported.state)),
            Event::Unknown(unknown) => {
                Err(FoldError::NoBeginning(format!("{} v{}", unknown.kind, unknown.version)))
            }
            other => Err(FoldError::NoBeginning(other.kind().to_owned())),
        }
    }

    /// What came from elsewhere may be odd: what must hold of every session holds of this one from here on.
    fn imported(mark: &Mark, there: &Self) -> Self {
        let mut state = there.clone();
        state.seq = mark.seq;
        state.updated_at = state.updated_at.max(state.created_at).max(mark.at);
        state.completed_at = state.status.is_terminal().then(|| {
            state.completed_at.unwrap_or(state.updated_at).clamp(state.created_at, state.updated_at)
        });
        state.budget.total_budget = state.budget.total_budget.max(1);
        // A driver of another store has no say here, and nobody here will hear how its calls ended.
        state.driver = None;
        state.requests.clear();
        let open: Vec<String> = state.calls.open.keys().cloned().collect();
        for call in open {
            state.calls.doubt(&call);
        }
        state.calls.total = state.calls.sum();
        // Nor does its agent run here.
        if let Some(run) = state.run.as_mut().filter(|run| run.is_running()) {
            run.ended_at = Some(state.updated_at);
        }
        // These tell of events of the other journal.
        state.checkpoint = None;
        state.tree = Default::default();
        state.late = 0;
        state.unknown = 0;
        count(&mut state.counts.history);
        state
    }

    /// The journal goes on in another store. A driver of that store has no say here, and nobody here will hear how its
    /// calls ended.
    fn arrive(&mut self, mark: &Mark, imported: &JournalImported) {
        self.session_id = imported.id;
        self.made_by = Maker::Import;
        self.budget = TokenBudget { tokens_used: self.budget.tokens_used, ..imported.budget };
        self.cost = CostBudget { used_micros: self.cost.used_micros, ..imported.cost };
        self.warned = Default::default();
        self.driver = None;
        self.requests.clear();
        let open: Vec<String> = self.calls.open.keys().cloned().collect();
        for call in open {
            self.calls.doubt(&call);
        }
        if let Some(run) = self.run.as_mut().filter(|run| run.is_running()) {
            run.ended_at = Some(mark.at);
        }
        if self.project.path != imported.project.path {
            // Where that tree stood among the checkpoints says nothing of this one.
            self.tree = super::TreeMark { restores: self.tree.restores, ..Default::default() };
        }
        self.project = imported.project.clone();
    }

    fn created(mark: &Mark, created: &SessionCreated) -> Self {
        let (step, of) = place(created.workflow.as_ref(), created.phase.as_deref());
        Self {
            session_id: created.id,
            uid: created.uid,
            seq: mark.seq,
            made_by: created.made_by,
            topic: created.topic.clone(),
            intent: created.intent.as_ref().map(|intent| intent.short(limits::LINE)),
            project: created.project.clone(),
            continues: created.continues,
            branch: None,
            status: Status::Active,
            reason: None,
            created_at: mark.at,
            updated_at: mark.at,
            completed_at: None,
            workflow: created.workflow.clone(),
            phase: created.phase.clone(),
            phase_since: mark.at,
            step,
            of,
            iteration: 0,
            attempt: 1,
            phases_completed: Vec::new(),
            verification: Default::default(),
            workflow_state: None,
            progress_set: None,
            budget: created.budget,
            tokens: Default::default(),
            cost: created.cost,
            below: Default::default(),
            warned: Default::default(),
            token_source: None,
            earlier_token_sources: Default::default(),
            metrics: Default::default(),
            outputs: Default::default(),
            tasks: Default::default(),
            agent: None,
            agents: Default::default(),
            position: None,
            milestone: None,
            breakpoint: None,
            decisions: Default::default(),
            calls: Default::default(),
            cache: Default::default(),
            errors: Default::default(),
            counts: super::Counts { history: 1, ..Default::default() },
            checkpoint: None,
            tree: Default::default(),
            actions_since_checkpoint: 0,
            actions: 0,
            last_action: None,
            file: None,
            work_item: None,
            asked: None,
            recovery: None,
            run: None,
            driver: None,
            requests: Vec::new(),
            late: 0,
            unknown: 0,
        }
    }

    /// Folds one more event in.
    pub fn apply(&mut self, mark: &Mark, event: &Event) -> Applied {
        self.seq = mark.seq;
        let earliest = self.completed_at.unwrap_or(self.created_at).max(self.created_at);
        self.updated_at = changed_at(self.updated_at, mark.at).max(earliest);
        let applied = self.fold(mark, event);
        if applied == Applied::Counted {
            if crate::project::is_history(event) {
                count(&mut self.counts.history);
            }
            if let Some(action) = action(event) {
                self.last_action = Some(action);
                count(&mut self.actions_since_checkpoint);
                count(&mut self.actions);
            }
        }
        applied
    }

    fn fold(&mut self, mark: &Mark, event: &Event) -> Applied {
        match event {
            // A second beginning cannot come from us; keep what is there.
            Event::SessionCreated(_) | Event::SessionImported(_) => return Applied::Repeated,
            Event::ItemsImported(_) => {}
            Event::JournalImported(e) => self.arrive(mark, e),
            Event::SessionPaused(e) => {
                self.stop_at(mark.at, e.reason.as_str());
                self.stand(Status::Paused, mark, Some(e.reason.as_str()), e.details.as_ref())
            }
            Event::SessionResumed(e) => {
                self.stand(Status::Active, mark, None, None);
                // Whoever only goes on takes what is there.
                if let Some(recovery) = self.recovery.as_mut().filter(|stop| stop.recovery_type.is_none()) {
                    recovery.recovery_type = Some(Recovery::Live);
                    recovery.recovered_at = Some(mark.at);
                }
                if e.breaker_reset {
                    self.errors.in_a_row = 0;
                }
            }
            Event::SessionInterrupted(e) => {
                let at = e.at.map_or(mark.at, |at| at.clamp(self.created_at, mark.at.max(self.created_at)));
                self.stop_at(at, e.reason.as_str());
                self.stand(Status::Interrupted, mark, Some(e.reason.as_str()), e.details.as_ref());
                self.driver = None;
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
            Event::TopicSet(e) => self.topic = Some(e.topic.clone()),
            Event::IntentSet(e) => self.intent = Some(e.intent.short(limits::LINE)),
            Event::ProjectSet(e) => self.project = e.project.clone(),
            Event::GitBranchSet(e) => self.branch.clone_from(&e.branch),
            Event::WorkflowSet(e) => {
                (self.step, self.of) = place(Some(&e.workflow), self.phase.as_deref());
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
            }
            Event::StepSet(e) => (self.step, self.of) = (Some(e.step), e.of),
            Event::IterationStarted(e) => self.iteration = e.iteration,
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
                if !self.counts_tokens(mark, e.source) {
                    return Applied::Repeated;
                }
                self.tokens = self.tokens.plus(&e.tokens);
                self.budget.record_usage(e.tokens.counted(self.budget.count));
                if let Some(below) = self.below(e.below.as_deref()) {
                    below.tokens = below.tokens.plus(&e.tokens);
                }
            }
            Event::CostRecorded(e) => {
                self.cost.used_micros = self.cost.used_micros.saturating_add(e.micros);
                if let Some(below) = self.below(e.below.as_deref()) {
                    below.micros = below.micros.saturating_add(e.micros);
                }
            }
            Event::BudgetSet(e) => match e.unit {
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
            },
            Event::BudgetExtended(e) => {
                match e.unit {
                    Unit::Tokens => self.budget.extend(e.added),
                    Unit::Cost => {
                        let limit = self.cost.limit_micros;
                        self.cost.limit_micros = limit.map(|limit| limit.saturating_add(e.added));
                    }
                }
                self.rearm();
            }
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
            Event::ToolStarted(e) => return self.calls.begin(mark, e),
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
            Event::CheckpointReady(e) if e.aside => {}
            Event::CheckpointReady(e) => {
                if let Some(snapshot) = &e.snapshot {
                    self.tree.at = Some(e.ordinal);
                    self.tree.tree = Some(snapshot.tree.clone());
                    if e.moved {
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
                count(&mut self.counts.runs);
                self.calls.next_run();
                if e.file.is_some() {
                    self.file.clone_from(&e.file);
                }
                if e.work_item.is_some() {
                    self.work_item.clone_from(&e.work_item);
                }
                // Older programs did not say that a prompt was a brief; its first words do.
                let tells_only = e.briefed
                    || e.prompt.as_ref().is_some_and(|prompt| prompt.excerpt().starts_with(BRIEF_BEGINS));
                if e.prompt.is_some() && !tells_only {
                    self.asked = Some(mark.seq);
                }
                if self.agent.is_none() {
                    self.agents.entry(e.agent.clone()).or_default().active = true;
                    self.agent = Some(e.agent.clone());
                }
                self.run = Some(RunMark {
                    id: e.run.clone(),
                    agent: e.agent.clone(),
                    version: e.version.clone(),
                    model: None,
                    native_id: e.native_id.clone(),
                    pid: e.pid,
                    process_start: e.process_start,
                    adopted: None,
                    ledger: e.ledger,
                    directory: e.directory.clone(),
                    interactive: e.interactive,
                    seq: mark.seq,
                    started_at: mark.at,
                    ended_at: None,
                    outcome: None,
                    turns: 0,
                    below: e.below,
                    before: BelowMark { tokens: self.tokens, micros: self.cost.used_micros },
                });
            }
            Event::RunNamed(e) => {
                if let Some(run) = self.run.as_mut().filter(|run| run.id == e.run) {
                    run.native_id = Some(e.native_id.clone());
                    run.model = e.model.clone().or(run.model.take());
                    run.version = e.version.clone().or(run.version.take());
                }
            }
            Event::RunAdopted(e) => {
                if let Some(run) = self.run.as_mut().filter(|run| run.id == e.run) {
                    run.adopted = Some(e.epoch);
                }
            }
            Event::RunEnded(e) => {
                let run = self.run.as_mut().filter(|run| run.id == e.run && run.is_running());
                let Some(run) = run else { return Applied::Repeated };
                let last = mark.at.max(run.started_at);
                run.ended_at = Some(e.at.map_or(last, |at| at.clamp(run.started_at, last)));
                run.outcome = Some(e.outcome.clone());
                if e.native_id.is_some() {
                    run.native_id.clone_from(&e.native_id);
                }
            }
            Event::TurnCompleted(_) => {
                count(&mut self.counts.turns);
                if let Some(run) = self.run.as_mut().filter(|run| mark.run.as_ref() == Some(&run.id)) {
                    count(&mut run.turns);
                }
            }
            Event::Said(_) | Event::Reported(_) => {}
            Event::Unknown(_) => {
                count(&mut self.unknown);
                return Applied::Skipped;
            }
        }
        Applied::Counted
    }

    fn stand(&mut self, status: Status, mark: &Mark, what: Option<&str>, details: Option<&Text>) {
        self.status = status;
        let details = details.map(|text| text.short(limits::NAME));
        self.reason = match (what, details) {
            (None, None) => None,
            (what, details) => Some(Reason { what: what.unwrap_or("").to_owned(), details }),
        };
        if status.is_terminal() {
            self.completed_at = Some(mark.at.max(self.created_at));
            self.driver = None;
            self.requests.clear();
        }
    }

    /// Work stopped in a way that it can be taken up after. How often that was tried counts on until somebody asks.
    fn stop_at(&mut self, at: Timestamp, reason: &str) {
        let attempts = self.recovery.as_ref().map_or(0, |before| before.attempts);
        self.recovery = Some(Box::new(RecoveryMark {
            interrupted_at: at,
            interrupt_reason: reason.to_owned(),
            last_known_state: LastKnown {
                phase: self.phase.clone(),
                step: self.step,
                iteration: self.iteration,
                agent: self.run.as_ref().map(|run| run.agent.clone()).or_else(|| self.agent.clone()),
                action: self.last_action.clone(),
                error: self.errors.message.clone(),
            },
            in_doubt: (self.calls.in_doubt.len() + self.calls.open.len()) as u64,
            settled: 0,
            offered: Vec::new(),
            recovery_type: None,
            target: None,
            recovered_at: None,
            attempts,
        }));
    }

    /// A phase that is left forward is done, unless a check of it failed. Whoever goes back has what they go back to,
    /// and all after it, before them again.
    fn leave_phase(&mut self, from: Option<&str>, to: &str) {
        let place = |phase: &str| {
            let declared = self
                .workflow
                .as_ref()
                .and_then(|workflow| workflow.phases.iter().position(|known| known == phase));
            declared.or_else(|| self.phases_completed.iter().position(|done| done == phase))
        };
        let declared = self.workflow.as_ref().is_some_and(|workflow| !workflow.phases.is_empty());
        let back = match (from.and_then(place), place(to)) {
            (Some(from), Some(to)) if declared => to < from,
            // Without a list, a phase that was done before is one that is gone back to.
            (_, to) => !declared && to.is_some(),
        };
        if back {
            let ahead = place(to).unwrap_or(0);
            let still: Vec<String> = self
                .phases_completed
                .iter()
                .filter(|done| place(done).is_some_and(|at| at < ahead))
                .cloned()
                .collect();
            self.phases_completed = still;
            return;
        }
        let failed = self.verification.values().any(|verdict| *verdict == Verdict::Fail);
        if let Some(left) = from.filter(|_| !failed)
            && !self.phases_completed.iter().any(|done| done == left)
            && self.phases_completed.len() < limits::PHASES
        {
            self.phases_completed.push(left.to_owned());
        }
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

    /// The tree was brought to a checkpoint, wholly or in part.
    fn went(&mut self, mark: &Mark, restored: &FilesRestored) {
        count(&mut self.tree.restores);
        if self.tree.restored.len() >= limits::RESTORES {
            self.tree.restored.pop_front();
        }
        let FilesRestored { to, kind, whole, .. } = *restored;
        self.tree.restored.push_back(RestoreMark { to, seq: mark.seq, at: mark.at, kind, whole });
        if !restored.whole {
            return;
        }
        match (restored.kind, self.tree.at) {
            (RestoreKind::Undo, Some(at)) => {
                if self.tree.redo.len() >= limits::ENTRIES {
                    self.tree.redo.remove(0);
                }
                self.tree.redo.push(at);
            }
            (RestoreKind::Redo, _) => {
                self.tree.redo.pop();
            }
            _ => self.tree.redo.clear(),
        }
        self.tree.at = Some(restored.to);
        // What was kept makes it another tree than the checkpoint's; the next snapshot tells.
        self.tree.tree = None;
    }

    /// Plan and values are those of an earlier state. What was used, counted and recorded since stays.
    fn take_plan_of(&mut self, then: &Self, mark: &Mark) {
        self.workflow.clone_from(&then.workflow);
        self.phase.clone_from(&then.phase);
        self.phase_since = mark.at;
        (self.step, self.of) = (then.step, then.of);
        (self.iteration, self.attempt) = (then.iteration, then.attempt.max(1));
        self.phases_completed.clone_from(&then.phases_completed);
        self.verification.clone_from(&then.verification);
        self.workflow_state.clone_from(&then.workflow_state);
        self.progress_set = then.progress_set;
        self.metrics.clone_from(&then.metrics);
        self.position.clone_from(&then.position);
        self.milestone.clone_from(&then.milestone);
        self.breakpoint.clone_from(&then.breakpoint);
        self.outputs.clone_from(&then.outputs);
        self.agent.clone_from(&then.agent);
        for (name, agent) in &mut self.agents {
            agent.active = then.agents.get(name).is_some_and(|before| before.active);
        }
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

/// One more. What was imported may claim to have counted further than anybody can.
pub(super) fn count(n: &mut u64) {
    *n = n.saturating_add(1);
}

/// A warning counts once, and only if the line was crossed: tokens that were heard of twice may have raised
/// it before anybody knew that they do not count.
fn warn(given: &mut bool, crossed: bool) -> Applied {
    if *given || !crossed {
        return Applied::Repeated;
    }
    *given = true;
    Applied::Counted
}

/// The number of a phase among the workflow's, and how many there are.
pub(crate) fn place(workflow: Option<&Workflow>, phase: Option<&str>) -> (Option<u32>, Option<u32>) {
    let Some(workflow) = workflow.filter(|workflow| !workflow.phases.is_empty()) else { return (None, None) };
    let of = u32::try_from(workflow.phases.len()).ok();
    let step = phase
        .and_then(|phase| workflow.phases.iter().position(|known| known == phase))
        .and_then(|index| u32::try_from(index + 1).ok());
    (step, of)
}

/// What was done, in words, if the event is something that was done.
fn action(event: &Event) -> Option<String> {
    let text = match event {
        Event::ToolStarted(e) => {
            let subject = crate::call::subject(&e.input).replace(['\n', '\r', '\t'], " ");
            format!("{} {}", e.tool, shorten(&subject, 80)).trim_end().to_owned()
        }
        Event::FileChanged(e) => format!("{} {}", e.change.as_str(), e.path),
        Event::ArtifactRecorded(e) => format!("{} {}", e.artifact_type.as_str(), e.path),
        Event::OutputRecorded(e) => format!("output {}", e.name),
        Event::TaskEnded(e) => format!("task {} {}", e.task, if e.done { "done" } else { "dropped" }),
        Event::DecisionMade(e) => format!("decided: {}", e.choice.short(80)),
        Event::MilestoneReached(e) => format!("milestone {}", e.name),
        Event::PhaseAdvanced(e) => format!("phase {}", e.to),
        Event::HistoryNoted(e) => e.action.clone(),
        _ => return None,
    };
    Some(shorten(&text, limits::NAME))
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
