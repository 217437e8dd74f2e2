//! The panel of a halted loop: why it stands still, and what can be done about it.

use segno_engine::core::Command;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::looping::BreakerCause;
use segno_engine::core::looping::BreakerState;
use segno_engine::core::looping::LoopCommand;
use segno_engine::core::looping::LoopState;
use segno_engine::core::looping::breaker_status;

use super::panel::Panel;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::command_context::title;
use crate::commands::looping::go_on;
use crate::commands::looping::loop_command;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// Whether a session is a loop whose breaker is open.
pub(super) fn is_halted(state: &State) -> bool {
    let open = |looping: &LoopState| looping.breaker.state == BreakerState::Open;
    state.status == Status::Halted && state.looping.as_deref().is_some_and(open)
}

/// Takes a halted loop up: a person at the terminal is asked how, anybody else is told what to type.
pub(super) fn take_up(ctx: &CommandContext<'_>, state: &State, asks: bool) -> Outcome {
    let id = state.session_id;
    ctx.engine.refuse_driven(id)?;
    crate::commands::looping::check_agent(ctx, id)?;
    let settings = crate::commands::run::settings(ctx.context, Some(ctx.engine.store_id()))?;
    if !asks || ctx.engine.loop_may_try(id, &settings)? {
        return go_on(ctx, id, false, false);
    }
    let printer = &ctx.context.printer;
    let Some(looping) = state.looping.as_deref() else { return Ok(()) };
    let may_skip = looping.plan.after(&looping.phase).is_some();
    for line in lines(ctx, state, looping, may_skip) {
        printer.talk(line);
    }
    let act = |command: LoopCommand| ctx.act(id, vec![loop_command(command)]);
    let keys = ["r", "reset", "s", "skip", "m", "modify", "a", "abort", "q", "quit", ""];
    let fits = |answer: &str| keys.contains(&answer) && (may_skip || !answer.starts_with('s'));
    match crate::ask::choice(ctx.context, |answer| fits(answer).then(|| answer.to_owned()))?.as_str() {
        "r" | "reset" => {
            act(LoopCommand::ResetBreaker { reason: "reset by hand".to_owned() })?;
            go_on(ctx, id, false, false)
        }
        "s" | "skip" if may_skip => {
            act(LoopCommand::SkipPhase { by: "a person".to_owned() })?;
            go_on(ctx, id, false, false)
        }
        "m" | "modify" => {
            printer.talk("what should the agent know? One line; it is in the next prompt:");
            let note = crate::ask::text()?;
            if note.is_empty() {
                return Err(cancelled("nothing was said, and nothing was done"));
            }
            act(LoopCommand::Say { text: note.as_str().into() })?;
            if looping.breaker.cause == Some(BreakerCause::StartFailures) {
                // A start needs more than words, and whoever says something wants it tried.
                act(LoopCommand::ResetBreaker { reason: "another approach".to_owned() })?;
            }
            go_on(ctx, id, false, false)
        }
        "a" | "abort" => {
            let reason = Some("given up while it was halted".into());
            let acted = ctx.act(id, vec![Command::Abort { reason }])?;
            ctx.report(&acted, Text::new().plain("aborted ").then(title(&acted.state)))
        }
        _ => Err(cancelled("nothing was done")
            .hint(format!("segno breaker status {}   says more", ctx.engine.ending(id)))),
    }
}

fn cancelled(why: &str) -> CommandError {
    CommandError::new(ExitCode::Cancelled, "cancelled", why.to_owned())
}

fn lines(ctx: &CommandContext<'_>, state: &State, looping: &LoopState, may_skip: bool) -> Vec<Text> {
    let breaker = breaker_status(looping);
    let mut panel = Panel::new(ctx.context);
    panel.edge("┌", " halted ─ the circuit breaker is OPEN ", "┐");
    let topic = state.topic.as_deref().unwrap_or("");
    panel.row("session", &format!("{}   {topic}", short(state.session_id)), Meaning::Plain);
    panel.row("reason", breaker.reason.as_deref().unwrap_or("not known"), Meaning::Lost);
    let iterations = units::things(looping.total, "iteration");
    panel.row("phase", &format!("{}   {iterations} so far", looping.phase), Meaning::Plain);
    if let Some(tests) = looping.tests.as_ref().filter(|tests| tests.total > 0) {
        panel.row("tests", &format!("{} pass", tests.fraction()), Meaning::Plain);
    }
    if let Some(error) = looping.last.as_ref().and_then(|last| last.error.as_ref()) {
        panel.row("error", &error.text, Meaning::Plain);
    }
    if let Some(compared) = &breaker.compared {
        panel.row("compared", compared, Meaning::Dim);
    }
    if let Some(at) = breaker.probe_at {
        let left = std::time::Duration::from_micros(at.micros_since(ctx.engine.now()));
        let words = format!("segno loop resume --stay tries one iteration in {}", units::duration(left));
        panel.row("or wait", &words, Meaning::Dim);
    }
    panel.framed("", "", Meaning::Plain);
    let mut keys = vec!["[r] reset and go on", "[m] change the approach", "[a] abort", "[q] nothing"];
    if may_skip {
        keys.insert(1, "[s] skip the phase");
    }
    panel.keys(&keys);
    panel.lines
}
