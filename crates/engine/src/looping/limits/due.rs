//! Going on with every loop that is due: one after the other for each account, never all at once.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use segno_core::SessionId;
use segno_core::Status;
use segno_core::looping::DueLoops;

use crate::Engine;
use crate::Error;

/// How often it is looked whether the first one of an account got through.
const LOOK: Duration = Duration::from_millis(300);
/// The longest pause between two loops of one account.
const SPREAD_MS: u64 = 2_000;

/// How a loop is gone on with: by a process of its own, in its own project.
#[derive(Clone, Debug)]
pub struct DueStarter {
    /// This program.
    pub program: PathBuf,
    /// What it is given before the session's id; `--project` and the project stand before that.
    pub arguments: Vec<OsString>,
    /// What it is given behind the id.
    pub behind: Vec<OsString>,
    /// Whether what it prints is shown.
    pub shows: bool,
}

/// What came of a loop that was due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEnded {
    /// Which.
    pub session: SessionId,
    /// The exit code of its process, if it could be started and exited.
    pub exit: Option<i32>,
    /// Why it was left alone, if it was.
    pub why: Option<String>,
}

impl Engine {
    /// Goes on with every loop that is due, and with those that become so meanwhile, each once. Loops of one account go
    /// one after the other: the next one when the one before got through, parked again or ended.
    ///
    /// # Errors
    /// If the sessions cannot be listed.
    pub fn resume_due(&self, starter: &DueStarter, stops: &dyn Fn() -> bool) -> Result<Vec<DueEnded>, Error> {
        let mut groups: Vec<Group> = Vec::new();
        let (mut seen, mut done) = (BTreeSet::new(), Vec::new());
        loop {
            for DueLoops { account, sessions } in self.due_loops()? {
                let new: Vec<SessionId> =
                    sessions.into_iter().filter(|session| seen.insert(*session)).collect();
                match groups.iter_mut().find(|group| account.is_some() && group.account == account) {
                    Some(group) => group.waiting.extend(new),
                    None => groups.push(Group { account, waiting: new.into(), ..Group::default() }),
                }
            }
            for group in &mut groups {
                group.advance(self, starter, stops(), &mut done)?;
            }
            groups.retain(|group| !group.is_over());
            if groups.is_empty() {
                return Ok(done);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// The loops of one account.
#[derive(Default)]
struct Group {
    account: Option<String>,
    waiting: std::collections::VecDeque<SessionId>,
    running: Vec<(SessionId, Child)>,
    /// The one that has not got through yet.
    trying: Option<SessionId>,
    /// When the next one may go.
    after: Option<Instant>,
}

impl Group {
    fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    fn advance(
        &mut self,
        engine: &Engine,
        starter: &DueStarter,
        stopped: bool,
        done: &mut Vec<DueEnded>,
    ) -> Result<(), Error> {
        let mut ended = Vec::new();
        self.running.retain_mut(|(session, child)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                ended.push(DueEnded { session: *session, exit: status.code(), why: None });
                false
            }
            Err(why) => {
                ended.push(DueEnded { session: *session, exit: None, why: Some(why.to_string()) });
                false
            }
        });
        if stopped {
            // Those that run were told by whoever told this process: the terminal, or the manager of services.
            self.waiting.clear();
        }
        if self.trying.is_some_and(|session| ended.iter().any(|one| one.session == session)) {
            self.next();
        }
        done.extend(ended);
        if let Some(session) = self.trying {
            let state = engine.load(session)?.state;
            let through =
                state.looping.as_ref().is_some_and(|looping| looping.tries.is_none() && looping.open);
            if state.status == Status::Active && through {
                self.next();
            }
            return Ok(());
        }
        if self.after.is_some_and(|after| Instant::now() < after) {
            return Ok(());
        }
        let Some(session) = self.waiting.pop_front() else { return Ok(()) };
        let state = engine.load(session)?.state;
        match start(starter, &state.project.path, session) {
            Ok(child) => {
                self.running.push((session, child));
                self.trying = Some(session);
            }
            Err(why) => done.push(DueEnded { session, exit: None, why: Some(why) }),
        }
        Ok(())
    }

    /// The next one may go, after a moment that is never the same.
    fn next(&mut self) {
        let moment = uuid::Uuid::now_v7().as_u64_pair().1 % SPREAD_MS;
        (self.trying, self.after) = (None, Some(Instant::now() + Duration::from_millis(moment)));
    }
}

fn start(starter: &DueStarter, project: &str, session: SessionId) -> Result<Child, String> {
    if !Path::new(project).is_dir() {
        return Err(format!("its project {project} is gone"));
    }
    let stream = || if starter.shows { Stdio::inherit() } else { Stdio::null() };
    Command::new(&starter.program)
        .args(["--project", project])
        .args(&starter.arguments)
        .arg(session.to_string())
        .args(&starter.behind)
        .current_dir(project)
        .stdin(Stdio::null())
        .stdout(stream())
        .stderr(stream())
        .spawn()
        .map_err(|why| why.to_string())
}
