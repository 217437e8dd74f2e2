//! Takes out what was found.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::event::Forgotten;
use segno_core::event::TextsForgotten;
use segno_layouts::Family;
use segno_redact::forget::FORGOTTEN;
use segno_redact::forget::Forget;
use segno_redact::forget::Replacements;
use segno_redact::forget::Secret;
use segno_workspace::Snapshots;

use super::Findings;
use super::Remedy;
use super::Wish;
use super::files;
use super::inspect::holds;
use crate::Engine;
use crate::Error;
use crate::act::Acting;
use crate::engine::fresh_key;

/// How often a session that somebody writes to is tried.
const ATTEMPTS: u32 = 20;

impl Engine {
    /// Takes out what was found, and looks again. What is found then is left over.
    ///
    /// # Errors
    /// If something cannot be changed. What was done stays done; asking once more does the rest.
    pub fn forget_found(&self, wish: &Wish, found: &Findings) -> Result<Findings, Error> {
        let mut beyond = Findings::default();
        // First new snapshots, then the events that name them, then the old ones go: whatever is cut short, every
        // checkpoint has its files.
        let mut instead = Replacements::default();
        let opened: BTreeMap<_, _> = self.shadows(&mut beyond).into_iter().collect();
        if let Forget::Secret(secret) = &wish.what {
            self.make_snapshots(secret, found, &opened, &mut instead)?;
        }
        if let (Forget::Texts, Some(id)) = (&wish.what, wish.session) {
            for checkpoint in self.checkpoints(id)?.into_iter().filter(|checkpoint| checkpoint.ready) {
                let drop = Command::DropCheckpoint { ordinal: checkpoint.ordinal, why: FORGOTTEN.to_owned() };
                self.act_as(id, vec![drop], Acting::by_itself())?;
            }
        }
        for id in self.sessions_of(wish)?.into_keys() {
            self.forget_in(wish, id, &instead)?;
        }
        let mut changed = BTreeSet::new();
        for snapshot in &found.snapshots {
            if let Some(snapshots) = opened.get(&snapshot.directory) {
                snapshots.remove(&snapshot.name)?;
                changed.insert(&snapshot.directory);
            }
        }
        for path in &found.transcripts {
            self.forget_transcript(path).map_err(|why| Error::file(path, why))?;
        }
        self.mend_files(wish, found)?;
        self.scrub(wish)?;
        // Objects that no snapshot names may hold it too.
        let all = matches!(wish.what, Forget::Secret(_));
        purge(opened.iter().filter(|(directory, _)| all || changed.contains(directory)))?;
        self.look_to_forget(wish)
    }

    /// Clears what nothing names any more: free room of the store, its log, objects without a snapshot. Looking finds
    /// nothing there, so an earlier attempt that was cut short, or a session that was removed, may have left it.
    ///
    /// # Errors
    /// If something cannot be cleared.
    pub fn forget_remains(&self, wish: &Wish) -> Result<(), Error> {
        self.scrub(wish)?;
        let opened: BTreeMap<_, _> = self.shadows(&mut Findings::default()).into_iter().collect();
        purge(&opened)
    }

    fn scrub(&self, wish: &Wish) -> Result<(), Error> {
        let holds = match &wish.what {
            Forget::Secret(secret) => holds(secret),
            Forget::Texts => std::sync::Arc::new(|_: &[u8]| false) as segno_store::Holds,
        };
        self.forget_words()?;
        Ok(self.store().scrub(&holds)?)
    }

    /// Makes snapshots without the files that hold it, beside those that are there.
    fn make_snapshots(
        &self,
        secret: &Secret,
        found: &Findings,
        opened: &BTreeMap<std::path::PathBuf, Snapshots>,
        instead: &mut Replacements,
    ) -> Result<(), Error> {
        for (directory, snapshots) in opened {
            let names: BTreeSet<&str> = found
                .snapshots
                .iter()
                .filter(|snapshot| snapshot.directory == *directory)
                .map(|snapshot| snapshot.name.as_str())
                .collect();
            if names.is_empty() {
                continue;
            }
            let is_in = |bytes: &[u8]| secret.is_in(bytes);
            for holding in snapshots.holding(&is_in)? {
                let old = holding.snapshot;
                if !names.contains(old.name.as_str()) {
                    continue;
                }
                let made = snapshots.without(&old, &next_name(&old.name), &is_in)?;
                let mark = serde_json::to_value(crate::tree::mark(&made)).unwrap_or_default();
                instead.snapshots.insert(old.commit.to_string(), mark);
            }
        }
        Ok(())
    }

    /// Takes it out of a session's events, page by page; each page says so in an event.
    fn forget_in(&self, wish: &Wish, id: SessionId, instead: &Replacements) -> Result<(), Error> {
        let mut after = 0;
        let mut attempts = 0;
        let snapshots = Replacements { snapshots: instead.snapshots.clone(), ..Replacements::default() };
        let instead = &self.new_names(wish, id, snapshots)?;
        loop {
            let head = self.load(id)?.state.seq;
            let page = self.rewritten(wish, id, after, instead, &mut Findings::default())?;
            let Some(last) = page.last else { return Ok(()) };
            if page.events.is_empty() {
                after = last;
                continue;
            }
            let what = match wish.what {
                Forget::Secret(_) => Forgotten::Secret,
                Forget::Texts => Forgotten::Texts,
            };
            let note = TextsForgotten { what, events: page.events.iter().map(|event| event.seq).collect() };
            let forget = segno_store::Forget {
                session: id,
                at_seq: head,
                events: page.events,
                note: self.redactor().record(note.into()).map_err(crate::engine::unrecordable)?,
                key: fresh_key(),
                at: self.now(),
                over: self.over_or_refused(id)?,
            };
            match self.store().forget(forget) {
                Ok(_) => after = last,
                // Somebody recorded something meanwhile.
                Err(segno_store::Error::Conflict { .. }) if attempts < ATTEMPTS => attempts += 1,
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Files for other tools that said it are removed and made again. One that cannot be made again now, as the family
    /// shows another session by now, is only removed.
    fn write_layouts_anew(&self, id: SessionId, project: &Path, found: &Findings) -> Result<(), Error> {
        for family in Family::ALL.into_iter().filter(|family| family.is_written()) {
            let Ok(Some(shown)) = self.shown(family, project, id) else { continue };
            let is_found = |name: &String| {
                let path = shown.folder.join(name);
                found.files.iter().any(|file| file.path == path && file.remedy == Remedy::Rewritten)
            };
            if shown.names.iter().any(is_found) {
                self.remove_shown(family, project, id)?;
                let state = self.load(id)?.state;
                self.write_layout_anew(family, &state)?;
            }
        }
        Ok(())
    }

    fn mend_files(&self, wish: &Wish, found: &Findings) -> Result<(), Error> {
        for file in &found.files {
            let path = &file.path;
            let done = match (file.remedy, &wish.what) {
                (Remedy::Rewritten, _) => continue,
                (Remedy::Removed, _) => remove(path),
                (Remedy::Blanked, Forget::Secret(secret)) => files::blank(path, secret),
                (Remedy::Blanked, Forget::Texts) => remove(path),
            };
            match done {
                // Somebody else removed it.
                Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
                done => done.map_err(|why| Error::file(path, why))?,
            }
        }
        // Not only those that were found: one that was cut short may have left a view behind its session.
        for (id, project) in self.sessions_of(wish)? {
            let view = crate::view::path(Path::new(&project), id, &self.options.view);
            let stale = found.files.iter().any(|file| file.path == view)
                || found.sessions.iter().any(|session| session.session_id == id);
            if stale && view.exists() {
                self.write_view(id)?;
            }
            self.write_layouts_anew(id, Path::new(&project), found)?;
        }
        Ok(())
    }
}

/// The name of a snapshot that takes the place of another: the next number behind it.
fn next_name(name: &str) -> String {
    match name.rsplit_once("-without-") {
        Some((stem, number)) if number.parse::<u32>().is_ok() => {
            format!("{stem}-without-{}", number.parse::<u32>().unwrap_or(0) + 1)
        }
        _ => format!("{name}-without-1"),
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match path.is_dir() {
        true => std::fs::remove_dir_all(path)?,
        false => std::fs::remove_file(path)?,
    }
    crate::files::sync_parent(path)
}

/// Removes what no snapshot names, in every directory that can be worked on; then says which could not.
fn purge<'a>(opened: impl IntoIterator<Item = (&'a std::path::PathBuf, &'a Snapshots)>) -> Result<(), Error> {
    let mut first = None;
    for (_, snapshots) in opened {
        if let Err(why) = snapshots.purge() {
            first.get_or_insert(why);
        }
    }
    first.map_or(Ok(()), |why| Err(why.into()))
}
