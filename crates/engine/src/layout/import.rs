//! Sessions of other session managers into the store. Their files are read and nothing else.

use std::path::Path;
use std::path::PathBuf;

use segno_core::State;
use segno_layouts::Family;
use segno_layouts::agentforge;
use segno_layouts::go_team;
use segno_layouts::prp;
use segno_layouts::ralph;
use segno_layouts::ultra_create;

use super::gather;
use crate::Engine;
use crate::Error;
use crate::transfer::Options;
use crate::transfer::take_over;

/// How the words about a folder end that holds nothing to take over.
const EMPTY: &str = "without sessions: there is nothing to import";

/// What was taken over from one folder.
#[derive(Clone, Debug)]
pub struct LayoutImport {
    /// What it is.
    pub family: Family,
    /// The folder.
    pub folder: PathBuf,
    /// The sessions that are here now.
    pub sessions: Vec<TakenOver>,
    /// What the user should know about the folder as a whole.
    pub notices: Vec<String>,
}

/// One session that was taken over.
#[derive(Clone, Debug)]
pub struct TakenOver {
    /// The session now.
    pub state: State,
    /// Its name there.
    pub foreign_id: String,
    /// Files of the family that were not there.
    pub missing: Vec<String>,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// Takes over the sessions of a folder of another session manager, of a file in such a folder, or of a project that has
/// such folders.
///
/// # Errors
/// If there is none, or what is there is damaged.
pub fn import(engine: &Engine, path: &Path, options: &Options) -> Result<Vec<LayoutImport>, Error> {
    let folders = folders(path);
    if folders.is_empty() {
        return Err(Error::NotImportable(format!(
            "{} is no session: it holds no files of segno, PRP, AgentForge, go-team, ultra-create, Ralph or atari",
            path.display()
        )));
    }
    let mut imports = Vec::new();
    for (family, folder) in folders {
        imports.push(one(engine, family, folder, options)?);
    }
    if let [only] = imports.as_mut_slice()
        && only.sessions.is_empty()
        && only.notices.len() == 1
        && let Some(why) = only.notices.pop_if(|notice| notice.ends_with(EMPTY))
    {
        return Err(Error::NotImportable(why));
    }
    Ok(imports)
}

/// Whether a path is a `session.yaml` of AgentForge: ours have the same name, so its folder tells.
pub fn is_agentforge(path: &Path) -> bool {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.file_name().is_some_and(|name| name == "session.yaml") && has_part(&whole, ".agentforge")
}

/// Whether a path leads to files of another session manager.
pub fn is_foreign(path: &Path) -> bool {
    !folders(path).is_empty()
}

fn has_part(path: &Path, name: &str) -> bool {
    path.components().any(|part| part.as_os_str() == name)
}

/// The folders with files of a family that a path leads to. What is in `.segno` is ours.
fn folders(path: &Path) -> Vec<(Family, PathBuf)> {
    if has_part(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), ".segno") {
        return Vec::new();
    }
    if path.is_file() {
        // The family of a file is that of its folder, if the file is one of its own.
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if name == "session.yaml" && !is_agentforge(path) {
            return Vec::new();
        }
        let family = segno_layouts::recognise([name]).and_then(|_| of_folder(folder));
        return family.map(|family| (family, folder.to_owned())).into_iter().collect();
    }
    if let Some(family) = of_folder(path) {
        return vec![(family, path.to_owned())];
    }
    // The folder above the sessions of a family may be named, too.
    let named = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let inner = [".agentforge", ".ultra-create"].contains(&named).then_some("sessions");
    let known = [
        prp::FOLDER,
        agentforge::FOLDER,
        go_team::FOLDER,
        go_team::SHORT_FOLDER,
        ultra_create::FOLDER,
        ralph::FOLDER,
        ".atari",
    ];
    let folders =
        known.iter().copied().chain(inner).map(|folder| path.join(folder)).filter(|folder| folder.is_dir());
    folders.filter_map(|folder| Some((of_folder(&folder)?, folder))).collect()
}

/// The family of a folder by the names in it.
fn of_folder(folder: &Path) -> Option<Family> {
    let top = gather::names(folder);
    if let Some(family) = segno_layouts::recognise(top.iter().map(String::as_str)) {
        return Some(family);
    }
    // A folder with a folder for each session.
    let below = std::fs::read_dir(folder).ok()?.flatten();
    let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let sessions = below.filter(|entry| entry.file_name().to_string_lossy().starts_with("session"));
    sessions.into_iter().find_map(|entry| {
        let names = gather::names(&entry.path());
        let family = segno_layouts::recognise(names.iter().map(String::as_str));
        family.filter(|family| matches!(family, Family::AgentForge | Family::GoTeam))
    })
}

fn one(engine: &Engine, family: Family, folder: PathBuf, options: &Options) -> Result<LayoutImport, Error> {
    let files = gather::gather(&folder, Some(&engine.redactor()))?;
    let read =
        segno_layouts::read(family, &files, engine.now()).map_err(|damage| Error::SessionCorrupted {
            session_id: folder.join(&damage.file).display().to_string(),
            details: damage.why,
        })?;
    let mut import =
        LayoutImport { family, folder: folder.clone(), sessions: Vec::new(), notices: read.warnings };
    if read.sessions.is_empty() && import.notices.is_empty() {
        import.notices.push(format!("{} is {} {EMPTY}", folder.display(), family.title()));
    }
    let only = read.sessions.len() == 1;
    for session in read.sessions {
        let options =
            Options { source: format!("{} ({})", folder.display(), session.foreign_id), ..options.clone() };
        let missing = session.missing.clone();
        match take_over(engine, session.state, session.lists, session.claimed, &options, session.warnings) {
            Ok(taken) => import.sessions.push(TakenOver {
                state: taken.state,
                foreign_id: session.foreign_id,
                missing,
                notices: taken.notices,
            }),
            Err(why) if only => return Err(why),
            // One session that is here already, or cannot be one, must not keep the others.
            Err(why @ (Error::NotImportable(_) | Error::SessionCorrupted { .. })) => {
                import.notices.push(format!("not imported: {why}"));
            }
            Err(why) => return Err(why),
        }
    }
    Ok(import)
}
