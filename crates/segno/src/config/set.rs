//! Changing one key of a configuration file. Comments, order and everything else in it stay.

use std::fs::File;
use std::fs::{self};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::path::PathBuf;

use toml::Value;
use toml_edit::DocumentMut;
use toml_edit::Item;
use toml_edit::Table;

use super::MAX_SIZE;
use super::Paths;
use super::Project;
use super::error::Error;
use super::error::SourceSpan;
use super::file::known_like;
use super::paths::is_real_directory;
use super::schema::Class;
use super::schema::Key;
use super::schema::{self};
use crate::files::Access;
use crate::files::Links;
use crate::files::ReadError;
use crate::files::{self};

/// A file that can be changed.
#[derive(Clone, Debug)]
pub enum Target {
    /// The user's own file.
    User(PathBuf),
    /// The file of a project.
    Project(PathBuf),
}

impl Target {
    /// The user's file, or the project's.
    pub fn choose(paths: &Paths, project: Option<&Project>) -> Self {
        project.map_or_else(
            || {
                // People keep their settings elsewhere and link to them; the link must survive the replacement.
                Self::User(fs::canonicalize(&paths.config).unwrap_or_else(|_| paths.config.clone()))
            },
            |project| Self::Project(project.config()),
        )
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        match self {
            Self::User(path) | Self::Project(path) => path,
        }
    }

    /// Sets a key to a value given as text, and answers the value.
    ///
    /// # Errors
    /// If the value is not right, the key may not be set there, or the file cannot be read or written.
    pub fn set(&self, key: &'static Key, text: &str) -> Result<Value, Error> {
        if matches!(self, Self::Project(_)) && key.class == Class::UserOnly {
            return Err(Error::UserOnly { key: key.name, reason: key.class.reason() });
        }
        let value = key.parse(text).map_err(|problem| Error::Invalid {
            origin: String::new(),
            key: key.name.to_owned(),
            problem,
        })?;
        if key.kind == super::schema::Kind::Agents {
            return Err(Error::Invalid {
                origin: self.path().display().to_string(),
                key: key.name.to_owned(),
                problem: "has tables of its own; write [agents.NAME] into the file".to_owned(),
            });
        }
        // A store that cannot be opened would stop every command, this one too.
        if key.kind == super::schema::Kind::StoreUrl
            && !text.is_empty()
            && segno_engine::StoreLocation::parse(text).is_err()
        {
            return Err(Error::Invalid {
                origin: String::new(),
                key: key.name.to_owned(),
                problem: "must be empty or sqlite:PATH: sessions are kept in SQLite only".to_owned(),
            });
        }
        let _lock = self.lock()?;
        let mut document = self.read()?;
        let mut new: toml_edit::Value = value
            .to_string()
            .parse()
            .map_err(|error: toml_edit::TomlError| Error::Types(error.message().to_owned()))?;
        let (section, name) = split(key);
        let item = document.entry(section).or_insert_with(|| Item::Table(Table::new()));
        let table = item.as_table_like_mut().ok_or_else(|| Error::Invalid {
            origin: self.path().display().to_string(),
            key: section.to_owned(),
            problem: format!("is a section; write [{section}] and its settings below"),
        })?;
        match table.get_mut(name) {
            // Replaced in place: the comments around a setting belong to its key and to the old value.
            Some(item) => {
                if let Some(old) = item.as_value() {
                    *new.decor_mut() = old.decor().clone();
                }
                *item = Item::Value(new);
            }
            None => {
                table.insert(name, Item::Value(new));
            }
        }
        self.write(&document)?;
        Ok(value)
    }

    /// Removes a key; says whether it was there.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn unset(&self, key: &'static Key) -> Result<bool, Error> {
        if !self.path().exists() {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let mut document = self.read()?;
        let (section, name) = split(key);
        let removed =
            document.get_mut(section).and_then(Item::as_table_like_mut).and_then(|table| table.remove(name));
        if removed.is_none() {
            return Ok(false);
        }
        self.write(&document)?;
        Ok(true)
    }

    /// Makes the directory and locks it, so that of two changes at once neither is lost. Where the file system knows
    /// no locks the change is made all the same: settings are changed by hand, one at a time.
    fn lock(&self) -> Result<Option<File>, Error> {
        let Some(directory) = self.path().parent() else { return Ok(None) };
        let failed = |source| Error::Write { path: self.path().to_owned(), source };
        let mode = match self {
            Self::User(_) => 0o700,
            Self::Project(_) => 0o777,
        };
        fs::DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(failed)?;
        let lock = File::open(directory).map_err(failed)?;
        let _ = lock.lock();
        Ok(Some(lock))
    }

    fn read(&self) -> Result<DocumentMut, Error> {
        let path = self.path();
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let links = match self {
            Self::User(_) => Links::Follow,
            Self::Project(_) => Links::Refuse,
        };
        if let (Self::Project(_), Some(directory)) = (self, path.parent())
            && fs::symlink_metadata(directory).is_ok()
            && !is_real_directory(directory)
        {
            return Err(failed(ReadError::NotRegular));
        }
        let bytes = files::read_bounded(path, MAX_SIZE, links).map_err(failed)?.unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid =
                String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
            Error::Encoding { span: SourceSpan::at(path, &valid, valid.len()) }
        })?;
        text.parse().map_err(|error: toml_edit::TomlError| Error::Syntax {
            span: SourceSpan::at(path, &text, error.span().map_or(0, |span| span.start)),
            message: error.message().trim().replace('\n', ", "),
        })
    }

    fn write(&self, document: &DocumentMut) -> Result<(), Error> {
        let path = self.path();
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let access = match self {
            // The user's file may hold a password in store.url. A mode the user has chosen is left alone.
            Self::User(_) if !path.exists() => Access::Private,
            Self::User(_) | Self::Project(_) => Access::Ordinary,
        };
        files::replace(path, document.to_string().as_bytes(), access).map_err(failed)
    }
}

/// The key of that name, or an error that suggests one.
///
/// # Errors
/// [`Error::UnknownKey`].
pub fn key(name: &str) -> Result<&'static Key, Error> {
    schema::find(name).ok_or_else(|| Error::UnknownKey { key: name.to_owned(), suggestion: known_like(name) })
}

fn split(key: &Key) -> (&'static str, &'static str) {
    key.name.split_once('.').unwrap_or((key.name, ""))
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
