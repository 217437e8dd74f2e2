//! `segno resume --all`: everything that was cut off, for example by a reboot, goes on in the background.

use std::path::Path;
use std::process::Stdio;

use segno_engine::Filter;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::resume::Recovery;
use segno_engine::run::start_background;
use serde_json::Value;
use serde_json::json;

use super::Args;
use super::From;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::commands::ls;
use crate::config::env::Environment;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// Shows what was cut off, asks once, and takes it up.
pub(super) fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open(context)?;
    // What somebody paused, or a cap or the breaker stopped, was stopped on purpose.
    let filter = Filter { statuses: vec![Status::Interrupted], ..Filter::default() };
    let (with_agent, without): (Vec<Summary>, Vec<Summary>) =
        ctx.engine.list(&filter)?.into_iter().partition(|session| has_agent(&ctx, session));
    let printer = &context.printer;
    let (with_agent, gone): (Vec<Summary>, Vec<Summary>) =
        with_agent.into_iter().partition(|session| Path::new(&session.project).is_dir());
    for session in &gone {
        let id = session.session_id;
        printer.warn_with(
            format!("{} is not resumed: its project {} is gone", short(id), session.project),
            &[format!("segno abort {}   gives it up", ctx.engine.ending(id))],
        );
    }
    if with_agent.is_empty() {
        if printer.is_json() {
            return printer.json(&json!({ "resumed": [] }));
        }
        printer.talk("there is no interrupted work that an agent could continue");
        return Ok(());
    }
    if !printer.is_json() {
        printer.talk_table(&table(context, &with_agent));
        if !without.is_empty() {
            let more = units::things(without.len() as u64, "session");
            printer.talk(format!("{more} without an agent: segno resume ID resumes one"));
        }
    }
    confirm(context, args.yes, with_agent.len())?;
    let mut begun: Vec<Value> = Vec::new();
    for session in &with_agent {
        let log = start(context, args, session)?;
        let id = session.session_id;
        if !printer.is_json() {
            printer.talk(format!("{} goes on in the background; it says: {}", short(id), log.display()));
        }
        begun.push(json!({ "session_id": id, "log": log }));
    }
    if printer.is_json() {
        return printer.json(&json!({ "resumed": begun }));
    }
    let last = with_agent.first().map_or(String::new(), |session| ctx.engine.ending(session.session_id));
    printer.hint(format!("segno ls --everywhere   segno tail -f {last}"));
    Ok(())
}

fn has_agent(ctx: &CommandContext<'_>, session: &Summary) -> bool {
    let state = ctx.engine.load(session.session_id).map(|loaded| loaded.state);
    state.is_ok_and(|state| state.run.is_some_and(|run| !segno_engine::agents::is_command(&run.agent)))
}

fn table(context: &Context, sessions: &[Summary]) -> Table {
    let mut table = Table::new([
        Column::left("session"),
        Column::left("topic").elastic(),
        Column::left("agent"),
        Column::left("status"),
        Column::left("project"),
    ]);
    for session in sessions {
        table.row([
            Text::new().painted(Meaning::Dim, short(session.session_id)),
            session.topic.clone().unwrap_or_default().into(),
            session.agent.clone().unwrap_or_default().into(),
            ls::status(context, session.status, session.reason.as_ref(), None),
            Text::new().painted(Meaning::Dim, session.project.clone()),
        ]);
    }
    table
}

fn confirm(context: &Context, yes: bool, count: usize) -> Outcome {
    use std::io::IsTerminal as _;
    if yes {
        return Ok(());
    }
    let cancelled = |why: &str| CommandError::new(ExitCode::Cancelled, "cancelled", why.to_owned());
    if !std::io::stdin().is_terminal() || context.printer.is_json() {
        return Err(cancelled("nothing was resumed: there is nobody to ask").hint("segno resume --all --yes"));
    }
    context.printer.talk(format!("resume {}? [y/N]", units::things(count as u64, "session")));
    match crate::ask::line()?.as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(cancelled("nothing was resumed")),
    }
}

/// Starts `segno resume ID` in the background, in the session's own project.
pub(crate) fn start(context: &Context, args: &Args, session: &Summary) -> Outcome<std::path::PathBuf> {
    let own = std::env::current_exe().map_err(|why| CommandError::io("cannot find this program", why))?;
    let directory = context.paths.state.join("resumed");
    crate::files::private_directory(&directory)
        .map_err(|why| CommandError::io(format_args!("cannot make {}", directory.display()), why))?;
    let log = directory.join(format!("{}.log", session.session_id));
    let out = std::fs::File::create(&log)
        .map_err(|why| CommandError::io(format_args!("cannot write {}", log.display()), why))?;
    let mut arguments: Vec<std::ffi::OsString> = vec![
        "--project".into(),
        session.project.clone().into(),
        "--store".into(),
        context.store_location()?.absolute().url(),
        "resume".into(),
        session.session_id.to_string().into(),
        "--background".into(),
    ];
    arguments.extend(match &args.checkpoint {
        Some(checkpoint) => ["--checkpoint".into(), checkpoint.into()],
        None => ["--from".into(), args.from.map_or(Recovery::Live, From::recovery).as_str().into()],
    });
    arguments.extend(args.checkout_branch.then(|| "--checkout-branch".into()));
    arguments.extend(args.any_branch.then(|| "--any-branch".into()));
    match args.auto_resume {
        Some(Some(attempts)) => arguments.push(format!("--auto-resume={attempts}").into()),
        Some(None) => arguments.push("--auto-resume".into()),
        None => {}
    }
    let runtime = context.environment.non_empty("XDG_RUNTIME_DIR").map(Path::new);
    start_background(&own, &arguments, Stdio::null(), out, runtime, &Environment::inherited(), &[])
        .map_err(|why| CommandError::io("cannot start the background process", why))?;
    Ok(log)
}
