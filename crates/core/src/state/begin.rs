//! How a state begins: with a new session, or with one that comes from elsewhere.

use std::collections::BTreeSet;

use super::State;
use super::apply::FoldError;
use super::apply::Mark;
use super::apply::count;
use super::plan::step_of;
use crate::budget::CostBudget;
use crate::budget::TokenBudget;
use crate::event::Event;
use crate::event::JournalImported;
use crate::event::Maker;
use crate::event::SessionCreated;
use crate::limits;
use crate::status::Status;

impl State {
    /// The state after the first event.
    pub fn begin(mark: &Mark, event: &Event) -> Result<Self, FoldError> {
        if let Event::SessionCreated(created) = event {
            return Ok(Self::created(mark, created));
        }
        if let Event::SessionImported(imported) = event {
            return Ok(Self::imported(mark, &imported.state));
        }
        if let Event::Unknown(unknown) = event {
            return Err(FoldError::NoBeginning(format!("{} v{}", unknown.kind, unknown.version)));
        }
        Err(FoldError::NoBeginning(event.kind().to_owned()))
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
        state.questions.clear();
        let open: Vec<String> = state.calls.open.keys().cloned().collect();
        for call in open {
            state.calls.doubt(&call);
        }
        state.calls.total = state.calls.sum();
        // Nor does its agent run here.
        if let Some(run) = &mut state.run {
            run.elsewhere = true;
            run.ended_at = run.ended_at.or(Some(state.updated_at));
        }
        // These tell of events of the other journal.
        state.checkpoint = None;
        state.tree = Default::default();
        state.late = 0;
        state.unknown = 0;
        // Its plan names commands; only somebody here may say that they are to be run.
        state.looping = None;
        count(&mut state.counts.history);
        state
    }

    /// The journal goes on in another store. A driver of that store has no say here, and nobody here will hear how its
    /// calls ended.
    pub(super) fn arrive(&mut self, mark: &Mark, imported: &JournalImported) {
        self.session_id = imported.id;
        self.made_by = Maker::Import;
        self.budget = TokenBudget { tokens_used: self.budget.tokens_used, ..imported.budget };
        self.cost = CostBudget { used_micros: self.cost.used_micros, ..imported.cost };
        self.warned = Default::default();
        self.driver = None;
        self.requests.clear();
        self.questions.clear();
        // Its plan names commands; only somebody here may say that they are to be run.
        self.looping = None;
        let open: Vec<String> = self.calls.open.keys().cloned().collect();
        for call in open {
            self.calls.doubt(&call);
        }
        if let Some(run) = &mut self.run {
            run.elsewhere = true;
            run.ended_at = run.ended_at.or(Some(mark.at));
        }
        if self.project.path != imported.project.path {
            // Where that tree stood among the checkpoints says nothing of this one.
            self.tree = super::TreeMark { restores: self.tree.restores, ..Default::default() };
        }
        self.project = imported.project.clone();
    }

    fn created(mark: &Mark, created: &SessionCreated) -> Self {
        let (step, of) = step_of(created.workflow.as_ref(), created.phase.as_deref());
        Self {
            session_id: created.id,
            uid: created.uid,
            seq: mark.seq,
            made_by: created.made_by,
            tags: BTreeSet::new(),
            pinned: false,
            archived: false,
            topic: created.topic.clone(),
            intent: created.intent.as_ref().map(|intent| intent.short(limits::LINE)),
            project: created.project.clone(),
            continues: created.continues,
            cap_from: created
                .cap_from
                .map(|session| super::CapFrom { session, micros: created.cost.used_micros }),
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
            tokens_estimated: false,
            cost: created.cost,
            below: Default::default(),
            warned: Default::default(),
            unpriced: Default::default(),
            lately: Default::default(),
            token_source: None,
            earlier_token_sources: Default::default(),
            limits: Default::default(),
            metrics: Default::default(),
            phase_metrics: Default::default(),
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
            file: created.file.clone(),
            work_item: None,
            asked: None,
            recovery: None,
            looping: None,
            run: None,
            driver: None,
            requests: Vec::new(),
            questions: Vec::new(),
            late: 0,
            unknown: 0,
        }
    }
}
