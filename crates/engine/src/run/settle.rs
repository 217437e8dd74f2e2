//! How a run's end is recorded, and what it does to its session.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use segno_agents::Outcome;
use segno_agents::OutcomeKind;
use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::event::ContextFill;
use segno_core::event::Holder;
use segno_core::event::RunEnded;
use segno_core::limits;
use segno_core::state::RunMark;

use super::Feed;
use super::capture;
use super::capture::Note;
use super::capture_process;
use super::capture_process::Kept;
use super::finish;
use super::journal::Flushed;
use super::journal::Recorder;
use super::journal::token_use;
use super::open::Opening;
use super::proof::NOBODY;
use super::proof::OwnCapture;
use super::stop::Cause;
use super::supervisor::RunEnd;
use super::supervisor::session_after;
use super::tree::Member;
use super::tree::Tree;
use super::unrecorded;
use super::watched::WatchedStanding;
use crate::Engine;
use crate::Error;
use crate::life;
use crate::life::Life;

/// Why a run ended that was stopped to go on with its session.
pub(crate) const STOPPED_TO_GO_ON: &str = "its driver had died, and it was stopped to go on with the session";

/// How a run ended.
#[derive(Clone)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    pub(super) cause: Option<Cause>,
    pub(super) swept: u64,
    pub(super) took: Duration,
    pub(super) stderr: String,
    pub(super) completes: bool,
    /// A person who leaves their agent pauses the session.
    pub(super) pauses: bool,
    /// Whether the session's status follows from it.
    pub(super) moves_session: bool,
    /// When it was last known to live, if its end was found out later.
    pub(super) last_seen: Option<Timestamp>,
}

/// Records the end and what follows from it. Answers with the outcome, and whether something could not be journaled
/// and must stay in the capture.
pub(super) fn record_end(
    recorder: &mut Recorder<'_>,
    end: End,
    patience: Duration,
    pause: Duration,
) -> Result<(Outcome, bool), Error> {
    let mut outcome = end.outcome.clone();
    match &end.cause {
        Some(cause @ Cause::Turns) if outcome.outcome == OutcomeKind::Stopped => {
            outcome.outcome = OutcomeKind::MaxTurns;
            outcome.reason = cause.text();
        }
        Some(cause) if outcome.outcome == cause_kind(cause) => outcome.reason = cause.text(),
        _ => {}
    }
    if !outcome.tokens_exact {
        tokens_by_log(recorder, &mut outcome);
    }
    recorder.settle_tokens(outcome.tokens);
    // Who says that tokens cost nothing does not know their price.
    if outcome.cost_usd.is_none_or(|usd| usd <= 0.0) && outcome.tokens.total() > 0 {
        recorder.reckon();
    }
    let limit = outcome.limit.as_ref().map(|limit| {
        let said = end.last_seen.unwrap_or_else(|| recorder.engine.now());
        Box::new(super::limit::seen(recorder, limit, said))
    });
    let model = recorder.model_beside();
    let ended = RunEnded { limit, model, ..ended(&recorder.run, &outcome, &end) };
    let ended = Command::EndRun(Box::new(ended));
    let mut commands = vec![ended];
    // Somebody may have asked for an end up to now. What cannot be read now was not known before either.
    drop(recorder.refresh());
    commands.extend(status_command(&recorder.state, &outcome, &end));
    let key = format!("run-{}@end", recorder.run);
    recorder.put(key.parse().unwrap_or_else(|_| crate::engine::fresh_key()), commands);
    let until = Instant::now() + patience;
    loop {
        match recorder.flush()? {
            Flushed::All => {
                recorder.tell_above();
                evidence(recorder);
                return Ok((outcome, false));
            }
            Flushed::NotYet(_) if Instant::now() < until => std::thread::sleep(pause),
            Flushed::NotYet(why) => {
                recorder.notices.push(format!("the end of the run could not be recorded: {why}"));
                return Ok((outcome, true));
            }
        }
    }
}

/// A run that died may not have said what it used; the agent's own log of the conversation may tell more. Never less
/// than what was counted already.
fn tokens_by_log(recorder: &Recorder<'_>, outcome: &mut Outcome) {
    let Some(told) = recorder.engine.used_by_log(recorder.session, &recorder.run) else { return };
    let used = &mut outcome.tokens;
    used.input = used.input.max(told.input);
    used.cache_read = used.cache_read.max(told.cache_read);
    used.cache_write = used.cache_write.max(told.cache_write);
    used.output = used.output.max(told.output);
    used.reasoning = used.reasoning.max(told.reasoning);
}

/// All that it printed is recorded now; what it never printed may be in the record that the agent keeps itself.
fn evidence(recorder: &mut Recorder<'_>) {
    if recorder.state.calls.in_doubt.is_empty() {
        return;
    }
    let epoch = recorder.at(None).epoch;
    match recorder.engine.gather_evidence_as(recorder.state.session_id, epoch) {
        Ok(settled) if settled.is_empty() => {}
        // The end is recorded; that more was found out is seen by whoever looks next, at the latest.
        Ok(_) => drop(recorder.refresh()),
        Err(why) => {
            recorder.notices.push(format!("the agent's own record could not be made use of: {why}"));
        }
    }
}

fn cause_kind(cause: &Cause) -> OutcomeKind {
    match cause {
        Cause::Silence | Cause::MaxDuration => OutcomeKind::TimedOut,
        Cause::Budget(_) => OutcomeKind::Budget,
        Cause::Turns => OutcomeKind::MaxTurns,
        Cause::Asked(_) | Cause::Request(_) | Cause::Resources(_) | Cause::Replaced(_) => {
            OutcomeKind::Stopped
        }
    }
}

/// The word for an outcome, as it is stored and shown.
pub fn outcome_word(kind: OutcomeKind) -> String {
    serde_json::to_value(kind)
        .ok()
        .and_then(|kind| kind.as_str().map(ToOwned::to_owned))
        .unwrap_or_else(|| "failed".to_owned())
}

fn ended(run: &str, outcome: &Outcome, end: &End) -> RunEnded {
    RunEnded {
        run: run.to_owned(),
        outcome: outcome_word(outcome.outcome),
        reason: outcome.reason.as_str().into(),
        native_id: outcome
            .native_id
            .as_deref()
            .filter(|id| !id.trim().is_empty())
            .map(|id| super::translate::fit(id, limits::NAME)),
        exit_code: outcome.exit_code,
        signal: outcome.exit_signal,
        turns: outcome.turns,
        duration_ms: u64::try_from(end.took.as_millis()).unwrap_or(u64::MAX),
        tokens: token_use(outcome.tokens),
        estimated: !outcome.tokens_exact,
        cost_micros: outcome.cost_usd.filter(|usd| *usd >= 0.0).map(|usd| (usd * 1e6).round() as u64),
        denials: outcome.denials.len() as u64,
        unparsed: outcome.unparsed,
        swept: end.swept,
        text: outcome.text.as_deref().filter(|text| !text.is_empty()).map(Into::into),
        error: outcome.error.as_ref().map(|error| error.text.as_str().into()),
        stderr: (!end.stderr.trim().is_empty()).then(|| end.stderr.as_str().into()),
        at: end.last_seen,
        context: outcome
            .context
            .and_then(|fill| Some(ContextFill { used: fill.used?, window: fill.window? })),
        limit: None,
        model: None,
    }
}

/// What a run's end does to its session.
fn status_command(state: &State, outcome: &Outcome, end: &End) -> Option<Command> {
    let ended = RunEnd {
        outcome: outcome.outcome,
        reason: &outcome.reason,
        exit_code: outcome.exit_code,
        exit_signal: outcome.exit_signal,
        cause: end.cause.as_ref(),
        asked: state.requests.first(),
        completes: end.completes,
        pauses: end.pauses,
        in_loop: state.looping.is_some(),
    };
    end.moves_session.then(|| session_after(state.status, &ended)).flatten()
}

/// What is thought of an agent of which it cannot be told from here whether it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// It may live, and nobody may start another one beside it.
    MayLive,
    /// Its driver sees to it: the run is over for us, and what it has and prints is left alone.
    Left,
}

/// Whether the agent of a run lives. Its pid means something only where its holder was.
fn life_of(run: &RunMark, holder: Option<Holder>) -> Life {
    match holder {
        Some(holder) => {
            let agent = Holder { pid: run.pid, process_start: run.process_start, ..holder };
            life::judge(&agent, &life::here(), life::look)
        }
        None => Member { pid: run.pid, start: run.process_start }.life(),
    }
}

impl Engine {
    /// Brings a run whose driver died to its end, if its agent is gone too: what it printed last is journaled from
    /// its capture. Refuses while the agent lives, because nobody may start another one beside it.
    pub(crate) fn end_dead_run(&self, session: SessionId, epoch: u64, unseen: Unseen) -> Result<(), Error> {
        self.end_run(session, epoch, unseen, false)
    }

    /// The same for one that was stopped to go on with its session: what its calls say from now on of having failed
    /// was our doing, and nobody knows how far they got.
    pub(super) fn end_stopped_run(&self, session: SessionId, epoch: u64) -> Result<(), Error> {
        // Whoever ends it has seen to it that it is ended, wherever it was.
        self.end_run(session, epoch, Unseen::Left, true)
    }

    fn end_run(&self, session: SessionId, epoch: u64, unseen: Unseen, cut_off: bool) -> Result<(), Error> {
        let running = |state: &State| state.run.clone().filter(|run| run.is_running());
        let Some(run) = running(&self.store().load(session)?.state) else { return Ok(()) };
        let _alone = self.own_capture(session, &run).ok().and_then(|own| capture::alone_at(&own.dir));
        // Somebody else may have done it meanwhile.
        let state = self.store().load(session)?.state;
        let Some(run) = running(&state) else { return Ok(()) };
        let own = self.own_capture(session, &run);
        let life = life_of(&run, own.as_ref().ok().and_then(|own| own.note.holder.clone()));
        let left = life == Life::Unknown && unseen == Unseen::Left;
        let watched = own.as_ref().ok().and_then(OwnCapture::watched_standing);
        if life.may_live() && !left && watched != Some(WatchedStanding::Left) {
            return Err(Error::AgentAlive { agent: run.agent, pid: run.pid });
        }
        let tree = own.as_ref().ok().map(|own| Tree::new(&own.run, NOBODY, false, own.note.cgroup.clone()));
        // Nobody cleaned up after it yet, and what is left may still be printing. Where nothing here tells of the run,
        // it is not ours to clean up after: it may be another store's, or another machine's.
        let swept = tree.as_ref().filter(|_| !left).map_or(0, Tree::sweep);
        // All who printed are gone; what they printed last may still be on its way.
        let kept = match &own {
            Ok(own) if !left => capture_process::wait_until_kept(&own.dir, Duration::from_secs(2)),
            _ => Kept::All,
        };
        if let (Kept::NotYet, Ok(own)) = (kept, &own) {
            let why = "there is no room for what an agent printed last; its run is ended when there is";
            return Err(Error::file(&own.dir, why));
        }
        // Before it is taken in, which may touch the file.
        let quiet = own.as_ref().ok().and_then(|own| capture::quiet_at(&own.dir));
        let heard = quiet.map(|quiet| {
            let quiet = i64::try_from(quiet.as_micros()).unwrap_or(i64::MAX);
            Timestamp::from_micros(self.now().as_micros().saturating_sub(quiet))
        });
        // How it ended nobody saw, unless its driver did and could not take in the rest.
        let seen_end = own.as_ref().ok().and_then(|own| capture::read_exit(&own.dir));
        if let Ok(own) = &own {
            own.read_anew();
        }
        let (mut outcome, mut recorder, files) = match own.and_then(Opening::found) {
            Ok(opening) => {
                let mut open = self.open_run(opening, state, epoch, Feed::default());
                open.recorder.cut_off = cut_off;
                if let Some(tree) = &tree {
                    // Without the rest of the agent's own log the journal has what was copied before.
                    let _ = open.ended(tree);
                }
                let exit = seen_end.clone().map(|exit| {
                    let stderr = finish::stderr_tail(&open.capture, &self.redactor());
                    if stderr.is_empty() { exit } else { exit.with_stderr(stderr) }
                });
                open.read_all()?;
                let (outcome, recorder, files) = open.conclude(&exit.unwrap_or_default());
                (outcome, recorder, Some(files))
            }
            Err(_) => {
                let (outcome, recorder) = self.read_without_files(state, &run, epoch);
                (outcome, recorder, None)
            }
        };
        if cut_off && outcome.outcome != OutcomeKind::Completed {
            STOPPED_TO_GO_ON.clone_into(&mut outcome.reason);
        }
        // It was last seen alive when its driver was, or when it last said something. Who is stopped only now worked
        // until now.
        let seen = recorder.state.recovery.as_ref().map(|stop| stop.interrupted_at);
        let last_seen = seen.max(heard).filter(|at| *at >= run.started_at && !cut_off);
        let took =
            Duration::from_micros(last_seen.unwrap_or_else(|| self.now()).micros_since(run.started_at));
        let interactive = files.as_ref().is_some_and(|(_, note)| note.interactive.is_some());
        let completes = files.as_ref().is_some_and(|(_, note)| note.completes) && seen_end.is_some();
        let stderr = seen_end.as_ref().zip(files.as_ref());
        let stderr = stderr.map(|(_, (capture, _))| finish::stderr_tail(capture, &self.redactor()));
        let end = End {
            outcome,
            cause: None,
            swept,
            took,
            stderr: stderr.unwrap_or_default(),
            completes: completes && !interactive,
            pauses: completes && interactive,
            // The session was interrupted when its driver died, and stands where it was brought to then, or since; that
            // the agent may have finished is in its own account. One whose driver lived was not brought anywhere yet.
            moves_session: seen_end.is_some(),
            last_seen,
        };
        let at = recorder.at(None);
        if seen_end.is_some() {
            super::checkpoint::at_end(&mut recorder, &end, &at);
        } else if self.options.tree.is_some() {
            // What the tree is like now is the last that is known of this run's work.
            let name = Some("interrupt".to_owned());
            recorder.checkpoint(name, segno_core::event::CheckpointReason::Interrupt, None);
            // What changed since it was last heard was somebody else's.
            super::changes::record_untold(&mut recorder, last_seen);
        }
        let (_, open) = record_end(&mut recorder, end, Duration::from_secs(5), Duration::from_millis(200))?;
        super::checkpoint::after_end(&mut recorder, &at);
        if let Some((capture, note)) = files.filter(|_| !open && !left && kept == Kept::All) {
            super::spawn::remove(note.scratch.as_deref());
            capture.discard();
        }
        Ok(())
    }

    /// Where captures are, or that nobody said so.
    pub(super) fn captures(&self) -> Result<&Path, Error> {
        let unsaid = || Error::NoRun("nobody said where captures are kept".to_owned());
        self.options.captures.as_deref().ok_or_else(unsaid)
    }

    /// Captures in our directory that are of this store, with what their notes say.
    fn noted_captures(&self) -> Vec<(PathBuf, Note)> {
        let entries = self.captures().ok().and_then(|dir| std::fs::read_dir(dir).ok());
        let entries = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        let noted = entries.filter_map(|dir| capture::read_note(&dir).ok().map(|note| (dir, note)));
        noted
            .filter(|(dir, note)| dir.file_name().and_then(|name| name.to_str()) == Some(note.run.as_str()))
            .filter(|(_, note)| self.is_our_store(note))
            .collect()
    }

    /// Runs that nobody drives, whose agent is known to be gone, and whose end is not recorded.
    pub(crate) fn left_runs(&self) -> Vec<(SessionId, String)> {
        let mut left = Vec::new();
        for (_, note) in self.noted_captures() {
            let Ok(loaded) = self.store().load(note.session) else { continue };
            let run = loaded.state.run.filter(|run| run.is_running() && run.id == note.run.as_str());
            let over = run.is_some_and(|run| !life_of(&run, note.holder).may_live());
            if over && matches!(self.store().lease(note.session), Ok(None)) {
                left.push((note.session, note.run.to_string()));
            }
        }
        left
    }

    /// Removes what was captured of a session that is no more, except for agents that live.
    pub(crate) fn remove_captures(&self, session: SessionId) {
        for (dir, note) in self.noted_captures().into_iter().filter(|(_, note)| note.session == session) {
            if !unrecorded::noted(&dir).is_some_and(Member::is_alive) {
                super::spawn::remove(
                    note.scratch.as_deref().filter(|it| super::spawn::is_scratch_of(it, &note.run)),
                );
                let _ = std::fs::remove_dir_all(dir);
            }
        }
    }

    /// The capture directories that nothing needs any more: their runs are recorded to the end, or their sessions are no
    /// more, and nobody prints there.
    pub fn stale_captures(&self) -> Vec<PathBuf> {
        let is_needed = |dir: &Path, note: &Note| match self.store().load(note.session) {
            Ok(loaded) => loaded.state.run.is_some_and(|run| run.id == note.run.as_str() && run.is_running()),
            Err(segno_store::Error::NotFound(_)) => false,
            Err(_) => true,
        } || !matches!(self.store().lease(note.session), Ok(None) | Err(segno_store::Error::NotFound(_)))
            || unrecorded::noted(dir).is_some_and(Member::is_alive)
            || !capture_process::is_kept(dir);
        let noted = self.noted_captures().into_iter();
        noted.filter(|(dir, note)| !is_needed(dir, note)).map(|(dir, _)| dir).collect()
    }
}
