//! What commands that record something have in common.

use segno_engine::Acted;
use segno_engine::core::Input;
use segno_engine::core::State;
use segno_engine::core::Status;

use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;

/// Records something in the session that is meant, and says so.
pub(super) fn record(
    context: &Context,
    inputs: Vec<impl Into<Input>>,
    said: impl FnOnce(&Acted) -> Text,
) -> Outcome {
    record_for(context, |_| Ok(inputs), said)
}

/// The same for what depends on the session.
pub(super) fn record_for<I: Into<Input>>(
    context: &Context,
    make: impl FnOnce(&State) -> Outcome<Vec<I>>,
    said: impl FnOnce(&Acted) -> Text,
) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session(None)?;
    let inputs = make(&ctx.load(id)?)?;
    let acted = ctx.act(id, inputs).map_err(|error| {
        if !error.hints().is_empty() {
            return error;
        }
        let tail = ctx.engine.ending(id);
        match ctx.engine.load(id).map(|loaded| loaded.state.status) {
            Ok(Status::Paused | Status::Interrupted) => {
                error.hint(format!("segno resume {tail}   (or: segno abort {tail})"))
            }
            Ok(Status::Halted) => {
                error.hint(format!("segno resume {tail} --reset-breaker   (or: segno abort {tail})"))
            }
            Ok(status) if status.is_terminal() => {
                error.hint(format!("segno new   starts another session   (or: segno show {tail})"))
            }
            Ok(_) if error.exit() == ExitCode::Refused => {
                error.hint(format!("segno show {tail}   says where it stands"))
            }
            Ok(_) | Err(_) => error,
        }
    })?;
    let line = said(&acted);
    ctx.report(&acted, line)
}

/// Reads the session that is meant.
pub(super) fn look<'a>(context: &'a Context) -> Outcome<(CommandContext<'a>, State)> {
    let ctx = CommandContext::open_to_look(context)?;
    let id = ctx.session_to_read(None)?;
    let state = ctx.load(id)?;
    Ok((ctx, state))
}
