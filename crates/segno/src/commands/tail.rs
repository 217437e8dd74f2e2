//! `segno tail`: a run as it goes on, seen from elsewhere.

use std::time::Duration;

use clap::Args as ClapArgs;
use segno_engine::EventRow;
use segno_engine::core::Event;

use super::args::OneSession;
use super::log::print_line;
use super::run::View;
use crate::command_context::CommandContext;
use crate::command_context::title;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Text;

/// How long one wait for new events lasts.
const WAIT: Duration = Duration::from_millis(500);
/// How many events are shown first.
const FIRST: u64 = 30;

/// Watch a run from another terminal
///
/// Shows what the agent of a session does in the same form as `segno run`. With --follow it goes on until the run
/// ends. With --json, one event per line, as `segno log` prints them.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno tail -f last")]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Go on until the run ends, or Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Start with this many earlier events
    #[arg(long, short = 'n', value_name = "N", default_value_t = FIRST)]
    pub lines: u64,
}

/// Runs `segno tail`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session_to_read(args.session.id.as_ref())?;
    let state = ctx.load(id)?;
    context.printer.talk(Text::new().plain("session ").then(title(&state)));
    let mut view = View::new(context);
    let mut after = state.seq.saturating_sub(args.lines);
    let mut driven = state.driver.is_some();
    loop {
        let rows = ctx.engine.events(id, after, 500)?;
        for row in &rows {
            after = match row {
                row if context.printer.is_json() => print_line(context, row)?,
                EventRow::Whole(stored) => {
                    if let Ok(event) = stored.event() {
                        driven &= !matches!(event, Event::DriverDetached(_) | Event::SessionInterrupted(_));
                        driven |= matches!(event, Event::DriverAttached(_));
                        view.show(stored.seq, stored.at, &event);
                    }
                    stored.seq
                }
                EventRow::Damaged { seq, what } => {
                    context.printer.warn(format!("event {seq} is damaged: {what}"));
                    *seq
                }
            };
        }
        if !rows.is_empty() {
            context.printer.flush()?;
            continue;
        }
        if context.printer.is_json() {
            driven = ctx.load(id)?.driver.is_some();
        }
        if !args.follow || !driven {
            break;
        }
        view.tick();
        ctx.engine.wait_for_events(id, after, WAIT)?;
        // A driver that died says nothing: whoever watches finds out.
        ctx.engine.settle()?;
    }
    let state = ctx.load(id)?;
    if let Some(run) = state.run.as_ref().filter(|_| !context.printer.is_json()) {
        let how = run.outcome.as_deref().map_or("runs", |outcome| outcome).replace('_', " ");
        context.printer.talk(format!("  {} {how}; the session is {}", run.agent, state.status));
    }
    Ok(())
}
