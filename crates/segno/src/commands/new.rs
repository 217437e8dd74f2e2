//! `segno new`: starts a session.

mod hold;

use clap::Args as ClapArgs;
use segno_engine::NewSession;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::core::TokenBudget;
use segno_engine::core::event::Maker;
use segno_engine::core::event::Workflow;
use segno_engine::launch::project_at;
use segno_engine::looping::NamedWorkflow;

use super::args::count;
use super::args::dollars;
use super::looping::plan::bad_workflow;
use super::run::Next;
use crate::command_context::CommandContext;
use crate::command_context::title;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// Start a session
///
/// The session belongs to the project and is active at once. If the project has an open session already, use --parallel
/// to have another one beside it.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno new \"login form\" --phases red,green,refactor --budget 200k\n  \
    segno new --file prp/login.md --workflow prp")]
pub struct Args {
    /// What the session is about, in a few words
    pub topic: Option<String>,
    /// Follow this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Go through these phases, in this order
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub phases: Vec<String>,
    /// Start in this phase instead of the first one
    #[arg(long, value_name = "NAME")]
    pub phase: Option<String>,
    /// Tokens the session may use, like 50000 or 50k; when they are used up, its agent is stopped and no other is
    /// started
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub budget: Option<u64>,
    /// Only warn when a budget is used up; stop and refuse nothing
    #[arg(long)]
    pub advisory: bool,
    /// Dollars the session may cost; when they are spent, its agent is stopped and no other is started
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub cost: Option<u64>,
    /// The file that says what is to be done; its name is the topic unless you give one
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<std::path::PathBuf>,
    /// What should be true when the work is done
    #[arg(long, value_name = "TEXT")]
    pub intent: Option<String>,
    /// Allow another open session beside this one
    #[arg(long)]
    pub parallel: bool,
    /// Stay and hold the session, so that the death of this process is noticed. It ends when the session is paused or
    /// ended; a signal pauses it
    #[arg(long)]
    pub hold: bool,
    /// Create a git branch of this name for it; {id} stands for the session's id
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
}

/// Runs `segno new`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    begin(context, args, |ctx, state| {
        let printer = &context.printer;
        printer.data(state.session_id.to_string())?;
        printer.talk(describe(state));
        let id = ctx.engine.ending(state.session_id);
        printer.hint(format!("segno show {id}   segno phase NAME   segno complete {id}"));
        Ok(())
    })
}

/// The same, with other words about the session that was made.
pub(super) fn begin(
    context: &Context,
    args: &Args,
    tell: impl FnOnce(&CommandContext<'_>, &State) -> Outcome,
) -> Outcome {
    let ctx = match args.hold {
        true => CommandContext::open_to_stay(context)?,
        false => CommandContext::open_to_begin(context)?,
    };
    let next = if args.parallel { None } else { super::run::ask_about_waiting(&ctx)? };
    if let Some(Next::Resume(id)) = next {
        drop(ctx);
        return super::resume::take_up_session(&CommandContext::open_to_stay(context)?, id);
    }
    let config = context.config()?;
    let name = args
        .workflow
        .clone()
        .or_else(|| Some(config.session.workflow.clone()).filter(|name| !name.is_empty()));
    let workflow = match name {
        Some(name) => {
            let phases =
                if args.phases.is_empty() { workflow_phases(context, &name)? } else { args.phases.clone() };
            Some(Workflow { name, phases })
        }
        None if args.phases.is_empty() => None,
        None => Some(Workflow { name: "custom".to_owned(), phases: args.phases.clone() }),
    };
    let file = work_file(context, args.file.as_deref())?;
    let acted = ctx.engine.create(NewSession {
        topic: args.topic.clone().or_else(|| file.as_deref().and_then(topic_of)),
        intent: args.intent.as_deref().map(Into::into),
        project: project_at(&context.project.root),
        workflow,
        phase: args.phase.clone(),
        budget: config.token_budget(args.budget, args.advisory),
        cost: config.cost_budget(args.cost, args.advisory),
        made_by: Maker::New,
        continues: None,
        cap_from: None,
        file,
        alone: !args.parallel && next != Some(Next::Beside),
        uid: None,
        id: None,
    });
    let acted = acted.map_err(|error| conflicting(&ctx, error))?;
    ctx.engine.begin_branch(acted.state.clone(), args.branch.as_deref())?;
    // Before anybody hears of the session: whoever reads its name may end this process at once.
    let held = args.hold.then(|| hold::Held::begin(&ctx.engine, acted.state.session_id)).transpose()?;
    let printer = &context.printer;
    for notice in &acted.notices {
        printer.warn(notice.clone());
    }
    if printer.is_json() {
        printer.json(&Summary::from(&acted.state))?;
    } else {
        tell(&ctx, &acted.state)?;
    }
    if let Some(held) = held {
        printer.flush()?;
        return held.wait();
    }
    ctx.finish();
    Ok(())
}

/// The file that the session is bound to. One that is not there is a slip of the hand.
fn work_file(context: &Context, file: Option<&std::path::Path>) -> Outcome<Option<String>> {
    let Some(file) = file else { return Ok(None) };
    if !file.is_file() {
        let text = format!("there is no file {}", file.display());
        return Err(
            CommandError::failure("unreadable", text).hint("segno new --file FILE   (or leave it out)")
        );
    }
    super::detect::work_file(context, Some(file))
}

/// What a work file is called, without its directory and its ending.
fn topic_of(file: &str) -> Option<String> {
    let stem = std::path::Path::new(file).file_stem()?.to_str()?;
    Some(stem.replace(['-', '_'], " ")).filter(|topic| !topic.trim().is_empty())
}

/// What to do with the session that is open already depends on where it stands.
fn conflicting(ctx: &CommandContext<'_>, error: segno_engine::Error) -> CommandError {
    let segno_engine::Error::SessionAlreadyActive { session } = error else { return error.into() };
    let active = ctx.engine.load(session).is_ok_and(|loaded| loaded.state.status == Status::Active);
    let first = if active { "complete" } else { "resume" };
    CommandError::new(ExitCode::AlreadyActive, error.code(), error.to_string()).hint(format!(
        "segno {first} {0}   (or: segno abort {0}, or: segno new --parallel)",
        ctx.engine.ending(session)
    ))
}

fn describe(state: &State) -> Text {
    let mut text = Text::new().plain("started ").then(title(state));
    if let Some(file) = &state.file {
        text = text.plain(format!("   file {file}"));
    }
    if let Some(phase) = state.phase_label() {
        text = text.plain(format!("   phase {phase}"));
    }
    // The one that everybody has and nobody asked for is no news.
    let usual = TokenBudget::default().total_budget;
    let (total, hard) = (state.budget.total_budget, state.budget.hard);
    if hard || total != usual {
        let stops = if hard { "stops there" } else { "warns only" };
        text = text.painted(Meaning::Dim, format!("   budget {}, {stops}", units::tokens(total)));
    }
    text
}

/// The phases of a workflow: a trusted project's own before one that is built in. Its own file may be one for loops, or
/// just list them: `phases = ["A", "B"]`.
fn workflow_phases(context: &Context, name: &str) -> Outcome<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct File {
        phases: Vec<String>,
    }
    let names =
        |found: &NamedWorkflow| found.phases(&[], false).into_iter().map(|phase| phase.name).collect();
    let loaded = context.loaded()?;
    let file = format!("workflows/{name}.toml");
    let path = context.project.directory().join(&file);
    if let Some(bytes) = loaded.content.as_ref().and_then(|content| content.get(&file)) {
        let bad = |why: String| CommandError::config("config_invalid", format!(".segno/{file}: {why}"));
        let text = std::str::from_utf8(bytes).map_err(|why| bad(why.to_string()))?;
        let table: toml::Table = toml::from_str(text).map_err(|why| bad(why.message().to_owned()))?;
        if table.contains_key("phases") {
            let listed = toml::from_str::<File>(text).map(|file| file.phases);
            return listed.map_err(|why| bad(why.message().to_owned()));
        }
        return Ok(names(&NamedWorkflow::parse(name, Some(&path), text).map_err(bad_workflow)?));
    }
    // Only a plain name is looked for: it must not lead out of the directory.
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    if plain && !loaded.trust.is_trusted() && path.is_file() {
        context.printer.warn_with(
            format!(".segno/{file} is ignored, so the session has no phases: this project is not trusted"),
            &["segno trust --show, then: segno trust   (or: segno new --phases A,B,C)".to_owned()],
        );
        return Ok(Vec::new());
    }
    match NamedWorkflow::find(name, &context.project.root) {
        Ok(found) => Ok(names(&found)),
        Err(why) => {
            context.printer.talk(format!("no phases: {why}, and no --phases A,B,C"));
            Ok(Vec::new())
        }
    }
}
