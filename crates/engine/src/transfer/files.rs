//! The files of checkpoints, in a file of their own beside an export: they may be large, and are git objects.

use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::State;
use segno_workspace::ObjectId;

use crate::Engine;
use crate::Error;

/// Where the files are that belong to an export.
pub fn beside(export: &Path) -> PathBuf {
    let mut name = export.as_os_str().to_owned();
    name.push(".files");
    PathBuf::from(name)
}

/// Writes the files of all checkpoints of a session that have some, to a private file. Answers with how many have, and
/// its size.
pub fn export_files(engine: &Engine, session: SessionId, to: &Path) -> Result<(u64, u64), Error> {
    let io = |why: std::io::Error| Error::file(to, why);
    let state = engine.load(session)?.state;
    let workspace = engine.workspace(&state)?;
    let mut snapshots = Vec::new();
    for checkpoint in engine.checkpoints(session)? {
        if checkpoint.ready && checkpoint.snapshot.is_some() {
            snapshots.push(engine.snapshot_of(&workspace, &checkpoint)?);
        }
    }
    if snapshots.is_empty() {
        return Err(Error::NoTree("it has no checkpoint with files".to_owned()));
    }
    // An older one stays until this one is whole.
    let mut fresh = to.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    match std::fs::remove_file(&fresh) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => return Err(io(why)),
        _ => {}
    }
    let bytes = workspace.export_all(&snapshots, &fresh)?;
    std::fs::rename(&fresh, to).map_err(io)?;
    crate::files::sync_parent(to).map_err(io)?;
    Ok((snapshots.len() as u64, bytes))
}

/// Takes in the files that the checkpoints of an imported session speak of. Answers with what the user should know. What
/// the journal does not name, by its content, is not taken in.
pub fn import_files(engine: &Engine, state: &State, from: &Path) -> Result<Vec<String>, Error> {
    let workspace = engine.workspace(state)?;
    let mut wanted = Vec::new();
    for checkpoint in engine.checkpoints(state.session_id)?.into_iter().filter(|checkpoint| checkpoint.ready)
    {
        if let Some(mark) = checkpoint.snapshot
            && let Some(commit) = ObjectId::parse(&mark.commit)
        {
            wanted.push((mark.name, commit));
        }
    }
    let problems = workspace.import_all(from, &wanted)?;
    let told = |(name, why): (String, segno_workspace::Error)| {
        format!("the files of {name} were not imported: {why}")
    };
    Ok(problems.into_iter().map(told).collect())
}
