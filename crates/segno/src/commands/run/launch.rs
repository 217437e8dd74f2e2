//! From the command line and the configuration to what the engine is asked to run.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use segno_engine::NewSession;
use segno_engine::agents::plain::{Plain, PlainConfig, PromptVia};
use segno_engine::agents::{self, Agent, Baseline, Conversation, LaunchRequest, TokenCounts};
use segno_engine::core::event::{Maker, Project, WorkItemMark};
use segno_engine::core::{Command as Act, List, SessionId, State, Status};
use segno_engine::launch::Overridden;
use segno_engine::run::cgroup::Resources;
use segno_engine::run::permission::Permissions;
use segno_engine::run::{Feed, Limits, Request, Stop, find_program};
use serde_json::Value;

use super::{Args, Resumed, interactive, permissions, versions};
use crate::commands::args::TextSource;
use crate::commands::new::project_kind;
use crate::commands::resume::baseline_of;
use crate::config::agents::{AgentSettings, settings};
use crate::config::env::Environment;
use crate::context::Context;
use crate::desk::{self, Desk, tail};
use crate::error::{CommandError, Outcome};
use crate::exit::ExitCode;
use crate::prompt::{self, WorkItem};

/// Largest prompt or work item.
const LARGEST: u64 = 16 * 1024 * 1024;
/// What is recorded of the environment: names that hold no secrets and say how the agent was set up.
const RECORDED: &[&str] = &[
    "LANG",
    "LC_ALL",
    "TZ",
    "TERM",
    "SHELL",
    "PATH",
    "HOME",
    "USER",
    "PWD",
    "CI",
    "EDITOR",
    "VIRTUAL_ENV",
    "GEMINI_DIR",
    "XDG_CONFIG_HOME",
    "NODE_ENV",
    "RUST_LOG",
];

/// A run that is ready to begin.
pub(super) struct Launch {
    /// What the engine is asked.
    pub request: Request,
    /// The session as it is.
    pub state: State,
}

/// Reads everything that can be wrong before a session is made, then makes it.
pub(super) fn prepare(desk: &Desk<'_>, args: &Args, feed: &Feed, stop: &Stop) -> Outcome<Launch> {
    let context = desk.context;
    let chosen = choose(context, args)?;
    let environment = environment(&chosen.settings);
    let program = find(chosen.agent.as_ref(), &chosen.settings, &environment)?;
    let interactive = interactive::is_wanted(context, args, chosen.plain.is_some())?;
    let permissions = permissions::of_run(context, args, chosen.agent.as_ref(), interactive)?;
    let (prompt, item) = match interactive && !interactive::has_prompt(args) {
        true => (String::new(), None),
        false => prompt_of(context, args, chosen.agent.name())?,
    };
    let from = match &args.continue_from {
        Some(named) => Some(continued(desk, desk.named(named)?, chosen.agent.name(), args.fork)?),
        None => None,
    };
    desk.engine.check_start_below()?;
    let state = match context.session(None)? {
        Some(named) if context.under_run()?.is_none() || context.global.session.is_some() => {
            reopen(desk, desk.named(&named)?, false)?
        }
        _ => create(desk, args, &prompt, item.as_ref(), from.as_ref().map(|from| from.session))?,
    };
    let can = chosen.agent.capabilities();
    let conversation = match from.as_ref() {
        Some(from) if args.fork => {
            let id = Some(new_conversation()).filter(|_| can.chooses_id);
            Conversation::Fork { from: from.native_id.clone(), id, at: None }
        }
        Some(from) => Conversation::Resume(from.native_id.clone()),
        // A known id survives any crash of the agent.
        None if can.chooses_id || (interactive && can.chooses_id_at_terminal) => {
            Conversation::NewWithId(new_conversation())
        }
        None => Conversation::New,
    };
    let baseline = from.map_or(Baseline::Fresh, |from| from.baseline);
    let parts = Parts {
        chosen,
        environment,
        program,
        prompt,
        item,
        briefed: false,
        conversation,
        baseline,
        state,
        interactive,
        permissions,
    };
    assemble(desk, args, parts, feed, stop)
}

/// The same for an agent that is taken up again in its session.
pub(super) fn prepare_resumed(
    desk: &Desk<'_>,
    args: &Args,
    resumed: Resumed,
    feed: &Feed,
    stop: &Stop,
) -> Outcome<Launch> {
    let chosen = choose(desk.context, args)?;
    let environment = environment(&chosen.settings);
    let program = find(chosen.agent.as_ref(), &chosen.settings, &environment)?;
    let known = continued(desk, resumed.agent.from, chosen.agent.name(), true).map(|from| from.baseline);
    let baseline = baseline_of(&resumed.agent.conversation, known.unwrap_or(Baseline::Unknown));
    let conversation = match resumed.agent.conversation {
        Conversation::New if chosen.agent.capabilities().chooses_id => {
            Conversation::NewWithId(new_conversation())
        }
        other => other,
    };
    let state = reopen(desk, resumed.session, resumed.reset_breaker)?;
    let (prompt, interactive) = (resumed.agent.prompt, resumed.interactive);
    let permissions = permissions::of_run(desk.context, args, chosen.agent.as_ref(), interactive)?;
    let parts = Parts {
        chosen,
        environment,
        program,
        prompt,
        item: None,
        briefed: true,
        conversation,
        baseline,
        state,
        interactive,
        permissions,
    };
    assemble(desk, args, parts, feed, stop)
}

/// Everything that a run is made of.
struct Parts {
    chosen: Chosen,
    environment: Vec<(OsString, OsString)>,
    program: PathBuf,
    prompt: String,
    item: Option<WorkItem>,
    /// Whether the prompt only tells where work stands.
    briefed: bool,
    conversation: Conversation,
    baseline: Baseline,
    state: State,
    interactive: bool,
    permissions: Option<Permissions>,
}

fn assemble(desk: &Desk<'_>, args: &Args, parts: Parts, feed: &Feed, stop: &Stop) -> Outcome<Launch> {
    let context = desk.context;
    let config = context.config()?;
    let Parts {
        chosen,
        environment,
        program,
        prompt,
        item,
        briefed,
        conversation,
        baseline,
        state,
        interactive,
        permissions,
    } = parts;
    let Chosen { agent, settings, plain } = chosen;
    let version = versions::known(&context.paths.state, &program);
    let common = &settings.common;
    let seconds = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
    let positive = |n: u32| Some(n).filter(|n| *n > 0);
    let max_turns =
        args.max_turns.or_else(|| positive(common.max_turns)).or_else(|| positive(config.run.max_turns));
    let model = args.model.clone().or_else(|| Some(common.model.clone()).filter(|model| !model.is_empty()));
    let max_cost_usd = max_cost(&state, common.max_cost_usd);
    // What is said on the command line, and a cap of the session, is not undone by what the configuration adds.
    let said = Overridden {
        model: args.model.is_some(),
        max_turns: args.max_turns.is_some(),
        max_cost: state.cost.hard && max_cost_usd.is_some(),
    };
    let configured = said.take_out(&common.extra_args);
    let capped = state.budget.hard || (state.cost.hard && state.cost.limit_micros.is_some());
    if capped && agent.capabilities().tells_use_late {
        context.printer.warn(format!(
            "{} says what it used only at its end: a cap cannot stop this run, only the next one",
            agent.name()
        ));
    }
    let launch = LaunchRequest {
        prompt,
        conversation,
        program: Some(program.display().to_string()),
        model,
        max_turns,
        max_cost_usd,
        extra_args: configured.into_iter().chain(args.args.iter().cloned()).collect(),
        hook_command: hooks(context, args, agent.as_ref())?,
        private_tmp: None,
        interactive,
        asks_us: permissions.is_some(),
        outside_git: segno_repository(&context.project.root).is_none(),
        env: common.env.clone(),
    };
    let own_turns = max_turns.filter(|_| interactive || !agent.capabilities().caps_turns);
    let silence = args.silence.map(|silence| silence.as_secs()).or(common.silence_seconds);
    let silence = silence.unwrap_or(config.run.silence_seconds);
    let hook_file = context.setup()?.hook_file(Some(desk.engine.store_id()))?;
    let request = Request {
        session: state.session_id,
        completes: state.made_by == Maker::Run,
        agent,
        plain,
        program,
        version,
        launch,
        given_args: args.args.clone(),
        file: crate::commands::detect::work_file(context, args.file.as_deref())?,
        work_item: item.map(|item| WorkItemMark { id: item.id, title: item.title }),
        below: None,
        briefed,
        baseline,
        directory: PathBuf::from(&state.project.path),
        environment,
        recorded_environment: RECORDED
            .iter()
            .copied()
            .chain(agents::log_variables())
            .map(ToOwned::to_owned)
            .collect(),
        keeper: super::keeper()?,
        sole_process: true,
        hook_file: Some(hook_file.to_bytes()),
        scratch: Some(scratch(context)),
        limits: Limits {
            // A person may think for as long as they like.
            silence: seconds(silence).filter(|_| !interactive),
            wall: args.timeout.or_else(|| seconds(config.run.wall_seconds)).filter(|wall| !wall.is_zero()),
            grace: Duration::from_millis(args.grace.unwrap_or(config.run.grace_ms)),
            turns: own_turns,
        },
        resources: Resources {
            memory: Some(config.run.memory_mb.saturating_mul(1 << 20)).filter(|n| *n > 0),
            cpu_seconds: Some(config.run.cpu_seconds).filter(|n| *n > 0),
            processes: Some(config.run.processes).filter(|n| *n > 0),
        },
        stop: stop.clone(),
        permissions,
        feed: feed.clone(),
        raw: args.raw.then(|| Box::new(std::io::stdout()) as Box<dyn std::io::Write + Send>),
    };
    Ok(Launch { request, state })
}

/// Whether there is such an agent, before anything is done for it.
pub(in crate::commands) fn check_agent(context: &Context, name: &str) -> Outcome {
    let chosen = choose(context, &Args { agent: Some(name.to_owned()), ..Args::default() })?;
    find(chosen.agent.as_ref(), &chosen.settings, &environment(&chosen.settings)).map(drop)
}

struct Chosen {
    agent: Box<dyn Agent>,
    settings: AgentSettings,
    plain: Option<PlainConfig>,
}

fn choose(context: &Context, args: &Args) -> Outcome<Chosen> {
    let config = context.config()?;
    if !args.command.is_empty() {
        // A command as typed gets a prompt only if there is one.
        let via = if args.prompt.is_some() || args.file.is_some() || args.work_item.is_some() {
            PromptVia::Stdin
        } else {
            PromptVia::None
        };
        let plain = PlainConfig { command: args.command.clone(), prompt: via, ..PlainConfig::default() };
        let agent = Box::new(Plain::new(plain.clone()));
        return Ok(Chosen { agent, settings: AgentSettings::default(), plain: Some(plain) });
    }
    let name = args.agent.as_deref().unwrap_or(&config.run.agent);
    let found;
    let name = if name == "auto" {
        found = first_installed(context)?;
        &found
    } else {
        name
    };
    let settings = settings(&config.agents, name)
        .map_err(|why| CommandError::config("config_invalid", format!("agents {why}")))?;
    if let Some(plain) = &settings.plain {
        let agent = Box::new(Plain::new(plain.clone()));
        return Ok(Chosen { agent, plain: Some(plain.clone()), settings });
    }
    match agents::by_name(name).filter(|_| agents::CODING.contains(&name)) {
        Some(agent) => Ok(Chosen { agent, settings, plain: None }),
        None => {
            let known: Vec<&str> =
                agents::CODING.iter().copied().chain(config.agents.keys().map(String::as_str)).collect();
            Err(CommandError::usage(format!("no agent is called {name}"))
                .hint(format!("--agent {}   (or: segno run -- COMMAND)", known.join(" | "))))
        }
    }
}

/// The first agent that is there, in the order in which segno knows them, then those of the configuration.
fn first_installed(context: &Context) -> Outcome<String> {
    let config = context.config()?;
    let known = agents::CODING.iter().map(|name| (*name).to_owned());
    let mut tried = Vec::new();
    for name in known.chain(config.agents.keys().cloned()) {
        let own = settings(&config.agents, &name)
            .map_err(|why| CommandError::config("config_invalid", format!("agents {why}")))?;
        let agent: Box<dyn Agent> = match (&own.plain, agents::by_name(&name)) {
            (Some(plain), _) => Box::new(Plain::new(plain.clone())),
            (None, Some(agent)) => agent,
            (None, None) => continue,
        };
        if find(agent.as_ref(), &own, &environment(&own)).is_ok() {
            return Ok(name);
        }
        tried.push(name);
    }
    Err(CommandError::new(
        ExitCode::AgentMissing,
        "agent_missing",
        format!("no agent is installed; looked for {}", tried.join(", ")),
    )
    .hint("segno run -- COMMAND   runs any command"))
}

fn environment(settings: &AgentSettings) -> Vec<(OsString, OsString)> {
    let mut environment = Environment::inherited();
    let extra = &settings.common.env;
    environment.retain(|(name, _)| name.to_str().is_none_or(|name| !extra.contains_key(name)));
    environment.extend(extra.iter().map(|(name, value)| (name.into(), value.into())));
    environment
}

/// The program and its version, or how to get it.
fn find(
    agent: &dyn Agent,
    settings: &AgentSettings,
    environment: &[(OsString, OsString)],
) -> Outcome<PathBuf> {
    let probe = agent.probe();
    let own = &settings.common.program;
    let names: Vec<&str> =
        if own.is_empty() { probe.programs.iter().map(String::as_str).collect() } else { vec![own.as_str()] };
    let Some(program) = names.iter().find_map(|name| find_program(name, environment)) else {
        let error = CommandError::new(
            ExitCode::AgentMissing,
            "agent_missing",
            format!("{} is not installed: there is no {} in PATH", agent.name(), names.join(" or ")),
        );
        return Err(error.hint(probe.install_hint));
    };
    Ok(program)
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
        None if !args.command.is_empty() && item.is_none() => return Ok((String::new(), None)),
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

/// A conversation to go on with.
struct From {
    session: SessionId,
    native_id: String,
    baseline: Baseline,
}

fn continued(desk: &Desk<'_>, session: SessionId, agent: &str, fork: bool) -> Outcome<From> {
    let state = desk.load(session)?;
    let refuse = |why: String| CommandError::new(ExitCode::Refused, "no_conversation", why);
    if !fork && let Some(alive) = segno_engine::run::living_agent(&state) {
        return Err(refuse(format!("an agent (pid {}) still talks in that conversation", alive.pid))
            .hint(format!("segno stop {}   (or: --fork)", tail(session))));
    }
    let rows = desk.engine.items(session, List::Runs)?;
    let of = |row: &Value, name: &str| row.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let last = rows.iter().rev().find(|row| of(&row.body, "agent").as_deref() == Some(agent));
    let native_id =
        last.and_then(|row| of(&row.body, "native_id")).filter(|id| id != "?").ok_or_else(|| {
            refuse(format!("session {} has no conversation with {agent}", desk::short(session)))
                .hint(format!("segno show {} --runs", tail(session)))
        })?;
    // Totals of a conversation go over all its runs; what is known of them is what the runs before have used.
    let used = rows
        .iter()
        .filter(|row| of(&row.body, "native_id").as_deref() == Some(&native_id))
        .filter_map(|row| row.body.get("tokens"))
        .fold(TokenCounts::default(), |sum, tokens| {
            let n = |name: &str| tokens.get(name).and_then(Value::as_u64).unwrap_or(0);
            sum.plus(TokenCounts {
                input: n("input"),
                cache_read: n("cache_read"),
                cache_write: n("cache_write"),
                output: n("output"),
                reasoning: 0,
            })
        });
    Ok(From { session, native_id, baseline: Baseline::Known(used) })
}

/// Takes an open session up again.
fn reopen(desk: &Desk<'_>, session: SessionId, reset_breaker: bool) -> Outcome<State> {
    let state = desk.load(session)?;
    desk.engine.check_start(&state)?;
    match state.status {
        Status::Active => Ok(state),
        Status::Paused | Status::Interrupted => resume(desk, session, false),
        Status::Halted if reset_breaker => resume(desk, session, true),
        Status::Halted => Err(CommandError::new(
            ExitCode::Refused,
            "halted",
            format!("session {} is halted: its breaker is open", desk::short(session)),
        )
        .hint(format!("segno resume {} --reset-breaker", tail(session)))),
        Status::Completed | Status::Aborted | Status::Failed => Err(CommandError::new(
            ExitCode::Refused,
            "ended",
            format!(
                "session {} is {}; an ended session is not taken up again",
                desk::short(session),
                state.status
            ),
        )
        .hint(format!("segno run --continue-from {} …", tail(session)))),
    }
}

fn resume(desk: &Desk<'_>, session: SessionId, reset_breaker: bool) -> Outcome<State> {
    let resume = Act::Resume { reset_breaker, details: Some("segno run".into()) };
    Ok(desk.act(session, vec![resume])?.state)
}

fn create(
    desk: &Desk<'_>,
    args: &Args,
    prompt: &str,
    item: Option<&WorkItem>,
    continues: Option<SessionId>,
) -> Outcome<State> {
    let context = desk.context;
    let config = context.config()?;
    let root = &context.project.root;
    let before = match continues {
        Some(session) => NewSession::after(&desk.load(session)?),
        None => NewSession::default(),
    };
    let kept = continues.is_some();
    let acted = desk.engine.create(NewSession {
        topic: topic(desk, args, prompt, item).or(before.topic.clone()),
        intent: item
            .map(|item| item.description.as_str())
            .filter(|text| !text.trim().is_empty())
            .map(Into::into),
        project: Project {
            path: root.display().to_string(),
            name: root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            kind: project_kind(root).map(ToOwned::to_owned),
        },
        budget: match args.budget {
            None if kept => before.budget,
            asked => config.token_budget(asked, false),
        },
        cost: match args.cost {
            None if kept => before.cost,
            asked => config.cost_budget(asked, false),
        },
        made_by: Maker::Run,
        ..before
    })?;
    for notice in &acted.notices {
        context.printer.warn(notice.clone());
    }
    start_branch(desk, acted.state, args.branch.as_deref())
}

/// Begins the branch of a new session. One that cannot be made leaves no session behind that nobody worked in.
pub(in crate::commands) fn start_branch(
    desk: &Desk<'_>,
    state: State,
    branch: Option<&str>,
) -> Outcome<State> {
    let Some(name) = branch else { return Ok(state) };
    match desk.engine.start_branch(state.session_id, name) {
        Ok(acted) => Ok(acted.state),
        Err(why) => {
            desk.engine.delete(state.session_id)?;
            Err(why.into())
        }
    }
}

/// What a new session is about, in a few words: as said, or the first line of what is to be done.
fn topic(desk: &Desk<'_>, args: &Args, prompt: &str, item: Option<&WorkItem>) -> Option<String> {
    let typed = args.command.join(" ");
    let texts = [args.topic.as_deref(), item.map(|item| item.title.as_str()), Some(prompt), Some(&typed)];
    let first = texts.into_iter().flatten().find_map(first_line)?;
    // A secret that is cut in two is not recognised any more.
    let clean = desk.engine.redactor().text(&first).into_owned();
    let clean: String = clean.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(segno_engine::core::text::shorten(clean.trim(), 80)).filter(|topic| !topic.is_empty())
}

/// The first line with something on it, without the marks of a heading.
fn first_line(text: &str) -> Option<String> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches('#').trim());
    lines.into_iter().find(|line| !line.is_empty()).map(ToOwned::to_owned)
}

/// What is left of a hard budget is also the agent's own cap, so that it stops by itself.
fn max_cost(state: &State, configured: f64) -> Option<f64> {
    let left = state
        .cost
        .limit_micros
        .filter(|_| state.cost.hard)
        .map(|limit| limit.saturating_sub(state.cost.used_micros) as f64 / 1e6);
    let configured = Some(configured).filter(|cost| *cost > 0.0);
    match (left, configured) {
        (Some(left), Some(configured)) => Some(left.min(configured)),
        (left, configured) => left.or(configured),
    }
}

fn hooks(context: &Context, args: &Args, agent: &dyn Agent) -> Outcome<Option<Vec<String>>> {
    if args.no_hooks || !context.config()?.run.hooks || !agent.capabilities().hooks {
        return Ok(None);
    }
    let own = std::env::current_exe().map_err(|why| CommandError::io("cannot find this program", why))?;
    let own = own.to_str().map(ToOwned::to_owned).ok_or_else(|| {
        CommandError::failure("bad_path", "the path of this program is not UTF-8").hint("--no-hooks")
    })?;
    Ok(Some(vec![own, "hook".to_owned(), agent.name().to_owned()]))
}

/// Short on purpose: the names of sockets are limited.
fn scratch(context: &Context) -> PathBuf {
    let runtime = context.environment.non_empty("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.filter(|dir| dir.is_absolute() && dir.is_dir()).unwrap_or_else(std::env::temp_dir)
}

/// The repository that a directory is in.
fn segno_repository(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|directory| directory.join(".git").exists())
}

fn new_conversation() -> String {
    uuid::Uuid::now_v7().to_string()
}
