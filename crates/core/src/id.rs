//! Names of things: parsed types, so that no unparsed id ever becomes part of a path or a query.

mod run;
mod store;
mod user_key;

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

pub use run::RunId;
pub use store::StoreId;
pub use user_key::UserKey;

use crate::time::Timestamp;

/// A text that is not an id of the wanted kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {kind}: {why}")]
pub struct BadId {
    /// What was wanted, such as `session id`.
    pub kind: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

/// The name people see: `session_{YYYYMMDD}_{HHMMSS}_{microseconds}`, in UTC.
///
/// It is the moment the session was made, moved by a microsecond as often as the store finds the name taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Timestamp);

impl SessionId {
    /// The name of a session made at `at`.
    pub fn at(at: Timestamp) -> Self {
        Self(at)
    }

    /// The moment in the name.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }

    /// The next name, for when this one is taken.
    pub fn next(self) -> Self {
        Self(self.0.next_micro())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day, hour, minute, second, micros) = self.0.parts();
        write!(f, "session_{year:04}{month:02}{day:02}_{hour:02}{minute:02}{second:02}_{micros:06}")
    }
}

impl FromStr for SessionId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = |why| BadId { kind: "session id", why };
        if text.len() != 30 || !text.is_ascii() {
            return Err(bad("want session_YYYYMMDD_HHMMSS_microseconds"));
        }
        let rest = text.strip_prefix("session_").ok_or(bad("does not start with session_"))?;
        let bytes = rest.as_bytes();
        let digits = |range: std::ops::Range<usize>| {
            bytes[range]
                .iter()
                .try_fold(0_i32, |n, b| b.is_ascii_digit().then(|| n * 10 + i32::from(b - b'0')))
        };
        let small = |range| digits(range).and_then(|n| i8::try_from(n).ok());
        let parts = || {
            if bytes[8] != b'_' || bytes[15] != b'_' {
                return None;
            }
            let year = i16::try_from(digits(0..4)?).ok()?;
            Timestamp::from_parts(
                (year, small(4..6)?, small(6..8)?),
                (small(9..11)?, small(11..13)?, small(13..15)?),
                digits(16..22)?,
            )
        };
        parts().map(Self).ok_or(bad("names no real date and time"))
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The identity of a session across stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(uuid::Uuid);

impl Uid {
    /// From a UUID (version 7 when we make it).
    pub fn new(uuid: uuid::Uuid) -> Self {
        Self(uuid)
    }

    /// Its sixteen bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Uid {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        uuid::Uuid::try_parse(text).map(Self).map_err(|_| BadId { kind: "uid", why: "want a UUID" })
    }
}

/// A key that the writer chooses, so that writing the same event again changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct EventKey(String);

impl EventKey {
    /// The longest key.
    pub const MAX_LEN: usize = 200;

    /// A key that nobody else has, made of a UUID that nobody else has.
    pub fn unique(uuid: uuid::Uuid) -> Self {
        Self(uuid.to_string())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key of the `index`-th event that follows from one command with this key.
    pub fn part(&self, index: usize) -> Self {
        if index == 0 {
            return self.clone();
        }
        Self(fit_key(format!("{}/{index}", self.0), 0))
    }
}

/// A key that is too long to be read back, shortened behind its first `kept` characters: a hash of the whole stands for
/// what is cut off.
fn fit_key(mut key: String, kept: usize) -> String {
    if key.len() > EventKey::MAX_LEN {
        let hash = crate::fnv::hash(key.as_bytes());
        let cut = key.len() - EventKey::MAX_LEN + 17;
        key.replace_range(kept..kept + cut, &format!("{hash:016x}~"));
    }
    key
}

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for EventKey {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = |why| BadId { kind: "event key", why };
        if text.is_empty() || text.len() > Self::MAX_LEN {
            return Err(bad("want 1 to 200 characters"));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(bad("want printable ASCII without spaces"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for EventKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The id of a checkpoint: `cp-NN-name`, the ordinal counting up within the session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CheckpointId(String);

impl CheckpointId {
    /// Made of the ordinal and a name, whose odd characters become dashes.
    pub fn new(ordinal: u64, name: &str) -> Self {
        let mut slug = String::new();
        for c in name.chars().take(60) {
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.ends_with('-') {
                slug.push('-');
            }
        }
        let slug = slug.trim_matches('-');
        Self(if slug.is_empty() { format!("cp-{ordinal:02}") } else { format!("cp-{ordinal:02}-{slug}") })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CheckpointId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = |why| BadId { kind: "checkpoint id", why };
        let rest = text.strip_prefix("cp-").ok_or(bad("does not start with cp-"))?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let tail = &rest[digits..];
        let tail_ok = tail.is_empty()
            || (tail.starts_with('-') && tail.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
        if !(2..=20).contains(&digits) || text.len() > 100 || !tail_ok {
            return Err(bad("want cp-NN-name"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for CheckpointId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
#[path = "id_tests.rs"]
mod tests;
