//! What all requests share: the store, the board, the keys, and what may be done.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use axum::http::StatusCode;
use segno_engine::Engine;
use segno_engine::board::Board;
use segno_engine::board::Course;
use segno_engine::core::SessionId;
use segno_engine::setup::CatchUp;
use segno_engine::setup::Opening;
use segno_engine::setup::Purpose;
use segno_engine::setup::Setup;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::keys::Keys;
use super::keys::Mode;
use super::metrics::Metrics;
use super::problem::Problem;
use super::rate::Rate;
use crate::config::env::Environment;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::perform::Surroundings;

/// How many requests read the store at the same time.
const READERS: usize = 6;
/// A board that was read so long ago is read again before it is shown.
const STALE: Duration = Duration::from_millis(200);
/// How often it is looked for changes while somebody watches.
const LOOK: Duration = Duration::from_millis(80);
/// That a driver died, or that nothing was told of a change, is noticed after this time.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);
/// How often what dead drivers left is marked.
const SETTLE: Duration = Duration::from_secs(5);
/// Courses of money are kept for so many sessions.
const COURSES: usize = 16;

/// What all requests share.
pub(super) struct App {
    pub(super) surroundings: Surroundings,
    pub(super) keys: Keys,
    pub(super) guard: Guard,
    /// Of those that were let in.
    pub(super) requests: Rate,
    /// Of all others.
    pub(super) strangers: Rate,
    pub(super) zone: jiff::tz::TimeZone,
    pub(super) metrics: Metrics,
    setup: Setup,
    opening: Opening,
    idle: Mutex<Vec<Engine>>,
    permits: Semaphore,
    board: Mutex<Seen>,
    changes: watch::Sender<u64>,
    courses: Mutex<Vec<(SessionId, Course)>>,
}

/// What is let through.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// Names and ports by which browsers reach this server, in small letters.
    pub(super) hosts: Vec<String>,
    /// Any port of a loopback name will do: a socket in the file system is reached through a tunnel.
    pub(super) any_loopback: bool,
    /// `http` or `https`.
    pub(super) scheme: &'static str,
    /// Nothing can be changed.
    pub(super) read_only: bool,
    /// The name of the cookie: other servers on this machine have others.
    pub(super) cookie: String,
}

impl Guard {
    /// What a browser may be signed in for.
    pub(super) fn mode(&self) -> Mode {
        if self.read_only { Mode::Shows } else { Mode::Acts }
    }
}

#[derive(Default)]
struct Seen {
    board: Board,
    at: Option<Instant>,
    files: Vec<Option<(SystemTime, u64)>>,
}

impl App {
    pub(super) fn new(
        surroundings: Surroundings,
        keys: Keys,
        guard: Guard,
        metrics: bool,
        tell: UnboundedSender<String>,
    ) -> Outcome<Self> {
        let context = surroundings.context()?;
        let (setup, opening) = (context.setup()?, context.opening(false, Purpose::OneShot)?);
        let otel = &context.config()?.otel;
        let metrics = Metrics::new(
            metrics,
            &otel.endpoint,
            Duration::from_secs(otel.seconds),
            context.paths.state.join("serve/metrics.json"),
            Environment::inherited(),
            tell,
        );
        Ok(Self {
            metrics,
            zone: context.zone(),
            surroundings,
            keys,
            guard,
            requests: Rate::new(1_200, Duration::from_secs(2)),
            strangers: Rate::new(1_200, Duration::from_secs(2)),
            setup,
            opening,
            idle: Mutex::default(),
            permits: Semaphore::new(READERS),
            board: Mutex::default(),
            changes: watch::Sender::new(0),
            courses: Mutex::default(),
        })
    }

    /// Does something with the store on a thread that may wait.
    pub(super) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        what: impl FnOnce(&Self, &Engine) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = Arc::clone(self);
        self.blocking(move || app.with_engine(|engine| what(&app, engine))).await
    }

    /// The same for what opens the store itself.
    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        what: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let broken = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "this could not be done");
        let permit = self.permits.acquire().await.map_err(|_| broken())?;
        let done = tokio::task::spawn_blocking(what).await.map_err(|_| broken())?;
        drop(permit);
        done
    }

    pub(super) fn with_engine<T>(
        &self,
        what: impl FnOnce(&Engine) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let engine = match idle {
            Some(engine) => engine,
            None => self.setup.open(self.opening.clone())?,
        };
        // Errors may repeat what is in the record, or in the settings.
        let redactor = engine.redactor();
        let done = what(&engine).map_err(|mut problem| {
            problem.message = redactor.text(&problem.message).into_owned();
            problem
        });
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS {
            idle.push(engine);
        }
        done
    }

    /// Looks at all sessions, as they are now or were a moment ago.
    pub(super) fn on_board<T>(&self, engine: &Engine, look: impl FnOnce(&Board) -> T) -> Result<T, Problem> {
        let mut seen = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.at.is_none_or(|at| at.elapsed() >= STALE) {
            seen.board.refresh(engine)?;
            seen.at = Some(Instant::now());
        }
        Ok(look(&seen.board))
    }

    /// The newest event of a session and who drives it, as far as the last look told.
    pub(super) fn mark(&self, session: SessionId) -> Option<(u64, Option<u32>)> {
        let seen = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        seen.board.row(session).map(|row| (row.summary.seq, row.pid))
    }

    /// Hears of changes.
    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How money and tokens grew in a session.
    pub(super) fn course(&self, engine: &Engine, session: SessionId) -> Result<Course, Problem> {
        let take = |courses: &mut Vec<(SessionId, Course)>| {
            let at = courses.iter().position(|(id, _)| *id == session)?;
            Some(courses.remove(at).1)
        };
        let known = take(&mut self.courses.lock().unwrap_or_else(PoisonError::into_inner));
        let mut course = known.unwrap_or_default();
        course.read_on(engine, session)?;
        let mut courses = self.courses.lock().unwrap_or_else(PoisonError::into_inner);
        courses.retain(|(id, _)| *id != session);
        courses.push((session, course.clone()));
        if courses.len() > COURSES {
            courses.remove(0);
        }
        Ok(course)
    }

    /// Looks for changes for as long as the program runs, and tells whoever listens.
    pub(super) fn watch(&self) {
        let (mut settled, mut looked) = (Instant::now(), Instant::now());
        loop {
            std::thread::sleep(LOOK);
            let known = self.keys.generation();
            if self.keys.look() != known {
                // Whoever was signed out hears no more, from now on and not from the next change.
                self.changes.send_modify(|_| {});
            }
            if self.changes.is_closed() {
                continue;
            }
            let settles = settled.elapsed() >= SETTLE;
            let done = self.with_engine(|engine| {
                if settles && !self.guard.read_only {
                    engine.catch_up(CatchUp::Mark);
                }
                let mut seen = self.board.lock().unwrap_or_else(PoisonError::into_inner);
                let files: Vec<_> = self.setup.store.files().iter().map(stamp).collect();
                if seen.files != files || looked.elapsed() >= LOOK_ANYWAY {
                    looked = Instant::now();
                    seen.board.refresh(engine)?;
                    (seen.files, seen.at) = (files, Some(Instant::now()));
                    let change = seen.board.change();
                    self.changes.send_if_modified(|told| std::mem::replace(told, change) != change);
                }
                Ok(())
            });
            if let Err(why) = done.as_ref().map_err(|why| &why.message) {
                tracing::warn!(%why, "the page cannot look for changes");
                std::thread::sleep(LOOK_ANYWAY);
            }
            if settles {
                settled = Instant::now();
            }
        }
    }

    /// One of the program's own commands, for a session in its own project.
    pub(super) fn perform(
        &self,
        session: SessionId,
        project: Option<PathBuf>,
        command: &crate::cli::Command,
        key: Option<String>,
    ) -> Result<serde_json::Value, Problem> {
        let mut surroundings = self.surroundings.clone();
        surroundings.global.session = session.to_string().parse().ok();
        surroundings.global.key = key;
        if let Some(project) = project.filter(|project| project.is_dir()) {
            surroundings.global.project = Some(project);
        }
        Ok(surroundings.perform(command)?)
    }
}

fn stamp(path: &PathBuf) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Whether a problem is that there is no store yet.
pub(super) fn is_no_store(problem: &Problem) -> bool {
    problem.code == "no_store"
}

/// What is wrong with how the server was asked to start.
pub(super) fn refused(message: impl Into<String>) -> CommandError {
    CommandError::usage(message)
}
