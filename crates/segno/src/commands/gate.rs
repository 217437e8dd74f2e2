//! `segno gate`: whether a phase of a loop is done, and why not.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::looping::LoopCommand;
use serde_json::json;

use super::args::OneSession;
use super::args::SessionRef;
use super::looping::loop_command;
use super::looping::status::gate_lines;
use super::looping::status::the_status;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::Outcome;

/// Show the gate of a loop's phase, or accept what it blocks
///
/// Shows each condition with the value that was measured last, and the tree it was measured on. Fewer tests than before,
/// removed or skipped ones block a gate; a person may accept that, with a reason, for the tree as it is.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  segno gate\n  segno gate accept --because \"the old test was wrong\"")]
pub struct Args {
    /// What to do; without it, shows the gate
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with the gate.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Show each condition with its value
    Show {
        /// The session
        #[command(flatten)]
        session: OneSession,
    },
    /// Accept what the gate blocks and a person may accept
    Accept {
        /// The session
        #[command(flatten)]
        session: OneSession,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        because: String,
        /// Only this condition; may be repeated
        #[arg(long, value_name = "NAME")]
        condition: Vec<String>,
    },
}

/// Runs `segno gate`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None => show(context, None),
        Some(Command::Show { session }) => show(context, session.id.as_ref()),
        Some(Command::Accept { session, because, condition }) => {
            context.refuse_below_run("accept what a gate blocks")?;
            let ctx = CommandContext::open(context)?;
            let id = ctx.session(session.id.as_ref())?;
            let accept = LoopCommand::AcceptGate {
                because: because.as_str().into(),
                conditions: condition.clone(),
                tree: None,
            };
            let acted = ctx.act(id, vec![loop_command(accept)])?;
            ctx.report(&acted, format!("accepted for {}, for the tree as it is", short(id)))
        }
    }
}

fn show(context: &Context, id: Option<&SessionRef>) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let state = ctx.load(ctx.session_to_read(id)?)?;
    let status = the_status(&ctx, &state)?;
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&json!({
            "session_id": state.session_id, "phase": status.phase, "gate": status.gate,
        }));
    }
    match &status.gate {
        None => printer.talk(format!("phase {} was not measured yet", status.phase)),
        Some(gate) => {
            let words = if gate.can_exit { "open: the phase is done" } else { "closed" };
            printer.data(format!("gate of {} is {words}", status.phase))?;
            gate_lines(context, gate)?;
        }
    }
    ctx.finish();
    Ok(())
}
