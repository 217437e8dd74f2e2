//! What was done last, in words.

use crate::event::Event;
use crate::limits;
use crate::text::shorten;

/// What was done, in words, if the event is something that was done.
pub(super) fn action(event: &Event) -> Option<String> {
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
        Event::DriverDetached(_)
        | Event::TopicSet(_)
        | Event::TokensRecorded(_)
        | Event::CostRecorded(_)
        | Event::BudgetWarned(_)
        | Event::BudgetExceeded(_)
        | Event::ToolEnded(_)
        | Event::MemoryUsed(_)
        | Event::ErrorRecorded(_)
        | Event::CheckpointPinned(_)
        | Event::RunNamed(_)
        | Event::Said(_)
        | Event::TurnCompleted(_)
        | Event::Reported(_)
        | Event::RecoveryChosen(_)
        | Event::ResumeAttempted(_)
        | Event::SessionCreated(_)
        | Event::SessionImported(_)
        | Event::ItemsImported(_)
        | Event::JournalImported(_)
        | Event::TextsForgotten(_)
        | Event::SessionPaused(_)
        | Event::SessionResumed(_)
        | Event::SessionInterrupted(_)
        | Event::SessionHalted(_)
        | Event::SessionCompleted(_)
        | Event::SessionAborted(_)
        | Event::SessionFailed(_)
        | Event::DriverAttached(_)
        | Event::RequestMade(_)
        | Event::RequestAnswered(_)
        | Event::LateRecorded(_)
        | Event::IntentSet(_)
        | Event::ProjectSet(_)
        | Event::GitBranchSet(_)
        | Event::WorkflowSet(_)
        | Event::StepSet(_)
        | Event::IterationStarted(_)
        | Event::AttemptStarted(_)
        | Event::PhaseVerified(_)
        | Event::WorkflowStateSet(_)
        | Event::ProgressSet(_)
        | Event::BudgetSet(_)
        | Event::BudgetExtended(_)
        | Event::MetricSet(_)
        | Event::TaskAdded(_)
        | Event::AgentSwitched(_)
        | Event::AgentStateSet(_)
        | Event::PositionSet(_)
        | Event::BreakpointReached(_)
        | Event::BreakpointContinued(_)
        | Event::BranchSwitched(_)
        | Event::CacheSet(_)
        | Event::CacheRemoved(_)
        | Event::CheckpointCreated(_)
        | Event::CheckpointReady(_)
        | Event::CheckpointFailed(_)
        | Event::CheckpointDropped(_)
        | Event::CheckpointsInvalidated(_)
        | Event::FilesRestored(_)
        | Event::StateRestored(_)
        | Event::RunStarted(_)
        | Event::RunAdopted(_)
        | Event::RunEnded(_)
        | Event::LoopStarted(_)
        | Event::LoopBaselineTaken(_)
        | Event::IterationEnded(_)
        | Event::BreakerChanged(_)
        | Event::GateMeasured(_)
        | Event::GateAccepted(_)
        | Event::GatePassed(_)
        | Event::LoopParked(_)
        | Event::LoopWoken(_)
        | Event::OperatorNoted(_)
        | Event::PhaseSkipped(_)
        | Event::HandedOver(_)
        | Event::ItemTaken(_)
        | Event::ItemEnded(_)
        | Event::QueueListed(_)
        | Event::Unknown(_) => return None,
    };
    Some(shorten(&text, limits::NAME))
}
