//! The files of a family that are there, and what each says of itself. A command sees the same large file several times, and
//! a driver again and again: what was found out of bytes is remembered by their hash.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use segno_core::State;
use segno_layouts::Facts;
use segno_layouts::Family;
use segno_layouts::FileSet;

use super::below::read_below;

/// How many files are remembered.
const MOST: usize = 256;

/// What was found out so far.
#[derive(Default)]
pub(crate) struct Looks(Mutex<BTreeMap<Seen, Arc<Facts>>>);

/// A file as it was seen.
type Seen = (Family, String, [u8; 32]);

impl Looks {
    fn of(&self, family: Family, name: &str, bytes: &[u8]) -> Arc<Facts> {
        let seen = (family, name.to_owned(), *blake3::hash(bytes).as_bytes());
        let known = |all: &BTreeMap<Seen, Arc<Facts>>| all.get(&seen).map(Arc::clone);
        if let Some(facts) = known(&self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            return facts;
        }
        // A compressed copy says what the file beside it does, as long as it is one.
        let inner = name.strip_suffix(".gz");
        let unpacked = inner.and_then(|inner| Some((inner, segno_layouts::gunzip(name, bytes).ok()?)));
        let facts = match unpacked {
            Some((inner, bytes)) => self.of(family, inner, &bytes),
            None => Arc::new(Facts::of(family, name, bytes)),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(seen, Arc::clone(&facts));
        facts
    }
}

/// The files that are there.
pub(super) struct Present {
    family: Family,
    pub(super) files: FileSet,
    looks: Arc<Looks>,
}

impl Present {
    /// None of them, yet.
    pub(super) fn new(family: Family, looks: &Arc<Looks>) -> Self {
        Self { family, files: FileSet::default(), looks: Arc::clone(looks) }
    }

    /// Reads a file, if it is there.
    pub(super) fn read(&mut self, dir: &OwnedFd, name: String) -> std::io::Result<()> {
        if let Some(bytes) = read_below(dir, &name)? {
            self.files.insert(name, bytes);
        }
        Ok(())
    }

    /// What a file says of itself; none if it is not there.
    pub(super) fn facts(&self, name: &str) -> Option<Arc<Facts>> {
        Some(self.looks.of(self.family, name, self.files.get(name)?))
    }

    /// Whether any of them is of this session, by our own member in it.
    pub(super) fn has_one_of(&self, state: &State) -> bool {
        let own = state.session_id.to_string();
        let logs = |name: &&str| !name.ends_with(".log");
        let mut names = self.files.names().filter(logs);
        names.any(|name| {
            self.facts(name).is_some_and(|facts| facts.session_id.as_deref() == Some(own.as_str()))
        })
    }
}
