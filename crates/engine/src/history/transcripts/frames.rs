//! One agent's transcript as it is kept here: frames that are only ever appended.
//!
//! A frame is a header, a checksum over it and what follows, and then its content. The first one says what the file is of;
//! `Data` holds compressed bytes of the transcript, with the 128 KB before them as what the compression refers to;
//! `Version` begins another state of it that has its beginning in common with one before. So a file that grows costs what is
//! new, one that was written anew costs what is different, and nothing that was kept is lost by it.
//!
//! Whatever is read here may be damaged: a frame whose checksum is wrong is passed over and told, and what hangs on it is cut
//! off there.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek as _;
use std::io::SeekFrom;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

/// How each frame begins.
const MAGIC: &[u8; 4] = b"SGT1";
/// Bytes before the content of a frame.
const HEADER: u64 = 96;
/// How much of them the checksum is of, besides the content.
const SUMMED: usize = 64;
/// Most bytes of a transcript in one frame.
pub(super) const CHUNK: usize = 4 << 20;
/// How much before a frame its compression refers to.
const PREFIX: usize = 128 << 10;
/// No frame holds more than this, compressed.
const PACKED: u64 = 8 << 20;
/// How hard it is compressed.
const LEVEL: i32 = 3;
/// How much is read at once.
const BLOCK: usize = 256 << 10;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    About,
    Version,
    Data,
}

/// A frame that is whole.
#[derive(Clone, Debug)]
struct Frame {
    kind: Kind,
    /// The version that it begins with, for one that begins another.
    of: u16,
    /// Where its content is.
    at: u64,
    packed: u64,
    raw: u64,
    /// Where in the transcript it begins.
    offset: u64,
    /// The hash of the transcript up to its end.
    total: [u8; 32],
}

/// A state of the transcript.
#[derive(Clone, Debug, Default)]
pub(super) struct Version {
    /// Frames in order, and how many bytes of each count.
    parts: Vec<(usize, u64)>,
    /// How long it is.
    pub(super) length: u64,
    /// The hash of it.
    pub(super) hash: [u8; 32],
    /// Something behind it is damaged.
    is_cut: bool,
}

/// What was read of a file of frames.
#[derive(Debug)]
pub(super) struct Frames {
    file: File,
    frames: Vec<Frame>,
    /// What the first frame says; the newest one, if it was told again.
    pub(super) about: Vec<u8>,
    /// The states of the transcript, the newest last.
    pub(super) versions: Vec<Version>,
    /// What is damaged, in words.
    pub(super) damage: Vec<String>,
    /// Where the next frame is to begin.
    end: u64,
    /// How many bytes the file has.
    pub(super) size: u64,
}

/// What came of keeping a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Bytes that were new.
    pub(super) bytes: u64,
    /// What they take.
    pub(super) packed: u64,
    /// It is shorter than what is kept, and the beginning of that.
    pub(super) is_shorter: bool,
    /// It is another than what was kept, from some place on.
    pub(super) is_other: bool,
}

/// The header of a frame with its checksum.
fn header(
    kind: Kind,
    of: u16,
    content: &[u8],
    raw: u64,
    offset: u64,
    total: &[u8; 32],
) -> [u8; HEADER as usize] {
    let mut bytes = [0; HEADER as usize];
    bytes[..4].copy_from_slice(MAGIC);
    bytes[4] = match kind {
        Kind::About => 0,
        Kind::Version => 1,
        Kind::Data => 2,
    };
    bytes[6..8].copy_from_slice(&of.to_le_bytes());
    bytes[8..16].copy_from_slice(&(content.len() as u64).to_le_bytes());
    bytes[16..24].copy_from_slice(&raw.to_le_bytes());
    bytes[24..32].copy_from_slice(&offset.to_le_bytes());
    bytes[32..SUMMED].copy_from_slice(total);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..SUMMED]).update(content);
    bytes[SUMMED..].copy_from_slice(hasher.finalize().as_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(bytes);
    u64::from_le_bytes(number)
}

impl Frames {
    /// Reads what a file has: every checksum is looked at.
    pub(super) fn read(file: File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let (about, versions, damage) = Default::default();
        let mut read = Self { file, frames: Vec::new(), about, versions, damage, end: 0, size };
        let mut at = 0;
        while at < size {
            match read.frame_at(at)? {
                Some(frame) => {
                    at = frame.at + frame.packed;
                    read.end = at;
                    read.take(frame)?;
                }
                None => {
                    let next = read.next_after(at)?;
                    // An append that was cut short was never told to anybody: the next one takes its place.
                    if next.is_some() || !read.is_cut_short(at)? {
                        read.damage.push(format!("{} bytes at {at}", next.unwrap_or(size) - at));
                        read.end = size;
                    }
                    if let Some(version) = read.versions.last_mut() {
                        version.is_cut = true;
                    }
                    at = next.unwrap_or(size);
                }
            }
        }
        Ok(read)
    }

    /// The whole and undamaged frame at a place.
    fn frame_at(&self, at: u64) -> io::Result<Option<Frame>> {
        let mut head = [0; HEADER as usize];
        if at + HEADER > self.size {
            return Ok(None);
        }
        self.file.read_exact_at(&mut head, at)?;
        let kind = match head[4] {
            0 => Kind::About,
            1 => Kind::Version,
            2 => Kind::Data,
            _ => return Ok(None),
        };
        let (packed, raw, offset) = (number(&head[8..16]), number(&head[16..24]), number(&head[24..32]));
        let fits = head.starts_with(MAGIC)
            && packed <= PACKED
            && raw <= CHUNK as u64
            && at + HEADER + packed <= self.size
            && offset.checked_add(raw).is_some();
        if !fits {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&head[..SUMMED]);
        let mut block = vec![0; usize::try_from(packed).unwrap_or(0)];
        self.file.read_exact_at(&mut block, at + HEADER)?;
        hasher.update(&block);
        if hasher.finalize().as_bytes().as_slice() != &head[SUMMED..] {
            return Ok(None);
        }
        let mut total = [0; 32];
        total.copy_from_slice(&head[32..SUMMED]);
        let of = u16::from_le_bytes([head[6], head[7]]);
        Ok(Some(Frame { kind, of, at: at + HEADER, packed, raw, offset, total }))
    }

    /// Where the next whole frame is behind a damaged one.
    fn next_after(&self, at: u64) -> io::Result<Option<u64>> {
        let mut from = at + 1;
        let mut block = vec![0; BLOCK];
        while from < self.size {
            let wanted = usize::try_from(self.size - from).unwrap_or(BLOCK).min(BLOCK);
            self.file.read_exact_at(&mut block[..wanted], from)?;
            for found in memchr::memmem::find_iter(&block[..wanted], MAGIC) {
                let place = from + found as u64;
                if self.frame_at(place)?.is_some() {
                    return Ok(Some(place));
                }
            }
            // It may lie across two blocks.
            from += (wanted.saturating_sub(MAGIC.len() - 1)).max(1) as u64;
            if wanted < BLOCK {
                break;
            }
        }
        Ok(None)
    }

    /// Whether what is at a place is the beginning of a frame that ends behind the file.
    fn is_cut_short(&self, at: u64) -> io::Result<bool> {
        let length = usize::try_from(self.size - at).unwrap_or(usize::MAX).min(HEADER as usize);
        let mut head = vec![0; length];
        self.file.read_exact_at(&mut head, at)?;
        let begins = MAGIC.starts_with(&head[..length.min(MAGIC.len())]);
        let ends_behind = head.len() < HEADER as usize || at + HEADER + number(&head[8..16]) > self.size;
        Ok(begins && ends_behind)
    }

    fn take(&mut self, frame: Frame) -> io::Result<()> {
        let index = self.frames.len();
        match frame.kind {
            Kind::About => {
                self.about = vec![0; usize::try_from(frame.packed).unwrap_or(0)];
                self.file.read_exact_at(&mut self.about, frame.at)?;
            }
            Kind::Version => {
                let base = self.versions.get(usize::from(frame.of)).cloned().unwrap_or_default();
                match base.length >= frame.offset {
                    true => self.versions.push(base.up_to(frame.offset, &self.frames, frame.total)),
                    false => self.versions.push(Version { is_cut: true, ..Version::default() }),
                }
            }
            Kind::Data => {
                if self.versions.is_empty() {
                    self.versions.push(Version::default());
                }
                match self.versions.last_mut() {
                    Some(version) if version.length == frame.offset && !version.is_cut => {
                        version.parts.push((index, frame.raw));
                        version.length += frame.raw;
                        version.hash = frame.total;
                    }
                    // What it goes on from is damaged.
                    Some(version) => version.is_cut = true,
                    None => {}
                }
            }
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Gives the bytes of a state of the transcript, checked.
    pub(super) fn give(
        &self,
        version: &Version,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut before: Vec<u8> = Vec::new();
        let mut hasher = blake3::Hasher::new();
        for (index, counts) in &version.parts {
            let Some(frame) = self.frames.get(*index) else { return Err(damaged("a frame is missing")) };
            let mut packed = vec![0; usize::try_from(frame.packed).unwrap_or(0)];
            self.file.read_exact_at(&mut packed, frame.at)?;
            let mut raw = Vec::with_capacity(usize::try_from(frame.raw).unwrap_or(0));
            let decoder = zstd::stream::read::Decoder::with_ref_prefix(packed.as_slice(), &before)?;
            decoder.take(frame.raw + 1).read_to_end(&mut raw)?;
            if raw.len() as u64 != frame.raw {
                return Err(damaged("a frame has another length than it says"));
            }
            let counts = usize::try_from(*counts).unwrap_or(0).min(raw.len());
            hasher.update(&raw[..counts]);
            take(&raw[..counts])?;
            before.extend_from_slice(&raw[..counts]);
            before.drain(..before.len().saturating_sub(PREFIX));
        }
        match version.length == 0 || *hasher.finalize().as_bytes() == version.hash {
            true => Ok(()),
            false => Err(damaged("it is not what was kept")),
        }
    }

    fn append(
        &mut self,
        kind: Kind,
        of: u16,
        content: &[u8],
        raw: u64,
        place: (u64, &[u8; 32]),
    ) -> io::Result<u64> {
        let head = header(kind, of, content, raw, place.0, place.1);
        let mut bytes = Vec::with_capacity(head.len() + content.len());
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(content);
        if self.end < self.size {
            self.file.set_len(self.end)?;
        }
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&bytes)?;
        self.end += bytes.len() as u64;
        self.size = self.end;
        Ok(bytes.len() as u64)
    }

    /// Says what it is of, if that is not there or has changed.
    pub(super) fn tell(&mut self, about: &[u8]) -> io::Result<()> {
        if self.about != about {
            self.append(Kind::About, 0, about, 0, (0, &[0; 32]))?;
            self.about = about.to_vec();
        }
        Ok(())
    }

    /// Keeps what is new of a transcript.
    pub(super) fn keep(&mut self, original: &File) -> io::Result<Kept> {
        let size = original.metadata()?.len();
        let mut kept = Kept::default();
        let mut base = (0, 0);
        let mut is_new_version = self.versions.is_empty().then_some(false);
        for (index, version) in self.versions.iter().enumerate().rev() {
            let is_newest = index + 1 == self.versions.len();
            if version.length <= size && hash_of(original, version.length)? == hash_or_none(version) {
                (is_new_version, base) = (Some(!is_newest || version.is_cut), (index, version.length));
                break;
            }
        }
        if is_new_version.is_none()
            && let Some((index, newest)) = self.versions.iter().enumerate().next_back()
        {
            let common = self.common(newest, original)?;
            if common == size {
                return Ok(Kept { is_shorter: true, ..kept });
            }
            kept.is_other = true;
            (is_new_version, base) = (Some(true), (index, common));
        }
        let (of, mut at) = base;
        let is_new_version = is_new_version.unwrap_or(false);
        if at == size && !is_new_version {
            return Ok(kept);
        }
        let (mut hasher, mut before) = begun(original, at)?;
        if is_new_version {
            let of = u16::try_from(of).map_err(|_| io::Error::other("it was written anew too often"))?;
            kept.packed += self.append(Kind::Version, of, &[], 0, (at, hasher.finalize().as_bytes()))?;
        }
        let mut reader = original.try_clone()?;
        reader.seek(SeekFrom::Start(at))?;
        while at < size {
            let mut raw = Vec::new();
            (&mut reader).take((size - at).min(CHUNK as u64)).read_to_end(&mut raw)?;
            if raw.is_empty() {
                break;
            }
            hasher.update(&raw);
            let mut encoder = zstd::stream::write::Encoder::with_ref_prefix(Vec::new(), LEVEL, &before)?;
            encoder.write_all(&raw)?;
            let packed = encoder.finish()?;
            let total = *hasher.finalize().as_bytes();
            kept.packed += self.append(Kind::Data, 0, &packed, raw.len() as u64, (at, &total))?;
            kept.bytes += raw.len() as u64;
            at += raw.len() as u64;
            before.extend_from_slice(&raw);
            before.drain(..before.len().saturating_sub(PREFIX));
        }
        self.file.sync_all()?;
        Ok(kept)
    }

    /// How many bytes a state of the transcript and a file have in common.
    fn common(&self, version: &Version, original: &File) -> io::Result<u64> {
        let (mut common, mut differs) = (0_u64, false);
        let given = self.give(version, &mut |bytes| {
            if differs {
                return Ok(());
            }
            let mut theirs = vec![0; bytes.len()];
            let read = read_at_most(original, &mut theirs, common)?;
            let same = bytes.iter().zip(&theirs[..read]).take_while(|(ours, theirs)| ours == theirs).count();
            common += same as u64;
            differs = same < bytes.len();
            Ok(())
        });
        match given {
            // What cannot be read any more has nothing in common with anything.
            Err(why) if why.kind() == io::ErrorKind::InvalidData => Ok(common),
            given => given.map(|()| common),
        }
    }
}

impl Version {
    /// Its first bytes.
    fn up_to(&self, length: u64, frames: &[Frame], hash: [u8; 32]) -> Self {
        let mut parts = Vec::new();
        let mut left = length;
        for (index, counts) in &self.parts {
            if left == 0 || frames.get(*index).is_none() {
                break;
            }
            let counts = left.min(*counts);
            parts.push((*index, counts));
            left -= counts;
        }
        Self { parts, length, hash, is_cut: false }
    }
}

/// The hash of an empty beginning is that of nothing.
fn hash_or_none(version: &Version) -> Option<[u8; 32]> {
    match version.length {
        0 => Some(*blake3::hash(&[]).as_bytes()),
        _ => Some(version.hash),
    }
}

fn read_at_most(file: &File, block: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < block.len() {
        match file.read_at(&mut block[read..], at + read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

/// The hash of the first bytes of a file; none if it has fewer.
fn hash_of(file: &File, bytes: u64) -> io::Result<Option<[u8; 32]>> {
    match begun(file, bytes) {
        Ok((hasher, _)) => Ok(Some(*hasher.finalize().as_bytes())),
        Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(why) => Err(why),
    }
}

/// A hasher that has read the first bytes of a file, and the last of these.
fn begun(file: &File, bytes: u64) -> io::Result<(blake3::Hasher, Vec<u8>)> {
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    let mut block = vec![0; BLOCK];
    while at < bytes {
        let wanted = usize::try_from(bytes - at).unwrap_or(BLOCK).min(BLOCK);
        file.read_exact_at(&mut block[..wanted], at)?;
        hasher.update(&block[..wanted]);
        at += wanted as u64;
    }
    let most = usize::try_from(bytes).unwrap_or(PREFIX).min(PREFIX);
    let mut before = vec![0; most];
    file.read_exact_at(&mut before, bytes - most as u64)?;
    Ok((hasher, before))
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
