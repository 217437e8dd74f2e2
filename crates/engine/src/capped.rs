//! Which sessions have a hard cap, where a hook can read it without the store: of these, what cannot be read denies.

use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::State;

/// Beside the spool, one empty file for each.
fn path(spool: &Path, session: SessionId) -> Option<PathBuf> {
    Some(spool.parent()?.join("capped").join(session.to_string()))
}

/// Whether a session is noted.
pub(crate) fn is_noted(spool: &Path, session: SessionId) -> bool {
    path(spool, session).is_some_and(|path| path.symlink_metadata().is_ok())
}

/// Notes a session, or that it is one no more. That it fails is no reason to fail: with the store, the cap is known.
pub(crate) fn note(spool: &Path, state: &State) {
    let has_cap = state.budget.hard || (state.cost.hard && state.cost.limit_micros.is_some());
    let wanted = has_cap && state.status.is_open();
    let Some(path) = path(spool, state.session_id) else { return };
    if wanted == path.symlink_metadata().is_ok() {
        return;
    }
    if wanted {
        let directory = path.parent().unwrap_or(&path);
        let _ = segno_files::private_directory(directory)
            .and_then(|()| segno_files::replace(&path, b"", segno_files::Access::Private));
    } else {
        let _ = std::fs::remove_file(&path);
    }
}
