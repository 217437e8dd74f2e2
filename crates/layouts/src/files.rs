//! Sets of files, and what is wrong with one.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Map;
use serde_json::Value;

/// The largest file that is read.
pub const MOST_FILE: u64 = 16 * 1024 * 1024;
/// The most files of one set.
pub const MOST_FILES: usize = 2_000;

/// Files by their names relative to the folder of their family, with `/` between the parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSet {
    files: BTreeMap<String, Vec<u8>>,
    /// The hashes of those that are other on the disk.
    other: BTreeMap<String, String>,
}

impl FileSet {
    /// Adds a file.
    pub fn insert(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(name.into(), bytes.into());
    }

    /// Adds a file that something was taken out of; `on_disk` is what it really is.
    pub fn insert_for(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>, on_disk: &[u8]) {
        let name = name.into();
        self.other.insert(name.clone(), crate::packed::sha256(on_disk));
        self.insert(name, bytes);
    }

    /// The hash of a file as it is on the disk.
    pub(crate) fn hash(&self, name: &str) -> Option<String> {
        let here = || self.get(name).map(crate::packed::sha256);
        self.other.get(name).cloned().or_else(here)
    }

    /// The content of a file.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// Takes a file out.
    pub fn remove(&mut self, name: &str) -> Option<Vec<u8>> {
        self.files.remove(name)
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Names and contents, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// A file that is a JSON object; none if it is not there.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Map<String, Value>>, Damage> {
        let Some(bytes) = self.get(name) else { return Ok(None) };
        object(name, bytes).map(Some)
    }
}

impl<N: Into<String>, B: Into<Vec<u8>>> FromIterator<(N, B)> for FileSet {
    fn from_iter<I: IntoIterator<Item = (N, B)>>(files: I) -> Self {
        Self {
            files: files.into_iter().map(|(name, bytes)| (name.into(), bytes.into())).collect(),
            other: BTreeMap::new(),
        }
    }
}

/// A JSON object.
pub(crate) fn object(name: &str, bytes: &[u8]) -> Result<Map<String, Value>, Damage> {
    if bytes.trim_ascii().is_empty() {
        return Err(Damage::new(name, "JSON parse error: the file is empty"));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(other) => {
            Err(Damage::new(name, format!("JSON parse error: {} where an object should be", kind(&other))))
        }
        Err(why) => Err(Damage::new(name, format!("JSON parse error: {why}"))),
    }
}

/// What a value is, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which.
    pub file: String,
    /// What, in the words of the document where it has some.
    pub why: String,
}

impl Damage {
    pub(crate) fn new(file: impl Into<String>, why: impl Into<String>) -> Self {
        Self { file: file.into(), why: why.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

impl std::error::Error for Damage {}
