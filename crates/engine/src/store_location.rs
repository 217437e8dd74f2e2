//! Where a store is, and what can be asked of it there. The one place that knows which kinds of stores there are.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::path::PathBuf;

use segno_store::Holds;
use segno_store::Store;
use segno_store::sqlite;
use segno_store::sqlite::SqliteStore;
use segno_store::sqlite::salvage::Salvaged;
use serde::Deserialize;
use serde::Serialize;

use crate::Error;

/// Where a store is. Stored and shown as the path of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoreLocation {
    /// An SQLite file on this machine. Its log, its copies and what was damaged lie beside it.
    File(PathBuf),
}

impl StoreLocation {
    /// What a URL names: `sqlite:` and a path.
    ///
    /// # Errors
    /// If it names none, or another kind of store.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let Some(path) = url.strip_prefix("sqlite:") else {
            let kind = url.split(':').next().unwrap_or_default().to_owned();
            return Err(Error::UnsupportedStore { kind });
        };
        let path = path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path);
        if path.is_empty() {
            return Err(Error::NoStorePath);
        }
        Ok(Self::File(PathBuf::from(path)))
    }

    /// The one that is used when nobody names another: in the directory of what lasts.
    pub fn usual(data: &Path) -> Self {
        Self::File(data.join("segno.db"))
    }

    /// The URL that names it, for another program.
    pub fn url(&self) -> OsString {
        let Self::File(path) = self;
        let mut url = OsString::from("sqlite:");
        url.push(path);
        url
    }

    /// The same, wherever the process that asks is.
    #[must_use]
    pub fn absolute(&self) -> Self {
        let Self::File(path) = self;
        Self::File(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
    }

    /// Opens the store.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&self, options: segno_store::OpenOptions) -> Result<Box<dyn Store>, Error> {
        let Self::File(path) = self;
        Ok(Box::new(SqliteStore::open(path, options)?))
    }

    /// Moves a damaged store aside and puts what could be saved in its place.
    ///
    /// # Errors
    /// If that cannot be done; nothing is changed then.
    pub fn salvage(&self, stamp: &str) -> Result<Salvaged, Error> {
        let Self::File(path) = self;
        Ok(sqlite::salvage::salvage(path, stamp)?)
    }

    /// The files of the store on this machine: none for one that is elsewhere.
    pub fn files(&self) -> Vec<PathBuf> {
        self.beside(|rest| matches!(rest, "" | "-wal" | "-shm"))
    }

    /// Copies of the store that were made before its form was changed, and ones that were cut short.
    pub fn copies(&self) -> Vec<PathBuf> {
        self.beside(|rest| rest.starts_with(".before-form-") || rest.starts_with(".partial-"))
    }

    /// Whether a copy of such a store, wherever it lies, holds something.
    ///
    /// # Errors
    /// If the file cannot be looked into.
    pub(crate) fn copy_holds(&self, copy: &Path, holds: &Holds) -> Result<bool, Error> {
        let Self::File(_) = self;
        Ok(sqlite::file_holds(copy, holds)?)
    }

    /// Where what was damaged is set apart.
    pub fn quarantine(&self) -> Option<PathBuf> {
        let Self::File(path) = self;
        Some(path.with_file_name("quarantine"))
    }

    /// The files beside the store whose names begin with its own and go on like this.
    fn beside(&self, goes_on: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let Self::File(path) = self;
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Vec::new();
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let found = std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| {
            let found = entry.file_name();
            found.to_str().and_then(|found| found.strip_prefix(name)).is_some_and(&goes_on)
        });
        found.map(|entry| entry.path()).collect()
    }
}

impl From<PathBuf> for StoreLocation {
    fn from(file: PathBuf) -> Self {
        Self::File(file)
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::File(path) = self;
        path.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file() {
        let parsed = |url| StoreLocation::parse(url).map_err(|why| why.to_string());
        let file = |path: &str| Ok(StoreLocation::File(path.into()));
        assert_eq!(parsed("sqlite:/a/b.db"), file("/a/b.db"));
        assert_eq!(parsed("sqlite:///a/b.db"), file("/a/b.db"));
        assert_eq!(parsed("sqlite:b.db"), file("b.db"));
        assert_eq!(StoreLocation::usual(Path::new("/data")).url(), "sqlite:/data/segno.db");
        assert_eq!(parsed("sqlite:"), Err(Error::NoStorePath.to_string()));
        let kind = "postgres".to_owned();
        assert_eq!(parsed("postgres://host/x"), Err(Error::UnsupportedStore { kind }.to_string()));
    }

    #[test]
    fn what_lies_beside_it_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let names =
            ["s.db", "s.db-wal", "s.db-shm", "s.db.before-form-3", "s.db.partial-1", "s.db.mine", "t.db"];
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let location = StoreLocation::from(dir.path().join("s.db"));
        let named = |found: Vec<PathBuf>| {
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            let mut names: Vec<String> = found.iter().map(name).collect();
            names.sort();
            names
        };
        assert_eq!(named(location.files()), ["s.db", "s.db-shm", "s.db-wal"]);
        assert_eq!(named(location.copies()), ["s.db.before-form-3", "s.db.partial-1"]);
    }

    /// Hooks of an earlier program's runs read the path of a file.
    #[test]
    fn it_is_stored_as_its_path() {
        let location = StoreLocation::from(PathBuf::from("/a/b.db"));
        assert_eq!(serde_json::to_string(&location).unwrap(), r#""/a/b.db""#);
        assert_eq!(serde_json::from_str::<StoreLocation>(r#""/a/b.db""#).unwrap(), location);
    }
}
