//! A run that nobody here started: its hooks tell of it, and the agent's own log.
//!
//! It has a capture like any other, into which the log is copied, so that whoever finds its agent gone brings it to its end
//! in the same way. What stands in the capture's note of an exit says whether the agent was at work or waited for a person
//! when it was last heard of.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use segno_agents::Agent;
use segno_agents::ExitInfo;
use segno_core::Command;
use segno_core::RunId;
use segno_core::SessionId;
use segno_core::State;
use segno_core::event::Holder;
use segno_core::event::Ledger;
use segno_core::event::RunStarted;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use super::Feed;
use super::capture;
use super::capture::Capture;
use super::capture::Note;
use super::log_copy::InteractiveRun;
use super::open::Opening;
use super::proof::NOBODY;
use super::proof::OwnCapture;
use super::tree::Tree;
use crate::Engine;
use crate::Error;
use crate::act::Acting;

/// Where it is written down that the conversation was left.
const LEFT: &str = "left";
/// How far the log was read when each of the last two turns ended.
const TURNS: &str = "turns";
/// A conversation that was left is over when its agent has had this long to write the rest of its log.
const LINGERS: Duration = Duration::from_secs(5);

/// What a watched run begins with.
pub(crate) struct WatchedRun<'a> {
    pub(crate) session: SessionId,
    pub(crate) run: &'a RunId,
    pub(crate) epoch: u64,
    pub(crate) agent: &'a dyn Agent,
    /// The agent's process.
    pub(crate) holder: &'a Holder,
    pub(crate) native_id: &'a str,
    /// The conversation was there before.
    pub(crate) resumed: bool,
    pub(crate) directory: &'a Path,
    /// The directory that the agent's logs are in.
    pub(crate) logs: Option<PathBuf>,
    /// A person has its terminal.
    pub(crate) interactive: bool,
}

/// What is known of a watched run whose agent may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WatchedStanding {
    /// It was at work.
    Works,
    /// It waited for a person.
    Waits,
    /// Its conversation was left, long enough ago.
    Left,
}

impl Engine {
    /// Begins the run of an agent that somebody else started.
    pub(crate) fn begin_watched(&self, begin: &WatchedRun<'_>) -> Result<State, Error> {
        let note = Note {
            session: begin.session,
            run: begin.run.clone(),
            agent: begin.agent.name().to_owned(),
            plain: None,
            expected_native_id: Some(begin.native_id.to_owned()),
            resumed: begin.resumed,
            completes: true,
            cgroup: None,
            scratch: None,
            store: self.store().location(),
            store_id: Some(self.store_id()),
            epoch: begin.epoch,
            record: None,
            source: super::log_beside::Source::default(),
            interactive: Some(InteractiveRun { since: self.now().to_string(), records: begin.logs.clone() }),
            holder: Some(begin.holder.clone()),
            watched: true,
            limits: Default::default(),
            resources: Default::default(),
        };
        let capture = Capture::create(self.captures()?, &note)?;
        super::secrets::write(capture.dir(), self.redactor().known())?;
        let variables = self.options.variables.iter();
        let environment =
            variables.map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        let started = RunStarted {
            run: begin.run.to_string(),
            agent: begin.agent.name().to_owned(),
            native_id: Some(begin.native_id.to_owned()),
            resumed: begin.resumed.then(|| begin.native_id.to_owned()),
            pid: begin.holder.pid,
            process_start: begin.holder.process_start,
            ledger: Ledger::WriteAhead,
            environment: Value::Object(environment),
            directory: begin.directory.display().to_string(),
            interactive: begin.interactive,
            ..RunStarted::default()
        };
        let command = vec![Command::StartRun(Box::new(started))];
        match self.act_as(begin.session, command, Acting::in_run(begin.epoch, begin.run.as_str())) {
            Ok(acted) => Ok(acted.state),
            Err(why) => {
                capture.discard();
                Err(why)
            }
        }
    }

    /// Takes in what the agent's own log tells by now, at a turn's beginning or end.
    pub(crate) fn follow_watched(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        if let Some((dir, read)) = self.read_watched(session, epoch)? {
            remember_turn(&dir, read);
        }
        Ok(())
    }

    /// The same in the middle of a turn.
    pub(crate) fn follow_between(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        self.read_watched(session, epoch).map(drop)
    }

    /// The capture of the run that goes on in a session, if it is watched.
    pub(crate) fn watched_capture(&self, session: SessionId) -> Option<PathBuf> {
        let run = self.store().load(session).ok()?.state.run.filter(|run| run.is_running())?;
        self.own_capture(session, &run).ok().filter(|own| own.note.watched).map(|own| own.dir)
    }

    /// Takes in what the log tells; says where the capture is, and how far it was read. Somebody else who does it already
    /// does it for us.
    fn read_watched(&self, session: SessionId, epoch: u64) -> Result<Option<(PathBuf, u64)>, Error> {
        let state = self.store().load(session)?.state;
        let Some(run) = state.run.clone().filter(|run| run.is_running()) else { return Ok(None) };
        let own = self.own_capture(session, &run)?;
        let Ok(dir) = File::open(&own.dir) else { return Ok(None) };
        if !own.note.watched || dir.try_lock().is_err() {
            return Ok(None);
        }
        let (dir, tree) = (own.dir.clone(), Tree::new(&own.run, NOBODY, false, None));
        let mut open = self.open_run(Opening::found(own)?, state, epoch, Feed::default());
        if let Some(terminal) = &mut open.terminal {
            terminal.finish(run.native_id.as_deref(), &tree).map_err(|why| Error::file(&dir, why))?;
        }
        open.read_all()?;
        open.recorder.give_texts();
        open.recorder.flush()?;
        Ok(Some((dir, open.capture.offset())))
    }

    /// Notes that a watched agent is at work, waits for a person, or left its conversation.
    pub(crate) fn note_watched(&self, run: &str, standing: WatchedStanding) {
        let Some(dir) = run.parse().ok().zip(self.captures().ok()) else { return };
        let dir = capture::directory(dir.1, &dir.0);
        match standing {
            WatchedStanding::Works => {
                if capture::read_exit(&dir).is_some() {
                    capture::clear_exit(&dir);
                    let _ = std::fs::remove_file(dir.join(LEFT));
                }
            }
            WatchedStanding::Waits => capture::write_exit(&dir, &ExitInfo::code(0)),
            WatchedStanding::Left => {
                capture::write_exit(&dir, &ExitInfo::code(0));
                let _ = capture::write_private(&dir, LEFT, b"");
            }
        }
    }

    /// What is known of a session's watched run; none if it has no such run.
    pub(crate) fn watched_standing(&self, session: SessionId) -> Option<WatchedStanding> {
        let state = self.store().load(session).ok()?.state;
        let run = state.run.filter(|run| run.is_running())?;
        self.own_capture(session, &run).ok().as_ref().and_then(OwnCapture::watched_standing)
    }
}

impl OwnCapture {
    /// Whoever brings a run to its end, or goes on with one that another driver left, reads the agent's own log from its
    /// beginning: what it used altogether is a sum over all of it. What was recorded before is recorded once.
    pub(super) fn read_anew(&self) {
        if self.note.interactive.is_some() {
            let _ = std::fs::remove_file(self.dir.join(capture::JOURNALED));
        }
    }

    pub(super) fn watched_standing(&self) -> Option<WatchedStanding> {
        if !self.note.watched {
            return None;
        }
        let left = std::fs::metadata(self.dir.join(LEFT)).and_then(|meta| meta.modified()).ok();
        let lingers = left.is_none_or(|left| left.elapsed().is_ok_and(|since| since < LINGERS));
        Some(match (capture::read_exit(&self.dir), lingers) {
            (None, _) => WatchedStanding::Works,
            (Some(_), true) => WatchedStanding::Waits,
            (Some(_), false) => WatchedStanding::Left,
        })
    }
}

/// Whoever reads the log next begins where the turn before this one ended: a message may be written in several lines, but
/// not so late.
fn remember_turn(dir: &Path, read: u64) {
    let text = std::fs::read_to_string(dir.join(TURNS)).unwrap_or_default();
    let before: Option<u64> = text.trim().parse().ok();
    let ends_line = read.checked_sub(1).is_some_and(|last| {
        let mut byte = [0];
        let read = File::open(dir.join("stdout")).and_then(|copy| copy.read_exact_at(&mut byte, last));
        read.is_ok() && byte == *b"\n"
    });
    if !ends_line || before == Some(read) {
        return;
    }
    if let Some(before) = before
        && capture::write_private(dir, capture::JOURNALED, before.to_string().as_bytes()).is_err()
    {
        return;
    }
    // Without it, the next one reads more than it had to.
    let _ = capture::write_private(dir, TURNS, read.to_string().as_bytes());
}
