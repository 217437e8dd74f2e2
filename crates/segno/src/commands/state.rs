//! `segno state`: the folded state of a session.

use clap::Args as ClapArgs;

use super::args::OneSession;
use crate::context::Context;
use crate::desk::Desk;
use crate::error::{CommandError, Outcome};

/// Print the state of a session as a document
///
/// Everything the journal adds up to: status, phase, counters, budgets, open calls.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno state --json | jq .status")]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
}

/// Runs `segno state`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let desk = Desk::open(context)?;
    let id = desk.session(args.session.id.as_ref())?;
    let state = desk.load(id)?;
    if context.printer.is_json() {
        return context.printer.json(&state);
    }
    let value = serde_json::to_value(&state).map_err(|why| CommandError::internal(why.to_string()))?;
    let yaml = segno_engine::view::to_yaml(&segno_engine::view::Node::from_json(&value));
    context.page(&yaml.trim_end().into())
}
