//! `segno workflow`: the phases a loop can go through.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::looping::NamedWorkflow;
use serde_json::json;

use super::looping::init_workflow;
use super::looping::plan::bad_workflow;
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
    let found: Vec<(String, Result<NamedWorkflow, _>)> = match name {
        Some(name) => vec![(name.to_owned(), NamedWorkflow::find(name, root))],
        None => NamedWorkflow::list(root),
    };
    let mut wrong = Vec::new();
    for (name, found) in &found {
        match found {
            Ok(_) => context.printer.talk(format!("{name}: well")),
            Err(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    if context.printer.is_json() {
        context.printer.json(&json!({ "well": wrong.is_empty(), "problems": wrong }))?;
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(CommandError::new(ExitCode::Config, "workflow", wrong.join("; "))),
    }
}
