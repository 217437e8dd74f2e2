//! `segno watch`: follows the conversations of agents that were started by hand.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::schedule::Job;
use segno_engine::schedule::Schedule;
use segno_engine::setup::CatchUp;
use segno_engine::watch::Follower;
use serde_json::json;

use super::schedule;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// How often it checks.
const LOOK: Duration = Duration::from_millis(500);
/// How long it rests at once, so that it ends soon when it is asked to.
const NAP: Duration = Duration::from_millis(50);

/// Follow agents that you started yourself
///
/// Reads the conversation logs that the hooks of segno init report, so that text and token use are recorded before the
/// next hook, and a dead agent is noticed at once. You do not need it: hooks and every other command do the same, only
/// later. Runs until Ctrl-C; segno watch install runs it as a user service.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  segno watch\n  segno watch --once\n  segno watch install --dry-run"
)]
pub struct Args {
    /// What to do; follows if nothing is said
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Look once and exit
    #[arg(long)]
    pub once: bool,
}

/// What to do with the service.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Command {
    /// Run it as a user service, under systemd or launchd
    Install {
        /// Show what would be written and run, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Show whether the service is installed
    List,
    /// Stop and remove the service
    Remove,
}

/// Runs `segno watch`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let Some(command) = args.command else { return follow(context, args.once) };
    let ctx = CommandContext::open_or_make(context)?;
    let service = service(&ctx)?;
    match command {
        Command::Install { dry_run } => schedule::arm(&ctx, &service, dry_run),
        Command::List => list(&ctx, &service),
        Command::Remove => schedule::remove(&ctx, &service),
    }
}

/// The service of the store that is open.
fn service(ctx: &CommandContext<'_>) -> Outcome<Schedule> {
    schedule::of(ctx, Job::Follow, &["watch"])
}

fn list(ctx: &CommandContext<'_>, service: &Schedule) -> Outcome {
    let printer = &ctx.context.printer;
    if printer.is_json() {
        return printer.json(&schedule::document(service));
    }
    let stands = match (service.is_written(), service.is_armed()) {
        (false, _) => "no service: segno watch install makes one",
        (true, false) => "the service is written, but not started: segno watch install",
        (true, true) => "installed",
    };
    printer.data(format!("{}   {stands}", service.name()))
}

fn follow(context: &Context, once: bool) -> Outcome {
    let printer = &context.printer;
    let ctx = CommandContext::open_or_make(context)?;
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ends))
            .map_err(|why| CommandError::io("cannot listen for Ctrl-C", why))?;
    }
    if !once && !printer.is_json() {
        printer
            .talk("following agents that were started by hand; Ctrl-C ends it, and nothing is lost by that");
    }
    let mut follower = Follower::default();
    loop {
        // What comes later finds the store as it is then: busy, it is looked at again.
        let caught = ctx.engine.catch_up(CatchUp::Whole);
        let read = match follower.look(&ctx.engine) {
            Ok(read) => read,
            Err(why) if once => return Err(why.into()),
            Err(why) => {
                printer.detail(1, format!("the store could not be read: {why}"));
                Vec::new()
            }
        };
        let interrupted = caught.interrupted.unwrap_or_default();
        for session in &interrupted {
            match printer.is_json() {
                true => printer.json_line(&json!({ "session_id": session, "what": "interrupted" }))?,
                false => printer.talk(format!(
                    "{}  its agent died: segno show {}",
                    short(*session),
                    ctx.engine.ending(*session)
                )),
            }
        }
        for session in read {
            match printer.is_json() {
                true => printer.json_line(&json!({ "session_id": session, "what": "read" }))?,
                false => printer.detail(1, format!("{}  read", short(session))),
            }
        }
        printer.flush()?;
        let rest = std::time::Instant::now() + LOOK;
        while !once && !ends.load(Ordering::Relaxed) && std::time::Instant::now() < rest {
            std::thread::sleep(NAP);
        }
        if once || ends.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}
