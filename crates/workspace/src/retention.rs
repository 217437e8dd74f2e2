//! What is kept: list, look up, check, remove.

use std::collections::HashMap;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;
use std::time::SystemTime;

use crate::Workspace;
use crate::batch::Batch;
use crate::beneath::is_sound;
use crate::error::Error;
use crate::id::Kind;
use crate::id::ObjectId;
use crate::manifest::Exception;
use crate::manifest::Manifest;
use crate::record::FILES;
use crate::record::MANIFEST;
use crate::record::Snapshot;

/// A name, and the snapshot it stands for.
#[derive(Debug)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// When the name was given; nothing if that cannot be told.
    pub named: Option<SystemTime>,
    /// The snapshot, or what is wrong with it.
    pub snapshot: Result<Snapshot, Error>,
}

/// What collecting garbage did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
}

/// What no project exceeds: a snapshot that does is no snapshot of one.
const MOST_PATHS: usize = 1_000_000;
const MOST_PATH_BYTES: u64 = 128 << 20;
/// A file may have been captured under a higher limit than the present one, but not this large.
const LARGEST_BLOB: u64 = 64 << 30;

/// What a check has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many objects.
    pub objects: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Workspace {
    /// A snapshot by its name.
    pub fn get(&self, name: &str) -> Result<Snapshot, Error> {
        let commit = self.shadow.read_ref(name)?.ok_or_else(|| Error::NotFound(name.to_owned()))?;
        let object = Batch::start(&self.git)?.read(commit, Kind::Commit)?;
        Snapshot::decode(name, commit, &object)
    }

    /// Every snapshot, in the order of their names. A damaged one is an error in its place.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let refs = self.shadow.refs_in_order()?;
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let mut batch = Batch::start(&self.git)?;
        let one = |(name, commit): (String, ObjectId)| {
            let object = batch.read(commit, Kind::Commit);
            let snapshot = object.and_then(|object| Snapshot::decode(&name, commit, &object));
            let named = self.shadow.named_at(&name);
            Listed { name, named, snapshot }
        };
        Ok(refs.into_iter().map(one).collect())
    }

    /// Whether a snapshot holds something under a path.
    pub fn holds(&self, snapshot: &Snapshot, path: &Path) -> Result<bool, Error> {
        let tree = snapshot.tree.to_string();
        let mut arguments: Vec<&OsStr> =
            ["ls-tree", "-z", "--full-tree", tree.as_str(), "--"].map(OsStr::new).into();
        arguments.push(path.as_os_str());
        Ok(!self.git.run(&arguments)?.is_empty())
    }

    /// What a snapshot does not hold, or not quite.
    pub fn exceptions(&self, snapshot: &Snapshot) -> Result<Vec<Exception>, Error> {
        Ok(self.manifest(snapshot)?.exceptions)
    }

    pub(crate) fn manifest(&self, snapshot: &Snapshot) -> Result<Manifest, Error> {
        Manifest::read(&Batch::start(&self.git)?.read(snapshot.manifest, Kind::Blob)?)
    }

    /// Takes a snapshot's name away. Its objects go with the next collection of garbage. False if there was none.
    /// One that a restore names which was cut short stays.
    pub fn drop_snapshot(&self, name: &str) -> Result<bool, Error> {
        let _lock = self.shadow.lock(self.options.patience)?;
        if self.read_intent()?.is_some_and(|intent| intent.target.0 == name || intent.safety.0 == name) {
            return Err(Error::Pending);
        }
        self.shadow.remove_ref(name)
    }

    /// How many bytes the snapshots take.
    pub fn size(&self) -> Result<u64, Error> {
        self.shadow.size()
    }

    /// Removes what no snapshot needs and what is older than that, and packs the rest tightly. Takes a while.
    pub fn collect_garbage(&self, older_than: Duration) -> Result<Garbage, Error> {
        let _lock = self.shadow.lock(self.options.patience)?;
        self.refuse_pending()?;
        let before = self.shadow.size()?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let until = match older_than.is_zero() {
            true => "now".to_owned(),
            false => format!("@{}", now.saturating_sub(older_than).as_secs()),
        };
        // What is younger is taken out of its pack and stays.
        let unpack = format!("--unpack-unreachable={until}");
        self.git.run(&["repack", "-q", "-A", "-d", &unpack, "--no-write-bitmap-index"])?;
        self.git.run(&["prune", &format!("--expire={until}")])?;
        crate::durable::sync_dir(&self.shadow.packs())?;
        Ok(Garbage { before, after: self.shadow.size()? })
    }

    /// Reads every object of a snapshot and checks it against its id.
    pub fn verify(&self, snapshot: &Snapshot) -> Result<Verified, Error> {
        let _lock = self.shadow.lock_shared(self.options.patience)?;
        self.verify_all(snapshot)
    }

    pub(crate) fn verify_all(&self, snapshot: &Snapshot) -> Result<Verified, Error> {
        let damaged = |why: &str| Error::damaged(format!("snapshot {}", snapshot.name), why);
        let mut batch = Batch::start(&self.git)?;
        let mut verified = Verified::default();
        let commit = batch.read(snapshot.commit, Kind::Commit)?;
        let outer = std::str::from_utf8(&commit).ok().and_then(|text| text.lines().next());
        let outer = outer.and_then(|line| line.strip_prefix("tree ")).and_then(ObjectId::parse);
        let outer = batch.read(outer.ok_or_else(|| damaged("its commit has no tree"))?, Kind::Tree)?;
        let parts = parse_tree(&outer).ok_or_else(|| damaged("a tree cannot be understood"))?;
        let part = |name: &[u8]| parts.iter().find(|entry| entry.name == name).map(|entry| entry.id);
        if part(FILES) != Some(snapshot.tree) || part(MANIFEST) != Some(snapshot.manifest) {
            return Err(damaged("its commit and its tree do not agree"));
        }
        verified.objects += 3;
        Manifest::read(&batch.read(snapshot.manifest, Kind::Blob)?)?;
        let mut seen = HashSet::new();
        // A few trees that hold each other many times over stand for more paths than anybody can list: each is read
        // once, and what it stands for is counted.
        let mut known: HashMap<ObjectId, Extent> = HashMap::new();
        let mut open = vec![snapshot.tree];
        while let Some(id) = open.last().copied() {
            if known.contains_key(&id) {
                open.pop();
                continue;
            }
            let tree = batch.read(id, Kind::Tree)?;
            let entries = parse_tree(&tree).ok_or_else(|| damaged("a tree cannot be understood"))?;
            let below = entries.iter().filter(|entry| entry.mode == b"40000").map(|entry| entry.id);
            let missing: Vec<ObjectId> = below.filter(|id| !known.contains_key(id)).collect();
            if !missing.is_empty() {
                open.extend(missing);
                if open.len() > MOST_PATHS {
                    return Err(damaged("it has too many directories"));
                }
                continue;
            }
            let mut extent = Extent::default();
            for entry in &entries {
                if entry.name.contains(&b'/') || !is_sound(entry.name) {
                    return Err(damaged("it has a path that leads elsewhere"));
                }
                let length = entry.name.len() as u64 + 1;
                match entry.mode {
                    b"40000" => extent.add(known.get(&entry.id).copied().unwrap_or_default(), length),
                    b"100644" | b"100755" | b"120000" => {
                        extent.add(Extent { paths: 0, bytes: 0 }, length);
                        if seen.insert(entry.id) {
                            let most = LARGEST_BLOB.max(self.options.largest_file);
                            verified.bytes +=
                                batch.copy_up_to(entry.id, Kind::Blob, most, &mut std::io::sink())?;
                            verified.objects += 1;
                        }
                    }
                    _ => {
                        return Err(damaged(
                            "it holds something that is neither file nor link nor directory",
                        ));
                    }
                }
            }
            if extent.paths > MOST_PATHS as u64 || extent.bytes > MOST_PATH_BYTES {
                return Err(damaged("it has more paths than a project has"));
            }
            verified.objects += 1;
            known.insert(id, extent);
            open.pop();
        }
        Ok(verified)
    }
}

/// How many paths a tree stands for, itself included, and how long they are together.
#[derive(Clone, Copy, Default)]
struct Extent {
    paths: u64,
    bytes: u64,
}

impl Extent {
    /// Adds what is below a name of this length.
    fn add(&mut self, below: Self, length: u64) {
        let paths = below.paths.saturating_add(1);
        self.paths = self.paths.saturating_add(paths);
        self.bytes = self.bytes.saturating_add(below.bytes).saturating_add(paths.saturating_mul(length));
    }
}

pub(crate) struct Parsed<'a> {
    pub(crate) mode: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) id: ObjectId,
}

pub(crate) fn parse_tree(mut bytes: &[u8]) -> Option<Vec<Parsed<'_>>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let mode = bytes.get(..space)?;
        let name = bytes.get(space + 1..end)?;
        let id = ObjectId::from_bytes(bytes.get(end + 1..end + 1 + ObjectId::LENGTH)?)?;
        entries.push(Parsed { mode, name, id });
        bytes = bytes.get(end + 1 + ObjectId::LENGTH..)?;
    }
    Some(entries)
}
