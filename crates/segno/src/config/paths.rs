//! Where things are: the user's directories, and the root of the project.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;

use super::env::Environment;
use super::env::{self};
use super::error::Error;

/// The directory of segno in a project.
pub const PROJECT_DIRECTORY: &str = ".segno";
/// The name of a configuration file.
pub const CONFIG_FILE: &str = "config.toml";

/// The user's directories. None of them is created here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The home directory.
    pub home: PathBuf,
    /// The configuration file of the user.
    pub config: PathBuf,
    /// Whether the configuration file was named by `SEGNO_CONFIG`, and so must exist.
    pub config_named: bool,
    /// Sessions and trust.
    pub data: PathBuf,
    /// Captures and the spool.
    pub state: PathBuf,
}

impl Paths {
    /// Finds them by the XDG rules on every system; relative XDG values are ignored, as the specification says.
    ///
    /// # Errors
    /// [`Error::NoHome`] if there is no home directory.
    pub fn find(environment: &Environment) -> Result<Self, Error> {
        let xdg = Xdg::new().map_err(|_| Error::NoHome)?;
        let home = xdg.home_dir().to_owned();
        let state = xdg.state_dir().unwrap_or_else(|| home.join(".local/state"));
        let named = environment.non_empty(env::CONFIG).map(PathBuf::from);
        Ok(Self {
            config_named: named.is_some(),
            config: named.unwrap_or_else(|| xdg.config_dir().join("segno").join(CONFIG_FILE)),
            data: xdg.data_dir().join("segno"),
            state: state.join("segno"),
            home,
        })
    }
}

/// The root of the project a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The root, an absolute path without links.
    pub root: PathBuf,
    /// What made it the root.
    pub marker: Marker,
}

/// What made a directory the root of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Marker {
    /// It was named by a flag or a variable.
    Named,
    /// It has a `.segno` directory.
    Segno,
    /// It has a `.git`.
    Git,
    /// Nothing was found, so it is the current directory.
    CurrentDirectory,
}

impl Project {
    /// The project that was named, as it is.
    ///
    /// # Errors
    /// [`Error::NoProject`] if it is not a directory.
    pub fn named(path: &Path) -> Result<Self, Error> {
        match fs::canonicalize(path) {
            Ok(root) if root.is_dir() => Ok(Self { root, marker: Marker::Named }),
            _ => Err(Error::NoProject { path: path.to_owned() }),
        }
    }

    /// Searches from `start` upward: the nearest `.segno`, else the nearest `.git`, else `start` itself.
    ///
    /// The search ends below the first directory that belongs to another user: whoever can write there could plant a
    /// project around ours. The home directory and `/` are projects for nobody below them: a `.git` there holds somebody's
    /// dot files, and one command that was typed there made the `.segno`.
    ///
    /// # Errors
    /// [`Error::NoProject`] if `start` is not a directory.
    pub fn search(start: &Path, home: &Path) -> Result<Self, Error> {
        let start = fs::canonicalize(start).map_err(|_| Error::NoProject { path: start.to_owned() })?;
        let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
        let ours = |path: &Path| is_ours(path);
        let is_around_all = |at: &Path| at == home || at.parent().is_none();
        let candidates = || {
            let above = start.ancestors().take_while(|directory| ours(directory));
            above.filter(|at| *at == start || !is_around_all(at))
        };
        let marked = |directory: &Path, name: &str| ours(&directory.join(name));
        if let Some(root) = candidates()
            .find(|at| marked(at, PROJECT_DIRECTORY) && is_real_directory(&at.join(PROJECT_DIRECTORY)))
        {
            return Ok(Self { root: root.to_owned(), marker: Marker::Segno });
        }
        if let Some(root) = candidates().find(|at| !is_around_all(at) && marked(at, ".git")) {
            return Ok(Self { root: root.to_owned(), marker: Marker::Git });
        }
        Ok(Self { root: start, marker: Marker::CurrentDirectory })
    }

    /// The directory of segno in the project; it may not exist.
    pub fn directory(&self) -> PathBuf {
        self.root.join(PROJECT_DIRECTORY)
    }

    /// The configuration file of the project; it may not exist.
    pub fn config(&self) -> PathBuf {
        self.directory().join(CONFIG_FILE)
    }
}

/// Whether something exists and belongs to the user; a link counts by itself, not by what it points to.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
}

/// Whether a path is a directory and not a link to one.
pub(crate) fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
