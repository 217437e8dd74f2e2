//! `segno loop`: an agent, again and again, until the work is done by evidence.

mod args;
pub(super) mod due;
mod init;
mod live;
pub(super) mod notify;
pub(super) mod plan;
mod queue;
mod result;
pub(super) mod status;
mod watch;

pub use args::Args;
pub use args::BeginArgs;
pub(super) use due::BY;
pub(super) use init::run as init_workflow;
pub(crate) use status::breaker_words;

use segno_engine::core::Command as Act;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::event::WokenHow;
use segno_engine::core::looping::Further;
use segno_engine::core::looping::LoopCommand;
use segno_engine::core::looping::LoopPlan;
use segno_engine::core::looping::LoopState;
use segno_engine::core::looping::PhasePlan;
use segno_engine::launch::Who;
use segno_engine::looping::NewLoop;

use self::args::Command;
use self::args::WokenBy;
use self::watch::Waits;
use super::run::Next;
use super::run::ask_about_waiting;
use super::run::detach;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// Runs `segno loop`.
///
/// # Errors
/// If the command cannot do what it was asked; how a loop ended is an exit code of its own.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None => begin(context, &args.begin),
        Some(Command::Init { name, from }) => init::run(context, name, from),
        Some(Command::Status { session }) => status::run(context, session.id.as_ref()),
        Some(Command::Resume { due: true, by, .. }) => due::run(context, *by),
        Some(Command::Resume { session, now, stay, more, more_time, no_wait, by, model, due: false }) => {
            let ctx = CommandContext::open_to_stay(context)?;
            let id = ctx.session(session.id.as_ref())?;
            check_agent(&ctx, id)?;
            if more.is_some() || more_time.is_some() || model.is_some() {
                context.refuse_below_run("change the plan of its loop")?;
            }
            let seconds = more_time.map(|time| time.as_secs());
            let further = Further { iterations: *more, seconds, model: model.clone(), ..Further::default() };
            let woken = match by {
                _ if *now => WokenHow::Person,
                WokenBy::Command => WokenHow::Command,
                WokenBy::Timer => WokenHow::Timer,
            };
            drive(&ctx, id, woken, further, !no_wait, *stay)
        }
        Some(Command::Say { text, id }) => {
            context.refuse_below_run("tell itself something in your name")?;
            let ctx = CommandContext::open(context)?;
            let id = queue::worked_on(&ctx, ctx.session(id.as_ref())?)?;
            let said = LoopCommand::Say { text: text.as_str().into() };
            let acted = ctx.act(id, vec![loop_command(said)])?;
            ctx.report(&acted, format!("the agent of {} is told with the next prompt", short(id)))
        }
        Some(Command::Retry { item, id }) => queue::retry(context, item, id.as_ref()),
        Some(Command::SkipPhase { session }) => skip_phase(context, session.id.as_ref()),
    }
}

/// The command that shows where the loop of this project stands.
pub(crate) fn status_command() -> crate::cli::Command {
    let status = Command::Status { session: super::args::OneSession::default() };
    crate::cli::Command::Loop(Args { command: Some(status), begin: Box::default() })
}

/// The command that tells the agent of a loop something with its next prompt.
pub(crate) fn say_command(text: String) -> crate::cli::Command {
    let say = Command::Say { text, id: None };
    crate::cli::Command::Loop(Args { command: Some(say), begin: Box::default() })
}

/// Leaves the present phase of a loop without its gate.
pub(super) fn skip_phase(context: &Context, id: Option<&super::args::SessionRef>) -> Outcome {
    context.refuse_below_run("skip a gate")?;
    let ctx = CommandContext::open(context)?;
    let id = ctx.session(id)?;
    let skip = loop_command(LoopCommand::SkipPhase { by: "a person".to_owned() });
    let acted = ctx.act(id, vec![skip]).map_err(|error| {
        let state = ctx.load(id).ok();
        let last = state.as_ref().and_then(|state| state.looping.as_deref());
        let last = last.is_some_and(|looping| looping.plan.after(&looping.phase).is_none());
        match state.filter(|_| last) {
            Some(state) => {
                let tail = ctx.engine.ending(id);
                let resets = if state.status == Status::Halted { " --reset-breaker" } else { "" };
                let first = match state.status {
                    Status::Active => String::new(),
                    _ => format!("segno resume {tail} --no-run{resets}   then: "),
                };
                error.hint(format!("{first}segno complete {tail}   (or: segno abort {tail})"))
            }
            None => error,
        }
    })?;
    let phase = acted.state.phase.clone().unwrap_or_default();
    ctx.report(&acted, format!("phase {phase} of {} is left without its gate", short(id)))
}

pub(super) fn loop_command(command: LoopCommand) -> Act {
    Act::Loop(Box::new(command))
}

/// A command behind `--` is no file to read, and no agent that a later `segno resume` could start again.
fn refuse_command(args: &BeginArgs) -> Outcome {
    if args.command_line.is_empty() {
        return Ok(());
    }
    let words = args.command_line.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
    Err(CommandError::usage("a loop asks an agent by its name; a command behind -- is for segno run")
        .hint(format!(
            "describe it in your config.toml: [agents.mine] command = [{words}]   then: segno loop --agent mine …"
        )))
}

fn begin(context: &Context, args: &BeginArgs) -> Outcome {
    refuse_command(args)?;
    if args.detach {
        return detach::detach(context);
    }
    let tell = args.tell.as_deref();
    detach::leave_terminal(tell);
    let plan = plan::plan(context, args)?;
    plan::warn_of_protected(context, plan.phases.iter().flat_map(|phase| &phase.protect));
    let settings = super::run::settings(context, None)?;
    for name in plan.phases.iter().filter_map(|phase| phase.agent.as_ref()).chain(&plan.limits.agents) {
        super::run::check_agent(context, name)?;
    }
    let mut asked = Vec::new();
    for wanted in plan.phases.iter().map(|phase| (phase.agent.clone(), phase.model.clone())) {
        if !asked.contains(&wanted) {
            let who = wanted.0.clone().map_or(Who::Usual, Who::Named);
            super::run::warn_of_model(context, &settings, &who, wanted.1.as_deref())?;
            asked.push(wanted);
        }
    }
    if let Some(queue) = plan.queue.as_ref().filter(|_| args.dry_run) {
        return queue::dry_run(context, &plan, queue, &settings);
    }
    if args.dry_run {
        return init::dry_run(context, &plan, &settings);
    }
    // The usual one too: without it, nothing is begun.
    if plan.phases.iter().any(|phase| phase.agent.is_none()) {
        settings.choose(&Who::Usual)?;
    }
    if let Some(queue) = plan.queue.as_ref().filter(|queue| queue.command.is_some()) {
        // A slip in the command is said before a session is there that nobody wants.
        queue::listed(context, queue, &settings)?;
    }
    let ctx = CommandContext::open_to_stay_below(context, args.below)?;
    if let Some(Next::Resume(id)) = ask_about_waiting(&ctx)? {
        return super::resume::take_up_session(&ctx, id);
    }
    refuse_secrets(&ctx, &plan)?;
    let config = context.config()?;
    let new = NewLoop {
        plan,
        topic: args.topic.clone().or_else(|| args.work.as_ref().map(|work| format!("items of {work}"))),
        file: super::detect::work_file(context, args.file.as_deref())?,
        branch: args.branch.clone().filter(|_| args.work.is_none()),
        budget: args.budget.map(|tokens| config.token_budget(Some(tokens), false)),
        cost: args.cost.map(|micros| config.cost_budget(Some(micros), false)),
        ..NewLoop::default()
    };
    let settings = super::run::settings(context, Some(ctx.engine.store_id()))?;
    let state = ctx.engine.loop_begin(new, &settings)?;
    detach::tell(tell, state.session_id);
    let waits = Waits { limits: !args.no_wait, halted: args.stay };
    let driven =
        watch::drive(&ctx, state.session_id, WokenHow::Foreground, Further::default(), waits, args.no_hooks);
    match &driven {
        Ok(()) => detach::forget(tell),
        // What could not begin is nobody's work; whoever began it in the background looks for it there.
        Err(why) if why.code() == "cannot_measure" && tell.is_none() => {
            let _ = ctx.engine.delete(state.session_id);
        }
        Err(_) => {}
    }
    driven
}

/// Whether the agent of a loop is there, before anything is done to the loop.
pub(super) fn check_agent(ctx: &CommandContext<'_>, id: SessionId) -> Outcome {
    let state = ctx.load(id)?;
    super::run::settings(ctx.context, None)?.check_loop(the_loop(&state)?)?;
    Ok(())
}

/// Goes on with a loop that stands still.
pub(super) fn go_on(ctx: &CommandContext<'_>, id: SessionId, now: bool, halted: bool) -> Outcome {
    let woken = if now { WokenHow::Person } else { WokenHow::Command };
    drive(ctx, id, woken, Further::default(), true, halted)
}

fn drive(
    ctx: &CommandContext<'_>,
    id: SessionId,
    woken: WokenHow,
    further: Further,
    waits: bool,
    halted: bool,
) -> Outcome {
    let state = ctx.load(id)?;
    let looping = the_loop(&state)?;
    let waits = Waits { limits: waits, halted };
    // One that was told to stay parked waits for somebody to say so, and that is what this is.
    let held = looping.parked.as_ref().is_some_and(|parked| parked.until.is_none());
    let woken = if held && woken == WokenHow::Command { WokenHow::Person } else { woken };
    watch::drive(ctx, id, woken, further, waits, false)
}

/// The loop of a session.
fn the_loop(state: &State) -> Outcome<&LoopState> {
    let id = state.session_id;
    state.looping.as_deref().ok_or_else(|| {
        CommandError::new(ExitCode::Refused, "no_loop", format!("{} is no loop", short(id)))
            .hint(format!("segno resume {id}"))
    })
}

/// Commands are recorded, and run as they are on record: one that holds a secret would be another command then.
fn refuse_secrets(ctx: &CommandContext<'_>, plan: &LoopPlan) -> Outcome {
    let redactor = ctx.engine.redactor();
    let hooks =
        |phase: &PhasePlan| [&phase.on_start, &phase.on_complete, &phase.on_error].map(Clone::clone).concat();
    let measured = plan.phases.iter().flat_map(|phase| phase.evidence.iter().map(|one| one.command.clone()));
    let listing = plan.queue.iter().flat_map(|queue| queue.command.iter().chain(&queue.show).cloned());
    for command in measured.chain(plan.phases.iter().flat_map(hooks)).chain(listing) {
        if redactor.text(&command) != command {
            return Err(CommandError::usage("a command of the loop holds what looks like a secret")
                .hint("read it from a variable or a file inside the command: the text itself is recorded"));
        }
    }
    Ok(())
}
