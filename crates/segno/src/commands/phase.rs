//! The commands that say where the work is: phase, attempt, iteration, progress, intent.

use clap::Args as ClapArgs;
use clap::ValueEnum;
use segno_engine::core::Command;
use segno_engine::core::Event;
use segno_engine::core::State;
use segno_engine::core::event as ev;

use super::doing::look;
use super::doing::record;
use super::doing::record_for;
use crate::command_context::title;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;

/// The verdict on a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verdict {
    /// It is done
    Pass,
    /// It is not
    Fail,
    /// Nobody looked
    Skip,
}

/// Show or change the phase
///
/// Without a name: shows the phase. With a name: goes on to it. --verify says how the phase came out.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno phase GREEN --step 2 --of 4")]
pub struct Args {
    /// The phase to go on to
    pub name: Option<String>,
    /// The step within the workflow
    #[arg(long, value_name = "N")]
    pub step: Option<u32>,
    /// How many steps there are
    #[arg(long, value_name = "M", requires = "step")]
    pub of: Option<u32>,
    /// The verdict on the phase
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub verify: Option<Verdict>,
    /// What was checked
    #[arg(long, value_name = "NAME", requires = "verify", default_value = "phase")]
    pub check: String,
    /// What the verdict rests on
    #[arg(long, value_name = "TEXT", requires = "verify")]
    pub details: Option<String>,
}

/// Count another attempt at the current phase
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno attempt")]
pub struct AttemptArgs {}

/// Count another iteration of the current phase
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno iteration")]
pub struct IterationArgs {}

/// Record how far the work is
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno progress 60")]
pub struct ProgressArgs {
    /// From 0 to 100
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub percent: u8,
}

/// Say what should be true when the work is done
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno intent \"users can log in with a passkey\"")]
pub struct IntentArgs {
    /// The intent
    pub text: String,
}

/// Runs `segno phase`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let mut commands = Vec::new();
    // The verdict is about the phase that is being left.
    if let Some(verdict) = args.verify {
        let verdict = match verdict {
            Verdict::Pass => ev::Verdict::Pass,
            Verdict::Fail => ev::Verdict::Fail,
            Verdict::Skip => ev::Verdict::Skip,
        };
        let details = args.details.as_deref().map(Into::into);
        commands.push(Command::VerifyPhase { phase: None, check: args.check.clone(), verdict, details });
    }
    match (&args.name, args.step) {
        (Some(name), _) => {
            commands.push(Command::AdvancePhase { to: name.clone(), step: args.step, of: args.of });
        }
        (None, Some(step)) => commands.push(Command::SetStep { step, of: args.of }),
        (None, None) => {}
    }
    if commands.is_empty() {
        return show(context);
    }
    record_for(
        context,
        |state| by_hand(state, commands),
        |acted| {
            let phase = acted.state.phase_label().unwrap_or_else(|| "no phase".to_owned());
            let verdict = acted.events.iter().find_map(|event| match event {
                Event::PhaseVerified(said) => Some(said),
                _ => None,
            });
            let mut text = Text::new();
            if let Some(said) = verdict {
                let meaning = match said.verdict {
                    ev::Verdict::Pass => Meaning::Done,
                    ev::Verdict::Fail => Meaning::Lost,
                    ev::Verdict::Skip => Meaning::Waiting,
                };
                let checked = said.phase.as_deref().unwrap_or("no phase");
                text = text
                    .plain(format!("{checked}: {} ", said.check))
                    .painted(meaning, said.verdict.as_str())
                    .plain("   ");
            }
            text = text.plain(format!("phase {phase}   ")).then(title(&acted.state));
            if let Some(mark) = &acted.state.checkpoint
                && acted.events.iter().any(|event| matches!(event, Event::CheckpointCreated(_)))
            {
                text = text.painted(Meaning::Dim, format!("   checkpoint {}", mark.id));
            }
            text
        },
    )
}

/// A loop counts its iterations itself, and only its gates move it on.
fn by_hand(state: &State, commands: Vec<Command>) -> Outcome<Vec<Command>> {
    let Some(looping) = state.looping.as_deref() else { return Ok(commands) };
    // Without its gate, the last phase of a loop cannot be left: that would end the loop as if it were done.
    let more = looping.phases.last().is_some_and(|last| last.name != looping.phase);
    let skip = if more { "   (or: segno loop skip-phase)" } else { "" };
    let why = "a loop goes through its phases by its gates";
    Err(CommandError::new(ExitCode::Refused, "in_loop", why)
        .hint(format!("segno gate   says what is missing{skip}")))
}

fn show(context: &Context) -> Outcome {
    let (_ctx, state) = look(context)?;
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&serde_json::json!({
            "session_id": state.session_id,
            "workflow": state.workflow,
            "phase": state.phase,
            "step": state.step,
            "of": state.of,
            "iteration": state.iteration,
            "attempt": state.attempt,
            "phases_completed": state.phases_completed,
            "verification": state.verification,
        }));
    }
    printer.data(state.phase_label().unwrap_or_else(|| "no phase".to_owned()))?;
    if !state.phases_completed.is_empty() {
        printer.talk(format!("completed: {}", state.phases_completed.join(", ")));
    }
    Ok(())
}

/// Runs `segno attempt`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn attempt(context: &Context, _args: &AttemptArgs) -> Outcome {
    let commands = vec![Command::StartAttempt];
    let said = |acted: &segno_engine::Acted| format!("attempt {}", acted.state.attempt).into();
    record_for(context, |state| by_hand(state, commands), said)
}

/// Runs `segno iteration`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn iteration(context: &Context, _args: &IterationArgs) -> Outcome {
    let commands = vec![Command::StartIteration];
    let said = |acted: &segno_engine::Acted| format!("iteration {}", acted.state.iteration).into();
    record_for(context, |state| by_hand(state, commands), said)
}

/// Runs `segno progress`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn progress(context: &Context, args: &ProgressArgs) -> Outcome {
    let percent = args.percent;
    record(context, vec![Command::SetProgress { percent }], |_| format!("progress {percent} %").into())
}

/// Runs `segno intent`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn intent(context: &Context, args: &IntentArgs) -> Outcome {
    let intent = args.text.as_str().into();
    record(context, vec![Command::SetIntent { intent }], |_| "intent recorded".into())
}
