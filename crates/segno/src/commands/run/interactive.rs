//! A run with a person at the agent's own terminal.

use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;

use segno_engine::Error;
use segno_engine::run::Report;
use segno_engine::run::Request;
use segno_engine::run::Stop;
use segno_engine::run::Terminal;

use super::Args;
use super::signals;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// Whether there is a terminal that an agent can be given: it reads keys from one end and draws on the other.
pub(crate) fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// The terminal that the agent is given.
pub(super) fn terminal() -> Option<Terminal> {
    let input = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    Some(Terminal { input, output: std::io::stdout().as_fd().try_clone_to_owned().ok()? })
}

/// Whether something says what the agent shall do.
pub(super) fn has_prompt(args: &Args) -> bool {
    args.prompt.is_some() || args.file.is_some() || args.work_item.is_some()
}

/// Somebody asks for the agent's own interface; `without` is what to type where it cannot be had.
///
/// # Errors
/// If there is no terminal to give.
pub(crate) fn need_terminal(context: &Context, without: &str) -> Outcome {
    if context.printer.is_json() {
        return Err(CommandError::usage("--interactive and --json both want standard output"));
    }
    if !has_terminal() {
        return Err(CommandError::usage("--interactive needs a terminal to give to the agent")
            .hint(format!("{without}   runs it without one")));
    }
    Ok(())
}

/// Whether the agent gets the terminal: when that is asked for, or when a person is there and nothing says what the
/// agent shall do without one.
///
/// # Errors
/// If it is asked for where it cannot be.
pub(super) fn is_wanted(context: &Context, args: &Args, plain: bool) -> Outcome<bool> {
    if args.interactive {
        need_terminal(context, "segno run --prompt TEXT")?;
        return Ok(true);
    }
    let config = context.config()?;
    let silent = config.run.prompt.is_empty() && config.run.prompt_file.is_empty();
    let headless = context.printer.is_json() || args.raw || args.tell.is_some() || plain;
    Ok(silent && !headless && !has_prompt(args) && args.command.is_empty() && has_terminal())
}

/// Runs it to its end. Nothing is printed meanwhile: the terminal is the agent's.
pub(super) fn follow(
    ctx: &CommandContext<'_>,
    request: Request,
    stop: &Stop,
) -> Outcome<Result<Report, Error>> {
    let _signals = signals::listen_beside(stop)?;
    Ok(ctx.engine.run(request))
}
