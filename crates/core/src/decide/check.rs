//! Whether values can be kept.

use crate::event as ev;
use crate::limits;
use crate::refusal::Refusal;
use crate::state::State;
use crate::text::Text;

/// Every part fits; which of them must be there is for the caller to say.
pub(super) fn check_project(project: &ev::Project) -> Result<(), Refusal> {
    limits::line_or_empty("project path", &project.path)?;
    limits::line_or_empty("project name", &project.name)?;
    limits::optional_name("project type", project.kind.as_deref())
}

pub(super) fn check_workflow(workflow: &ev::Workflow) -> Result<(), Refusal> {
    limits::name("workflow", &workflow.name)?;
    if workflow.phases.len() > limits::PHASES {
        return Err(Refusal::TooMany { what: "phases", limit: limits::PHASES });
    }
    for (index, phase) in workflow.phases.iter().enumerate() {
        limits::name("phase", phase)?;
        if workflow.phases[..index].contains(phase) {
            return Err(Refusal::bad("workflow", format!("it lists phase {phase} twice")));
        }
    }
    Ok(())
}

/// A workflow that lists its phases has no others.
pub(super) fn known_phase(workflow: Option<&ev::Workflow>, phase: &str) -> Result<(), Refusal> {
    match workflow.filter(|workflow| !workflow.phases.is_empty()) {
        Some(workflow) if !workflow.phases.iter().any(|known| known == phase) => Err(Refusal::UnknownPhase {
            phase: phase.to_owned(),
            workflow: workflow.name.clone(),
            phases: workflow.phases.join(", "),
        }),
        _ => Ok(()),
    }
}

pub(super) fn check_step(step: Option<u32>, of: Option<u32>) -> Result<(), Refusal> {
    if step == Some(0) || of == Some(0) {
        return Err(Refusal::bad("step", "steps count from 1"));
    }
    if let (Some(step), Some(of)) = (step, of)
        && step > of
    {
        return Err(Refusal::bad("step", format!("step {step} of {of}")));
    }
    Ok(())
}

pub(super) fn check_percent(percent: u8) -> Result<(), Refusal> {
    if percent > 100 {
        Err(Refusal::bad("percentage", format!("{percent} is more than 100")))
    } else {
        Ok(())
    }
}

pub(super) fn check_branch(state: &State, branch: &str) -> Result<(), Refusal> {
    limits::name("branch", branch)?;
    room("branches", state.decisions.heads.contains_key(branch), state.decisions.heads.len(), limits::ENTRIES)
}

pub(super) fn check_parent(state: &State, parent: Option<u64>) -> Result<(), Refusal> {
    match parent {
        Some(id) if id == 0 || id > state.decisions.count => {
            Err(Refusal::Unknown { what: "decision", id: id.to_string() })
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn room(what: &'static str, present: bool, count: usize, limit: usize) -> Result<(), Refusal> {
    if !present && count >= limit { Err(Refusal::TooMany { what, limit }) } else { Ok(()) }
}

pub(super) fn not_empty(field: &'static str, text: &Text) -> Result<(), Refusal> {
    if text.excerpt().trim().is_empty() { Err(Refusal::bad(field, "it is empty")) } else { Ok(()) }
}
