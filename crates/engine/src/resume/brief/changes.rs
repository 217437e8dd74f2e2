//! What became of the files since: what was taken back, and what somebody else changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use segno_core::List;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::call;
use segno_core::event::Change;
use segno_core::event::RestoreKind;
use segno_core::rows::FileRow;
use segno_core::rows::ToolRow;
use segno_core::text::shorten;
use segno_store::Page;

use super::BriefLimits;
use super::observe::Meant;
use super::observe::has_content;
use super::quote;
use crate::Engine;
use crate::Error;
use crate::inside::changed_after;
use crate::inside::inside;
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

/// What a call made of a file.
struct Written {
    meant: Meant,
    /// The event of it.
    seq: u64,
    /// Whether it is known that the file was there afterwards.
    wrote: bool,
    /// Until when a change of the file was the call's, or another one of the same agent; none if nobody knows.
    until: Option<Timestamp>,
}

impl Written {
    /// Whether nobody has changed the file since.
    fn is_newest(&self, file: &Path) -> bool {
        self.until.is_some_and(|until| !changed_after(file, until))
    }
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
    pub(super) fn changed_since(&self, state: &State, back: &TakenBack, limits: BriefLimits) -> Vec<String> {
        let changes = || -> Result<Vec<String>, Error> {
            let Some(base) = self.last_seen(state)? else { return Ok(Vec::new()) };
            let mut lines = self.head_moved(state, &base)?;
            let mut written = self.written_since(state, base.seq)?;
            let root = Path::new(&state.project.path);
            for change in self.changed_files(state, &base)? {
                let path = change.path.display().to_string();
                let own = written.remove(&change.path);
                let note = match own.as_ref().map(|own| (&own.meant, own)) {
                    Some((Meant::Content(content), _))
                        if has_content(&state.project.path, &path, content) =>
                    {
                        continue;
                    }
                    Some((Meant::Content(_), _)) => ", not as you wrote it",
                    Some((_, own)) if own.is_newest(&root.join(&change.path)) => continue,
                    Some(_) => ", since you changed it",
                    None => "",
                };
                let kind = format!("{:?}", change.kind).to_lowercase();
                lines.push(format!("{} ({kind}{note})", self.quote_raw(&path, 400)));
            }
            // What was made by a call and is gone is no different from what was there before it.
            for (path, own) in written {
                let gone = own.wrote && std::fs::symlink_metadata(root.join(&path)).is_err();
                if gone && back.covers(own.seq).is_none() {
                    let path = self.quote_raw(&path.display().to_string(), 400);
                    lines.push(format!("{path} (deleted, since you wrote it)"));
                }
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

    /// What is read from the tree and not from the record: it is redacted before it is cut.
    fn quote_raw(&self, value: &str, most: usize) -> String {
        quote(&self.redactor().text(value), most)
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
        let branch = branch.map_or(String::new(), |branch| format!(" on {}", self.quote_raw(&branch, 200)));
        Ok(vec![format!("HEAD, which moved from {before} to {}{branch}", shorten(&commit, 12))])
    }

    /// The files that calls since an event were about, by their paths in the project, each with what the newest of
    /// them was to make of it.
    fn written_since(&self, state: &State, seq: u64) -> Result<BTreeMap<PathBuf, Written>, Error> {
        let root = Path::new(&state.project.path);
        let from = state.run.as_ref().map_or(root, |run| Path::new(&run.directory));
        let in_project = |path: &str| inside(root, from, Path::new(path)).unwrap_or_else(|| path.into());
        let stopped = state.recovery.as_ref().filter(|_| state.status != Status::Active);
        let stopped = stopped.map(|stop| stop.interrupted_at);
        let page = Page { after: None, limit: CALLS, newest_first: true };
        let mut written: BTreeMap<PathBuf, Written> = BTreeMap::new();
        for row in self.store().page(state.session_id, List::Tools, &page)? {
            if row.seq <= seq {
                break;
            }
            let call = row.row::<ToolRow>();
            let input = call.input.unwrap_or_default();
            let Some(path) = call::file(&input) else { continue };
            let ended = call.state == "completed";
            let until = call.ended_at.filter(|_| ended).max(stopped.filter(|_| ended));
            let meant = self.meant(&input);
            let wrote = ended && !matches!(meant, Meant::Unknown);
            written.entry(in_project(path)).or_insert(Written { meant, seq: row.seq, wrote, until });
        }
        // Not every agent names its files in what it calls; it tells of them all the same.
        for row in self.store().page(state.session_id, List::Files, &page)? {
            let file = row.row::<FileRow>();
            if row.seq <= seq || file.path.is_empty() || file.call.is_none() {
                continue;
            }
            let until = file.changed_at.max(stopped);
            let wrote = !file.was(Change::Deleted);
            let told = Written { meant: Meant::Unknown, seq: row.seq, wrote, until };
            written.entry(in_project(&file.path)).and_modify(|own| own.wrote |= wrote).or_insert(told);
        }
        Ok(written)
    }
}
