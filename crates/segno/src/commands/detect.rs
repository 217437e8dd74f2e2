//! `segno detect`: the session that is there already, and what to do about it.

use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use segno_engine::core::State;
use segno_engine::core::Summary;
use segno_engine::core::Timestamp;
use segno_engine::core::detect::Action;
use segno_engine::core::detect::detect;
use segno_engine::layout;
use segno_engine::layout::Detected;
use serde_json::Value;
use serde_json::json;

use super::args::OneSession;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;

/// Say whether there is a session to resume
///
/// Looks at the newest open session of the project, or the one that is named, and says what to do: create_new,
/// offer_resume, offer_reset or attach. A session never expires by age; it cannot be resumed if its circuit
/// breaker is open, its work has ended, --file asks for other work, or its record is damaged. The session is not changed.
/// A project without a session of segno may have one of a PRP loop in .prp-session; that is looked at in the same way.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno detect --file docs/login.md --json")]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// The file that says what is to be done
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Show what can be gone on with as a PRP loop does
    #[arg(long)]
    pub panel: bool,
}

/// Runs `segno detect`.
///
/// # Errors
/// If the store cannot be read.
pub fn run(context: &Context, args: &Args) -> Outcome {
    if args.panel && context.printer.is_json() {
        return Err(CommandError::usage("--panel is for people, and --json for programs: say one of them"));
    }
    let wanted = work_file(context, args.file.as_deref())?;
    let ctx = CommandContext::open_to_look_if_any(context)?;
    let found = match &ctx {
        None => detect(None, wanted.as_deref()),
        Some(ctx) => match context.session(args.session.id.as_ref())? {
            Some(named) => ctx.engine.detect_session(ctx.named(&named)?, wanted.as_deref())?,
            None => ctx.engine.detect(&context.project.root, wanted.as_deref())?,
        },
    };
    if found.session.is_none()
        && let Some(foreign) = prp_session(context, wanted.as_deref())
    {
        if args.panel && foreign.1.action == Action::OfferResume {
            let state = layout::prp_session(&foreign.0, now(context));
            let id = foreign.1.session_id.as_deref().unwrap_or("?");
            show_panel(context, state.as_ref(), id)?;
        }
        return tell_prp(context, foreign);
    }
    let state = match (&ctx, found.session) {
        (Some(ctx), Some(session)) => ctx.engine.load(session).ok().map(|loaded| loaded.state),
        _ => None,
    };
    if context.printer.is_json() {
        return context.printer.json(&json!({
            "found": found.found,
            "action": found.action,
            "reason": found.reason,
            "expired": found.expired,
            "session_id": found.session,
            "session": state.as_ref().map_or(Value::Null, |state| json!(Summary::from(state))),
        }));
    }
    let Some(session) = found.session else {
        context.printer.data("create_new: this project has no session")?;
        context.printer.hint("segno run --prompt …");
        return Ok(());
    };
    if args.panel && found.action == Action::OfferResume {
        show_panel(context, state.as_ref(), &short(session))?;
    }
    let begins = match state.as_ref().and_then(|state| state.looping.as_ref()) {
        Some(_) => "segno loop --prompt …   begins a new loop",
        None => "segno run --prompt …   begins a new session",
    };
    let topic = state.and_then(|state| state.topic).unwrap_or_default();
    let mut line = Text::new()
        .painted(Meaning::Strong, found.action.as_str())
        .plain("   session ")
        .painted(Meaning::Dim, short(session))
        .plain(format!("  {topic}"));
    if let Some(reason) = &found.reason {
        line = line.plain(format!("   {reason}"));
    }
    context.printer.data(line)?;
    let tail = ctx.as_ref().map_or_else(|| session.to_string(), |ctx| ctx.engine.ending(session));
    context.printer.hint(match found.action {
        Action::CreateNew => begins.to_owned(),
        Action::OfferResume => format!("segno resume {tail}   (or: segno abandon {tail})"),
        Action::OfferReset => format!("segno resume {tail} --reset-breaker   (or: segno abort {tail})"),
        Action::Attach => format!("segno tail -f {tail}"),
    });
    Ok(())
}

fn show_panel(context: &Context, state: Option<&State>, id: &str) -> Outcome {
    let lines = state.map(|state| super::resume_prompt::lines(state, id, now(context)));
    lines.into_iter().flatten().try_for_each(|line| context.printer.data(line))
}

fn now(context: &Context) -> Timestamp {
    Timestamp::from_micros(context.now.as_microsecond())
}

/// The session of a PRP loop that another tool keeps for this project.
fn prp_session(context: &Context, wanted: Option<&str>) -> Option<(PathBuf, Detected)> {
    let home = context.environment.non_empty("HOME").map(PathBuf::from);
    let named = context.prp_folder();
    let folders = layout::prp_folders(&context.project.root, named.as_deref(), home.as_deref());
    layout::detect_prp(&folders, wanted, now(context))
}

fn tell_prp(context: &Context, (folder, found): (PathBuf, Detected)) -> Outcome {
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&json!({
            "found": true,
            "action": found.action,
            "reason": found.reason,
            "expired": found.expired,
            "session_id": null,
            "session": null,
            "foreign": {
                "family": "prp",
                "folder": folder,
                "session_id": found.session_id,
                "prp_file": found.prp_file,
                "current_phase": found.phase,
                "current_iteration": found.iteration,
                "status": found.status,
                "action": found.document_action,
            },
        }));
    }
    let shown = folder.strip_prefix(&context.project.root).unwrap_or(&folder).display().to_string();
    let mut line = Text::new()
        .painted(Meaning::Strong, found.action.as_str())
        .plain(format!("   a PRP session in {shown}"));
    for part in [&found.session_id, &found.phase, &found.status].into_iter().flatten() {
        line = line.plain(format!("   {part}"));
    }
    if let Some(reason) = &found.reason {
        line = line.plain(format!("   {reason}"));
    }
    printer.data(line)?;
    printer.hint(match found.action {
        Action::OfferResume => {
            format!("segno import {shown}   takes it over; segno resume last goes on with it")
        }
        Action::OfferReset if !found.importable => {
            format!("segno loop FILE   begins anew; {shown} stays as it is, and is not written to until it is moved away")
        }
        Action::OfferReset => {
            format!("segno import {shown}   takes over what can be read (or: segno loop FILE begins anew)")
        }
        Action::CreateNew | Action::Attach => "segno loop FILE   begins a new session".to_owned(),
    });
    Ok(())
}

/// How the file with the work is named in the record: from the project on, if it is in it.
pub(super) fn work_file(context: &Context, file: Option<&Path>) -> Outcome<Option<String>> {
    let Some(file) = file.filter(|file| *file != Path::new("-")) else { return Ok(None) };
    let unfit = || {
        CommandError::usage(format!(
            "{file:?} cannot be the name of a work file: it is empty, no text, or has control characters"
        ))
    };
    let whole = std::path::absolute(file).map_err(|_| unfit())?;
    let whole = whole.canonicalize().unwrap_or(whole);
    let root = context.project.root.canonicalize().unwrap_or_else(|_| context.project.root.clone());
    let shown = whole.strip_prefix(&root).unwrap_or(&whole).to_str().ok_or_else(unfit)?;
    // What cannot be kept on a line is no name to compare with either.
    if shown.is_empty() || shown.chars().any(char::is_control) {
        return Err(unfit());
    }
    Ok(Some(shown.to_owned()))
}
