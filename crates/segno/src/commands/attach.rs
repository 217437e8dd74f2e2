//! `segno attach`, `segno stop` and `segno kill`: a run that somebody else started.

use std::time::Duration;

use clap::Args as ClapArgs;
use segno_engine::Acted;
use segno_engine::core::SessionId;
use segno_engine::looping;
use segno_engine::run::EndedRun;
use segno_engine::run::Ending;
use segno_engine::run::Feed;
use segno_engine::run::Stop;

use super::args::OneSession;
use super::args::age;
use super::run::finish;
use super::run::follow;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// Follow a run whose driver died
///
/// An agent that outlives its driver keeps working. This command takes the driver's place, records everything the agent
/// printed in the meantime, and follows it to its end, within the limits that the run was started with. If the agent has
/// ended too, what it printed last is recorded.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno attach 804211")]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
}

/// Stop a run
///
/// Asks whoever drives the session to stop the agent politely, and waits until it has ended. The session is paused and
/// can be resumed. A loop that waits for a limit stays parked until you resume it, even when its time comes.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno stop last")]
pub struct StopArgs {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Do not wait
    #[arg(long)]
    pub no_wait: bool,
    /// Wait at most this long
    #[arg(long, value_name = "TIME", value_parser = age, default_value = "60s")]
    pub timeout: Duration,
}

/// End a run at once
///
/// Ends the agent and all its processes without warning, whoever drives the session. What it was doing is in doubt
/// afterwards; `segno stop` is kinder.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno kill 804211")]
pub struct KillArgs {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
}

/// Runs `segno attach`.
///
/// # Errors
/// If somebody drives the session, or there is no run.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open_to_stay(context)?;
    let id = ctx.session(args.session.id.as_ref())?;
    ctx.load(id)?;
    let first = ctx.engine.check_adoptable(id)?.seq;
    let (feed, stop) = (Feed::default(), Stop::default());
    let (work_feed, work_stop) = (feed.clone(), stop.clone());
    context.printer.talk(format!("following the agent of session {}", short(id)));
    let followed = follow(
        &ctx,
        (id, first),
        &feed,
        false,
        &stop,
        || {},
        move |engine| engine.adopt(id, work_stop, work_feed),
    );
    finish(&ctx, id, false, followed)
}

/// Runs `segno stop`.
///
/// # Errors
/// If there is no run, or it does not end in time.
pub fn stop(context: &Context, args: &StopArgs) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session(args.session.id.as_ref())?;
    if let Some(acted) = hold(&ctx, id)? {
        return ctx.report(&acted, "stopped: it stays parked until you resume it");
    }
    let Some(acted) = end(&ctx, id, Ending::Stop)? else { return Ok(()) };
    if ctx.engine.is_watched(id) {
        // Nobody is there who could end it, and its hook says so when it wants to call something.
        context.printer.talk("its agent was started by hand: until its turn ends, its calls are denied");
        return ctx.report(&acted, "asked to stop");
    }
    if !args.no_wait {
        wait(&ctx, id, args.timeout)?;
    }
    ctx.report(&acted, if args.no_wait { "asked to stop" } else { "stopped" })
}

/// Runs `segno kill`.
///
/// # Errors
/// If there is no run.
pub fn kill(context: &Context, args: &KillArgs) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session_to_end(args.session.id.as_ref(), "kill the agent of")?;
    if let Some(acted) = hold(&ctx, id)? {
        return ctx.report(&acted, "nothing ran; it stays parked until you resume it");
    }
    let Some(acted) = end(&ctx, id, Ending::Kill)? else { return Ok(()) };
    wait(&ctx, id, Duration::from_secs(20))?;
    ctx.report(&acted, "killed")
}

/// A parked loop has no agent that could be stopped: it stays parked, even when its time comes, and whoever waits for it
/// in the foreground ends. None if the session is none.
fn hold(ctx: &CommandContext<'_>, id: SessionId) -> Outcome<Option<Acted>> {
    let state = ctx.load(id)?;
    if !looping::is_parked(&state) {
        return Ok(None);
    }
    Ok(Some(ctx.act(id, vec![looping::pause(&state, None)])?))
}

/// Ends a run; none if nobody drove it, and that was said.
fn end(ctx: &CommandContext<'_>, id: SessionId, how: Ending) -> Outcome<Option<Acted>> {
    ctx.load(id)?;
    match ctx.engine.end_running(id, how, ctx.key()?)? {
        EndedRun::Asked(acted) => Ok(Some(*acted)),
        EndedRun::Undriven(ended) => {
            ctx.context.printer.talk(format!("ended {ended} of its processes; nobody drove the session"));
            ctx.finish();
            Ok(None)
        }
        EndedRun::Nothing => Err(CommandError::new(
            ExitCode::Refused,
            "no_run",
            format!("no agent runs in session {}", short(id)),
        )
        .hint(format!("segno show {}", ctx.engine.ending(id)))),
    }
}

fn wait(ctx: &CommandContext<'_>, id: SessionId, patience: Duration) -> Outcome {
    match ctx.engine.wait_until_undriven(id, patience)? {
        true => Ok(()),
        false => Err(CommandError::failure("still_running", "the run has not ended yet")
            .hint(format!("segno kill {}", ctx.engine.ending(id)))),
    }
}
