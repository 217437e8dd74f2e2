//! Remembers which file had which content, so that a second snapshot reads only what changed.
//!
//! It is a cache: whatever is wrong with it, it is thrown away and made again by reading every file.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use crate::durable;
use crate::error::Error;
use crate::id::ObjectId;
use crate::id::checksum;
use crate::objects::Objects;
use crate::stat::Moment;
use crate::stat::Stat;

const HEAD: &[u8] = b"segno cache 2\n";
const MOST: u64 = 4 << 30;

/// What is remembered of a file.
pub(crate) struct File {
    name: Range<usize>,
    pub(crate) stat: Stat,
    pub(crate) id: ObjectId,
    /// Whether equal marks mean equal content.
    pub(crate) settled: bool,
}

/// What is remembered of a directory.
pub(crate) struct Directory {
    /// The tree object, if it holds any file.
    pub(crate) tree: Option<ObjectId>,
    files: Vec<File>,
}

/// The cache of one tree.
#[derive(Default)]
pub(crate) struct Cache {
    bytes: Vec<u8>,
    directories: HashMap<Vec<u8>, Directory>,
}

impl Cache {
    /// Reads it, and forgets what `objects` does not hold: packs may have gone since.
    pub(crate) fn load(path: &Path, objects: &Objects) -> Result<Self, Error> {
        // After a power cut a file may have its new marks and its old bytes, or the other way round: what was
        // remembered before this boot is read again.
        let Some(boot) = boot() else { return Ok(Self::default()) };
        let Some(bytes) = durable::read_plain(path, MOST) else { return Ok(Self::default()) };
        let Some((mut cache, packs)) = Self::parse(bytes, &boot) else { return Ok(Self::default()) };
        let gone = packs.iter().any(|pack| objects.packs().binary_search(pack).is_err());
        if gone {
            cache.forget_missing(objects)?;
        }
        Ok(cache)
    }

    pub(crate) fn directory(&self, path: &[u8]) -> Option<&Directory> {
        self.directories.get(path)
    }

    pub(crate) fn file(&self, directory: &Directory, name: &[u8]) -> Option<usize> {
        directory.files.binary_search_by(|file| self.name(file).cmp(name)).ok()
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.directories.values().map(|directory| directory.files.len()).sum()
    }

    fn name(&self, file: &File) -> &[u8] {
        self.bytes.get(file.name.clone()).unwrap_or_default()
    }

    fn forget_missing(&mut self, objects: &Objects) -> Result<(), Error> {
        for directory in self.directories.values_mut() {
            if let Some(tree) = directory.tree
                && !objects.contains(&tree)?
            {
                directory.tree = None;
            }
            let mut kept = Vec::with_capacity(directory.files.len());
            for file in directory.files.drain(..) {
                if objects.contains(&file.id)? {
                    kept.push(file);
                }
            }
            directory.files = kept;
        }
        Ok(())
    }

    fn parse(bytes: Vec<u8>, boot: &str) -> Option<(Self, Vec<String>)> {
        let body = bytes.len().checked_sub(ObjectId::LENGTH)?;
        if bytes.get(body..)? != checksum(bytes.get(..body)?).as_bytes() || !bytes.starts_with(HEAD) {
            return None;
        }
        let mut reader = Reader { bytes: bytes.get(..body)?, at: HEAD.len() };
        if reader.text()?.1 != boot.as_bytes() {
            return None;
        }
        let mut packs = Vec::new();
        for _ in 0..reader.u32()? {
            packs.push(String::from_utf8(reader.text()?.1.to_vec()).ok()?);
        }
        let mut directories = HashMap::new();
        for _ in 0..reader.u32()? {
            let path = reader.text()?.1.to_vec();
            let tree = if reader.u8()? == 1 { Some(reader.id()?) } else { None };
            let count = reader.u32()?;
            let mut files = Vec::with_capacity(count.min(1 << 16) as usize);
            for _ in 0..count {
                let name = reader.text()?.0;
                let settled = reader.u8()? == 1;
                files.push(File { name, settled, stat: reader.stat()?, id: reader.id()? });
            }
            directories.insert(path, Directory { tree, files });
        }
        Some((Self { bytes, directories }, packs))
    }
}

impl Directory {
    pub(crate) fn at(&self, index: usize) -> Option<&File> {
        self.files.get(index)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(N)?)?;
        self.at += N;
        taken.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn id(&mut self) -> Option<ObjectId> {
        self.take::<{ ObjectId::LENGTH }>().and_then(|bytes| ObjectId::from_bytes(&bytes))
    }

    fn text(&mut self) -> Option<(Range<usize>, &'a [u8])> {
        let length = self.u32()? as usize;
        let range = self.at..self.at.checked_add(length)?;
        self.at = range.end;
        Some((range.clone(), self.bytes.get(range)?))
    }

    fn moment(&mut self) -> Option<Moment> {
        Some(Moment { seconds: self.u64()? as i64, nanos: self.u32()? })
    }

    fn stat(&mut self) -> Option<Stat> {
        Some(Stat {
            size: self.u64()?,
            modified: self.moment()?,
            changed: self.moment()?,
            inode: self.u64()?,
            device: self.u64()?,
            mode: self.u32()?,
        })
    }
}

/// Writes a new cache, directory by directory.
pub(crate) struct Writer {
    out: Vec<u8>,
    count_at: usize,
    directories: u32,
}

impl Writer {
    /// `packs` are those that hold everything that will be added.
    pub(crate) fn new(packs: &[String]) -> Self {
        let mut out = HEAD.to_vec();
        put_text(&mut out, boot().unwrap_or_default().as_bytes());
        put_u32(&mut out, packs.len());
        packs.iter().for_each(|pack| put_text(&mut out, pack.as_bytes()));
        let count_at = out.len();
        put_u32(&mut out, 0);
        Self { out, count_at, directories: 0 }
    }

    /// Files must come in the order of their names.
    pub(crate) fn directory<'f>(
        &mut self,
        path: &[u8],
        tree: Option<ObjectId>,
        files: impl ExactSizeIterator<Item = (&'f [u8], Stat, ObjectId, bool)>,
    ) {
        let out = &mut self.out;
        self.directories += 1;
        put_text(out, path);
        out.push(u8::from(tree.is_some()));
        if let Some(tree) = tree {
            out.extend_from_slice(tree.as_bytes());
        }
        put_u32(out, files.len());
        for (name, stat, id, settled) in files {
            put_text(out, name);
            out.push(u8::from(settled));
            out.extend_from_slice(&stat.size.to_le_bytes());
            for moment in [stat.modified, stat.changed] {
                out.extend_from_slice(&moment.seconds.to_le_bytes());
                out.extend_from_slice(&moment.nanos.to_le_bytes());
            }
            out.extend_from_slice(&stat.inode.to_le_bytes());
            out.extend_from_slice(&stat.device.to_le_bytes());
            out.extend_from_slice(&stat.mode.to_le_bytes());
            out.extend_from_slice(id.as_bytes());
        }
    }

    /// Replaces the cache at `path`. It is not synced: it has a checksum, and losing it loses only time.
    pub(crate) fn save(mut self, path: &Path) -> Result<(), Error> {
        if let Some(count) = self.out.get_mut(self.count_at..self.count_at + 4) {
            count.copy_from_slice(&self.directories.to_le_bytes());
        }
        let sum = checksum(&self.out);
        self.out.extend_from_slice(sum.as_bytes());
        durable::replace_lazily(path, &self.out)
    }
}

/// Which boot of the machine this is; nothing if that cannot be told. Elsewhere than on Linux all boots are one.
fn boot() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some(String::new());
    }
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

fn put_u32(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_u32(out, text.len());
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_remembered_before_this_boot_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache");
        Writer::new(&[]).save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let Some(boot) = boot() else { return };
        assert!(Cache::parse(bytes.clone(), &boot).is_some());
        assert!(Cache::parse(bytes, "another boot").is_none());
    }
}
