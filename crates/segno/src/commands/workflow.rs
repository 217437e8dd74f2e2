//! `segno workflow`: the phases a loop can go through.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::looping::NamedWorkflow;
use segno_engine::looping::WorkflowError;
use serde_json::json;

use super::looping::init_workflow;
use super::looping::plan::bad_workflow;
use super::looping::plan::warn_of_protected;
use super::run::check_agent;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::table::Column;
use crate::output::table::Table;

/// List, show, check and make workflows
///
/// A workflow is a file of phases, each with a prompt, a gate and the commands that measure it. Some are built in; your
/// own are in .segno/workflows, and are used by name: segno loop TASK.md --workflow NAME.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno workflow list\n  segno workflow show prp\n  segno workflow new mine --from prp"
)]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do with workflows.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// List the workflows that can be used here
    List,
    /// Print a workflow as its file has it
    Show {
        /// Which
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Check a workflow, or all of the project's own
    Check {
        /// Which
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Write a new workflow into .segno/workflows
    New {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// The workflow to start from
        #[arg(long, value_name = "NAME", default_value = "prp")]
        from: String,
    },
}

/// Runs `segno workflow`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        Command::List => list(context),
        Command::Show { name } => {
            let found = NamedWorkflow::find(name, &context.project.root).map_err(bad_workflow)?;
            if context.printer.is_json() {
                return context.printer.json(&json!({
                    "name": found.name, "path": found.path, "phases": names(&found), "text": found.text,
                }));
            }
            context.printer.raw(found.text.as_bytes())
        }
        Command::Check { name } => check(context, name.as_deref()),
        Command::New { name, from } => init_workflow(context, name, from),
    }
}

fn names(found: &NamedWorkflow) -> Vec<String> {
    found.workflow.phases.iter().map(|phase| phase.name.clone()).collect()
}

fn list(context: &Context) -> Outcome {
    let printer = &context.printer;
    let all = NamedWorkflow::list(&context.project.root);
    if printer.is_json() {
        let rows: Vec<_> = all
            .iter()
            .map(|(name, found)| match found {
                Ok(found) => json!({
                    "name": name, "path": found.path, "about": found.workflow.description, "phases": names(found),
                }),
                Err(why) => json!({ "name": name, "error": why.to_string() }),
            })
            .collect();
        return printer.json(&json!({ "workflows": rows }));
    }
    let mut table =
        Table::new([Column::left("name"), Column::left("phases").elastic(), Column::left("from")]);
    for (name, found) in &all {
        match found {
            Ok(found) => {
                let from = found
                    .path
                    .as_ref()
                    .map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
                table.row([name.clone(), names(found).join(" → "), from]);
            }
            Err(why) => table.row([name.clone(), why.to_string(), "cannot be used".to_owned()]),
        }
    }
    printer.table(&table)
}

fn check(context: &Context, name: Option<&str>) -> Outcome {
    let root = &context.project.root;
    let found = match name {
        Some(name) => vec![(name.to_owned(), NamedWorkflow::find(name, root))],
        None => NamedWorkflow::list(root),
    };
    let found: Vec<_> = found.into_iter().map(|(name, found)| (name, with_agents(context, found))).collect();
    let mut wrong = Vec::new();
    for (name, found) in &found {
        match found {
            Ok(found) => {
                context.printer.talk(format!("{name}: well"));
                warn_of_protected(context, found.workflow.phases.iter().flat_map(|phase| &phase.protect));
            }
            Err(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    let doubts: Vec<String> =
        found.iter().filter_map(|(_, found)| found.as_ref().ok()).flat_map(doubts).collect();
    if context.printer.is_json() {
        context.printer.json(&json!({ "well": wrong.is_empty(), "problems": wrong, "doubts": doubts }))?;
    } else {
        doubts.iter().for_each(|doubt| context.printer.warn(doubt));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(CommandError::new(ExitCode::Config, "workflow", wrong.join("; "))),
    }
}

/// The same, unless it names an agent that nobody here knows.
fn with_agents(
    context: &Context,
    found: Result<NamedWorkflow, WorkflowError>,
) -> Result<NamedWorkflow, String> {
    let found = found.map_err(|why| why.to_string())?;
    for agent in found.agents() {
        // One that is merely not installed may be there when the loop begins.
        if let Err(why) = check_agent(context, agent)
            && why.exit() == ExitCode::Usage
        {
            let location =
                found.path.as_ref().map_or_else(|| found.name.clone(), |path| path.display().to_string());
            return Err(format!("{location}: {why}"));
        }
    }
    Ok(found)
}

/// What may be meant otherwise in a workflow that can be followed.
fn doubts(found: &NamedWorkflow) -> Vec<String> {
    let name = &found.name;
    let not_reviewed = found.not_reviewed().into_iter().map(|phase| {
        format!("{name}: {phase} has on_reject, and its gate asks for no verdict (gate = \"qa\" does)")
    });
    let mut doubts: Vec<String> = not_reviewed.collect();
    let measured = found.measured_by_others();
    if found.path.is_some() && !measured.is_empty() {
        doubts.push(format!(
            "{name}: {} need a command: segno loop … --until 'COMMAND', or evidence",
            measured.join(", ")
        ));
    }
    doubts
}
