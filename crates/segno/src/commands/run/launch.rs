//! From flags to what the engine is asked to plan.

use std::io::IsTerminal as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use segno_engine::core::Command;
use segno_engine::core::SessionId;
use segno_engine::core::StoreId;
use segno_engine::core::event::Unit;
use segno_engine::launch::FreshSession;
use segno_engine::launch::Intent;
use segno_engine::launch::Launch;
use segno_engine::launch::LaunchSettings;
use segno_engine::launch::RunIn;
use segno_engine::launch::Who;
use segno_engine::launch::prompt::WorkItem;
use segno_engine::launch::prompt::{self};
use segno_engine::run::Feed;
use segno_engine::run::Stop;
use segno_engine::run::resources::Resources;

use super::Args;
use super::Resumed;
use super::interactive;
use super::permissions;
use crate::ask::Terminal;
use crate::command_context::CommandContext;
use crate::commands::args::TextSource;
use crate::config::agents;
use crate::config::env::Environment;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// Largest prompt or work item.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Plans the run that these flags ask for; its session is there afterwards.
pub(super) fn prepare(ctx: &CommandContext<'_>, args: &Args, feed: &Feed, stop: &Stop) -> Outcome<Launch> {
    let context = ctx.context;
    let settings = settings(context, Some(ctx.engine.store_id()))?;
    let chosen = settings.choose(&who(args))?;
    refuse_for_command(args)?;
    warn_of_model(context, &settings, &who(args), args.model.as_deref())?;
    let interactive = interactive::is_wanted(context, args, chosen.plain.is_some())?;
    let permissions = permissions::of_run(ctx, args, chosen.agent.as_ref(), interactive)?;
    let (prompt, item) = match interactive && !interactive::has_prompt(args) {
        true => (String::new(), None),
        false => prompt_of(context, args, chosen.agent.name())?,
    };
    let continues = args.continue_from.as_ref().map(|named| ctx.named(named)).transpose()?;
    if let Some(before) = continues
        && (args.budget.is_some() || args.cost.is_some())
    {
        refuse_cap_below_run(ctx, before)?;
    }
    let run_in = match context.session(None)? {
        Some(named) if context.under_run()?.is_none() || context.global.session.is_some() => {
            open_session(ctx, args, ctx.named(&named)?)?
        }
        _ => fresh_session(context, args)?,
    };
    let (intent, fork) = (intent(ctx, args)?, args.fork);
    // An agent works on a project; a command means what it means where it is typed.
    let directory = std::env::current_dir().ok().filter(|_| !args.command.is_empty());
    let terminal = if interactive { interactive::terminal() } else { None };
    let intent = Intent {
        run_in,
        directory,
        continues,
        fork,
        prompt,
        item,
        interactive,
        terminal,
        permissions,
        ..intent
    };
    Ok(ctx.engine.plan(chosen, intent, &settings, &Terminal::new(context), (feed, stop))?)
}

/// The same for an agent that is taken up again in its session.
pub(super) fn prepare_resumed(
    ctx: &CommandContext<'_>,
    args: &Args,
    resumed: Resumed,
    feed: &Feed,
    stop: &Stop,
) -> Outcome<Launch> {
    let context = ctx.context;
    let settings = settings(context, Some(ctx.engine.store_id()))?;
    let chosen = settings.choose(&who(args))?;
    let Resumed { session, agent, reset_breaker, interactive, .. } = resumed;
    let permissions = permissions::of_run(ctx, args, chosen.agent.as_ref(), interactive)?;
    let run_in = RunIn::Again { session, agent, reset_breaker };
    let terminal = if interactive { interactive::terminal() } else { None };
    let intent = Intent { run_in, interactive, terminal, permissions, ..intent(ctx, args)? };
    Ok(ctx.engine.plan(chosen, intent, &settings, &Terminal::new(context), (feed, stop))?)
}

/// Says so if the model that somebody wants cannot be told to the agent.
pub(in crate::commands) fn warn_of_model(
    context: &Context,
    settings: &LaunchSettings,
    who: &Who,
    model: Option<&str>,
) -> Outcome {
    if let Some(model) = model
        && let Some(why) = settings.ignored_model(who, model)?
    {
        context.printer.warn(why);
    }
    Ok(())
}

/// Whether there is such an agent, before anything is done for it.
pub(in crate::commands) fn check_agent(context: &Context, name: &str) -> Outcome {
    settings(context, None)?.choose(&Who::Named(name.to_owned()))?;
    Ok(())
}

/// The same as something that the engine asks before it changes anything.
pub(in crate::commands) fn agent_is_there(
    context: &Context,
) -> Outcome<impl Fn(&str) -> Result<(), segno_engine::Error> + use<>> {
    let settings = settings(context, None)?;
    Ok(move |name: &str| settings.choose(&Who::Named(name.to_owned())).map(drop))
}

fn who(args: &Args) -> Who {
    match &args.agent {
        _ if !args.command.is_empty() => {
            Who::Command { words: args.command.clone(), prompted: interactive::has_prompt(args) }
        }
        Some(name) => Who::Named(name.clone()),
        None => Who::Usual,
    }
}

/// A session that is there. What only a new one can be given is refused, not ignored; a cap is the session's from now
/// on, as `segno budget set` would make it.
fn open_session(ctx: &CommandContext<'_>, args: &Args, session: SessionId) -> Outcome<RunIn> {
    let refused = |flag: &str, hint: &str| {
        let why = format!(
            "{flag} is for a new session, and this run is in {}",
            crate::command_context::short(session)
        );
        Err(CommandError::usage(why).hint(hint.to_owned()))
    };
    if args.topic.is_some() {
        return refused("--topic", "without --session a new session begins, with this topic");
    }
    if let Some(branch) = &args.branch {
        return refused("--branch", &format!("git checkout -b {branch}   begins one beforehand"));
    }
    let mut caps = Vec::new();
    let set = |unit, total, count| Command::SetBudget {
        unit,
        total: Some(total),
        hard: Some(true),
        warn_percent: None,
        count,
    };
    let count = ctx.context.config()?.budget.count;
    caps.extend(args.budget.map(|tokens| set(Unit::Tokens, tokens, Some(count))));
    caps.extend(args.cost.map(|micros| set(Unit::Cost, micros, None)));
    if !caps.is_empty() {
        refuse_cap_below_run(ctx, session)?;
    }
    Ok(RunIn::Open { session, caps })
}

/// An agent does not change the caps that stop it.
fn refuse_cap_below_run(ctx: &CommandContext<'_>, session: SessionId) -> Outcome {
    let state = ctx.load(session)?;
    match state.budget.hard || state.cost.hard {
        true => ctx.context.refuse_below_run("change a budget that stops it"),
        false => Ok(()),
    }
}

fn fresh_session(context: &Context, args: &Args) -> Outcome<RunIn> {
    let config = context.config()?;
    Ok(RunIn::New(FreshSession {
        topic: args.topic.clone(),
        typed: args.command.join(" "),
        branch: args.branch.clone(),
        budget: args.budget.map(|tokens| config.token_budget(Some(tokens), false)),
        cost: args.cost.map(|micros| config.cost_budget(Some(micros), false)),
    }))
}

/// What the flags say of any run.
fn intent(ctx: &CommandContext<'_>, args: &Args) -> Outcome<Intent> {
    Ok(Intent {
        file: crate::commands::detect::work_file(ctx.context, args.file.as_deref())?,
        model: args.model.clone(),
        max_turns: args.max_turns,
        max_tokens: args.run_budget,
        max_micros: args.run_cost,
        max_duration: args.timeout,
        silence: args.silence,
        grace: args.grace.map(Duration::from_millis),
        no_hooks: args.no_hooks,
        args: args.args.clone(),
        raw: args.raw.then(|| Box::new(std::io::stdout()) as Box<dyn std::io::Write + Send>),
        key: ctx.key()?,
        ..Intent::default()
    })
}

/// What the configuration and the surroundings say of every run.
pub(in crate::commands) fn settings(context: &Context, store: Option<StoreId>) -> Outcome<LaunchSettings> {
    let config = context.config()?;
    let run = &config.run;
    let own = |name: &String| {
        agents::settings(&config.agents, name)
            .map(|own| (name.clone(), own))
            .map_err(|why| CommandError::config("config_invalid", format!("agents {why}")))
    };
    let program = std::env::current_exe().map_err(|why| CommandError::io("cannot find this program", why))?;
    let positive = |n: u64| Some(n).filter(|n| *n > 0);
    Ok(LaunchSettings {
        agent: run.agent.clone(),
        agents: config.agents.keys().map(own).collect::<Outcome<_>>()?,
        // What messages are signed with is for nobody below.
        environment: Environment::inherited()
            .into_iter()
            .filter(|(name, _)| name != crate::config::env::NOTIFY_SECRET)
            .collect(),
        project: context.project.root.clone(),
        budget: config.token_budget(None, false),
        cost: config.cost_budget(None, false),
        max_turns: run.max_turns,
        silence_seconds: run.silence_seconds,
        wall_seconds: run.wall_seconds,
        grace: Duration::from_millis(run.grace_ms),
        resources: Resources {
            memory: positive(run.memory_mb.saturating_mul(1 << 20)),
            cpu_seconds: positive(run.cpu_seconds),
            processes: positive(run.processes),
            record: positive(run.record_mb.saturating_mul(1 << 20)),
        },
        hooks: run.hooks,
        hook_file: Some(context.setup()?.hook_file(store)),
        // What keeps what an agent prints: this program again, as small as it can be.
        capture_command: vec![program.clone().into_os_string(), crate::KEEP_OUTPUT.into()],
        hook_program: program,
        sole_process: true,
        scratch: Some(scratch(context)),
        state: context.paths.state.clone(),
    })
}

/// Short on purpose: the names of sockets are limited.
fn scratch(context: &Context) -> PathBuf {
    let runtime = context.environment.non_empty("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.filter(|dir| dir.is_absolute() && dir.is_dir()).unwrap_or_else(std::env::temp_dir)
}

/// A command knows no models and takes no turns.
fn refuse_for_command(args: &Args) -> Outcome {
    let given = [
        ("--model", args.model.is_some()),
        ("--max-turns", args.max_turns.is_some()),
        ("--no-hooks", args.no_hooks),
    ];
    match given.iter().find(|(_, given)| *given && !args.command.is_empty()) {
        Some((flag, _)) => {
            let described = "an agent of your own: [agents.NAME] in the configuration (docs/config.md)";
            Err(CommandError::usage(format!("{flag} is for agents, not for a command")).hint(described))
        }
        None => Ok(()),
    }
}

/// Whether somebody who starts this gives it something to read: a file that is not empty, or what is in a pipe already.
fn something_is_piped_in() -> bool {
    let stdin = std::io::stdin();
    let kind = |stat: &rustix::fs::Stat| rustix::fs::FileType::from_raw_mode(stat.st_mode);
    match rustix::fs::fstat(&stdin) {
        Ok(stat) if kind(&stat) == rustix::fs::FileType::RegularFile => stat.st_size > 0,
        Ok(stat) if kind(&stat) == rustix::fs::FileType::Fifo => {
            let mut look = [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)];
            rustix::event::poll(&mut look, Some(&rustix::event::Timespec::default())).is_ok()
                && look[0].revents().contains(rustix::event::PollFlags::IN)
        }
        _ => false,
    }
}

/// What the agent is asked: as given, else standard input, else a template.
fn prompt_of(context: &Context, args: &Args, agent: &str) -> Outcome<(String, Option<WorkItem>)> {
    let read = |path: &Path| {
        let source =
            if path == Path::new("-") { TextSource::Stdin } else { TextSource::File(path.to_owned()) };
        source.read(LARGEST)
    };
    let item = match &args.work_item {
        Some(path) => Some(WorkItem::parse(&read(path)?).map_err(|why| {
            CommandError::usage(format!("{} holds no work item: {why}", path.display()))
                .hint("JSON with id, title and description, bare or in an array")
        })?),
        None => None,
    };
    let given = match (&args.prompt, &args.file) {
        (Some(prompt), _) => Some(prompt.clone()),
        (None, Some(path)) => Some(read(path)?),
        (None, None) if item.is_none() && args.command.is_empty() && !std::io::stdin().is_terminal() => {
            Some(TextSource::Stdin.read(LARGEST)?).filter(|text| !text.trim().is_empty())
        }
        (None, None) => None,
    };
    if let Some(prompt) = &given
        && prompt.trim().is_empty()
    {
        return Err(CommandError::usage("the prompt is empty"));
    }
    let config = context.config()?;
    let template = match given {
        Some(given) => given,
        None if !args.command.is_empty() && item.is_none() => {
            if something_is_piped_in() {
                context
                    .printer
                    .warn("what comes on standard input is not passed on; --prompt TEXT or --file FILE is");
            }
            return Ok((String::new(), None));
        }
        None if !config.run.prompt_file.is_empty() => {
            let path = context.project.root.join(&config.run.prompt_file);
            TextSource::File(path)
                .read(LARGEST)
                .map_err(|error| error.hint("run.prompt_file names this file"))?
        }
        None if !config.run.prompt.is_empty() => config.run.prompt.clone(),
        None if item.is_some() => prompt::DEFAULT_FOR_ITEM.to_owned(),
        None => {
            context
                .printer
                .talk(format!("no prompt: {agent} is asked to go on with the work in this project"));
            prompt::DEFAULT.to_owned()
        }
    };
    // Without a work item braces are nothing special.
    let Some(item) = item else { return Ok((template, None)) };
    let (text, unknown) = prompt::expand(&template, &item);
    if !unknown.is_empty() {
        context.printer.warn(format!("the template has names that are not known: {}", unknown.join(", ")));
    }
    Ok((text, Some(item)))
}
