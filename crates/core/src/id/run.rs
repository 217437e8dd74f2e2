//! The id of a run.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;

use super::BadId;

/// The id of a run: 32 lower-case hexadecimal digits.
///
/// Directories, control groups and marks of processes bear it. So it is parsed wherever it comes from outside (a store,
/// a note, the environment), and a text that is no such id never becomes part of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// Made of a UUID that nobody else has.
    pub fn new(uuid: uuid::Uuid) -> Self {
        Self(uuid.simple().to_string())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its last twelve digits, for places where names must be short.
    pub fn short(&self) -> &str {
        &self.0[20..]
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != 32 || !digits {
            return Err(BadId { kind: "run id", why: "want 32 lower-case hexadecimal digits" });
        }
        Ok(Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
