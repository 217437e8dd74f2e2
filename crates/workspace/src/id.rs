//! Object ids and how objects are hashed.

use std::fmt;

use sha2::Digest;
use sha2::Sha256;

/// The id of a git object: SHA-256 of its kind, size and content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 32]);

impl ObjectId {
    pub(crate) const LENGTH: usize = 32;

    /// From its bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// From 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut id = [0; 32];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(id))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The kinds of object that a snapshot consists of, with their numbers in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Commit = 1,
    Tree = 2,
    Blob = 3,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Commit, Self::Tree, Self::Blob].into_iter().find(|kind| kind.name() == name)
    }
}

/// A hash that is fed bit by bit.
pub(crate) struct Hasher(Sha256);

impl Hasher {
    /// For an object whose size is known.
    pub(crate) fn object(kind: Kind, size: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(format!("{} {size}\0", kind.name()));
        Self(hash)
    }

    /// For plain bytes.
    pub(crate) fn plain() -> Self {
        Self(Sha256::new())
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> ObjectId {
        ObjectId(self.0.finalize().into())
    }
}

/// The id of a whole object.
pub(crate) fn hash(kind: Kind, data: &[u8]) -> ObjectId {
    let mut hasher = Hasher::object(kind, data.len() as u64);
    hasher.update(data);
    hasher.finish()
}

/// A checksum of plain bytes.
pub(crate) fn checksum(data: &[u8]) -> ObjectId {
    let mut hasher = Hasher::plain();
    hasher.update(data);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_tree_has_the_id_that_git_gives_it() {
        let id = hash(Kind::Tree, b"");
        assert_eq!(id.to_string(), "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321");
        assert_eq!(ObjectId::parse(&id.to_string()), Some(id));
        assert_eq!(ObjectId::parse("6ef1"), None);
        assert_eq!(ObjectId::parse(&"+1".repeat(32)), None);
    }
}
