//! What was done last, in words.

use crate::event::Event;
use crate::event::history_only;
use crate::event::passing;
use crate::event::row_only;
use crate::event::state_only;
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
        history_only!()
        | state_only!()
        | passing!()
        | row_only!()
        | Event::CostRecorded(_)
        | Event::ErrorRecorded(_)
        | Event::JournalImported(_)
        | Event::QuestionAsked(_)
        | Event::QuestionAnswered(_)
        | Event::QuestionClosed(_)
        | Event::PhaseVerified(_)
        | Event::AgentSwitched(_)
        | Event::BreakpointReached(_)
        | Event::BreakpointContinued(_)
        | Event::CheckpointCreated(_)
        | Event::CheckpointReady(_)
        | Event::CheckpointFailed(_)
        | Event::CheckpointsInvalidated(_)
        | Event::RunStarted(_)
        | Event::RunEnded(_) => return None,
    };
    Some(shorten(&text, limits::NAME))
}
