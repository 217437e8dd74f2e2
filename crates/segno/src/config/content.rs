//! The files of a project that could make the program do something: read once, hashed, and used from memory, so that
//! what was judged is what is used.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::paths::CONFIG_FILE;
use super::paths::PROJECT_DIRECTORY;
use super::paths::is_real_directory;
use crate::files::Links;
use crate::files::ReadError;
use crate::files::{self};

/// The largest single file.
pub const MAX_FILE: u64 = 1024 * 1024;
/// The largest sum of all files.
pub const MAX_TOTAL: usize = 8 * 1024 * 1024;
/// The largest number of files.
pub const MAX_FILES: usize = 1000;
/// How deep prompts may be nested.
const MAX_DEPTH: usize = 8;

/// The largest program or prompt that a configuration may name.
const MAX_NAMED: u64 = 256 * 1024 * 1024;

/// The content that trust is about: `config.toml`, `workflows/*.toml` and everything in `prompts`; and the files of the
/// project that the configuration names as programs or prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    files: BTreeMap<String, Vec<u8>>,
    total: usize,
    /// What is named: its place in the project, and hash and size of what is there now, if anything is.
    named: BTreeMap<String, Option<(String, u64)>>,
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
        content.named_files(root);
        Ok(content)
    }

    /// Files of the project that the configuration names: whoever changes them changes what it does.
    fn named_files(&mut self, root: &Path) {
        let text = self.get(CONFIG_FILE).map(String::from_utf8_lossy).unwrap_or_default();
        // One that cannot be read has no effect.
        let Ok(config) = toml::from_str::<toml::Table>(&text) else { return };
        let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        for name in names_in(&config) {
            let Ok(path) = fs::canonicalize(root.join(&name)).or_else(|_| missing(&root.join(&name))) else {
                continue;
            };
            // What lies outside is not the project's to change.
            let Some(path) = path.strip_prefix(&root).ok().and_then(Path::to_str) else { continue };
            self.named.insert(format!("../{path}"), digest(&root.join(path)));
        }
    }

    /// The bytes of a file, by its name below `.segno`, such as `workflows/tdd.toml`.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// All files with their sizes, sorted by name.
    pub fn files(&self) -> impl Iterator<Item = (&str, usize)> {
        let named = self.named.iter().filter_map(|(name, found)| {
            Some((name.as_str(), usize::try_from(found.as_ref()?.1).unwrap_or(usize::MAX)))
        });
        self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.len())).chain(named)
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
        // Without such files the hash is what it always was.
        for (name, found) in &self.named {
            let hash = found.as_ref().map_or("", |(hash, _)| hash.as_str());
            for part in [name.as_bytes(), hash.as_bytes()] {
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

/// What a configuration names that may be a file: programs with their arguments, and prompts.
fn names_in(config: &toml::Table) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |value: Option<&toml::Value>| match value {
        Some(toml::Value::String(text)) => names.extend(text.split_whitespace().map(ToOwned::to_owned)),
        Some(toml::Value::Array(words)) => {
            names.extend(words.iter().filter_map(|word| word.as_str().map(ToOwned::to_owned)));
        }
        _ => {}
    };
    add(config.get("run").and_then(|run| run.get("prompt_file")));
    add(config.get("ui").and_then(|ui| ui.get("pager")));
    for agent in
        config.get("agents").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::values)
    {
        for name in ["command", "program", "extra_args", "version_args"] {
            add(agent.get(name));
        }
    }
    names.retain(|name| !name.is_empty() && !name.starts_with('-') && name.len() < 4_096);
    names
}

/// The place of a file that is not there, if its directory is and its name looks like a path: it may come.
fn missing(path: &Path) -> std::io::Result<std::path::PathBuf> {
    let none = || std::io::Error::from(std::io::ErrorKind::NotFound);
    let (parent, name) = (path.parent().ok_or_else(none)?, path.file_name().ok_or_else(none)?);
    Ok(fs::canonicalize(parent)?.join(name))
}

fn digest(path: &Path) -> Option<(String, u64)> {
    let file = fs::File::open(path).ok()?;
    let size = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= MAX_NAMED)?.len();
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).ok()?;
    Some((hasher.finalize().to_hex().to_string(), size))
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
