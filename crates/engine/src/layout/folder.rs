//! Where the files of a family are for a session, and how its folder is opened.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use rustix::io::Errno;
use segno_core::State;
use segno_layouts::Family;
use segno_layouts::agentforge;
use segno_layouts::go_team;
use segno_layouts::prp;
use segno_layouts::ultra_create;

use crate::files;

/// Which families are kept current, and where.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which.
    pub families: Vec<Family>,
    /// The folder of PRP sessions, if it is not in the project.
    pub prp_folder: Option<PathBuf>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// How many of the newest rows of a list are written.
    pub most_items: usize,
    /// What ultra-create is told about its sessions.
    pub ultra_create: UltraCreate,
    /// Where what was folded of the pasts of long sessions is kept.
    pub pasts: Option<PathBuf>,
}

/// What ultra-create is told about its sessions, and who may run its commands.
#[derive(Clone, Debug, Default)]
pub struct UltraCreate {
    /// What its file says; the document's values if there is none.
    pub config: ultra_create::Config,
    /// Whether the user trusts the commands in it as they are now.
    pub hooks_trusted: bool,
    /// The environment that they inherit.
    pub environment: Vec<(OsString, OsString)>,
}

impl Options {
    /// The folder of a family for a session: what it is below of, and the parts of the way. Only the parts are made, and
    /// none of them may be a link.
    pub(super) fn folder(&self, family: Family, state: &State) -> Result<(PathBuf, Vec<String>), String> {
        self.folder_in(family, Path::new(&state.project.path))
    }

    /// The same for a project.
    pub(super) fn folder_in(&self, family: Family, project: &Path) -> Result<(PathBuf, Vec<String>), String> {
        let project = project.to_owned();
        let parts = |path: &str| path.split('/').map(ToOwned::to_owned).collect::<Vec<_>>();
        match family {
            Family::Prp => match &self.prp_folder {
                Some(folder) => Ok((folder.clone(), Vec::new())),
                None => Ok((project, parts(prp::FOLDER))),
            },
            Family::AgentForge => Ok((project, parts(agentforge::FOLDER))),
            Family::GoTeam => {
                let short = project.join(go_team::SHORT_FOLDER);
                let long = project.join(go_team::FOLDER);
                let is_short = !long.is_dir() && short.join(go_team::REGISTRY).is_file();
                Ok((project, parts(if is_short { go_team::SHORT_FOLDER } else { go_team::FOLDER })))
            }
            Family::UltraCreate => match &self.home {
                Some(home) => match self.ultra_create.config.state_dir.as_deref() {
                    None => Ok((home.clone(), parts(ultra_create::FOLDER))),
                    Some(folder) => in_home(home, folder),
                },
                None => Err("there is no home directory to write it to".to_owned()),
            },
            Family::Ralph | Family::Atari => Err(format!("{} is only read", family.title())),
        }
    }
}

/// A folder that a file names: below the home directory, or anywhere by its whole path.
fn in_home(home: &Path, folder: &str) -> Result<(PathBuf, Vec<String>), String> {
    if Path::new(folder).is_absolute() {
        return Ok((PathBuf::from(folder), Vec::new()));
    }
    let below = folder.strip_prefix("~/").map(|below| below.trim_end_matches('/'));
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    match below.filter(|below| below.split('/').all(is_part)) {
        Some(below) => Ok((home.to_owned(), below.split('/').map(ToOwned::to_owned).collect())),
        None => Err(format!("storage.state_dir of {} is no whole path: {folder}", ultra_create::CONFIG)),
    }
}

/// Opens a folder, making the parts of the way that are not there.
pub(super) fn open(base: &Path, parts: &[String]) -> std::io::Result<OwnedFd> {
    let link = |why: Errno| match why {
        Errno::LOOP | Errno::NOTDIR => {
            std::io::Error::other("a folder on the way is a symbolic link or a file, and is not followed")
        }
        other => other.into(),
    };
    if parts.is_empty() {
        files::make_directory(base)?;
    }
    let mut dir = files::open_dir(base)?;
    for part in parts {
        dir = files::dir_in(&dir, part, 0o755).map_err(link)?;
    }
    Ok(dir)
}

/// Opens a folder that is there; none if it is not.
pub(super) fn open_there(base: &Path, parts: &[String]) -> std::io::Result<Option<OwnedFd>> {
    let dir = match files::open_dir(base) {
        Err(Errno::NOENT) => return Ok(None),
        other => other?,
    };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(files::dir_below(&dir, &parts)?)
}
