//! `segno run`: an agent, started, recorded, watched and cleaned up after.

mod args;
mod describe;
pub(super) mod detach;
mod interactive;
mod launch;
mod permissions;
mod result;
mod signals;
mod view;
mod waiting;

pub use args::Args;
pub use describe::describe;
pub(crate) use detach::in_background;
pub(super) use interactive::has_terminal;
pub(super) use interactive::need_terminal;
pub(super) use launch::agent_is_there;
pub(super) use launch::check_agent;
pub(super) use launch::settings;
pub(super) use launch::warn_of_model;
pub use result::document;
pub(in crate::commands) use signals::listen;
pub use view::View;
pub(super) use waiting::Next;
pub(super) use waiting::ask as ask_about_waiting;

use std::time::Duration;

use segno_engine::Error;
use segno_engine::EventRow;
use segno_engine::agents::OutcomeKind;
use segno_engine::agents::drift::is_newer;
use segno_engine::agents::drift::tested;
use segno_engine::core::SessionId;
use segno_engine::run::Feed;
use segno_engine::run::Heard;
use segno_engine::run::News;
use segno_engine::run::Report;
use segno_engine::run::Stop;

use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// How long the view waits for news before it looks at the clock.
const TICK: Duration = Duration::from_millis(500);

/// Runs `segno run`.
///
/// # Errors
/// If the agent cannot be run; how a run ended is an exit code of its own.
pub fn run(context: &Context, args: &Args) -> Outcome {
    if args.detach {
        return detach::detach(context);
    }
    detach::leave_terminal(args.tell.as_deref());
    let ctx = CommandContext::open_to_stay_below(context, args.below)?;
    if let Next::Resume(id) = waiting::announce(&ctx, args)? {
        return super::resume::take_up_session(&ctx, id);
    }
    begin(&ctx, args)
}

/// Begins a run, whatever else waits.
pub(super) fn begin(ctx: &CommandContext<'_>, args: &Args) -> Outcome {
    let context = ctx.context;
    let feed = Feed::default();
    let stop = Stop::default();
    let launch = launch::prepare(ctx, args, &feed, &stop)?;
    let session = launch.request.session;
    detach::tell(args.tell.as_deref(), session);
    if !context.printer.is_json() && !args.raw {
        view::banner(ctx, &launch.state, &launch.request);
    }
    let raw = args.raw;
    let request = launch.request;
    let (program, unknown) = (request.program.clone(), request.version.is_none());
    let name = request.agent.name().to_owned();
    if let Some(version) = request.version.as_deref().filter(|version| is_newer(&name, version)) {
        let tested = tested(&name).unwrap_or_default();
        let what =
            format!("{name} {version} is newer than tested ({tested}): it may say what segno does not know");
        context.printer.warn_with(what, &["segno doctor".to_owned()]);
    }
    // A session that this run made is printed from its first event on.
    let first = if launch.state.counts.runs == 0 && launch.state.seq == 1 { 0 } else { launch.state.seq };
    let followed = match request.launch.interactive {
        true => interactive::follow(ctx, request, &stop),
        false => follow(ctx, (session, first), &feed, raw, &stop, || {}, |engine| engine.start(request)),
    };
    if unknown {
        let environment = crate::config::env::Environment::inherited();
        ctx.engine.learn_version(session, &name, &program, &ctx.context.paths.state, &environment);
    }
    let last = super::resume::again(ctx, args, session, followed??, &stop)?;
    let finished = report(ctx, session, args.raw, last);
    if finished.is_ok() {
        detach::forget(args.tell.as_deref());
    }
    finished
}

/// Runs something that publishes to a feed, and shows what it publishes, each in its own thread: a terminal that
/// does not move holds up nobody. What was recorded before the event `first` is not shown; `beside` is called again and
/// again in the thread that shows.
pub(super) fn follow<T: Send>(
    ctx: &CommandContext<'_>,
    (session, first): (SessionId, u64),
    feed: &Feed,
    raw: bool,
    stop: &Stop,
    mut beside: impl FnMut(),
    work: impl FnOnce(&segno_engine::Engine) -> Result<T, Error> + Send,
) -> Outcome<Result<T, Error>> {
    let context = ctx.context;
    let buffer = context.config()?.run.view_buffer;
    let json = context.printer.is_json() && !raw;
    let words_only = raw || (context.printer.is_quiet() && !json);
    let listener = if words_only { feed.subscribe_to_notices(buffer) } else { feed.subscribe(buffer) };
    let _signals = signals::listen(stop)?;
    let engine = &ctx.engine;
    std::thread::scope(|scope| {
        let feed = feed.clone();
        let worker = scope.spawn(move || {
            let report = work(engine);
            feed.close();
            report
        });
        let mut view = View::new(context);
        if let Ok(before) = engine.load(session) {
            view.know_open_calls(&before.state);
        }
        let mut printed = first;
        loop {
            let heard = listener.next(TICK);
            if raw {
                beside();
                if heard == Heard::Closed {
                    break;
                }
                if let Heard::News(news) = &heard
                    && let News::Notice(text) = &**news
                {
                    context.printer.warn(text.clone());
                }
                continue;
            }
            match &heard {
                Heard::Closed => break,
                Heard::Nothing => view.tick(),
                Heard::News(news) => {
                    if let News::Notice(text) = &**news {
                        context.printer.warn(text.clone());
                    }
                }
                Heard::Missed(_) => {}
            }
            // What is shown comes from the journal itself: a slow reader misses nothing, and what hooks and others
            // recorded, such as a checkpoint before a risky call, is there too.
            if !words_only {
                printed = print_journal(ctx, session, printed, &mut view, Unreadable::Later)?;
            }
            // What is said beside comes of what is recorded already.
            beside();
        }
        let report = worker.join().map_err(|_| CommandError::internal("the run's thread died"))?;
        if !words_only {
            let unreadable = if json { Unreadable::Error } else { Unreadable::Later };
            print_journal(ctx, session, printed, &mut view, unreadable)?;
        }
        beside();
        Ok(report)
    })
}

/// What a journal that cannot be read means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unreadable {
    /// It is an error.
    Error,
    /// The run goes on without it, and what is in it is printed when it can be read again.
    Later,
}

/// Shows what was recorded in another session after an event; answers with the last one. What cannot be read now is
/// shown later.
pub(super) fn print_beside(
    ctx: &CommandContext<'_>,
    (session, after): (SessionId, u64),
    view: &mut View<'_>,
) -> Outcome<u64> {
    print_journal(ctx, session, after, view, Unreadable::Later)
}

/// Shows the events after `after`, as lines of JSON if that is asked for; answers with the last one.
fn print_journal(
    ctx: &CommandContext<'_>,
    session: SessionId,
    mut after: u64,
    view: &mut View<'_>,
    unreadable: Unreadable,
) -> Outcome<u64> {
    loop {
        let rows = match ctx.engine.events(session, after, 500) {
            Err(_) if unreadable == Unreadable::Later => return Ok(after),
            rows => rows?,
        };
        if rows.is_empty() {
            ctx.context.printer.flush()?;
            return Ok(after);
        }
        for row in rows {
            after = match &row {
                row if ctx.context.printer.is_json() => super::log::print_line(ctx.context, row)?,
                EventRow::Whole(stored) => {
                    if let Ok(event) = stored.event() {
                        view.show(stored.seq, stored.at, &event);
                    }
                    stored.seq
                }
                EventRow::Damaged { seq, .. } => *seq,
            };
        }
    }
}

/// What an agent is taken up again with.
#[derive(Clone, Debug)]
pub(super) struct Resumed {
    /// The session it works in.
    pub(super) session: SessionId,
    /// Who goes on, in which conversation, and what it is told.
    pub(super) agent: segno_engine::resume::ResumedAgent,
    /// Whether the breaker is closed.
    pub(super) reset_breaker: bool,
    /// Whether it gets the terminal.
    pub(super) interactive: bool,
    /// The last event that was printed already.
    pub(super) printed: Option<u64>,
}

/// Takes an agent up again, and follows it to its end. What else the run is given is in `base`.
pub(super) fn resume_run(
    ctx: &CommandContext<'_>,
    base: &Args,
    resumed: Resumed,
    stop: &Stop,
) -> Outcome<Report> {
    let session = resumed.session;
    let args = Args {
        agent: Some(resumed.agent.name.clone()),
        prompt: Some(resumed.agent.prompt.clone()),
        file: None,
        work_item: None,
        continue_from: None,
        ..base.clone()
    };
    let feed = Feed::default();
    let (printed, interactive) = (resumed.printed, resumed.interactive);
    let launch = launch::prepare_resumed(ctx, &args, resumed, &feed, stop)?;
    if !ctx.context.printer.is_json() && !args.raw {
        view::banner(ctx, &launch.state, &launch.request);
    }
    let first = printed.unwrap_or(launch.state.seq);
    let request = launch.request;
    if interactive {
        return Ok(interactive::follow(ctx, request, stop)??);
    }
    Ok(follow(ctx, (session, first), &feed, args.raw, stop, || {}, |engine| engine.start(request))??)
}

/// Says in short how a run went that is not the last one.
pub(super) fn in_between(ctx: &CommandContext<'_>, base: &Args, report: &Report) {
    if !base.raw {
        view::summary(ctx, report);
    }
}

/// Says how it went.
pub(super) fn finish(
    ctx: &CommandContext<'_>,
    session: SessionId,
    raw: bool,
    followed: Outcome<Result<Report, Error>>,
) -> Outcome {
    report(ctx, session, raw, followed??)
}

/// Says how a run went.
pub(super) fn report(ctx: &CommandContext<'_>, session: SessionId, raw: bool, report: Report) -> Outcome {
    let context = ctx.context;
    let printer = &context.printer;
    for notice in &report.notices {
        printer.warn(notice.clone());
    }
    if let Some(kept) = &report.kept_capture {
        let open = report.state.run.as_ref().is_some_and(segno_engine::core::state::RunMark::is_running);
        printer.warn(match open {
            true => format!(
                "what the run printed last is not recorded yet; it is kept in {}, and the next command records it",
                kept.display()
            ),
            false => format!(
                "something that the run left behind holds its output open; what it prints from now on is not recorded, \
                 only kept in {}",
                kept.display()
            ),
        });
    }
    if printer.is_json() && !raw {
        printer.json_line(&document(&report, &ctx.engine.redactor()))?;
    } else if !raw {
        let interactive = report.state.run.as_ref().is_some_and(|run| run.interactive);
        let text = report.outcome.text.as_deref().filter(|text| !text.trim().is_empty());
        // Who had the agent's terminal has read its last words there.
        if let Some(text) = text.filter(|_| !interactive) {
            let text = ctx.engine.redactor().text(text).into_owned();
            printer.data(text)?;
        }
        view::summary(ctx, &report);
        if interactive && report.outcome.outcome == OutcomeKind::Completed {
            printer
                .hint(format!("segno resume {}   goes on in this conversation", ctx.engine.ending(session)));
        }
    }
    ctx.finish();
    outcome_exit(ctx, &report, session)
}

/// The exit code of a run; completed is no error.
fn outcome_exit(ctx: &CommandContext<'_>, report: &Report, session: SessionId) -> Outcome {
    let exit = exit_of(report.outcome.outcome);
    if exit == ExitCode::Ok {
        return Ok(());
    }
    let word = segno_engine::run::outcome_word(report.outcome.outcome).replace('_', " ");
    let mut error =
        CommandError::new(exit, exit_word(exit), format!("the run ended: {word}: {}", report.outcome.reason));
    let tail = ctx.engine.ending(session);
    let state = &report.state;
    if exit == ExitCode::BudgetExhausted
        && let Some(hint) = ctx.cap_hint(state)
    {
        error = error.hint(hint);
    }
    error = error.hint(match state.status.is_open() {
        true => format!("segno resume {tail}   segno show {tail}   segno abort {tail}"),
        false => format!("segno show {tail}"),
    });
    Err(error)
}

fn exit_word(exit: ExitCode) -> &'static str {
    match exit {
        ExitCode::RunFailed => "run_failed",
        ExitCode::RunInterrupted => "run_interrupted",
        ExitCode::RunTimedOut => "run_timed_out",
        ExitCode::RunStopped => "run_stopped",
        ExitCode::RunLimit => "run_limit",
        ExitCode::RunDenied => "run_denied",
        ExitCode::RunMaxTurns => "run_max_turns",
        ExitCode::BudgetExhausted => "run_budget",
        _ => "agent_missing",
    }
}

/// The exit code for an outcome.
pub fn exit_of(outcome: OutcomeKind) -> ExitCode {
    match outcome {
        OutcomeKind::Completed => ExitCode::Ok,
        OutcomeKind::Failed => ExitCode::RunFailed,
        OutcomeKind::Interrupted => ExitCode::RunInterrupted,
        OutcomeKind::TimedOut => ExitCode::RunTimedOut,
        OutcomeKind::Stopped => ExitCode::RunStopped,
        OutcomeKind::Limit => ExitCode::RunLimit,
        OutcomeKind::Budget => ExitCode::BudgetExhausted,
        OutcomeKind::Denied => ExitCode::RunDenied,
        OutcomeKind::MaxTurns => ExitCode::RunMaxTurns,
        OutcomeKind::AgentMissing => ExitCode::AgentMissing,
    }
}
