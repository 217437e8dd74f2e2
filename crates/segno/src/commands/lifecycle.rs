//! The commands that change the status of a session.

use clap::Args as ClapArgs;
use segno_engine::core::Command;
use segno_engine::core::Status;
use segno_engine::looping;

use super::args::OneSession;
use crate::command_context::CommandContext;
use crate::command_context::title;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::units;

/// Pause a session
///
/// It can be resumed at any time. If it is being driven, its driver stops first.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno pause --reason \"waiting for review\"")]
pub struct PauseArgs {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Finish a session
///
/// This is final; going on starts a new session that continues this one.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno complete --summary \"login form works\"")]
pub struct CompleteArgs {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// What was achieved
    #[arg(long, value_name = "TEXT")]
    pub summary: Option<String>,
}

/// Abort a session
///
/// Its record stays.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno abort --reason \"wrong approach\"")]
pub struct AbortArgs {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Also remove the files that were kept for other tools (layout.families); the record stays
    #[arg(long)]
    pub remove_files: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Abandon a session without a reason
///
/// The same as abort, under the name other tools use.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno abandon 804211")]
pub struct AbandonArgs {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
}

/// Mark a session as failed for good
///
/// An error alone does not fail a session: it can be resumed. This is the last word about it.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno fail --reason \"the service is gone\"")]
pub struct FailArgs {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Runs `segno pause`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn pause(context: &Context, args: &PauseArgs) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session(args.session.id.as_ref())?;
    let command = looping::pause(&ctx.load(id)?, text(args.reason.as_deref()));
    let acted = ctx.act(id, vec![command]).map_err(|error| explain(&ctx, id, error))?;
    ctx.report(&acted, Text::new().plain("paused ").then(title(&acted.state)))
}

/// Runs `segno complete`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn complete(context: &Context, args: &CompleteArgs) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session_to_end(args.session.id.as_ref(), "complete")?;
    let before = ctx.load(id)?;
    ctx.refuse_agent_at_breakpoint(&before, "complete")?;
    if before.looping.is_some() {
        context.refuse_below_run("complete a loop: only its gate does")?;
    }
    let command = Command::Complete { summary: text(args.summary.as_deref()) };
    let acted = ctx.act(id, vec![command]).map_err(|error| {
        // Resuming a session that had an agent would start it again.
        if matches!(before.status, Status::Paused | Status::Interrupted) && before.run.is_some() {
            let tail = ctx.engine.ending(id);
            return error.hint(format!("segno resume {tail} --no-run   then: segno complete {tail}"));
        }
        if before.status == Status::Halted {
            let tail = ctx.engine.ending(id);
            return error.hint(format!(
                "segno resume {tail} --no-run --reset-breaker   then: segno complete {tail}   (or: segno abort {tail})"
            ));
        }
        explain(&ctx, id, error)
    })?;
    let state = &acted.state;
    let mut line = Text::new().plain("completed ").then(title(state));
    if let Some(ended) = state.completed_at {
        let took = std::time::Duration::from_micros(ended.micros_since(state.created_at));
        line = line.plain(format!("   took {}", units::duration(took)));
    }
    if !state.metrics.is_empty() {
        line = line.plain(format!("   {}", super::resume::metrics(state)));
    }
    ctx.report(&acted, line)?;
    if state.status == Status::Completed && !acted.repeated {
        warn_open(context, &before);
    }
    Ok(())
}

/// What a session leaves open that is completed all the same.
fn warn_open(context: &Context, before: &segno_engine::core::State) {
    let mut open = Vec::new();
    let tasks = before.tasks.open.len() as u64;
    if tasks > 0 {
        open.push(format!("with {} open", units::things(tasks, "task")));
    }
    if let (Some(step), Some(of)) = (before.step, before.of)
        && step < of
    {
        open.push(format!("at step {step} of {of}"));
    }
    if !open.is_empty() {
        context.printer.warn(format!("completed {}", open.join(", ")));
    }
}

/// Runs `segno abort`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn abort(context: &Context, args: &AbortArgs) -> Outcome {
    let command = Command::Abort { reason: text(args.reason.as_deref()) };
    if !args.remove_files {
        return change(context, &args.session, command, "aborted");
    }
    let ctx = CommandContext::open(context)?;
    let id = ctx.session_to_end(args.session.id.as_ref(), "end")?;
    let acted = ctx.act(id, vec![command]).map_err(|error| explain(&ctx, id, error))?;
    if acted.state.status == Status::Aborted {
        let removed = super::layout::remove_files(&ctx, &acted.state, &context.layout()?.families)?;
        context
            .printer
            .talk(format!("{} for other tools removed", units::things(removed.len() as u64, "file")));
    } else {
        context
            .printer
            .warn("the files for other tools stay until its driver has stopped: segno layout remove");
    }
    ctx.report(&acted, Text::new().plain("aborted ").then(title(&acted.state)))
}

/// Runs `segno abandon`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn abandon(context: &Context, args: &AbandonArgs) -> Outcome {
    change(context, &args.session, Command::Abort { reason: text(Some("abandoned")) }, "abandoned")
}

/// Runs `segno fail`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn fail(context: &Context, args: &FailArgs) -> Outcome {
    change(context, &args.session, Command::Fail { reason: text(args.reason.as_deref()) }, "marked as failed")
}

fn text(words: Option<&str>) -> Option<segno_engine::core::Text> {
    words.map(Into::into)
}

fn change(context: &Context, session: &OneSession, command: Command, said: &str) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session_to_end(session.id.as_ref(), "end")?;
    let acted = ctx.act(id, vec![command]).map_err(|error| explain(&ctx, id, error))?;
    ctx.report(&acted, Text::new().plain(format!("{said} ")).then(title(&acted.state)))
}

/// The most recently changed session of the project that can be resumed.
pub(super) fn waiting(ctx: &CommandContext<'_>) -> Outcome<segno_engine::core::SessionId> {
    let filter = segno_engine::Filter {
        project: Some(ctx.context.project.root.display().to_string()),
        statuses: vec![Status::Paused, Status::Interrupted, Status::Halted],
        archived: Some(false),
        limit: Some(1),
        ..segno_engine::Filter::default()
    };
    match ctx.engine.list(&filter)?.first() {
        Some(summary) => Ok(summary.session_id),
        None => ctx.session(None).map_err(nothing_waits),
    }
}

/// Where no session is open at all, there is nothing to take up.
fn nothing_waits(error: CommandError) -> CommandError {
    match error.code() {
        "no_active_session" => {
            let why = "nothing waits here: no session of this project is paused, interrupted or halted";
            CommandError::new(error.exit(), error.code(), why)
                .hint("segno ls   shows the sessions of this project   (segno ls --everywhere: those of all)")
        }
        _ => error,
    }
}

/// What to type next depends on where the session stands.
pub(super) fn explain(
    ctx: &CommandContext<'_>,
    id: segno_engine::core::SessionId,
    error: CommandError,
) -> CommandError {
    if !error.hints().is_empty() {
        return error;
    }
    let Ok(loaded) = ctx.engine.load(id) else { return error };
    let tail = ctx.engine.ending(id);
    let hint = match loaded.state.status {
        Status::Active => format!("segno pause {tail}   (or: segno complete {tail})"),
        Status::Paused | Status::Interrupted => format!("segno resume {tail}   (or: segno abort {tail})"),
        Status::Halted => format!("segno resume {tail} --reset-breaker   (or: segno abort {tail})"),
        Status::Completed | Status::Aborted | Status::Failed => {
            format!("segno new   starts another session   (or: segno show {tail})")
        }
    };
    error.hint(hint)
}
