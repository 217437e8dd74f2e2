//! The live state: what is under way right now. Every event is durable when it happens, so the newest event is the
//! newest save, and its kind says what the save was for.

use serde::Deserialize;
use serde::Serialize;

use crate::event::CheckpointReason;
use crate::event::Event;

/// What made the newest save.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaveTrigger {
    /// Time went by: counts, words, heartbeats.
    Auto,
    /// Something was done: a call, a file, a change of phase.
    Action,
    /// A sign to go back to.
    Checkpoint,
    /// Work waits for somebody.
    Breakpoint,
    /// Another agent took over.
    AgentSwitch,
}

impl SaveTrigger {
    /// What an event was a save for.
    pub fn of(event: &Event) -> Self {
        match event {
            Event::CheckpointCreated(e) if e.reason == CheckpointReason::AgentSwitch => Self::AgentSwitch,
            Event::CheckpointCreated(e) if e.reason == CheckpointReason::Breakpoint => Self::Breakpoint,
            Event::CheckpointCreated(_) | Event::CheckpointReady(_) | Event::CheckpointFailed(_) => {
                Self::Checkpoint
            }
            Event::BreakpointReached(_) | Event::BreakpointContinued(_) => Self::Breakpoint,
            Event::AgentSwitched(_) => Self::AgentSwitch,
            Event::TokensRecorded(_)
            | Event::CostRecorded(_)
            | Event::Said(_)
            | Event::Reported(_)
            | Event::DriverAttached(_)
            | Event::DriverDetached(_)
            | Event::LateRecorded(_)
            | Event::Unknown(_) => Self::Auto,
            Event::TopicSet(_)
            | Event::BudgetWarned(_)
            | Event::BudgetExceeded(_)
            | Event::FileChanged(_)
            | Event::HistoryNoted(_)
            | Event::ToolStarted(_)
            | Event::ToolEnded(_)
            | Event::MemoryUsed(_)
            | Event::ErrorRecorded(_)
            | Event::CheckpointPinned(_)
            | Event::RunNamed(_)
            | Event::TurnCompleted(_)
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
            | Event::RequestMade(_)
            | Event::RequestAnswered(_)
            | Event::IntentSet(_)
            | Event::ProjectSet(_)
            | Event::GitBranchSet(_)
            | Event::WorkflowSet(_)
            | Event::PhaseAdvanced(_)
            | Event::StepSet(_)
            | Event::IterationStarted(_)
            | Event::AttemptStarted(_)
            | Event::PhaseVerified(_)
            | Event::WorkflowStateSet(_)
            | Event::ProgressSet(_)
            | Event::BudgetSet(_)
            | Event::BudgetExtended(_)
            | Event::ArtifactRecorded(_)
            | Event::OutputRecorded(_)
            | Event::MetricSet(_)
            | Event::TaskAdded(_)
            | Event::TaskEnded(_)
            | Event::AgentStateSet(_)
            | Event::PositionSet(_)
            | Event::MilestoneReached(_)
            | Event::DecisionMade(_)
            | Event::BranchSwitched(_)
            | Event::CacheSet(_)
            | Event::CacheRemoved(_)
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
            | Event::QueueListed(_) => Self::Action,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::AgentSwitched;
    use crate::event::DriverDetached;
    use crate::event::MilestoneReached;

    #[test]
    fn the_newest_event_says_what_the_save_was_for() {
        let switched = AgentSwitched { from: None, to: "b".into() }.into();
        let done = MilestoneReached { name: "m".into(), details: None }.into();
        let told = [SaveTrigger::of(&switched), SaveTrigger::of(&done)];
        assert_eq!(told, [SaveTrigger::AgentSwitch, SaveTrigger::Action]);
        assert_eq!(SaveTrigger::of(&DriverDetached { epoch: 1 }.into()), SaveTrigger::Auto);
    }
}
