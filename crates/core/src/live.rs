//! The live state: what is under way right now. Every event is durable when it happens, so the newest event is the
//! newest save, and its kind says what the save was for.

use serde::Deserialize;
use serde::Serialize;

use crate::event::CheckpointReason;
use crate::event::Event;
use crate::event::history_only;
use crate::event::passing;
use crate::event::row_only;
use crate::event::state_only;

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
            Event::BreakpointReached(_) | Event::BreakpointContinued(_) | Event::QuestionAsked(_) => {
                Self::Breakpoint
            }
            Event::AgentSwitched(_) => Self::AgentSwitch,
            passing!() | Event::CostRecorded(_) => Self::Auto,
            history_only!()
            | state_only!()
            | row_only!()
            | Event::FileChanged(_)
            | Event::HistoryNoted(_)
            | Event::ToolStarted(_)
            | Event::ErrorRecorded(_)
            | Event::JournalImported(_)
            | Event::QuestionAnswered(_)
            | Event::QuestionClosed(_)
            | Event::PhaseAdvanced(_)
            | Event::PhaseVerified(_)
            | Event::ArtifactRecorded(_)
            | Event::OutputRecorded(_)
            | Event::TaskEnded(_)
            | Event::MilestoneReached(_)
            | Event::DecisionMade(_)
            | Event::CheckpointsInvalidated(_)
            | Event::RunStarted(_)
            | Event::RunEnded(_) => Self::Action,
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
