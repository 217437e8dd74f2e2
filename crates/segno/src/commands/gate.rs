//! `segno gate`: whether a phase of a loop is done, and why not.

mod receipts;

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::looping::GateResult;
use segno_engine::core::looping::LoopCommand;
use segno_engine::core::looping::LoopState;
use segno_engine::run::Stop;
use serde_json::json;

use super::args::OneSession;
use super::args::SessionRef;
use super::looping::loop_command;
use super::looping::status::gate_lines;
use super::looping::status::the_status;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// Measure the gate of a loop's phase, accept what blocks it, or check a receipt
///
/// Runs the commands that measure the current phase, on the files as they are, and shows each condition with its value;
/// nothing else happens. The exit code is 0 if all of them hold. Fewer tests than before, removed or skipped ones, and
/// changed scripts, test settings or protected files block a gate; a person may accept that, with a reason. A gate that
/// passed has left a receipt: --verify runs its commands again and compares.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  segno gate\n  segno gate show\n  segno gate accept --because \"the old test was wrong\"\n  \
    segno gate receipts\n  segno gate --verify GREEN"
)]
pub struct Args {
    /// What else to do
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Run the commands of a receipt again, and compare: a phase of the session, or a file that segno gate receipts --json
    /// wrote
    #[arg(long, value_name = "RECEIPT")]
    pub verify: Option<String>,
    /// Require exactly the files that were measured
    #[arg(long, requires = "verify")]
    pub same_tree: bool,
}

/// What to do with the gate.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Show each condition with its value, as last measured
    Show {
        /// The session
        #[command(flatten)]
        session: OneSession,
    },
    /// Accept what blocks the gate, as far as a person may
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
    /// List what was measured when each phase was done
    Receipts {
        /// The session
        #[command(flatten)]
        session: OneSession,
    },
}

/// Runs `segno gate`.
///
/// # Errors
/// If the command cannot do what it was asked, or the gate is closed, or a receipt does not hold.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None => match &args.verify {
            Some(receipt) => receipts::verify(context, args.session.id.as_ref(), receipt, args.same_tree),
            None => measure(context, args.session.id.as_ref()),
        },
        Some(Command::Show { session }) => show(context, session.id.as_ref()),
        Some(Command::Receipts { session }) => receipts::list(context, session.id.as_ref()),
        Some(Command::Accept { session, because, condition }) => {
            context.refuse_below_run("accept what blocks a gate")?;
            let ctx = CommandContext::open(context)?;
            let id = ctx.session(session.id.as_ref())?;
            let accept = LoopCommand::AcceptGate {
                because: because.as_str().into(),
                conditions: condition.clone(),
                tree: None,
            };
            let acted = ctx.act(id, vec![loop_command(accept)])?;
            ctx.report(&acted, format!("accepted for {}: {}", short(id), accepted(&acted.state)))
        }
    }
}

/// What a person has just accepted, each with what is missing.
fn accepted(state: &segno_engine::core::State) -> String {
    let Some(looping) = state.looping.as_deref() else { return String::new() };
    let wanted = looping.accepted.iter().flat_map(|accepted| &accepted.conditions);
    let gate = looping.gate.iter().flat_map(|gate| &gate.conditions);
    let one = |name: &String| {
        let mut found = gate.clone().filter(|condition| condition.name == *name);
        let value =
            found.next().map(|condition| condition.value.split(" (accepted: ").next().unwrap_or_default());
        format!("{name} ({})", value.unwrap_or_default())
    };
    wanted.map(one).collect::<Vec<_>>().join(", ")
}

/// Measures on the files as they are.
fn measure(context: &Context, id: Option<&SessionRef>) -> Outcome {
    context.refuse_below_run("measure a gate in your name")?;
    let ctx = CommandContext::open(context)?;
    let id = ctx.loop_to_read(id)?;
    let state = ctx.load(id)?;
    let status = the_status(&ctx, &state)?;
    let phase = state.looping.as_deref().and_then(LoopState::phase_plan);
    let evidence = phase.map(|phase| phase.evidence.as_slice()).unwrap_or_default();
    let settings = super::run::settings(context, Some(ctx.engine.store_id()))?;
    let stop = Stop::default();
    let _signals = super::run::listen(&stop)?;
    let names: Vec<&str> = evidence.iter().map(|one| one.name.as_str()).collect();
    if context.printer.talks_to_terminal() && !names.is_empty() {
        // A command may take its time, and shows nothing meanwhile.
        context.printer.talk(format!("measures {}: {}", status.phase, names.join(", ")));
    }
    // Whether the agent says so is asked in an iteration, never here.
    let gate = GateResult { gate_2: None, ..ctx.engine.loop_gate(id, &settings, &stop, &())? };
    let printer = &context.printer;
    if printer.is_json() {
        printer.json(&json!({ "session_id": id, "phase": status.phase, "gate": gate }))?;
    } else {
        printer.data(format!("phase {}", status.phase))?;
        gate_lines(context, &gate)?;
    }
    ctx.finish();
    if gate.gate_1 {
        return Ok(());
    }
    let why = format!("the gate of {} is closed", status.phase);
    let error = CommandError::failure("gate_closed", why);
    Err(match gate.conditions.iter().any(|one| !one.holds && one.acceptable) {
        true => error.hint(format!(
            "segno gate accept {} --because \"…\"   if that is all right",
            ctx.engine.ending(id)
        )),
        false => error,
    })
}

fn show(context: &Context, id: Option<&SessionRef>) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let state = ctx.load(ctx.loop_to_read(id)?)?;
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
