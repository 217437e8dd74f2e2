//! Work that goes on in a session of its own, whatever becomes of whoever asked for it.
//!
//! Its id is the session's, so that any server, also a later one, can say how far it is.

use std::process::Stdio;
use std::time::Duration;

use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::core::Timestamp;
use segno_engine::looping;
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

/// How long after its last event an active session that nobody drives is believed to go on: between two drivers, and before
/// the first one, nobody has it for a moment.
const BETWEEN: Duration = Duration::from_secs(60);

/// How work stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Somebody works on it, or will by themselves.
    Working,
    Done,
    /// Nothing goes on unless somebody takes it up.
    Failed,
}

impl Standing {
    /// Of a session with this status. `parked`: it is a loop that waits for a limit to be over. `quiet`: how long nothing was
    /// recorded of it.
    fn of(status: Status, driven: bool, parked: bool, quiet: Duration) -> Self {
        match status {
            Status::Active if driven || quiet < BETWEEN => Self::Working,
            Status::Paused if parked => Self::Working,
            Status::Completed => Self::Done,
            Status::Active
            | Status::Paused
            | Status::Interrupted
            | Status::Halted
            | Status::Aborted
            | Status::Failed => Self::Failed,
        }
    }
}

/// How far a piece of work is.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub(super) session: SessionId,
    status: Status,
    standing: Standing,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) words: String,
}

impl Progress {
    /// Whether there is nothing more to wait for.
    pub(super) fn is_over(&self) -> bool {
        self.standing != Standing::Working
    }

    pub(super) fn failed(&self) -> bool {
        self.standing == Standing::Failed
    }

    /// What the caller is told.
    pub(super) fn document(&self) -> Value {
        let id = self.session.to_string();
        let id = &id[id.len() - 6..];
        let hint = match self.standing {
            Standing::Working => "it goes on; ask with status",
            Standing::Failed => "it needs a person: segno show, then segno resume",
            Standing::Done => "show with part conversation or files tells what it did",
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
    let ctx = CommandContext::open(context)?;
    progress(&ctx, &ctx.load(begun.session)?)
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

/// How far it is; none if there is no such work in this project.
pub(super) fn look(worker: &Worker<'_, '_>, task: &str) -> Option<Progress> {
    let session = task.parse().ok()?;
    let ctx = CommandContext::open(worker.context()).ok()?;
    let state = ctx.load(session).ok()?;
    let here = state.project.path == worker.context().project.root.display().to_string();
    (here || is_ours(worker, &state)).then(|| progress(&ctx, &state).ok())?
}

/// Whether it was begun by this server, or by one that worked with the same session before.
fn is_ours(worker: &Worker<'_, '_>, state: &State) -> bool {
    let below = state.run.as_ref().and_then(|run| run.below);
    worker.has_begun(state.session_id) || (below.is_some() && below == worker.session())
}

fn progress(ctx: &CommandContext<'_>, state: &State) -> Outcome<Progress> {
    let session = state.session_id;
    let driven = ctx.engine.lease(session)?.is_some();
    let parked = state.looping.as_ref().and_then(|looping| looping.parked.as_ref());
    let parked = parked.is_some_and(|parked| parked.until.is_some());
    let quiet = Duration::from_micros(ctx.engine.now().micros_since(state.updated_at));
    let reason = state.reason.as_ref().map(|reason| reason.what.clone());
    let words = match reason {
        Some(reason) => format!("{}: {reason}", state.status),
        None => format!("{}, {} calls done", state.status, state.calls.completed),
    };
    Ok(Progress {
        session,
        status: state.status,
        standing: Standing::of(state.status, driven, parked, quiet),
        created_at: state.created_at,
        updated_at: state.updated_at,
        words,
    })
}

/// Asks the work to stop; why not, if it is not for this client to stop, or over.
pub(super) fn cancel(worker: &Worker<'_, '_>, task: &str) -> Result<(), String> {
    let unknown = || format!("there is no task {task}");
    let session = task.parse::<SessionId>().map_err(|_| unknown())?;
    let ctx = CommandContext::open(worker.context()).map_err(|_| unknown())?;
    let state = ctx.load(session).map_err(|_| unknown())?;
    if !is_ours(worker, &state) {
        return Err(format!(
            "{task} cannot be stopped from here: it was not begun here; the person can type: segno pause {session}"
        ));
    }
    let pause = looping::pause(&state, Some("the client that began it cancelled its task".into()));
    match ctx.act(session, [pause]) {
        Ok(_) => Ok(()),
        Err(why) => Err(format!("{task} cannot be stopped: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_drives_for_a_moment_is_not_over() {
        let (now, late) = (Duration::ZERO, BETWEEN);
        for (status, driven, parked, quiet, expected) in [
            (Status::Active, true, false, late, Standing::Working),
            (Status::Active, false, false, now, Standing::Working),
            (Status::Active, false, false, late, Standing::Failed),
            (Status::Paused, false, true, late, Standing::Working),
            (Status::Paused, false, false, now, Standing::Failed),
            (Status::Interrupted, false, false, now, Standing::Failed),
            (Status::Completed, true, false, now, Standing::Done),
        ] {
            assert_eq!(Standing::of(status, driven, parked, quiet), expected, "{status} {driven} {parked}");
        }
    }
}
