//! `segno workflow-state`: what a workflow remembers.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::Command as Act;

use super::args::TextSource;
use super::doing::look;
use super::doing::record;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// The largest state that is read.
const LIMIT: u64 = 1 << 20;

/// Keep the state of a workflow
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno workflow-state set '{\"round\": 2}'")]
pub struct Args {
    /// What to do; without it, prints the state
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with the state of a workflow.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Replace the state
    Set {
        /// The state as JSON, `-` for standard input, or @FILE
        #[arg(value_name = "JSON|-|@FILE", allow_hyphen_values = true)]
        state: TextSource,
    },
    /// Print the state
    Get,
}

/// Runs `segno workflow-state`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None | Some(Command::Get) => {
            let (_ctx, state) = look(context)?;
            context.printer.json(&state.workflow_state)
        }
        Some(Command::Set { state }) => {
            let text = state.read(LIMIT)?;
            let state = serde_json::from_str(&text).map_err(|why| {
                CommandError::usage(format!("the workflow state is no JSON: {why}"))
                    .hint("segno workflow-state set '{\"round\": 2}'")
            })?;
            record(context, vec![Act::SetWorkflowState { state }], |_| "workflow state recorded".into())
        }
    }
}
