//! A workflow to start from, and what a loop would do.

use segno_engine::core::looping::LoopPlan;
use segno_engine::launch::LaunchSettings;
use segno_engine::looping::NamedWorkflow;
use segno_engine::looping::first_prompt;
use serde_json::json;

use super::plan::bad_workflow;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::files;

/// Writes a copy of a workflow into the project.
pub(in crate::commands) fn run(context: &Context, name: &str, from: &str) -> Outcome {
    let found = NamedWorkflow::find(from, &context.project.root).map_err(bad_workflow)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 60 || !name.chars().all(fits) {
        return Err(CommandError::usage("a workflow is named by letters, digits, - and _"));
    }
    let directory = context.project.root.join(".segno").join("workflows");
    let path = directory.join(format!("{name}.toml"));
    if path.exists() {
        return Err(CommandError::failure("exists", format!("{} is there already", path.display()))
            .hint(format!("segno workflow show {name}   (or another name: segno loop init NAME)")));
    }
    std::fs::create_dir_all(&directory)
        .map_err(|why| CommandError::io(format_args!("cannot make {}", directory.display()), why))?;
    files::replace(&path, found.text.as_bytes(), files::Access::Ordinary)
        .map_err(|why| CommandError::io(format_args!("cannot write {}", path.display()), why))?;
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&json!({ "workflow": name, "from": from, "path": path }));
    }
    printer.data(path.display().to_string())?;
    printer.hint(format!(
        "segno workflow check {name}   then: segno trust, and: segno loop TASK.md --workflow {name}"
    ));
    Ok(())
}

/// Shows the plan and the first prompt.
pub(super) fn dry_run(context: &Context, plan: &LoopPlan, settings: &LaunchSettings) -> Outcome {
    let prompt = first_prompt(plan)?;
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&json!({ "plan": plan, "prompt": prompt, "agent": settings.agent }));
    }
    printer.data(format!("workflow {}   {}", plan.workflow, plan.phase_names().join(" → ")))?;
    for phase in &plan.phases {
        let agent = phase.agent.as_deref().unwrap_or(&settings.agent);
        printer.data(format!("  {}   agent {agent}", phase.name))?;
        for evidence in &phase.evidence {
            printer.data(format!("    measured by {}: {}", evidence.name, evidence.command))?;
        }
    }
    printer.data("\nThe first prompt:\n")?;
    printer.data(segno_engine::core::text::shorten(&prompt, 20_000))
}
