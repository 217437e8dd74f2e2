//! The files that show one session, known by our own member in them: they go with it, and have its words.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_files::Replaced;
use segno_layouts::Facts;
use segno_layouts::Family;
use segno_layouts::MOST_FILE;
use segno_layouts::go_team;
use segno_layouts::go_team::REGISTRY;

use super::below::read_below;
use super::below::remove_below;
use super::below::write_known;
use super::folder;
use super::write::IGNORE;
use super::write::IGNORED;
use super::write::KEEP;
use crate::Engine;
use crate::Error;
use crate::files;

/// The log of a PRP session: it has no member of ours, and is of the session that the files beside it show.
const LOG: &str = "phase-status.log";
/// How often a registry is written beside another program that writes it, too.
const ROUNDS: u32 = 5;

/// The files of one family that show a session.
pub(crate) struct Shown {
    family: Family,
    pub(crate) folder: PathBuf,
    /// Ours, by their names below the folder.
    pub(crate) names: Vec<String>,
    /// What is kept beside them of other programs' texts.
    pub(crate) copies: Vec<String>,
    /// Everything else in these folders that may be a file of the family.
    pub(crate) others: Vec<String>,
    dir: OwnedFd,
}

impl Engine {
    /// The files of a family in a project's folder that show a session; none if there is no such folder.
    pub(crate) fn shown(
        &self,
        family: Family,
        project: &Path,
        id: SessionId,
    ) -> Result<Option<Shown>, Error> {
        let Ok((base, parts)) = self.options.layout.folder_in(family, project) else { return Ok(None) };
        let folder = parts.iter().fold(base.clone(), |path, part| path.join(part));
        let fail = |why: std::io::Error| Error::file(&folder, why);
        let Some(dir) = folder::open_there(&base, &parts).map_err(fail)? else { return Ok(None) };
        let mut shown = Shown {
            family,
            folder: folder.clone(),
            names: Vec::new(),
            copies: Vec::new(),
            others: Vec::new(),
            dir,
        };
        shown.look(&folder, "", id);
        if matches!(family, Family::GoTeam | Family::AgentForge) {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let mut folders: Vec<String> =
                folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            folders.sort_unstable();
            for inner in folders.iter().filter(|inner| !inner.starts_with('.')) {
                shown.look(&folder.join(inner), &format!("{inner}/"), id);
            }
        }
        Ok(Some(shown))
    }

    /// Removes the files of a family that show a session, whatever else is there, and its entry in a registry; answers
    /// which. The session itself need not be there any more.
    ///
    /// # Errors
    /// If they cannot be looked at or removed.
    pub fn remove_shown(&self, family: Family, project: &Path, id: SessionId) -> Result<Vec<String>, Error> {
        let Some(shown) = self.shown(family, project, id)? else { return Ok(Vec::new()) };
        let fail = |why: std::io::Error| Error::file(&shown.folder, why);
        let mut removed = Vec::new();
        for name in &shown.names {
            if remove_below(&shown.dir, name).map_err(fail)? {
                removed.push(name.clone());
            }
        }
        if family == Family::GoTeam {
            shown.leave_registry(id).map_err(fail)?;
        }
        if !removed.is_empty() {
            shown.remove_if_ours();
        }
        Ok(removed)
    }

    /// Takes the files of every family along with a session that is removed. What cannot be removed now is released: the
    /// next session takes it over, or somebody removes it by its id.
    pub(crate) fn remove_all_shown(&self, project: &Path, id: SessionId) {
        for family in Family::ALL.into_iter().filter(|family| family.is_written()) {
            if let Err(why) = self.remove_shown(family, project, id) {
                tracing::warn!(%id, %family, %why, "the files of a removed session stay");
            }
        }
    }
}

impl Shown {
    /// Looks at the files right in a folder.
    fn look(&mut self, folder: &Path, prefix: &str, id: SessionId) {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        let own = id.to_string();
        let read = |name: &str| read_below(&self.dir, &format!("{prefix}{name}")).ok().flatten();
        let is_ours = |name: &str| {
            let bytes = read(name).filter(|_| !name.ends_with(".log"))?;
            let facts = Facts::of(self.family, name, &bytes);
            (facts.session_id.as_deref() == Some(own.as_str())).then_some(())
        };
        let (copies, rest): (Vec<String>, Vec<String>) = names
            .into_iter()
            .filter(|name| !name.starts_with('.'))
            .partition(|name| name.contains(".edited-"));
        let (mut ours, others): (Vec<String>, Vec<String>) =
            rest.into_iter().partition(|name| is_ours(name).is_some());
        // These have no name of a session in them; where nothing else shows it, they are somebody else's.
        let is_shown = !ours.is_empty();
        let belongs = |name: &String| {
            is_shown
                && match self.family {
                    Family::Prp => name == LOG,
                    Family::GoTeam => {
                        read(name).is_some_and(|bytes| go_team::is_checkpoint_of_ours(name, &bytes))
                    }
                    _ => false,
                }
        };
        let (more, others): (Vec<String>, Vec<String>) = others.into_iter().partition(belongs);
        ours.extend(more);
        // The folder of ultra-create is that of all projects: a copy says itself whose it is, or nobody knows.
        let has_own =
            |name: &String| self.family != Family::UltraCreate && is_shown || is_ours(name).is_some();
        let (copies, foreign): (Vec<String>, Vec<String>) = copies.into_iter().partition(has_own);
        let below = |name: String| format!("{prefix}{name}");
        self.names.extend(ours.into_iter().map(below));
        self.copies.extend(copies.into_iter().map(below));
        self.others.extend(others.into_iter().chain(foreign).map(below));
    }

    /// Takes the entry of a session out of the registry; the registry goes with its last entry if that was ours.
    fn leave_registry(&self, id: SessionId) -> std::io::Result<()> {
        for _ in 0..ROUNDS {
            let Some(known) = read_below(&self.dir, REGISTRY)? else { return Ok(()) };
            let Some(without) = go_team::registry_without(&known, &id.to_string()) else { return Ok(()) };
            match without {
                None => return remove_below(&self.dir, REGISTRY).map(drop),
                Some(bytes) => {
                    if matches!(write_known(&self.dir, REGISTRY, &bytes, Some(&known))?, Replaced::Done) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes a folder that we made when nothing but what we made it with is left in it.
    fn remove_if_ours(&self) {
        let made = files::read_in(&self.dir, IGNORE, MOST_FILE).ok().flatten().as_deref() == Some(IGNORED);
        let is_ours = |name: &std::ffi::OsStr| name == IGNORE || (made && name == KEEP);
        let only_ours = std::fs::read_dir(&self.folder)
            .is_ok_and(|entries| entries.flatten().all(|entry| is_ours(&entry.file_name())));
        if only_ours {
            // One that somebody else uses has more in it, and stays.
            let _ = std::fs::remove_file(self.folder.join(KEEP));
            let _ = std::fs::remove_file(self.folder.join(IGNORE));
            let _ = std::fs::remove_dir(&self.folder);
        }
    }
}
