//! The files of a project that could make the program do something: read once, hashed, and used from memory, so that
//! what was judged is what is used.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::paths::{CONFIG_FILE, PROJECT_DIRECTORY, is_real_directory};
use crate::files::{self, Links, ReadError};

/// The largest single file.
pub const MAX_FILE: u64 = 1024 * 1024;
/// The largest sum of all files.
pub const MAX_TOTAL: usize = 8 * 1024 * 1024;
/// The largest number of files.
pub const MAX_FILES: usize = 1000;
/// How deep prompts may be nested.
const MAX_DEPTH: usize = 8;

/// The content that trust is about: `config.toml`, `workflows/*.toml` and everything in `prompts`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    files: BTreeMap<String, Vec<u8>>,
    total: usize,
}

/// Why the content of a project cannot be trusted at all.
#[derive(Debug, thiserror::Error)]
pub enum Unsafe {
    /// A link may lead out of the project, today or after it was looked at.
    #[error(".segno{slash}{name} is a symbolic link", slash = if name.is_empty() { "" } else { "/" })]
    Link {
        /// Its name below `.segno`.
        name: String,
    },
    /// A pipe, a device, a socket.
    #[error(".segno/{name} is not a regular file")]
    NotRegular {
        /// Its name below `.segno`.
        name: String,
    },
    /// Too much to be looked at.
    #[error(".segno/{name} is larger than 1 MiB")]
    TooLarge {
        /// Its name below `.segno`.
        name: String,
    },
    /// Too much to be looked at.
    #[error("there are too many files, or too much in them, in .segno")]
    TooMuch,
    /// A name that cannot be shown.
    #[error("a file in .segno has a name that is not text")]
    Name,
    /// The system said no.
    #[error("cannot read .segno/{name}: {source}")]
    Unreadable {
        /// Its name below `.segno`.
        name: String,
        /// Why.
        source: std::io::Error,
    },
}

impl Content {
    /// Reads the content of a project. A project without `.segno` has empty content.
    ///
    /// # Errors
    /// If something in it makes it impossible to trust.
    pub fn read(root: &Path) -> Result<Self, Unsafe> {
        let directory = root.join(PROJECT_DIRECTORY);
        let mut content = Self::default();
        if !directory.exists() && fs::symlink_metadata(&directory).is_err() {
            return Ok(content);
        }
        if !is_real_directory(&directory) {
            return Err(Unsafe::Link { name: String::new() });
        }
        content.file_at(&directory.join(CONFIG_FILE), CONFIG_FILE.to_owned())?;
        content.directory_at(&directory.join("workflows"), "workflows", Some(".toml"), 0)?;
        content.directory_at(&directory.join("prompts"), "prompts", None, 0)?;
        Ok(content)
    }

    /// The bytes of a file, by its name below `.segno`, such as `workflows/tdd.toml`.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// All files with their sizes, sorted by name.
    pub fn files(&self) -> impl Iterator<Item = (&str, usize)> {
        self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.len()))
    }

    /// A hash over names and bytes. Lengths are part of it, so that no two contents run together to the same bytes.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"segno project content 1\n");
        for (name, bytes) in &self.files {
            for part in [name.as_bytes(), bytes] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    fn file_at(&mut self, path: &Path, name: String) -> Result<(), Unsafe> {
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(Unsafe::Link { name });
        }
        match files::read_bounded(path, MAX_FILE, Links::Refuse) {
            Ok(None) => Ok(()),
            Ok(Some(bytes)) => {
                self.total += bytes.len();
                self.files.insert(name, bytes);
                if self.total > MAX_TOTAL || self.files.len() > MAX_FILES {
                    return Err(Unsafe::TooMuch);
                }
                Ok(())
            }
            Err(ReadError::TooLarge(_)) => Err(Unsafe::TooLarge { name }),
            Err(ReadError::NotRegular) => Err(Unsafe::NotRegular { name }),
            Err(ReadError::Io(source)) => Err(Unsafe::Unreadable { name, source }),
        }
    }

    /// Reads a directory; with a suffix only the files that end so, and nothing below.
    fn directory_at(
        &mut self,
        path: &Path,
        name: &str,
        suffix: Option<&str>,
        depth: usize,
    ) -> Result<(), Unsafe> {
        let unreadable = |source| Unsafe::Unreadable { name: name.to_owned(), source };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unreadable(error)),
            Ok(metadata) if metadata.is_symlink() => return Err(Unsafe::Link { name: name.to_owned() }),
            Ok(metadata) if !metadata.is_dir() => return Err(Unsafe::NotRegular { name: name.to_owned() }),
            Ok(_) if depth >= MAX_DEPTH => return Err(Unsafe::TooMuch),
            Ok(_) => {}
        }
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let file_name = entry.file_name().into_string().map_err(|_| Unsafe::Name)?;
            if suffix.is_some_and(|suffix| !file_name.ends_with(suffix)) {
                continue;
            }
            let full = format!("{name}/{file_name}");
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() && suffix.is_none() {
                self.directory_at(&entry.path(), &full, suffix, depth + 1)?;
            } else {
                self.file_at(&entry.path(), full)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
