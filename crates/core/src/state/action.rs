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
        _ => return None,
    };
    Some(shorten(&text, limits::NAME))
}
