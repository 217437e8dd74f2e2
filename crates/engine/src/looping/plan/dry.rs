//! What the first iteration of a plan would be told, with nothing recorded.

use segno_core::Command;
use segno_core::Mark;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::Uid;
use segno_core::event::Maker;
use segno_core::event::SessionCreated;
use segno_core::event::WorkItemMark;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopPlan;
use segno_core::looping::PromptTexts;
use segno_core::looping::prompt;

use crate::Error;

/// The prompt of the first iteration. The plan is one that was just made: its texts are whole.
///
/// # Errors
/// If the plan cannot be followed.
pub fn first_prompt(plan: &LoopPlan) -> Result<String, Error> {
    first_prompt_for(plan, None)
}

/// The same for a work item, with what its tracker says of it.
///
/// # Errors
/// If the plan cannot be followed.
pub fn first_prompt_for(plan: &LoopPlan, item: Option<(WorkItemMark, String)>) -> Result<String, Error> {
    let (item, told) = item.map_or((None, None), |(item, told)| (Some(item), Some(told)));
    let at = Timestamp::from_micros(0);
    let uid = Uid::new(uuid::Uuid::nil());
    let created = segno_core::create(SessionCreated::new(SessionId::at(at), uid, Maker::Loop))?;
    let mark = |seq| Mark { seq, at, run: None };
    let unreadable = |why: segno_core::state::FoldError| Error::NoTree(why.to_string());
    let mut state = State::begin(&mark(1), &created).map_err(unreadable)?;
    let start = LoopCommand::Start { plan: Box::new(plan.clone()), parent: None, item };
    for (index, event) in segno_core::decide(&state, Command::Loop(Box::new(start)))?.iter().enumerate() {
        state.apply(&mark(2 + index as u64), event);
    }
    let texts = PromptTexts {
        work: plan.work.excerpt().to_owned(),
        phase: plan.phases.first().map_or_else(String::new, |phase| phase.prompt.excerpt().to_owned()),
        item: told,
        ..PromptTexts::default()
    };
    Ok(state.looping.as_deref().map_or_else(String::new, |looping| prompt(looping, &texts, 1)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::looping::NamedWorkflow;

    #[test]
    fn it_has_the_work_and_the_phase_and_asks_where_the_agent_stands() {
        let prp = NamedWorkflow::find("prp", Path::new("/nowhere")).unwrap();
        let evidence = segno_core::looping::EvidencePlan {
            name: "until".to_owned(),
            command: "make test".to_owned(),
            ..Default::default()
        };
        let plan = LoopPlan {
            workflow: "prp".to_owned(),
            phases: prp.phases(&[evidence], false),
            work: "Build a login form.".into(),
            ..LoopPlan::default()
        };
        let text = first_prompt(&plan).unwrap();
        assert!(text.contains("Build a login form.") && text.contains("Phase RED, iteration 1"), "{text}");
    }
}
