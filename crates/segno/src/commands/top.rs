//! `segno top`: every session, live, on a screen.

use clap::Args as ClapArgs;

use crate::context::Context;
use crate::error::Outcome;

/// Watch all sessions on one screen, and act on them
///
/// Shows who needs you first, then what runs, waits and has ended, with the last lines of the chosen session's talk beside it.
/// Enter opens a session: talk, ledger, phases, tests, cost, limits, checkpoints and decisions. Keys answer questions, pause,
/// stop, extend the budget, close a breaker, note, make a checkpoint and undo, by the same rules as the commands of those
/// names. Press ? for the keys.
///
/// Nothing that runs is touched when it is closed. Programs read `segno ls --json`.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  segno top\n  segno top --here")]
pub struct Args {
    /// Only sessions of this project
    #[arg(long)]
    pub here: bool,
}

/// Runs `segno top`.
///
/// # Errors
/// If there is no terminal.
pub fn run(context: &Context, args: &Args) -> Outcome {
    crate::top::run(context, !args.here)
}
