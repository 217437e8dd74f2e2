//! `segno task`: what is left to do.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::Command as Act;
use segno_engine::core::List;

use super::args::Page;
use super::doing::look;
use super::doing::record;
use super::lists;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// Keep a list of what is left to do
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno task add \"handle expired tokens\"")]
pub struct Args {
    /// What to do; without it, lists the tasks
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with tasks.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Add a task
    Add {
        /// What is to be done
        text: String,
    },
    /// Mark a task as done
    Done {
        /// Its number
        id: u64,
    },
    /// Drop a task without doing it
    Drop {
        /// Its number
        id: u64,
    },
    /// List the tasks
    List,
    /// Print everything that the agent was asked to do
    Show,
}

/// Runs `segno task`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None | Some(Command::List) => lists::show(context, None, List::Tasks, &Page::default()),
        Some(Command::Add { text }) => {
            record(context, vec![Act::AddTask { text: text.as_str().into() }], |acted| {
                format!("task {} added   {} open", acted.state.tasks.added, acted.state.tasks.open.len())
                    .into()
            })
        }
        Some(Command::Show) => show(context),
        Some(Command::Done { id }) => end(context, *id, true),
        Some(Command::Drop { id }) => end(context, *id, false),
    }
}

fn show(context: &Context) -> Outcome {
    let (ctx, state) = look(context)?;
    let task = ctx.engine.task(&state)?;
    if context.printer.is_json() {
        return context.printer.json(&serde_json::json!({ "session_id": state.session_id, "task": task }));
    }
    match task {
        Some(task) => context.printer.data(task),
        None => Err(CommandError::new(
            ExitCode::Refused,
            "no_task",
            "no agent was asked to do anything in this session",
        )
        .hint("segno task list   segno show")),
    }
}

fn end(context: &Context, task: u64, done: bool) -> Outcome {
    record(context, vec![Act::EndTask { task, done }], |acted| {
        let word = if done { "done" } else { "dropped" };
        format!("task {task} {word}   {} open", acted.state.tasks.open.len()).into()
    })
}
