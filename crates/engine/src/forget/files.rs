//! Files that segno keeps beside the store.

use std::io::Read as _;
use std::path::Path;
use std::path::PathBuf;

use segno_core::RunId;
use segno_core::SessionId;
use segno_layouts::Family;
use segno_redact::forget::Forget;
use segno_redact::forget::Secret;

use super::Findings;
use super::FoundFile;
use super::Remedy;
use super::Wish;
use super::inspect::holds;
use crate::Engine;
use crate::Error;
use crate::run::capture;
use crate::spool;

/// Nothing of ours is deeper.
const DEEPEST: u32 = 8;
/// A file of ours that is larger is looked into by nobody.
const LARGEST: u64 = 8 << 30;

impl Engine {
    pub(super) fn look_into_files(&self, wish: &Wish, findings: &mut Findings) -> Result<(), Error> {
        self.look_into_views(wish, findings)?;
        self.look_into_layouts(wish, findings)?;
        match &wish.what {
            Forget::Secret(secret) => {
                let mut all = Vec::new();
                below(&wish.state, 0, &mut all);
                for path in all {
                    if read(&path, LARGEST).is_some_and(|bytes| secret.is_in(&bytes)) {
                        self.judge(path, findings);
                    }
                }
                look_into_copies(wish, secret, findings);
            }
            Forget::Texts => {
                // The captured output of runs that have ended; a run that has not is refused above.
                let runs =
                    self.options.captures.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
                for dir in runs.flatten().map(|entry| entry.path()) {
                    let of_session = capture::read_note(&dir)
                        .is_ok_and(|note| Some(note.session) == wish.session && self.is_our_store(&note));
                    if of_session {
                        findings.files.push(FoundFile { path: dir, remedy: Remedy::Removed });
                    }
                }
                // What was folded of its past has its words, as long as it has any.
                let has_words =
                    |id: &SessionId| findings.sessions.iter().any(|found| found.session_id == *id);
                let past = wish.session.filter(has_words).and_then(|session| self.past_file(session));
                let past = past.filter(|path| path.is_file());
                findings.files.extend(past.map(|path| FoundFile { path, remedy: Remedy::Removed }));
                findings.beyond(wish.locations.backups.clone(), "copies of the store");
                findings.beyond(
                    wish.locations.archive.clone(),
                    "archives, if an earlier state of it was archived",
                );
            }
        }
        Ok(())
    }

    /// Files that are kept for other tools are written anew, as views are, and what is kept beside them is blanked. What
    /// other tools wrote themselves is theirs.
    fn look_into_layouts(&self, wish: &Wish, findings: &mut Findings) -> Result<(), Error> {
        let holds = |path: &Path| match &wish.what {
            Forget::Secret(secret) => read(path, LARGEST).is_some_and(|bytes| {
                let name = path.to_string_lossy();
                let unpacked =
                    name.ends_with(".gz").then(|| segno_layouts::gunzip(&name, &bytes).ok()).flatten();
                secret.is_in(&unpacked.unwrap_or(bytes))
            }),
            Forget::Texts => true,
        };
        for (id, project) in self.sessions_of(wish)? {
            let has_words = findings.sessions.iter().any(|found| found.session_id == id);
            for family in Family::ALL.into_iter().filter(|family| family.is_written()) {
                let Ok(Some(shown)) = self.shown(family, Path::new(&project), id) else { continue };
                if !has_words && matches!(wish.what, Forget::Texts) {
                    continue;
                }
                let copies = match &wish.what {
                    Forget::Secret(_) => Remedy::Blanked,
                    Forget::Texts => Remedy::Removed,
                };
                for (names, remedy) in [(&shown.names, Remedy::Rewritten), (&shown.copies, copies)] {
                    let paths = names.iter().map(|name| shown.folder.join(name)).filter(|path| holds(path));
                    findings.files.extend(paths.map(|path| FoundFile { path, remedy }));
                }
                if matches!(wish.what, Forget::Secret(_)) {
                    for path in shown.others.iter().map(|name| shown.folder.join(name)) {
                        if holds(&path) {
                            findings.beyond(path, format!("a file that another tool wrote for {family}"));
                        }
                    }
                }
            }
        }
        // One that several sessions are next to is written anew with the one that it shows.
        let ours: Vec<PathBuf> = findings.files.iter().map(|file| file.path.clone()).collect();
        findings.beyond.retain(|beyond| beyond.path.as_ref().is_none_or(|path| !ours.contains(path)));
        Ok(())
    }

    /// What is done with a file below the state directory.
    fn judge(&self, path: PathBuf, findings: &mut Findings) {
        let below = |dir: &Option<PathBuf>| {
            let dir = dir.as_ref()?;
            path.strip_prefix(dir).ok().map(|rest| (dir.clone(), rest.to_owned()))
        };
        if let Some((_, rest)) = below(&self.options.spool) {
            // What waits there is taken in before anything is looked for.
            match rest.parent().is_some_and(|parent| parent.as_os_str().is_empty()) && spool_waits(&path) {
                true => findings.beyond(path, "facts in the spool that this store cannot take in now"),
                false => findings.files.push(FoundFile { path, remedy: Remedy::Removed }),
            }
        } else if let Some((captures, rest)) = below(&self.options.captures) {
            let run = rest.components().next().map(|run| captures.join(run));
            let ours = run.as_ref().is_some_and(|dir| {
                let named = dir.file_name().and_then(|name| name.to_str());
                named.is_some_and(|name| name.parse::<RunId>().is_ok())
                    && capture::read_note(dir).is_ok_and(|note| self.is_our_store(&note))
            });
            match ours {
                true => findings.files.push(FoundFile { path, remedy: Remedy::Blanked }),
                false => findings.beyond(path, "the output of a run of another store"),
            }
        } else {
            findings.files.push(FoundFile { path, remedy: Remedy::Blanked });
        }
    }

    /// Views are written anew; what people made of them, and segno kept beside them, is blanked.
    fn look_into_views(&self, wish: &Wish, findings: &mut Findings) -> Result<(), Error> {
        for (id, project) in self.sessions_of(wish)? {
            let view = crate::view::path(Path::new(&project), id, &self.options.view);
            let Some(folder) = view.parent() else { continue };
            let mut files = Vec::new();
            below(folder, DEEPEST - 1, &mut files);
            for path in files {
                let named = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if !named.starts_with("session.") {
                    continue;
                }
                let holds = match &wish.what {
                    Forget::Secret(secret) => read(&path, LARGEST).is_some_and(|bytes| secret.is_in(&bytes)),
                    Forget::Texts => true,
                };
                let remedy = match &wish.what {
                    _ if path == view => Remedy::Rewritten,
                    Forget::Secret(_) => Remedy::Blanked,
                    Forget::Texts => Remedy::Removed,
                };
                // A view shows what the session says: it is nothing to be done when there is nothing in the session.
                let shown = findings.sessions.iter().any(|session| session.session_id == id);
                if holds && (shown || matches!(wish.what, Forget::Secret(_))) {
                    findings.files.push(FoundFile { path, remedy });
                }
            }
        }
        Ok(())
    }
}

fn spool_waits(path: &Path) -> bool {
    path.parent().is_some_and(|dir| spool::waiting(dir).iter().any(|waiting| waiting == path))
}

/// Copies of the store that segno made, what was set aside as damaged, and archives.
fn look_into_copies(wish: &Wish, secret: &Secret, findings: &mut Findings) {
    let mut copies = Vec::new();
    let store = &wish.locations.store;
    below(&wish.locations.backups, 0, &mut copies);
    if let Some(quarantine) = store.quarantine() {
        below(&quarantine, 0, &mut copies);
    }
    copies.extend(store.copies().into_iter().filter(|path| path.is_file()));
    for path in copies {
        match store.copy_holds(&path, &holds(secret)) {
            Ok(true) => findings.files.push(FoundFile { path, remedy: Remedy::Removed }),
            Ok(false) => {}
            Err(why) => findings.beyond(path, format!("it cannot be looked into: {why}")),
        }
    }
    let mut archives = Vec::new();
    below(&wish.locations.archive, 0, &mut archives);
    for path in archives {
        match unpacked(&path) {
            Some(bytes) if !secret.is_in(&bytes) => {}
            Some(_) => findings.beyond(
                path.clone(),
                "an archived session: segno import it, forget once more, clean up again, and remove this file",
            ),
            None => findings.beyond(path, "an archive that cannot be looked into"),
        }
    }
}

fn unpacked(path: &Path) -> Option<Vec<u8>> {
    let file = std::fs::File::open(path).ok()?;
    let mut bytes = Vec::new();
    match path.extension().is_some_and(|extension| extension == "zst") {
        true => zstd::Decoder::new(file).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?,
        false => file.take(LARGEST).read_to_end(&mut bytes).ok()?,
    };
    Some(bytes)
}

/// A file's bytes, if it is one and not too large. Links are not followed.
pub(super) fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    if !meta.is_file() || meta.len() > most {
        return None;
    }
    std::fs::read(path).ok()
}

/// Every file in a directory and below it. Links are not followed.
fn below(dir: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() && depth + 1 < DEEPEST => below(&path, depth + 1, found),
            Ok(meta) if meta.is_file() => found.push(path),
            _ => {}
        }
    }
}

/// Writes stars over a secret in a file. Captures are read by place, so everything stays where it is.
pub(super) fn blank(path: &Path, secret: &Secret) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::File::options().read(true).write(true).open(path)?;
    let mut bytes = Vec::new();
    (&file).read_to_end(&mut bytes)?;
    if secret.blank(&mut bytes) {
        file.write_all_at(&bytes, 0)?;
        file.sync_all()?;
    }
    Ok(())
}
