//! `segno state`: the folded state of a session.

use clap::Args as ClapArgs;

use super::args::OneSession;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// Print the state of a session as a document
///
/// Everything the journal adds up to: status, phase, counters, budgets, open calls. With `--live` only what is under
/// way right now.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    visible_alias = "session-state",
    after_help = "Example:\n  segno state --json | jq .status\n  segno state --live"
)]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// What is under way right now: the step, the last action, what is pending, and where to resume
    #[arg(long)]
    pub live: bool,
}

/// Runs `segno state`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session_to_read(args.session.id.as_ref())?;
    let state = ctx.load(id)?;
    let live = if args.live { Some(ctx.engine.live_state(&state)?) } else { None };
    if context.printer.is_json() {
        return match &live {
            Some(live) => context.printer.json(live),
            None => context.printer.json(&state),
        };
    }
    let value = match &live {
        Some(live) => serde_json::to_value(live),
        None => serde_json::to_value(&state),
    };
    let value = value.map_err(|why| CommandError::internal(why.to_string()))?;
    let yaml = segno_engine::view::to_yaml(&segno_engine::view::Node::from(value));
    context.page(&yaml.trim_end().into())
}
