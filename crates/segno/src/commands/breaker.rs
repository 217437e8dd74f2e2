//! `segno breaker`: the circuit breaker of a loop.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::looping::LoopCommand;
use serde_json::json;

use super::args::OneSession;
use super::args::SessionRef;
use super::looping::loop_command;
use super::looping::skip_phase;
use super::looping::status::breaker_words;
use super::looping::status::the_status;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::units;

/// Show or reset the circuit breaker of a loop
///
/// The breaker counts iterations that bring nothing that can be measured, the same error, questions, starts that fail,
/// identical calls, repeated states and expensive iterations without progress. When it opens, the session is halted. It closes by
/// itself for one try after a while, or when what opened it is gone, or when you reset it.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno breaker status\n  segno breaker reset last --because \"the server is up again\""
)]
pub struct Args {
    /// What to do; without it, shows the breaker
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with the breaker.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Show each counter, what was compared, and what would have counted as progress
    Status {
        /// The session
        #[command(flatten)]
        session: OneSession,
    },
    /// Close it and reset all counters
    Reset {
        /// The session
        #[command(flatten)]
        session: OneSession,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", default_value = "reset by hand")]
        because: String,
    },
    /// Leave the current phase without passing its gate, and close the breaker
    SkipPhase {
        /// The session
        #[command(flatten)]
        session: OneSession,
    },
}

/// Runs `segno breaker`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None => status(context, None),
        Some(Command::Status { session }) => status(context, session.id.as_ref()),
        Some(Command::Reset { session, because }) => reset(context, session.id.as_ref(), because),
        Some(Command::SkipPhase { session }) => skip_phase(context, session.id.as_ref()),
    }
}

fn reset(context: &Context, id: Option<&SessionRef>, because: &str) -> Outcome {
    context.refuse_below_run("close a breaker")?;
    let ctx = CommandContext::open(context)?;
    let id = ctx.session(id)?;
    let acted = ctx.act(id, vec![loop_command(LoopCommand::ResetBreaker { reason: because.to_owned() })])?;
    ctx.report(&acted, format!("the breaker of {} is closed", short(id)))?;
    context.printer.hint(format!("segno resume {}", ctx.engine.ending(id)));
    Ok(())
}

fn status(context: &Context, id: Option<&SessionRef>) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let state = ctx.load(ctx.loop_to_read(id)?)?;
    let status = the_status(&ctx, &state)?;
    let breaker = &status.breaker;
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&json!({
            "session_id": state.session_id, "phase": status.phase, "breaker": breaker,
        }));
    }
    printer.data(format!("{}   phase {}", breaker_words(breaker), status.phase))?;
    for counter in &breaker.counters {
        let limit = if counter.limit == 0 { "never".to_owned() } else { counter.limit.to_string() };
        printer.data(format!("  {:<34} {:>3}   opens at {limit}", counter.name, counter.value))?;
    }
    if let Some(compared) = &breaker.compared {
        printer.data(format!("  compared: {compared}"))?;
    }
    if !breaker.would_count.is_empty() {
        printer.data(format!("  would count as progress: {}", breaker.would_count.join("; ")))?;
    }
    if let Some(last) = state.looping.as_ref().and_then(|looping| looping.last.as_ref()) {
        for denied in &last.denied {
            printer.data(format!("  denied last: {denied}"))?;
        }
        if !last.allow.is_empty() {
            printer.data(format!("  would be allowed by: {}", last.allow.join(", ")))?;
        }
    }
    let now = ctx.engine.now();
    if let Some(at) = breaker.probe_at {
        let left = std::time::Duration::from_micros(at.micros_since(now));
        let left = units::duration(left);
        printer.data(format!("  segno loop resume --stay   waits {left} and tries one more iteration"))?;
    }
    for change in breaker.changes.iter().rev().take(10) {
        let ago = std::time::Duration::from_micros(now.micros_since(change.at));
        printer.data(format!(
            "  {}, iteration {}: {} to {}: {}",
            match units::age(ago) {
                now if now == "now" => "just now".to_owned(),
                age => format!("{age} ago"),
            },
            change.iteration,
            change.from.as_str(),
            change.to.as_str(),
            change.reason
        ))?;
    }
    ctx.finish();
    Ok(())
}
