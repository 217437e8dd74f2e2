//! Marks along the way: milestones, breakpoints, errors, notes.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::Command;
use segno_engine::core::Fact;
use segno_engine::core::event::PauseReason;

use super::doing::look;
use super::doing::record;
use crate::context::Context;
use crate::error::Outcome;

/// Record that a milestone was reached
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno milestone \"all tests pass\"")]
pub struct MilestoneArgs {
    /// Its name
    pub name: String,
    /// More about it
    #[arg(long, value_name = "TEXT")]
    pub details: Option<String>,
}

/// Wait at a breakpoint, and continue
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno breakpoint wait \"review the plan\"")]
pub struct BreakpointArgs {
    /// What to do; without it, shows the breakpoint
    #[command(subcommand)]
    pub command: Option<BreakpointCommand>,
}

impl BreakpointArgs {
    /// Whether it lets work go on that waits for a person.
    pub fn goes_on(&self) -> bool {
        matches!(self.command, Some(BreakpointCommand::Continue { .. }))
    }
}

/// What to do with a breakpoint.
#[derive(Clone, Debug, Subcommand)]
pub enum BreakpointCommand {
    /// Wait at a breakpoint
    Wait {
        /// Its name
        name: String,
    },
    /// Go on
    Continue {
        /// What was found
        #[arg(long, value_name = "TEXT")]
        details: Option<String>,
    },
}

/// Record an error
///
/// The session goes on; `segno fail` ends it.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno error \"connection refused\" --kind network")]
pub struct ErrorArgs {
    /// What went wrong
    pub message: String,
    /// What kind of error it is
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
}

/// Add a note to the history
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno note \"the flaky test is not ours\"")]
pub struct NoteArgs {
    /// The note
    pub text: String,
    /// What was done, in a word, as the history names it
    #[arg(long, value_name = "NAME", default_value = "note")]
    pub action: String,
}

/// Runs `segno milestone`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn milestone(context: &Context, args: &MilestoneArgs) -> Outcome {
    let details = args.details.as_deref().map(Into::into);
    let said = format!("milestone {} reached", args.name);
    record(context, vec![Command::ReachMilestone { name: args.name.clone(), details }], |_| said.into())
}

/// Runs `segno breakpoint`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn breakpoint(context: &Context, args: &BreakpointArgs) -> Outcome {
    match &args.command {
        Some(BreakpointCommand::Wait { name }) => {
            let said = format!("waiting at {name}   to go on: segno breakpoint continue");
            let mut commands = vec![Command::ReachBreakpoint { name: name.clone(), details: None }];
            // An agent at work stops; its driver is asked to.
            if is_driven(context)? {
                let details = Some(format!("breakpoint {name}").into());
                commands.push(Command::Pause { reason: PauseReason::Asked, details });
            }
            record(context, commands, |_| said.into())
        }
        Some(BreakpointCommand::Continue { details }) => {
            let (ctx, state) = look(context)?;
            ctx.refuse_agent_at_breakpoint(&state, "go past")?;
            let details = details.as_deref().map(Into::into);
            record(context, vec![Command::ContinueBreakpoint { details }], |_| "going on".into())
        }
        None => {
            let (_ctx, state) = look(context)?;
            if context.printer.is_json() {
                return context.printer.json(&serde_json::json!({ "breakpoint": state.breakpoint }));
            }
            match state.breakpoint {
                Some(waiting) => {
                    let since = context.moment(waiting.since);
                    context.printer.data(format!("waiting at {}   since {since}", waiting.name))?;
                    context.printer.hint("segno breakpoint continue");
                    Ok(())
                }
                None => context.printer.data("not waiting"),
            }
        }
    }
}

fn is_driven(context: &Context) -> Outcome<bool> {
    let (ctx, state) = look(context)?;
    let lease = ctx.engine.lease(state.session_id)?;
    Ok(lease.is_some() && state.driver.is_some())
}

/// Runs `segno error`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn error(context: &Context, args: &ErrorArgs) -> Outcome {
    let fact = Fact::ErrorRecorded { message: args.message.as_str().into(), error_kind: args.kind.clone() };
    record(context, vec![fact], |acted| {
        let errors = &acted.state.errors;
        match errors.in_a_row {
            0 | 1 => format!("error recorded   {} in all", errors.count).into(),
            times => format!("error recorded   the same one {times} times in a row, {} in all", errors.count)
                .into(),
        }
    })
}

/// Runs `segno note`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn note(context: &Context, args: &NoteArgs) -> Outcome {
    let fact = Fact::HistoryNoted {
        action: args.action.clone(),
        phase: None,
        details: Some(args.text.as_str().into()),
    };
    record(context, vec![fact], |_| "noted".into())
}
