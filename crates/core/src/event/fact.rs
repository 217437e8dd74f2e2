//! Facts: events that only say what happened.

use super::Event;

/// An event that only says what happened, and that nobody could refuse. A command may be refused; what follows from it is
/// an event, and only some events are facts.
///
/// A fact may wait in a file until a store can take it. Such a file is believed less than the journal, for nobody
/// decided on it: so a fact never starts, ends or drives anything, raises a budget, or says what files and checkpoints
/// are. Whoever takes a `Fact` need not ask again.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact(Event);

impl Fact {
    /// The event as a fact, if it is one.
    pub fn new(event: Event) -> Option<Self> {
        event.is_fact().then_some(Self(event))
    }

    /// The event.
    pub fn into_event(self) -> Event {
        self.0
    }
}

impl Event {
    /// Whether it only says what happened.
    fn is_fact(&self) -> bool {
        match self {
            Self::DriverDetached(_)
            | Self::TopicSet(_)
            | Self::TokensRecorded(_)
            | Self::CostRecorded(_)
            | Self::BudgetWarned(_)
            | Self::BudgetExceeded(_)
            | Self::FileChanged(_)
            | Self::HistoryNoted(_)
            | Self::ToolStarted(_)
            | Self::ToolEnded(_)
            | Self::MemoryUsed(_)
            | Self::ErrorRecorded(_)
            | Self::CheckpointPinned(_)
            | Self::RunNamed(_)
            | Self::Said(_)
            | Self::TurnCompleted(_)
            | Self::Reported(_)
            | Self::RecoveryChosen(_)
            | Self::ResumeAttempted(_) => true,
            Self::SessionCreated(_)
            | Self::SessionImported(_)
            | Self::ItemsImported(_)
            | Self::JournalImported(_)
            | Self::TextsForgotten(_)
            | Self::SessionPaused(_)
            | Self::SessionResumed(_)
            | Self::SessionInterrupted(_)
            | Self::SessionHalted(_)
            | Self::SessionCompleted(_)
            | Self::SessionAborted(_)
            | Self::SessionFailed(_)
            | Self::DriverAttached(_)
            | Self::RequestMade(_)
            | Self::RequestAnswered(_)
            | Self::LateRecorded(_)
            | Self::IntentSet(_)
            | Self::ProjectSet(_)
            | Self::GitBranchSet(_)
            | Self::WorkflowSet(_)
            | Self::PhaseAdvanced(_)
            | Self::StepSet(_)
            | Self::IterationStarted(_)
            | Self::AttemptStarted(_)
            | Self::PhaseVerified(_)
            | Self::WorkflowStateSet(_)
            | Self::ProgressSet(_)
            | Self::BudgetSet(_)
            | Self::BudgetExtended(_)
            | Self::ArtifactRecorded(_)
            | Self::OutputRecorded(_)
            | Self::MetricSet(_)
            | Self::TaskAdded(_)
            | Self::TaskEnded(_)
            | Self::AgentSwitched(_)
            | Self::AgentStateSet(_)
            | Self::PositionSet(_)
            | Self::MilestoneReached(_)
            | Self::BreakpointReached(_)
            | Self::BreakpointContinued(_)
            | Self::DecisionMade(_)
            | Self::BranchSwitched(_)
            | Self::CacheSet(_)
            | Self::CacheRemoved(_)
            | Self::CheckpointCreated(_)
            | Self::CheckpointReady(_)
            | Self::CheckpointFailed(_)
            | Self::CheckpointDropped(_)
            | Self::CheckpointsInvalidated(_)
            | Self::FilesRestored(_)
            | Self::StateRestored(_)
            | Self::RunStarted(_)
            | Self::RunAdopted(_)
            | Self::RunEnded(_)
            | Self::LoopStarted(_)
            | Self::LoopBaselineTaken(_)
            | Self::IterationEnded(_)
            | Self::BreakerChanged(_)
            | Self::GateMeasured(_)
            | Self::GateAccepted(_)
            | Self::GatePassed(_)
            | Self::LoopParked(_)
            | Self::LoopWoken(_)
            | Self::OperatorNoted(_)
            | Self::PhaseSkipped(_)
            | Self::HandedOver(_)
            | Self::ItemTaken(_)
            | Self::ItemEnded(_)
            | Self::Unknown(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::samples::samples;

    #[test]
    fn a_fact_is_the_event_it_was_made_of() {
        let facts: Vec<Event> = samples().into_iter().filter_map(Fact::new).map(Fact::into_event).collect();
        let events: Vec<Event> = samples().into_iter().filter(Event::is_fact).collect();
        assert_eq!(facts, events);
        let kinds: std::collections::BTreeSet<&str> = facts.iter().map(Event::kind).collect();
        assert_eq!(kinds.len(), 19);
    }
}
