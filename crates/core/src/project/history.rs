//! The history: what happened, in lines for people.

use super::Changes;
use crate::event::Event;
use crate::event::RestoreKind;
use crate::event::Unit;
use crate::event::passing;
use crate::event::row_only;
use crate::event::state_only;
use crate::limits;
use crate::rows::HistoryPatch;
use crate::text::Text;

impl Changes<'_> {
    /// The line of an event that has one.
    pub(super) fn history(&mut self, event: &Event) {
        let Some((action, details)) = line(event) else { return };
        // A journal that came from elsewhere is counted as a line, and has none of its own.
        if matches!(event, Event::JournalImported(_)) {
            return;
        }
        let noted = if let Event::HistoryNoted(e) = event { e.phase.clone() } else { None };
        let phase = noted.or_else(|| self.state.phase.clone());
        self.log(&HistoryPatch {
            timestamp: Some(Some(self.mark.at)),
            action: Some(action),
            phase: Some(phase),
            details: Some(details),
        });
    }
}

/// Whether an event is a line of the history.
pub fn is_history(event: &Event) -> bool {
    line(event).is_some()
}

/// An event as a line of the history: its action, and more about it.
fn line(event: &Event) -> Option<(String, Option<Text>)> {
    let (action, details) = match event {
        Event::SessionCreated(e) => ("session_created", e.topic.as_deref().map(Text::from)),
        Event::SessionImported(e) => ("session_imported", said(e.source.as_str())),
        Event::JournalImported(e) => ("session_imported", said(e.source.as_str())),
        Event::TextsForgotten(e) => {
            ("texts_forgotten", said(format!("{} event(s)", e.events.len()).as_str()))
        }
        Event::SessionPaused(e) => ("session_paused", e.details.clone().or_else(|| said(e.reason.as_str()))),
        Event::SessionResumed(e) if e.breaker_reset => ("session_resumed", said("breaker reset")),
        Event::SessionResumed(e) => ("session_resumed", e.details.clone()),
        Event::SessionInterrupted(e) => ("session_interrupted", said(e.reason.as_str())),
        Event::SessionHalted(e) => ("session_halted", said(e.reason.clone())),
        Event::SessionCompleted(e) => ("session_completed", e.summary.clone()),
        Event::SessionAborted(e) => ("session_aborted", e.reason.clone()),
        Event::SessionFailed(e) => ("session_failed", e.reason.clone()),
        Event::PhaseAdvanced(e) => {
            let details = match &e.from {
                Some(from) => format!("from {from} to {}", e.to),
                None => format!("to {}", e.to),
            };
            ("phase_advanced", said(details))
        }
        Event::WorkflowSet(e) => ("workflow_set", said(e.workflow.name.as_str())),
        Event::AttemptStarted(e) => ("attempt_started", said(format!("attempt {}", e.attempt))),
        Event::PhaseVerified(e) => ("phase_verified", said(format!("{}: {}", e.check, e.verdict.as_str()))),
        Event::BudgetSet(e) => (
            "budget_set",
            said(format!("{} {}{}", e.total, unit(e.unit), if e.hard { ", hard" } else { "" })),
        ),
        Event::BudgetExtended(e) => ("budget_extended", said(format!("added {} {}", e.added, unit(e.unit)))),
        Event::BudgetWarned(e) => {
            ("budget_warning", said(format!("{} of {} {}", e.used, e.total, unit(e.unit))))
        }
        Event::BudgetExceeded(e) => {
            ("budget_exceeded", said(format!("{} of {} {}", e.used, e.total, unit(e.unit))))
        }
        Event::AgentSwitched(e) => ("agent_switched", said(e.to.as_str())),
        Event::RunStarted(e) => {
            let version = e.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
            ("run_started", said(format!("{}{version}, ledger {}", e.agent, e.ledger.as_str())))
        }
        Event::CheckpointFailed(e) => ("checkpoint_failed", said(e.why.short(limits::NAME))),
        Event::CheckpointsInvalidated(e) => {
            ("checkpoints_invalidated", said(format!("{} to {}", e.after + 1, e.up_to)))
        }
        Event::FilesRestored(e) => {
            let what = format!(
                "to checkpoint {}: {} written, {} removed, {} left as they are",
                e.to, e.written, e.removed, e.kept
            );
            (restore_word(e.kind), said(what))
        }
        Event::StateRestored(e) => ("state_restored", said(format!("from checkpoint {}", e.to))),
        Event::RunAdopted(_) => ("run_adopted", None),
        Event::RunEnded(e) => ("run_ended", said(format!("{}: {}", e.outcome, e.reason.short(limits::NAME)))),
        Event::RecoveryChosen(e) => {
            let target = e.target.as_deref().map_or(String::new(), |target| format!(" {target}"));
            let how = if e.automatic { ", by itself" } else { "" };
            ("recovery_chosen", said(format!("{}{target}{how}", e.recovery.as_str())))
        }
        Event::ResumeAttempted(e) => {
            let why = e.why.short(limits::NAME);
            ("resume_attempted", said(format!("attempt {} of {}: {why}", e.attempt, e.of)))
        }
        Event::LoopStarted(e) => ("loop_started", said(e.plan.workflow.as_str())),
        Event::IterationEnded(e) => ("iteration_ended", said(e.line.as_str())),
        Event::BreakerChanged(e) => {
            ("breaker_changed", said(format!("{} to {}: {}", e.from.as_str(), e.to.as_str(), e.reason)))
        }
        Event::GateAccepted(e) => ("gate_accepted", said(e.because.short(limits::NAME))),
        Event::GatePassed(e) => ("gate_passed", said(e.phase.as_str())),
        Event::LoopParked(e) => ("loop_parked", said(e.words.as_str())),
        Event::LoopWoken(e) => ("loop_woken", said(e.how.as_str())),
        Event::OperatorNoted(e) => ("operator_noted", said(e.text.short(limits::NAME))),
        Event::PhaseSkipped(e) => ("phase_skipped", said(format!("{}, by {}", e.phase, e.by))),
        Event::HandedOver(e) => ("handed_over", said(format!("to {}: {}", e.to_agent, e.why))),
        Event::ItemTaken(e) => ("item_taken", said(format!("{} {}", e.item.id, e.item.title))),
        Event::ItemEnded(e) => ("item_ended", said(format!("{} {}", e.item.id, e.end.as_str()))),
        // Older ones have no such line.
        Event::ErrorRecorded(e) if !e.history => return None,
        Event::ErrorRecorded(e) => ("error_recorded", said(e.message.short(limits::NAME))),
        Event::GitBranchSet(e) => ("git_branch_set", e.branch.as_deref().map(Text::from)),
        Event::MilestoneReached(e) => ("milestone_reached", said(e.name.as_str())),
        Event::BreakpointReached(e) => ("breakpoint_reached", said(e.name.as_str())),
        Event::BreakpointContinued(e) => ("breakpoint_continued", said(e.name.as_str())),
        Event::CheckpointCreated(e) => ("checkpoint", said(e.id.to_string())),
        Event::HistoryNoted(e) => return Some((e.action.clone(), e.details.clone())),
        state_only!()
        | passing!()
        | row_only!()
        | Event::CostRecorded(_)
        | Event::FileChanged(_)
        | Event::ToolStarted(_)
        | Event::QuestionAsked(_)
        | Event::QuestionAnswered(_)
        | Event::QuestionClosed(_)
        | Event::ArtifactRecorded(_)
        | Event::OutputRecorded(_)
        | Event::TaskEnded(_)
        | Event::DecisionMade(_)
        | Event::CheckpointReady(_) => return None,
    };
    Some((action.to_owned(), details))
}

fn restore_word(kind: RestoreKind) -> &'static str {
    match kind {
        RestoreKind::Restore => "files_restored",
        RestoreKind::Rollback => "rolled_back",
        RestoreKind::Undo => "undone",
        RestoreKind::Redo => "redone",
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Tokens => "tokens",
        Unit::Cost => "micro-dollars",
    }
}

fn said(text: impl Into<Text>) -> Option<Text> {
    Some(text.into())
}
