//! Work that goes on in a session of its own, whatever becomes of whoever asked for it.
//!
//! Its id is the session's, so that any server, also a later one, can say how far it is.

use std::process::Stdio;

use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::core::Timestamp;
use serde_json::Value;
use serde_json::json;

use super::worker::Worker;
use crate::command_context::CommandContext;
use crate::commands::args::OneSession;
use crate::commands::lifecycle::PauseArgs;
use crate::commands::resume::in_background as in_background_again;
use crate::commands::run::in_background;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// A session that an agent starts from its own is its child, and that one may have children too. Deeper ones would
/// spend without anybody who sees it.
const DEEPEST: usize = 2;

/// How far a piece of work is.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub(super) session: SessionId,
    pub(super) status: Status,
    /// Whether somebody works on it.
    pub(super) driven: bool,
    /// A loop that waits for a limit to be over.
    pub(super) parked: bool,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) words: String,
}

impl Progress {
    /// Whether there is nothing more to wait for.
    pub(super) fn is_over(&self) -> bool {
        !(self.parked || (self.driven && self.status == Status::Active))
    }

    pub(super) fn failed(&self) -> bool {
        self.is_over() && !matches!(self.status, Status::Completed | Status::Active)
    }

    /// What the caller is told.
    pub(super) fn document(&self) -> Value {
        let id = self.session.to_string();
        let id = &id[id.len() - 6..];
        let hint = match (self.is_over(), self.failed()) {
            (false, _) => "it goes on; ask with status",
            (true, true) => "it needs a person: segno show, then segno resume",
            (true, false) => "show with part conversation or files tells what it did",
        };
        json!({
            "session_id": self.session, "session": id, "status": self.status, "working": !self.is_over(),
            "says": self.words, "hint": hint,
        })
    }
}

/// Starts the program again in the background, as a child of the session that this server works with.
pub(super) fn begin(worker: &Worker<'_, '_>, words: &[String]) -> Outcome<Progress> {
    let context = worker.context();
    let above = match worker.session() {
        Some(session) => Some(session),
        None => context.under_run()?.and_then(|under| under.session),
    };
    let mut words: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
    if let Some(above) = above {
        let depth = CommandContext::open(context)?.engine.sessions_above(above) + 1;
        if depth > DEEPEST {
            let why =
                format!("this session is {DEEPEST} levels below another one; it may not start further ones");
            return Err(CommandError::new(ExitCode::Refused, "too_deep", why)
                .hint("do it in this session, or ask the person"));
        }
        words.push(format!("--below={above}").into());
    }
    if let Some(store) = &context.global.store {
        words.extend(["--store".into(), store.into()]);
    }
    if let Some(project) = &context.global.project {
        words.extend(["--project".into(), project.clone().into_os_string()]);
    }
    let begun = in_background(context, words, Stdio::null())?;
    look_at(worker, begun.session)
        .ok_or_else(|| CommandError::internal("the session that was begun is not there"))
}

fn refused(why: &str) -> CommandError {
    CommandError::new(ExitCode::Refused, "no_loop", why.to_owned())
}

/// The session that the tools are about, which has to be a loop.
fn the_loop(worker: &Worker<'_, '_>) -> Outcome<State> {
    let ctx = CommandContext::open(worker.context())?;
    let id = match worker.session() {
        Some(id) => id,
        None => ctx.session_to_read(None)?,
    };
    let state = ctx.load(id)?;
    match state.looping {
        Some(_) => Ok(state),
        None => Err(refused("this session is no loop").hint("segno loop --help")),
    }
}

/// Pauses the loop of this project. One that waits already stays as it is.
pub(super) fn pause_loop(worker: &Worker<'_, '_>, reason: Option<String>) -> Outcome<Value> {
    let state = the_loop(worker)?;
    if state.status == Status::Paused {
        return Ok(json!({ "session_id": state.session_id, "status": state.status }));
    }
    let id = Some(state.session_id.to_string().parse().map_err(CommandError::internal)?);
    let pause = PauseArgs { session: OneSession { id }, reason };
    worker.perform(&crate::cli::Command::Pause(pause))
}

/// Goes on with the loop of this project in the background. One that goes on already is left alone.
pub(super) fn resume_loop(worker: &Worker<'_, '_>) -> Outcome<Value> {
    let (context, state) = (worker.context(), the_loop(worker)?);
    let id = state.session_id;
    let begun = match state.status {
        Status::Active => false,
        Status::Halted => {
            return Err(refused("the breaker is open, and only the person closes it")
                .hint(format!("ask them to type: segno breaker reset {id}")));
        }
        Status::Paused | Status::Interrupted => {
            in_background_again(context, &Default::default(), &Summary::from(&state))?;
            true
        }
        Status::Completed | Status::Aborted | Status::Failed => {
            return Err(refused("the loop has ended").hint(format!("segno show {id}")));
        }
    };
    Ok(json!({ "session_id": state.session_id, "begun": begun }))
}

/// How far it is; none if there is no such work.
pub(super) fn look(worker: &Worker<'_, '_>, task: &str) -> Option<Progress> {
    look_at(worker, task.parse().ok()?)
}

fn look_at(worker: &Worker<'_, '_>, session: SessionId) -> Option<Progress> {
    let ctx = CommandContext::open(worker.context()).ok()?;
    let state = ctx.load(session).ok()?;
    let driven = ctx.engine.lease(session).ok()?.is_some();
    let parked = state.looping.as_ref().and_then(|looping| looping.parked.as_ref());
    let parked = state.status == Status::Paused && parked.is_some_and(|parked| parked.until.is_some());
    let reason = state.reason.as_ref().map(|reason| reason.what.clone());
    let words = match reason {
        Some(reason) => format!("{}: {reason}", state.status),
        None => format!("{}, {} calls done", state.status, state.calls.completed),
    };
    Some(Progress {
        session,
        status: state.status,
        driven,
        parked,
        created_at: state.created_at,
        updated_at: state.updated_at,
        words,
    })
}

/// Asks the work to stop; false if there is none.
pub(super) fn cancel(worker: &Worker<'_, '_>, task: &str) -> bool {
    let Ok(session) = task.parse::<SessionId>() else { return false };
    let Ok(ctx) = CommandContext::open(worker.context()) else { return false };
    let details = Some("the agent that asked for it changed its mind".into());
    let pause =
        segno_engine::core::Command::Pause { reason: segno_engine::core::event::PauseReason::Asked, details };
    ctx.act(session, [pause]).is_ok()
}
