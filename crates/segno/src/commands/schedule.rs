//! `segno schedule`: a timer of the system that goes on with loops that are due.

use std::time::Duration;

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::schedule::Job;
use segno_engine::schedule::Schedule;
use segno_engine::schedule::Scheduler;
use segno_engine::schedule::run_all;
use serde_json::json;

use super::args::age;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::units;

/// Resume parked loops with a system timer
///
/// Installs a timer of your systemd user session (launchd on macOS) that checks every few minutes for loops of this
/// store that are due, and resumes them: segno loop resume --due. Without a subcommand it writes and enables the timer.
/// The agents must be logged in: variables that hold keys are not written to it.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  segno schedule\n  segno schedule --every 5m --dry-run\n  segno schedule list"
)]
pub struct Args {
    /// What to do; arms the timer if nothing is said
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How often it checks
    #[arg(long, value_name = "TIME", value_parser = age, default_value = "10m")]
    pub every: Duration,
    /// Show what would be written and run, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What to do with the timer.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Command {
    /// Show whether the timer is installed and enabled, and which loops wait
    List,
    /// Disable and remove the timer
    Remove,
}

/// Runs `segno schedule`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open_or_make(context)?;
    let schedule = timer(&ctx, args.every)?;
    match args.command {
        None => arm(&ctx, &schedule, args.dry_run),
        Some(Command::List) => list(&ctx, &schedule),
        Some(Command::Remove) => remove(&ctx, &schedule),
    }
}

/// The timer of the store that is open.
pub(super) fn timer(ctx: &CommandContext<'_>, every: Duration) -> Outcome<Schedule> {
    of(ctx, Job::Due { every }, &["loop", "resume", "--due", super::looping::BY, "timer"])
}

/// What the system does with this program and these words for the store that is open.
pub(super) fn of(ctx: &CommandContext<'_>, job: Job, words: &[&str]) -> Outcome<Schedule> {
    let context = ctx.context;
    let own = std::env::current_exe().map_err(|why| CommandError::io("cannot find this program", why))?;
    let store = context.store_location()?.absolute().url().into_string().map_err(|_| {
        CommandError::config("config_invalid", "the path of the store is not UTF-8")
            .hint("segno --store sqlite:PATH …")
    })?;
    let scheduler = Scheduler::here();
    let config = context.environment.non_empty("XDG_CONFIG_HOME").filter(|path| path.starts_with('/'));
    let config = config.map_or_else(|| context.paths.home.join(".config"), Into::into);
    let words = ["--store", &store].into_iter().chain(words.iter().copied()).map(ToOwned::to_owned);
    Ok(Schedule {
        scheduler,
        directory: scheduler.directory(&context.paths.home, &config),
        store: ctx.engine.store_id(),
        command: [own.display().to_string()].into_iter().chain(words).collect(),
        environment: environment(context),
        job,
    })
}

/// Where programs, settings and agents' homes are: what a timer would not know. Nothing of it is a secret.
fn environment(context: &Context) -> Vec<(String, String)> {
    let own = ["PATH", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "SEGNO_CONFIG"];
    let mut names: Vec<&str> = own.to_vec();
    names.extend(segno_engine::agents::keeping_variables());
    names.extend(segno_engine::agents::log_variables());
    names.sort_unstable();
    names.dedup();
    let set = |name: &str| Some((name.to_owned(), context.environment.non_empty(name)?.to_owned()));
    names.into_iter().filter_map(set).collect()
}

pub(super) fn arm(ctx: &CommandContext<'_>, schedule: &Schedule, dry_run: bool) -> Outcome {
    let printer = &ctx.context.printer;
    if dry_run {
        if printer.is_json() {
            return printer.json(&document(schedule));
        }
        for (path, text) in schedule.files() {
            printer.data(format!("# {}", path.display()))?;
            printer.data(text)?;
        }
        for words in schedule.arming() {
            printer.data(words.join(" "))?;
        }
        return Ok(());
    }
    ctx.context.refuse_below_run(match schedule.job {
        Job::Due { .. } => "arm a timer",
        Job::Follow => "install a service",
    })?;
    schedule.write()?;
    let armed = run_all(&schedule.arming());
    if printer.is_json() {
        printer.json(&document(schedule))?;
    } else if armed.is_ok() {
        match schedule.job {
            Job::Due { every } => {
                printer.talk(format!(
                    "enabled: it checks every {} for loops that are due",
                    units::duration(every)
                ));
                printer.hint("segno schedule list   segno schedule remove");
            }
            Job::Follow => {
                printer.talk("started: it follows agents that were started by hand");
                printer.hint("segno watch list   segno watch remove");
            }
        }
    }
    armed.map_err(|why| {
        let mut error = CommandError::failure(
            "not_armed",
            format!("{} is written, but not enabled: {why}", noun(schedule)),
        );
        for words in schedule.arming() {
            error = error.hint(words.join(" "));
        }
        error
    })
}

fn list(ctx: &CommandContext<'_>, schedule: &Schedule) -> Outcome {
    let printer = &ctx.context.printer;
    if printer.is_json() {
        return printer.json(&document(schedule));
    }
    let stands = match (schedule.is_written(), schedule.is_armed()) {
        (false, _) => "no timer: segno schedule installs one",
        (true, false) => "the timer is written, but not enabled: segno schedule",
        (true, true) => "armed",
    };
    printer.data(format!("{}   {stands}", schedule.name()))?;
    let due: usize = ctx.engine.due_loops()?.iter().map(|group| group.sessions.len()).sum();
    printer.data(format!("{} due", units::things(due as u64, "loop")))
}

pub(super) fn remove(ctx: &CommandContext<'_>, schedule: &Schedule) -> Outcome {
    ctx.context.refuse_below_run(match schedule.job {
        Job::Due { .. } => "remove a timer",
        Job::Follow => "remove a service",
    })?;
    let printer = &ctx.context.printer;
    // One that was never armed, or a manager that is not there, is no reason to keep the files.
    let disarmed = run_all(&schedule.disarming());
    let there = schedule.remove()?;
    if printer.is_json() {
        return printer.json(&json!({ "removed": there }));
    }
    match (there, disarmed) {
        (false, _) => printer.talk(format!("{} is not there", noun(schedule))),
        (true, Ok(())) => printer.talk(format!("{} is gone", noun(schedule))),
        (true, Err(why)) => printer.warn(format!("its files are removed; it could not be disabled: {why}")),
    }
    Ok(())
}

fn noun(schedule: &Schedule) -> &'static str {
    match schedule.job {
        Job::Due { .. } => "the timer",
        Job::Follow => "the service",
    }
}

pub(super) fn document(schedule: &Schedule) -> serde_json::Value {
    let files = schedule.files().into_iter().map(|(path, text)| json!({ "path": path, "text": text }));
    json!({
        "name": schedule.name(),
        "written": schedule.is_written(),
        "armed": schedule.is_armed(),
        "files": files.collect::<Vec<_>>(),
        "runs": schedule.command,
        "commands": schedule.arming(),
    })
}
