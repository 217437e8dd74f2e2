//! `segno rm`: removes sessions.

use std::io::IsTerminal as _;

use clap::Args as ClapArgs;

use super::args::SessionRef;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::units;

/// Remove sessions and everything recorded about them
///
/// Asks first on a terminal; without one, --yes is needed. `segno export` keeps a copy. The kept transcripts of its
/// conversations (archive.native) go with it; what its agent has itself stays.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno rm 804211 118830 --yes")]
pub struct Args {
    /// The sessions
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<SessionRef>,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// Runs `segno rm`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let mut ids = Vec::new();
    for named in &args.ids {
        let id = ctx.named(named)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    for id in &ids {
        // Named things that are not there are an error before anything is removed.
        ctx.engine.lease(*id)?;
    }
    let names = ids.iter().map(|id| short(*id)).collect::<Vec<_>>().join(", ");
    confirm(
        context,
        args.yes,
        "removed",
        &format!("remove {} for good ({names})?", units::things(ids.len() as u64, "session")),
    )?;
    let mut removed = Vec::new();
    for id in ids {
        if ctx.engine.delete(id)? {
            removed.push(id);
        }
    }
    if context.printer.is_json() {
        context.printer.json(&serde_json::json!({ "removed": removed }))?;
    } else {
        context.printer.talk(format!("removed {names}"));
    }
    ctx.finish();
    Ok(())
}

/// Asks on a terminal; elsewhere only an explicit yes will do. `done` says what would be done, as in "removed".
///
/// # Errors
/// If the answer is no, or nobody can be asked.
pub(super) fn confirm(context: &Context, yes: bool, done: &str, question: &str) -> Outcome {
    if yes {
        return Ok(());
    }
    let refused = |why: String| CommandError::new(ExitCode::Cancelled, "cancelled", why);
    if !std::io::stdin().is_terminal() || context.printer.is_json() {
        return Err(refused(format!("nothing was {done}: there is nobody to ask"))
            .hint("add --yes to do it without being asked"));
    }
    context.printer.talk(format!("{question} [y/N]"));
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| CommandError::io("cannot read the answer", error))?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(refused(format!("nothing was {done}"))),
    }
}
