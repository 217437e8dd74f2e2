//! `segno resume`: takes up work that was paused, interrupted or halted.

mod again;
mod all;
mod confirm;
mod halted;
mod panel;

pub(super) use again::again;
pub(crate) use all::start as in_background;
pub(super) use confirm::metrics;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::ValueEnum;
use segno_engine::agents::Conversation;
use segno_engine::agents::ErrorClass;
use segno_engine::agents::OutcomeKind;
use segno_engine::agents::is_command;
use segno_engine::agents::says_unknown_conversation;
use segno_engine::core::Command;
use segno_engine::core::Fact;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::looping::LoopCommand;
use segno_engine::core::rows::RunRow;
use segno_engine::resume::BranchWish;
use segno_engine::resume::Options;
use segno_engine::resume::Recovery;
use segno_engine::resume::ResumeWish;
use segno_engine::resume::ResumedAgent;
use segno_engine::run::Report;
use segno_engine::run::Stop;
use segno_engine::run::living_agent;
use serde_json::json;

use self::panel::Answer;
use super::args::OneSession;
use super::lifecycle;
use super::run::Args as RunArgs;
use super::run::Resumed;
use super::run::resume_run;
use crate::ask::Terminal;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// Resume a session
///
/// Without a name, the newest session of the project that is paused, interrupted or halted. On a terminal it shows where
/// the work stands and asks how to continue; with flags or without a terminal it never asks. An agent that still runs
/// without its driver is stopped first, and everything it said is recorded; one that has finished meanwhile is not started
/// again. If an agent worked in the session, it continues in the same conversation where possible, and is told what was
/// done, what is in doubt, what changed and what is still to do. A session without an agent only becomes active again.
#[derive(ClapArgs, Clone, Debug, Default)]
#[command(
    visible_alias = "wake",
    after_help = "Examples:\n  segno resume\n  segno resume 804211 --from live\n  \
    segno resume --agent codex\n  segno resume --all\n  segno resume --show-brief"
)]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Where to resume from
    #[arg(long, value_name = "WHERE")]
    pub from: Option<From>,
    /// Resume from this checkpoint
    #[arg(long, value_name = "CP", conflicts_with = "from")]
    pub checkpoint: Option<String>,
    /// Only make the session active again; start no agent
    #[arg(long)]
    pub no_run: bool,
    /// Continue with this agent instead of the last one: same session, same files, and the brief
    #[arg(long, value_name = "NAME", conflicts_with = "no_run")]
    pub agent: Option<String>,
    /// What the agent should do in addition
    #[arg(long, short, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Give the terminal to the agent's own interface, also if it had none before
    #[arg(long, short)]
    pub interactive: bool,
    /// Check out the session's branch first, if the repository is on another one
    #[arg(long, conflicts_with = "any_branch")]
    pub checkout_branch: bool,
    /// Resume even if the repository is on another branch
    #[arg(long)]
    pub any_branch: bool,
    /// Resume every interrupted session of every project, each in the background. What was stopped on purpose stays stopped
    #[arg(long, conflicts_with_all = ["id", "from", "checkpoint", "no_run", "agent", "prompt", "interactive",
        "show_brief", "options", "reset_breaker", "file", "args", "same_args"])]
    pub all: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// Show what the agent would be told, and do nothing
    #[arg(long)]
    pub show_brief: bool,
    /// Show the available resume points, and do nothing
    #[arg(long, conflicts_with_all = ["from", "checkpoint", "show_brief"])]
    pub options: bool,
    /// Close the breaker of a halted session
    #[arg(long)]
    pub reset_breaker: bool,
    /// Only the session about this file
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Another argument for the agent; may be repeated
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// Give the agent the extra arguments of its last run again
    #[arg(long)]
    pub same_args: bool,
    /// Leave the terminal first, for --all
    #[arg(long, hide = true)]
    pub background: bool,
    /// Restart the agent after a crash, at most N times (default: resume.attempts; 0: never)
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    pub auto_resume: Option<Option<u32>>,
}

/// Where to resume from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// The last checkpoint: files and conversation as they were there
    Checkpoint,
    /// What is there now
    Live,
    /// The first step, in a new session that replaces this one and keeps its task and caps
    Fresh,
}

impl From {
    fn recovery(self) -> Recovery {
        match self {
            Self::Checkpoint => Recovery::Checkpoint,
            Self::Live => Recovery::Live,
            Self::Fresh => Recovery::Fresh,
        }
    }
}

impl std::convert::From<Recovery> for From {
    fn from(recovery: Recovery) -> Self {
        match recovery {
            Recovery::Checkpoint => Self::Checkpoint,
            Recovery::Live => Self::Live,
            Recovery::Fresh => Self::Fresh,
        }
    }
}

/// Runs `segno resume`.
///
/// # Errors
/// If the session cannot be taken up, or how the run ended.
pub fn run(context: &Context, args: &Args) -> Outcome {
    if args.all {
        return all::run(context, args);
    }
    if args.background {
        // Neither Ctrl-C nor a hang-up of the terminal it was started from reaches it.
        let _ = rustix::process::setsid();
    }
    let only_looks = args.options || args.show_brief || args.no_run;
    let ctx =
        if only_looks { CommandContext::open(context)? } else { CommandContext::open_to_stay(context)? };
    let id = which(&ctx, args)?;
    let (state, options) = ctx.engine.recovery_options(id)?;
    if args.options {
        return show_options(&ctx, &state, &options);
    }
    if args.show_brief {
        return show_brief(&ctx, args, &state);
    }
    ctx.refuse_agent_at_breakpoint(&state, "resume")?;
    if halted::is_halted(&state) && !args.no_run && !args.reset_breaker {
        refuse_plan(&ctx, args, &state)?;
        return halted::take_up(&ctx, &state, asks(context, args, &state));
    }
    refuse(&ctx, args, &state)?;
    refuse_flags(&ctx, args, &state)?;
    if let Some(wanted) = &args.agent {
        super::run::check_agent(context, wanted)?;
    }
    let mut wish = wish(&ctx, args, &state)?;
    if asks(context, args, &state) {
        match panel::ask(&ctx, &state, &options)? {
            Answer::ResumeFrom(recovery) => wish.from = Some(recovery),
            Answer::New => return new_beside(&ctx, args, &state),
            Answer::GiveUp => return give_up(&ctx, &state),
            Answer::Nothing => {
                return Err(CommandError::new(ExitCode::Cancelled, "cancelled", "nothing was done"));
            }
        }
    }
    go_on(&ctx, args, &state, &wish)
}

/// Whether somebody is there who has not said yet how to go on, and there is something to choose.
fn asks(context: &Context, args: &Args, state: &State) -> bool {
    let said = args.from.is_some() || args.checkpoint.is_some() || args.no_run || args.yes;
    let waits = state.status != Status::Active || state.run.is_some();
    !said && waits && std::io::stdin().is_terminal() && !context.printer.is_json()
}

fn wish(ctx: &CommandContext<'_>, args: &Args, state: &State) -> Outcome<ResumeWish> {
    Ok(ResumeWish {
        from: args.from.map(From::recovery),
        checkpoint: args.checkpoint.clone(),
        agent: args.agent.clone(),
        no_run: args.no_run,
        prompt: args.prompt.clone(),
        interactive: is_interactive(ctx, args, state),
        reset_breaker: args.reset_breaker,
        branch: match (args.checkout_branch, args.any_branch) {
            (true, _) => BranchWish::Checkout,
            (false, true) => BranchWish::Any,
            (false, false) => BranchWish::Same,
        },
        automatic: false,
        key: ctx.key()?,
    })
}

/// The session that is meant: the one that is named, the one about a file, or the last that waits.
pub(super) fn which(ctx: &CommandContext<'_>, args: &Args) -> Outcome<SessionId> {
    let wanted = super::detect::work_file(ctx.context, args.file.as_deref())?;
    let id = match (&args.session.id, ctx.context.session(None)?) {
        (None, None) => match &wanted {
            Some(_) => match ctx.engine.detect(&ctx.context.project.root, wanted.as_deref())?.session {
                Some(id) => id,
                None => ctx.session(None)?,
            },
            None => lifecycle::waiting(ctx)?,
        },
        (named, _) => ctx.session(named.as_ref())?,
    };
    if let Some(wanted) = wanted {
        let state = ctx.load(id)?;
        if state.file.as_deref() != Some(wanted.as_str()) {
            let why = segno_engine::core::detect::mismatch(&state, &wanted);
            return Err(CommandError::new(ExitCode::Refused, "other_work", why)
                .hint(format!("segno run --file {wanted}   begins a session for it")));
        }
    }
    Ok(id)
}

/// Says why a session cannot be taken up, in the words that others use for it, before anybody is asked anything.
fn refuse(ctx: &CommandContext<'_>, args: &Args, state: &State) -> Outcome {
    let id = ctx.engine.ending(state.session_id);
    ctx.engine.refuse_resume(state, args.reset_breaker).map_err(|error| {
        let hint = match state.status {
            Status::Halted => format!("segno resume {id} --reset-breaker"),
            // There is a conversation to continue only where an agent worked.
            _ if state.run.is_some() => format!("segno run --continue-from {id} …"),
            _ => "segno new   begins another session".to_owned(),
        };
        CommandError::from(error).hint(hint)
    })?;
    ctx.engine
        .refuse_driven(state.session_id)
        .map_err(|held| CommandError::from(held).hint(format!("segno tail -f {id}   (or: segno stop {id})")))
}

/// What is for an agent is not ignored where none is started.
fn refuse_flags(ctx: &CommandContext<'_>, args: &Args, state: &State) -> Outcome {
    let given = [
        ("--prompt", args.prompt.is_some()),
        ("--interactive", args.interactive),
        ("--arg", !args.args.is_empty()),
        ("--same-args", args.same_args),
    ];
    let had = state.run.as_ref().is_some_and(|run| !is_command(&run.agent));
    let starts = !args.no_run && (had || args.agent.is_some());
    if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given && !starts) {
        let id = ctx.engine.ending(state.session_id);
        return Err(CommandError::usage(format!("{flag} is for an agent, and none is started here"))
            .hint(format!("segno resume {id} --agent NAME   (or: segno run --session {id} …)")));
    }
    match args.interactive {
        true => super::run::need_terminal(ctx.context, "segno resume"),
        false => Ok(()),
    }
}

fn show_options(ctx: &CommandContext<'_>, state: &State, options: &Options) -> Outcome {
    let context = ctx.context;
    if context.printer.is_json() {
        return context
            .printer
            .json(&json!({ "session_id": state.session_id, "status": state.status, "options": options }));
    }
    for line in panel::lines(ctx, state, options) {
        context.printer.data(line)?;
    }
    Ok(())
}

fn show_brief(ctx: &CommandContext<'_>, args: &Args, state: &State) -> Outcome {
    if args.checkpoint.is_some() || args.from == Some(From::Checkpoint) {
        return Err(CommandError::usage("what an agent is told after going back is known when that is done")
            .hint("segno resume --show-brief   shows what it is told from what is there now"));
    }
    let context = ctx.context;
    if let Some(alive) = living_agent(state) {
        let why = format!(
            "its agent (pid {}) still runs: what it does until it is stopped is not in here",
            alive.pid
        );
        context.printer.warn(why);
    } else if ctx.engine.lease(state.session_id)?.is_none() {
        // It may have gone on for a while after its driver died: what it said then is taken in first.
        if let Some(whom) = ctx.engine.settle_run_if_dead(state.session_id)? {
            ctx.context.printer.warn(whom);
        }
        ctx.engine.gather_evidence(state.session_id)?;
    }
    let wish = wish(ctx, args, state)?;
    context.printer.data(ctx.engine.told_now(state.session_id, &wish)?)
}

/// A new session with the same agent and the same task, or the same command, beside the one that waits.
fn new_beside(ctx: &CommandContext<'_>, args: &Args, state: &State) -> Outcome {
    let run = state.run.as_ref();
    if run.is_some_and(|run| is_command(&run.agent)) {
        let command = last_run(ctx, state)?.command;
        let again = RunArgs { command, topic: state.topic.clone(), ..RunArgs::default() };
        return super::run::begin(ctx, &again);
    }
    if let Some(run) = run {
        super::run::check_agent(ctx.context, &run.agent)?;
        ctx.engine.check_start(state)?;
    }
    let new = ctx.engine.start_afresh(state)?.state;
    let printer = &ctx.context.printer;
    let waits = crate::command_context::short(state.session_id);
    printer.talk(format!("began session {}; {waits} waits as before", new.session_id));
    let Some(run) = run else {
        printer
            .hint(format!("segno run --session {0} …   segno show {0}", ctx.engine.ending(new.session_id)));
        ctx.finish();
        return Ok(());
    };
    let agent = ResumedAgent {
        name: run.agent.clone(),
        from: new.session_id,
        conversation: Conversation::New,
        prompt: ctx.engine.task(state)?.unwrap_or_default(),
    };
    let (session, interactive) = (new.session_id, is_interactive(ctx, args, state));
    start(
        ctx,
        &RunArgs::default(),
        Resumed { session, agent, reset_breaker: false, interactive, printed: None },
    )
}

/// Takes a session up where it is, as somebody said who was asked.
///
/// # Errors
/// If the session cannot be taken up, or how the run ended.
pub(super) fn take_up_session(ctx: &CommandContext<'_>, id: SessionId) -> Outcome {
    let args = Args { from: Some(From::Live), ..Args::default() };
    let state = ctx.load(id)?;
    if halted::is_halted(&state) {
        return halted::take_up(ctx, &state, true);
    }
    refuse(ctx, &args, &state)?;
    let wish = wish(ctx, &args, &state)?;
    go_on(ctx, &args, &state, &wish)
}

/// Gives up the session that waits. Its record stays.
fn give_up(ctx: &CommandContext<'_>, state: &State) -> Outcome {
    let reason = Some("given up instead of being resumed".into());
    let acted = ctx.act(state.session_id, vec![Command::Abort { reason }])?;
    ctx.report(
        &acted,
        crate::output::Text::new().plain("aborted ").then(crate::command_context::title(&acted.state)),
    )
}

/// Brings tree and state to where it goes on from, says so, and starts the agent.
fn go_on(ctx: &CommandContext<'_>, args: &Args, state: &State, wish: &ResumeWish) -> Outcome {
    if state.looping.is_some() && !args.no_run {
        return go_on_with_loop(ctx, args, state);
    }
    let before = state.seq;
    let base = base(ctx, args, state)?;
    let is_there = super::run::agent_is_there(ctx.context)?;
    let resumption = ctx
        .engine
        .prepare_resume(state.session_id, wish, &Terminal::new(ctx.context), &is_there)
        .map_err(|error| lifecycle::explain(ctx, state.session_id, error.into()))?;
    confirm::tell(ctx, &resumption, before);
    let session = resumption.state.session_id;
    let Some(agent) = resumption.agent else {
        let was_plain = state.run.as_ref().is_some_and(|run| is_command(&run.agent)) && !args.no_run;
        return confirm::finish(ctx, &resumption, before, was_plain);
    };
    let (reset_breaker, interactive) = (args.reset_breaker, wish.interactive);
    start(ctx, &base, Resumed { session, agent, reset_breaker, interactive, printed: None })
}

/// A loop goes on by its plan: what it is told, by whom, and in which conversation is not for this command to say.
fn go_on_with_loop(ctx: &CommandContext<'_>, args: &Args, state: &State) -> Outcome {
    let id = state.session_id;
    refuse_plan(ctx, args, state)?;
    super::looping::check_agent(ctx, id)?;
    if args.reset_breaker {
        let reset = LoopCommand::ResetBreaker { reason: "reset by hand".to_owned() };
        ctx.act(id, vec![super::looping::loop_command(reset)])?;
    }
    super::looping::go_on(ctx, id, false, false)
}

/// What a loop is told, by whom and from where is said by its plan.
fn refuse_plan(ctx: &CommandContext<'_>, args: &Args, state: &State) -> Outcome {
    let id = state.session_id;
    let elsewhere = matches!(args.from, Some(From::Checkpoint | From::Fresh)) || args.checkpoint.is_some();
    if elsewhere || args.agent.is_some() || args.prompt.is_some() || args.interactive {
        let tail = ctx.engine.ending(id);
        return Err(CommandError::usage("a loop goes on by its own plan")
            .hint(format!(
                "segno loop say \"…\" {tail}   tells its agent something; then: segno resume {tail}"
            ))
            .hint(format!("segno rollback --session {tail}   goes back first")));
    }
    Ok(())
}

/// Starts the agent and stays with it.
fn start(ctx: &CommandContext<'_>, base: &RunArgs, resumed: Resumed) -> Outcome {
    let (stop, session) = (Stop::default(), resumed.session);
    let report = take_up(ctx, base, resumed, &stop)?;
    let report = again(ctx, base, session, report, &stop)?;
    super::run::report(ctx, session, false, report)
}

/// The newest run; one that says nothing if there was none.
fn last_run(ctx: &CommandContext<'_>, state: &State) -> Outcome<RunRow> {
    Ok(ctx.engine.newest_run(state.session_id)?.map(|row| row.row()).unwrap_or_default())
}

/// What the run is given beside its prompt. Arguments that were given by hand for the run before may have switched a
/// protection off; they are not applied again unless somebody says so.
fn base(ctx: &CommandContext<'_>, args: &Args, state: &State) -> Outcome<RunArgs> {
    let mut base = RunArgs { auto_resume: args.auto_resume, args: args.args.clone(), ..RunArgs::default() };
    let before = last_run(ctx, state)?.args;
    // Another agent does not know them.
    let same = args.agent.is_none() || args.agent == state.run.as_ref().map(|run| run.agent.clone());
    if before.is_empty() || args.no_run {
        return Ok(base);
    }
    if args.same_args && same {
        base.args.splice(0..0, before);
    } else if args.same_args {
        return Err(CommandError::usage("--same-args is for the agent that they were given to"));
    } else if args.args.is_empty() && same {
        ctx.context.printer.warn_with(
            format!("the last run was given {} by hand; that is not applied again", before.join(" ")),
            &["--same-args   applies it   (or: --arg ARG)".to_owned()],
        );
    }
    Ok(base)
}

/// A person who had the agent's terminal gets it again, if there is one; and whoever asks for it.
fn is_interactive(ctx: &CommandContext<'_>, args: &Args, state: &State) -> bool {
    let was = state.run.as_ref().is_some_and(|run| run.interactive);
    (was || args.interactive) && !ctx.context.printer.is_json() && super::run::has_terminal()
}

/// Takes the agent up; one that does not know its conversation any more gets a new one with the same brief, once.
fn take_up(ctx: &CommandContext<'_>, base: &RunArgs, resumed: Resumed, stop: &Stop) -> Outcome<Report> {
    let was_new = resumed.agent.conversation == Conversation::New;
    let agent = ResumedAgent { conversation: Conversation::New, ..resumed.agent.clone() };
    let again = Resumed { agent, reset_breaker: false, ..resumed.clone() };
    let report = resume_run(ctx, base, resumed, stop)?;
    if was_new || !is_unknown_conversation(&report) {
        return Ok(report);
    }
    ctx.context
        .printer
        .warn("the agent does not know its conversation any more; a new one is begun with the same brief");
    let body = json!({ "why": report.outcome.reason, "did": "fresh conversation" });
    let fallback = Fact::Reported { what: "resume_fallback".to_owned(), body };
    let acted = ctx.engine.act(again.session, fallback)?;
    resume_run(ctx, base, Resumed { printed: Some(acted.seq), ..again }, stop)
}

/// An agent that was told to resume what it does not know says so before it does anything.
fn is_unknown_conversation(report: &Report) -> bool {
    let outcome = &report.outcome;
    let setup = outcome.error.as_ref().is_some_and(|error| error.class == ErrorClass::Setup);
    let said = format!("{} {}", outcome.reason, report.stderr);
    let unknown = says_unknown_conversation(&said);
    // What it says at its own terminal, only the person reads; there, whoever fails at once has not found it.
    let interactive = report.state.run.as_ref().is_some_and(|run| run.interactive) && outcome.turns == 0;
    let failed = match interactive {
        true => outcome.outcome == OutcomeKind::Failed,
        false => matches!(outcome.outcome, OutcomeKind::Failed | OutcomeKind::Interrupted),
    };
    failed && outcome.tool_calls == 0 && outcome.tokens.total() == 0 && (setup || unknown || interactive)
}
