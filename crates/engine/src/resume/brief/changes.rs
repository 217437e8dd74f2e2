//! What became of the files since: what was taken back, and what somebody else changed.

use std::collections::BTreeMap;
use std::path::Path;

use segno_core::List;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::call;
use segno_core::event::RestoreKind;
use segno_core::rows::ToolRow;
use segno_core::text::shorten;
use segno_store::Page;

use super::BriefLimits;
use super::observe::Meant;
use super::observe::has_content;
use super::quote;
use crate::Engine;
use crate::Error;
use crate::tree::Checkpoint;

/// How many of the newest calls are looked at for who wrote a file.
const CALLS: usize = 200;
/// How many of the newest checkpoints are looked through for the last one that the agent saw.
const CHECKPOINTS: usize = 200;

/// How much of what was done then was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All files.
    Whole,
    /// Some.
    Part,
}

/// What was done between two events and taken back by the second.
struct Span {
    after: u64,
    before: u64,
    from: Timestamp,
    to: Timestamp,
    extent: Extent,
    name: String,
}

/// Everything that was taken back and not put forward again.
#[derive(Default)]
pub(super) struct TakenBack {
    spans: Vec<Span>,
}

impl TakenBack {
    /// Whether nothing was.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether what an event began was taken back.
    pub(super) fn covers(&self, seq: u64) -> Option<Extent> {
        let hit = |extent: Extent| {
            self.spans.iter().any(|span| span.extent == extent && span.after < seq && seq < span.before)
        };
        [Extent::Whole, Extent::Part].into_iter().find(|extent| hit(*extent))
    }

    /// Whether all that happened at a moment was taken back.
    pub(super) fn covers_moment(&self, at: Timestamp) -> bool {
        self.spans.iter().any(|span| span.extent == Extent::Whole && span.from < at && at < span.to)
    }

    /// The title of a list of what was taken back.
    pub(super) fn title(&self, words: &str) -> String {
        match self.spans.iter().rev().find(|span| span.extent == Extent::Whole) {
            Some(span) => format!("{words}, to checkpoint {}; they count as not done:", span.name),
            None => format!("{words}; they count as not done:"),
        }
    }
}

impl Engine {
    /// What was taken back by undo, restore and rollback, as far as the newest of them tell.
    pub(super) fn taken_back(&self, state: &State) -> Result<TakenBack, Error> {
        let mut back = TakenBack::default();
        for mark in &state.tree.restored {
            // One whose checkpoint is gone from the record says nothing about what it took back.
            let Ok(to) = self.checkpoint_number(state.session_id, mark.to) else { continue };
            if mark.kind == RestoreKind::Redo {
                for span in &mut back.spans {
                    span.after = span.after.max(to.seq);
                    span.from = span.from.max(to.created_at);
                }
                continue;
            }
            back.spans.push(Span {
                after: to.seq,
                before: mark.seq,
                from: to.created_at,
                to: mark.at,
                extent: if mark.whole { Extent::Whole } else { Extent::Part },
                name: to.id,
            });
        }
        Ok(back)
    }

    /// What is different now from what the agent last saw, and not by one of its recorded calls, as far as can be told.
    pub(super) fn changed_since(&self, state: &State, limits: BriefLimits) -> Vec<String> {
        let changes = || -> Result<Vec<String>, Error> {
            let Some(base) = self.last_seen(state)? else { return Ok(Vec::new()) };
            let mut lines = self.head_moved(state, &base)?;
            let written = self.written_since(state, base.seq)?;
            for change in self.changed_files(state, &base)? {
                let path = change.path.display().to_string();
                let own = written.get(&path).or_else(|| {
                    written.get(&Path::new(&state.project.path).join(&change.path).display().to_string())
                });
                let note = match own {
                    Some(Meant::Content(content)) if has_content(&state.project.path, &path, content) => {
                        continue;
                    }
                    Some(Meant::Content(_)) => ", not as you wrote it",
                    Some(Meant::Replaced { .. } | Meant::Unknown) => ", you changed it too",
                    None => "",
                };
                let kind = format!("{:?}", change.kind).to_lowercase();
                lines.push(format!("{} ({kind}{note})", quote(&path, 400)));
            }
            let more = lines.len().saturating_sub(limits.entries.saturating_mul(2));
            lines.truncate(limits.entries.saturating_mul(2));
            if more > 0 {
                lines.push(format!("and {more} more: segno diff --stat"));
            }
            Ok(lines)
        };
        changes().unwrap_or_default()
    }

    /// The newest files that are known to be as the agent saw them: the checkpoint that was gone to since, or the last
    /// one before the work stopped. One that was made when somebody found out may hold what others did meanwhile.
    fn last_seen(&self, state: &State) -> Result<Option<Checkpoint>, Error> {
        if state.tree.at.is_none() {
            return Ok(None);
        }
        let stopped = state.recovery.as_ref().filter(|_| state.status != Status::Active);
        let until = stopped.map(|stop| stop.interrupted_at);
        let fits = |checkpoint: &Checkpoint| {
            checkpoint.ready
                && checkpoint.snapshot.is_some()
                && !checkpoint.aside
                && until.is_none_or(|until| checkpoint.created_at <= until)
        };
        let seen = self.newest_checkpoint(state.session_id, CHECKPOINTS, 20, fits)?;
        let gone = state.tree.restored.back().filter(|mark| mark.whole);
        match (seen, gone) {
            (Some(seen), Some(gone)) if gone.seq > seen.seq => {
                Ok(Some(self.checkpoint_number(state.session_id, gone.to)?))
            }
            (seen, _) => Ok(seen),
        }
    }

    fn head_moved(&self, state: &State, base: &Checkpoint) -> Result<Vec<String>, Error> {
        let before = base.head.as_ref().and_then(|head| head.commit.clone());
        let now = self.workspace(state)?.head()?;
        let branch = now.as_ref().and_then(|head| head.branch.clone());
        let Some(commit) = now.and_then(|head| head.commit).filter(|commit| Some(commit) != before.as_ref())
        else {
            return Ok(Vec::new());
        };
        let before = before.map_or("nothing".to_owned(), |before| shorten(&before, 12));
        let branch = branch.map_or(String::new(), |branch| format!(" on {}", quote(&branch, 200)));
        Ok(vec![format!("HEAD, which moved from {before} to {}{branch}", shorten(&commit, 12))])
    }

    /// The files that calls since an event were about, each with what the newest of them was to make of it.
    fn written_since(&self, state: &State, seq: u64) -> Result<BTreeMap<String, Meant>, Error> {
        let page = Page { after: None, limit: CALLS, newest_first: true };
        let mut written = BTreeMap::new();
        for row in self.store().page(state.session_id, List::Tools, &page)? {
            if row.seq <= seq {
                break;
            }
            let input = row.row::<ToolRow>().input.unwrap_or_default();
            if let Some(path) = call::file(&input) {
                written.entry(path.to_owned()).or_insert_with(|| self.meant(&input));
            }
        }
        Ok(written)
    }
}
