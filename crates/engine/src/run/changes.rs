//! What a run changed in the tree although no call of its agent named it: what shells did, deletions above all.

use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;

use segno_core::Fact;
use segno_core::List;
use segno_core::Timestamp;
use segno_core::event::Change;
use segno_core::event::CheckpointReason;
use segno_core::limits;
use segno_core::rows::FileRow;
use segno_workspace::ChangeKind;

use super::journal::Recorder;
use super::translate::fit;
use crate::Error;
use crate::engine::fresh_key;
use crate::inside::changed_after;
use crate::inside::inside;
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
    recorder.engine.newest_checkpoint(recorder.session, CHECKPOINTS, 100, |checkpoint| {
        checkpoint.snapshot.is_some() && !checkpoint.aside && fits(checkpoint)
    })
}

fn untold(recorder: &Recorder<'_>, until: Option<Timestamp>) -> Result<Vec<Fact>, Error> {
    let (engine, session) = (recorder.engine, recorder.session);
    let Some(run) = recorder.state.run.as_ref().filter(|run| run.id == recorder.run) else {
        return Ok(Vec::new());
    };
    let before = start_of_run(recorder)?;
    let after = newest(recorder, |found| found.seq > run.seq)?;
    let (Some(before), Some(after)) = (before, after) else { return Ok(Vec::new()) };
    let changed = engine.compare(session, &before, Some(&after), false)?.files;
    let root = PathBuf::from(&recorder.state.project.path);
    // What calls told since the run began, by its path in the project.
    let mut told: HashMap<PathBuf, FileRow> = HashMap::new();
    for row in engine.items(session, List::Files)?.iter().filter(|row| row.seq >= run.seq) {
        let row: FileRow = row.row();
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
    Ok(facts)
}
