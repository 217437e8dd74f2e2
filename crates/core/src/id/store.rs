//! The id of a store.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

use super::BadId;

/// The identity of a store. What is kept beside it (spool, captures, snapshots, hook files) carries it, so that no
/// other store takes it for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoreId(uuid::Uuid);

impl StoreId {
    /// From a UUID that no other store has.
    pub fn new(uuid: uuid::Uuid) -> Self {
        Self(uuid)
    }

    /// Its 32 hexadecimal digits, for names of files and references.
    pub fn simple(self) -> String {
        self.0.simple().to_string()
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for StoreId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        uuid::Uuid::try_parse(text).map(Self).map_err(|_| BadId { kind: "store id", why: "want a UUID" })
    }
}
