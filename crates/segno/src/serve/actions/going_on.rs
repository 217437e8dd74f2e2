//! Going on, with the questions that the command line asks: what is in doubt, and what going back would do to the files.

use std::path::PathBuf;

use axum::Json;
use axum::http::StatusCode;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Summary;
use segno_engine::resume::Recovery;
use segno_engine::waiting::WaitingKind;
use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::note_who;
use super::one;
use super::project_of;
use super::shown_first;
use crate::cli::Command;
use crate::command_context::CommandContext;
use crate::commands::resume;
use crate::commands::undo;
use crate::mcp::confirm;
use crate::serve::app::App;
use crate::serve::problem::Problem;
use crate::serve::session::has_open_breaker;

/// An agent goes on in the background; a session without one becomes active again.
pub(super) fn go_on(
    app: &App,
    session: SessionId,
    from: Option<resume::From>,
    mark: Option<String>,
) -> Answer {
    let project = project_of(app, session)?;
    let mut surroundings = app.surroundings.clone();
    surroundings.global.project = project.clone().filter(|project| project.is_dir());
    let context = surroundings.context()?;
    let ctx = CommandContext::open(&context)?;
    let state = ctx.engine.load(session)?.state;
    let conflict = |code: &'static str, why: &str| Problem::new(StatusCode::CONFLICT, code, why);
    if !state.status.is_open() {
        ctx.engine.refuse_resume(&state, false).map_err(Problem::from)?;
    }
    if has_open_breaker(&state) {
        return Err(conflict("halted", "its breaker is open: close that first, when what opened it is gone"));
    }
    let words = "asked to go on";
    let has_agent = state.run.is_some() || state.looping.is_some();
    if !has_agent {
        note_who(app, session, project.clone(), words)?;
        let args = resume::Args { session: one(session), no_run: true, yes: true, ..Default::default() };
        return app.perform(session, project, &Command::Resume(args), None).map(Json);
    }
    ctx.engine.refuse_resume(&state, false).map_err(Problem::from)?;
    ctx.engine.refuse_driven(session).map_err(Problem::from)?;
    ctx.engine.refuse_used_up(&state).map_err(Problem::from)?;
    let waits = ctx.engine.waiting_of(session).map_err(Problem::from)?;
    if let (None, Some(asked)) = (from, waits.iter().find(|it| it.kind == WaitingKind::Resume)) {
        let why = "calls are in doubt: say from where it goes on";
        return Err(conflict("in_doubt", why).hint(format!("from is one of: {}", asked.answers.join(", "))));
    }
    let mut args = resume::Args { from, ..Default::default() };
    if from == Some(resume::From::Checkpoint) {
        let (target, plan, question) = going_back(app, &ctx, &state, project.as_ref())?;
        if let Some(shown) = shown_first(&plan, &question, project.as_deref(), mark)? {
            return Ok(shown);
        }
        args = resume::Args { checkpoint: Some(target), ..Default::default() };
    }
    note_who(app, session, project, words)?;
    let log = resume::in_background(&context, &args, &Summary::from(&state))?;
    Ok(Json(json!({ "session_id": session, "resumed": true, "log": log })))
}

/// To which checkpoint it would go back, what that would do to the files, and what somebody is asked about it.
fn going_back(
    app: &App,
    ctx: &CommandContext<'_>,
    state: &State,
    project: Option<&PathBuf>,
) -> Result<(String, Value, String), Problem> {
    let session = state.session_id;
    let (_, options) = ctx.engine.recovery_options(session)?;
    let option = options.offered.into_iter().find(|option| option.recovery == Recovery::Checkpoint);
    let Some((target, loses)) = option.and_then(|option| Some((option.target?, option.loses))) else {
        let why = "there is no checkpoint to go on from";
        return Err(Problem::new(StatusCode::CONFLICT, "no_checkpoint", why));
    };
    let question = format!("Go on from checkpoint {target}? That {loses}.");
    if ctx.engine.find_checkpoint(session, &target)?.snapshot.is_none() {
        let plan = json!({ "to": target, "writes": [], "removes": [], "kept": [] });
        return Ok((target, plan, format!("{question} It has no files: those stay as they are.")));
    }
    let command = Command::Undo(undo::UndoArgs {
        paths: Vec::new(),
        turns: 1,
        to: Some(target.clone()),
        all: false,
        flags: undo::RestoreFlags { dry_run: true, yes: false },
    });
    let plan = app.perform(session, project.cloned(), &command, None)?;
    let question = format!("{question}\n{}", confirm::files(&plan));
    Ok((target, plan, question))
}
