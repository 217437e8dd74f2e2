//! Which objects the shadow directory holds, and adding to them.

use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::error::Context as _;
use crate::error::Error;
use crate::id::Kind;
use crate::id::ObjectId;
use crate::pack::PackWriter;
use crate::pack::encode;

/// The index of one pack, in memory.
struct Index {
    bytes: Vec<u8>,
}

const FANOUT: usize = 8;
const IDS: usize = FANOUT + 256 * 4;

impl Index {
    fn read(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).context("cannot read", path)?;
        let index = Self { bytes };
        let sound = index.bytes.starts_with(b"\xfftOc\0\0\0\x02")
            && index.bytes.len() >= IDS + index.below(256) * (ObjectId::LENGTH + 8) + 2 * ObjectId::LENGTH;
        if sound {
            Ok(index)
        } else {
            Err(Error::damaged(path.display().to_string(), "not an index of a pack"))
        }
    }

    /// How many ids begin with a byte below `first`.
    fn below(&self, first: usize) -> usize {
        let Some(offset) = first.checked_sub(1).map(|before| FANOUT + before * 4) else { return 0 };
        let bytes =
            self.bytes.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 4]);
        u32::from_be_bytes(bytes) as usize
    }

    fn contains(&self, id: &ObjectId) -> bool {
        let first = usize::from(id.as_bytes()[0]);
        let offset = |number: usize| IDS + number * ObjectId::LENGTH;
        let ids =
            self.bytes.get(offset(self.below(first))..offset(self.below(first + 1))).unwrap_or_default();
        let (ids, _) = ids.as_chunks::<{ ObjectId::LENGTH }>();
        ids.binary_search(id.as_bytes()).is_ok()
    }
}

/// The packs of an object directory.
pub(crate) struct Objects {
    directory: PathBuf,
    names: Vec<String>,
    indexes: std::cell::OnceCell<Vec<Index>>,
}

impl Objects {
    /// Looks at `objects/pack`. The indexes are read when they are needed.
    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory).context("cannot list", directory)? {
            let name = entry.context("cannot list", directory)?.file_name();
            if let Some(name) = name.to_str()
                && name.starts_with("pack-")
                && name.ends_with(".idx")
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(Self { directory: directory.to_owned(), names, indexes: std::cell::OnceCell::new() })
    }

    /// A value that changes when packs go.
    pub(crate) fn packs(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn contains(&self, id: &ObjectId) -> Result<bool, Error> {
        Ok(self.indexes()?.iter().any(|index| index.contains(id)))
    }

    fn indexes(&self) -> Result<&[Index], Error> {
        if let Some(indexes) = self.indexes.get() {
            return Ok(indexes);
        }
        let read = self.names.iter().map(|name| Index::read(&self.directory.join(name)));
        let indexes = read.collect::<Result<Vec<_>, _>>()?;
        Ok(self.indexes.get_or_init(|| indexes))
    }
}

/// Takes new objects, from several threads, and puts them into one pack.
pub(crate) struct Sink {
    held: Held,
    open: Mutex<Open>,
    /// How many bytes there were before, and how many there may be in all.
    used: u64,
    quota: u64,
}

/// Indexes that can be looked at from several threads.
struct Held(Vec<Index>);

struct Open {
    pack: PackWriter,
    seen: HashSet<ObjectId>,
}

impl Sink {
    /// Objects that `objects` holds are not written again.
    pub(crate) fn new(objects: Objects, into: &Path, used: u64, quota: u64) -> Result<Self, Error> {
        objects.indexes()?;
        let held = Held(objects.indexes.into_inner().unwrap_or_default());
        let open = Open { pack: PackWriter::new(into)?, seen: HashSet::new() };
        Ok(Self { held, open: Mutex::new(open), used, quota })
    }

    /// Adds an object that fits into memory.
    pub(crate) fn put(&self, kind: Kind, data: &[u8]) -> Result<ObjectId, Error> {
        let id = crate::id::hash(kind, data);
        if self.reserve(id) {
            let encoded = encode(kind, data)?;
            let mut open = self.lock();
            open.pack.append(id, &encoded)?;
            self.check_size(&open)?;
        }
        Ok(id)
    }

    /// Adds a blob from a file that is read again for it. False if it is not what `id` says any more.
    pub(crate) fn stream(
        &self,
        id: ObjectId,
        size: u64,
        from: &mut impl std::io::Read,
    ) -> Result<bool, Error> {
        if !self.reserve(id) {
            return Ok(true);
        }
        let mut open = self.lock();
        let added = open.pack.stream(id, size, from)?;
        if !added {
            open.seen.remove(&id);
        }
        self.check_size(&open)?;
        Ok(added)
    }

    /// Makes everything durable and known to git.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.open.into_inner().unwrap_or_else(PoisonError::into_inner).pack.finish()
    }

    /// Whether this object is new here and now ours to write.
    fn reserve(&self, id: ObjectId) -> bool {
        !self.held.0.iter().any(|index| index.contains(&id)) && self.lock().seen.insert(id)
    }

    fn check_size(&self, open: &Open) -> Result<(), Error> {
        let used = self.used.saturating_add(open.pack.size());
        if used > self.quota { Err(Error::OverQuota { used, quota: self.quota }) } else { Ok(()) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
