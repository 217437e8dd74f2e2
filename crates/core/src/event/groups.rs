//! Events by what follows from them beside the state itself. Whoever matches on all events names these groups, so that an
//! event stands in one list and not in four; the compiler still asks for one that is in none.

/// Events that are a line of the history, and change no row of another list.
macro_rules! history_only {
    () => {
        Event::SessionCreated(_)
            | Event::SessionImported(_)
            | Event::TextsForgotten(_)
            | Event::SessionPaused(_)
            | Event::SessionResumed(_)
            | Event::SessionInterrupted(_)
            | Event::SessionHalted(_)
            | Event::SessionCompleted(_)
            | Event::SessionAborted(_)
            | Event::SessionFailed(_)
            | Event::GitBranchSet(_)
            | Event::WorkflowSet(_)
            | Event::AttemptStarted(_)
            | Event::BudgetSet(_)
            | Event::BudgetExtended(_)
            | Event::BudgetWarned(_)
            | Event::BudgetExceeded(_)
            | Event::FilesRestored(_)
            | Event::StateRestored(_)
            | Event::RunAdopted(_)
            | Event::RecoveryChosen(_)
            | Event::ResumeAttempted(_)
            | Event::LoopStarted(_)
            | Event::IterationEnded(_)
            | Event::BreakerChanged(_)
            | Event::GateAccepted(_)
            | Event::GatePassed(_)
            | Event::LoopParked(_)
            | Event::LoopWoken(_)
            | Event::OperatorNoted(_)
            | Event::PhaseSkipped(_)
            | Event::HandedOver(_)
            | Event::ItemTaken(_)
            | Event::ItemEnded(_)
    };
}

/// Events that change present values and nothing that is listed.
macro_rules! state_only {
    () => {
        Event::RequestMade(_)
            | Event::RequestAnswered(_)
            | Event::TopicSet(_)
            | Event::SessionArranged(_)
            | Event::IntentSet(_)
            | Event::ProjectSet(_)
            | Event::StepSet(_)
            | Event::IterationStarted(_)
            | Event::WorkflowStateSet(_)
            | Event::ProgressSet(_)
            | Event::MetricSet(_)
            | Event::AgentStateSet(_)
            | Event::PositionSet(_)
            | Event::BranchSwitched(_)
            | Event::CacheSet(_)
            | Event::CacheRemoved(_)
            | Event::TurnCompleted(_)
            | Event::LoopBaselineTaken(_)
            | Event::GateMeasured(_)
            | Event::QueueListed(_)
    };
}

/// Events that go by: counts, words, heartbeats, and what a newer program wrote.
macro_rules! passing {
    () => {
        Event::DriverAttached(_)
            | Event::DriverDetached(_)
            | Event::LateRecorded(_)
            | Event::TokensRecorded(_)
            | Event::Said(_)
            | Event::Reported(_)
            | Event::Unknown(_)
    };
}

/// Events that change a row of a list other than the history.
macro_rules! row_only {
    () => {
        Event::ItemsImported(_)
            | Event::TaskAdded(_)
            | Event::ToolEnded(_)
            | Event::MemoryUsed(_)
            | Event::CheckpointPinned(_)
            | Event::CheckpointDropped(_)
            | Event::RunNamed(_)
    };
}

pub(crate) use history_only;
pub(crate) use passing;
pub(crate) use row_only;
pub(crate) use state_only;
