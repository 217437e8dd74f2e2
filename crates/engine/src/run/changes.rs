//! What a run changed in the tree although no call of its agent named it: what shells did, deletions above all.

use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;

use segno_core::Fact;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::event::Change;
use segno_core::event::CheckpointReason;
use segno_core::limits;
use segno_core::rows::FileRow;
use segno_core::state::RunMark;
use segno_store::Item;
use segno_store::Page;
use segno_workspace::ChangeKind;

use super::journal::Recorder;
use super::translate::fit;
use crate::Engine;
use crate::Error;
use crate::act::Acting;
use crate::engine::fresh_key;
use crate::inside::changed_after;
use crate::inside::inside;
use crate::tree::At;
use crate::tree::Checkpoint;

/// More changed files than this are not listed one by one; the checkpoints have them all.
const MOST: usize = 5_000;
/// How far back the checkpoint of the run's start is looked for.
const CHECKPOINTS: usize = 10_000;

/// Records the files that are different from what they were when the run began, as far as nobody told of them. What
/// goes wrong is no loss: the checkpoints hold the same. What changed after a moment was done by somebody else: the run was
/// over by then.
pub(super) fn record_untold(recorder: &mut Recorder<'_>, until: Option<Timestamp>) {
    if recorder.engine.options.tree.is_none() || recorder.is_behind() {
        return;
    }
    let facts = untold(recorder, until).unwrap_or_default();
    if !facts.is_empty() {
        let key = format!("run-{}@tree", recorder.run).parse().unwrap_or_else(|_| fresh_key());
        recorder.put(key, facts);
        // If the store cannot take it now, it stays in hand like everything else.
        let _ = recorder.flush();
    }
}

/// The checkpoint that holds the files as the run found them.
pub(super) fn start_of_run(recorder: &Recorder<'_>) -> Result<Option<Checkpoint>, Error> {
    let Some(run) = recorder.state.run.as_ref().filter(|run| run.id == recorder.run) else { return Ok(None) };
    newest(recorder, |found| found.is_for(CheckpointReason::RunStart) && found.seq < run.seq)
}

/// The newest checkpoint with files that fits.
fn newest(recorder: &Recorder<'_>, fits: impl Fn(&Checkpoint) -> bool) -> Result<Option<Checkpoint>, Error> {
    recorder.engine.newest_checkpoint(recorder.session, CHECKPOINTS, 20, |checkpoint| {
        checkpoint.snapshot.is_some() && !checkpoint.aside && fits(checkpoint)
    })
}

fn untold(recorder: &Recorder<'_>, until: Option<Timestamp>) -> Result<Vec<Fact>, Error> {
    let Some(run) = recorder.state.run.as_ref().filter(|run| run.id == recorder.run) else {
        return Ok(Vec::new());
    };
    let before = start_of_run(recorder)?;
    let after = newest(recorder, |found| found.seq > run.seq)?;
    let (Some(before), Some(after)) = (before, after) else { return Ok(Vec::new()) };
    let span = Span { before: &before, after: Some(&after), since: run.seq, until };
    recorder.engine.untold_in(&recorder.state, run, &span)
}

/// Two moments between which files are looked at.
struct Span<'a> {
    before: &'a Checkpoint,
    /// Without one, the files as they are now.
    after: Option<&'a Checkpoint>,
    /// What was told from this event on counts as told.
    since: u64,
    /// What changed later was done by somebody else.
    until: Option<Timestamp>,
}

impl Engine {
    /// Records the files that a turn of a watched agent changed without telling: what its shells did. While somebody else
    /// works in the same project nobody can tell whose a change is, and nothing is recorded.
    pub(crate) fn record_untold_turn(&self, session: SessionId, at: &At) -> Result<(), Error> {
        let state = self.load(session)?.state;
        let Some(run) = state.run.as_ref().filter(|run| run.is_running()) else { return Ok(()) };
        if self.options.tree.is_none() || self.is_driven_beside(&state)? {
            return Ok(());
        }
        let before = self.newest_checkpoint(session, CHECKPOINTS, 100, |found| {
            found.snapshot.is_some()
                && !found.aside
                && found.is_for(CheckpointReason::Turn)
                && found.seq > run.seq
        })?;
        let Some(before) = before else { return Ok(()) };
        let calls = self.store().page(session, List::Tools, &Page::newest(1))?;
        if calls.first().is_none_or(|call| call.seq < before.seq) {
            return Ok(());
        }
        let span = Span { before: &before, after: None, since: before.seq, until: None };
        let facts = self.untold_in(&state, run, &span)?;
        if !facts.is_empty() {
            self.act_as(session, facts, Acting::step(at))?;
        }
        Ok(())
    }

    /// Whether somebody drives another session of the same project.
    fn is_driven_beside(&self, state: &State) -> Result<bool, Error> {
        let others = self.store().leases()?.into_iter().map(|(session, _)| session);
        let mut others = others.filter(|session| *session != state.session_id);
        let here = |session: SessionId| {
            self.load(session).is_ok_and(|other| other.state.project.path == state.project.path)
        };
        Ok(others.any(here))
    }

    fn untold_in(&self, state: &State, run: &RunMark, span: &Span<'_>) -> Result<Vec<Fact>, Error> {
        let changed = match span.after {
            Some(after) => self.files_between(state, span.before, after)?,
            None => self.changed_files(state, span.before)?,
        };
        let told = self.newest_while(state.session_id, List::Files, |row| row.seq >= span.since)?;
        let told = told.iter().rev().map(Item::row).collect();
        Ok(untold_of(&changed, told, state, run, span.until))
    }
}

/// The changes that no row tells of.
fn untold_of(
    changed: &[segno_workspace::Change],
    rows: Vec<FileRow>,
    state: &State,
    run: &RunMark,
    until: Option<Timestamp>,
) -> Vec<Fact> {
    let root = PathBuf::from(&state.project.path);
    // What calls told since then, by its path in the project.
    let mut told: HashMap<PathBuf, FileRow> = HashMap::new();
    for row in rows {
        if row.path.is_empty() || row.change.is_empty() {
            continue;
        }
        let path = inside(&root, Path::new(&run.directory), Path::new(&row.path));
        told.insert(path.unwrap_or_else(|| PathBuf::from(&row.path)), row);
    }
    let mut facts = Vec::new();
    let mut record = |path: &str, change: Change, call: Option<String>| {
        if facts.len() < MOST {
            facts.push(Fact::FileChanged { path: fit(path, limits::LINE), change, call });
        }
    };
    let is_later = |path: &Path| until.is_some_and(|until| changed_after(&root.join(path), until));
    for change in changed.iter().filter(|change| !change.directory) {
        if is_later(&change.path) {
            told.remove(&change.path);
            continue;
        }
        let kind = match change.kind {
            ChangeKind::Added => Change::Created,
            ChangeKind::Deleted => Change::Deleted,
            _ => Change::Modified,
        };
        // By the name under which it is in the list already.
        match (told.remove(&change.path), kind) {
            (None, _) => record(&change.path.to_string_lossy(), kind, None),
            (Some(row), Change::Deleted) if !row.was(Change::Deleted) => record(&row.path, kind, None),
            (Some(row), Change::Created | Change::Modified) if row.was(Change::Deleted) => {
                record(&row.path, kind, None);
            }
            // Not every agent knows whether what it wrote was there before.
            (Some(row), Change::Created) if row.was(Change::Modified) => record(&row.path, kind, row.call),
            (Some(_), _) => {}
        }
    }
    // What a call made and something else removed again is different from nothing that was before.
    for (path, row) in told {
        let is_gone = || std::fs::symlink_metadata(root.join(&path)).is_err();
        if !row.was(Change::Deleted) && is_gone() && !is_later(&path) {
            record(&row.path, Change::Deleted, None);
        }
    }
    facts
}
