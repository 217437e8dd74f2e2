//! Documents that a phase brought: measured, not quoted.

use std::collections::BTreeMap;
use std::path::Path;

use segno_core::State;
use segno_core::event::CheckpointReason;
use segno_workspace::ChangeKind;
use segno_workspace::Side;

use crate::Engine;
use crate::Error;
use crate::tree::Checkpoint;

/// How far back the beginning of a phase is looked for.
const FAR: usize = 5_000;
/// How many checkpoints are read at once.
const PAGE: usize = 20;

impl Engine {
    /// How many documents were written or changed since the present phase first began, and whether one of them records a
    /// decision: what was written before a review sent the work back is there still. Nothing if no snapshot tells what
    /// there was.
    pub(crate) fn documents(&self, state: &State) -> Result<BTreeMap<String, f64>, Error> {
        let ready = |it: &Checkpoint| it.ready && it.snapshot.is_some();
        let session = state.session_id;
        let ended = |it: &Checkpoint| ready(it) && it.is_for(CheckpointReason::PhaseComplete);
        let before = state.looping.as_deref().and_then(|looping| looping.plan.before(&looping.phase));
        let sent_back = state.looping.iter().flat_map(|it| &it.phases).any(|stand| stand.sent_back > 0);
        let first = match before.filter(|_| sent_back) {
            Some(before) => {
                let all = self.checkpoints(session)?;
                all.into_iter().find(|it| ended(it) && it.name == before.name)
            }
            None => None,
        };
        let ended = match first {
            Some(first) => Some(first),
            None => self.newest_checkpoint(session, FAR, PAGE, ended)?,
        };
        let began = match ended {
            Some(began) => Some(began),
            None => self.checkpoints(session)?.into_iter().find(|it| ready(it) && it.begins_a_turn()),
        };
        let Some(began) = began else { return Ok(BTreeMap::new()) };
        let workspace = self.workspace(state)?;
        let before = self.snapshot_of(&workspace, &began)?;
        let changes = workspace.diff(&before, Side::Present, false)?;
        let written = |kind: ChangeKind| matches!(kind, ChangeKind::Added | ChangeKind::Modified);
        let changed = changes.iter().filter(|change| !change.directory && written(change.kind));
        let documents: Vec<&Path> =
            changed.map(|change| change.path.as_path()).filter(|path| is_document(path)).collect();
        let adr = documents.iter().any(|path| is_decision(path));
        Ok(BTreeMap::from([
            ("docs_generated".to_owned(), documents.len() as f64),
            ("has_adr".to_owned(), f64::from(u8::from(adr))),
        ]))
    }
}

fn is_document(path: &Path) -> bool {
    const ENDINGS: &[&str] = &["md", "mdx", "rst", "adoc", "asciidoc", "org", "tex", "txt"];
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
}

/// A record of a decision says so in its path.
fn is_decision(path: &Path) -> bool {
    path.to_string_lossy()
        .to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| matches!(word, "adr" | "adrs" | "decision" | "decisions"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("README.md", true, false)]
    #[case("docs/adr/0001-oak.md", true, true)]
    #[case("docs/decisions/oak.rst", true, true)]
    #[case("src/quadrant.rs", false, false)]
    #[case("docs/quadrant.md", true, false)]
    #[case("ADR-7.MD", true, true)]
    fn by_their_paths(#[case] path: &str, #[case] document: bool, #[case] decision: bool) {
        let path = Path::new(path);
        assert_eq!((is_document(path), is_decision(path)), (document, decision));
    }
}
