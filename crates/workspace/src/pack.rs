//! Writes a git pack and its index.
//!
//! One snapshot is one pack: two files to make durable, however many objects there are, and no process to wait for.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::io::Read;
use std::io::Seek as _;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use flate2::Compress;
use flate2::Compression;
use flate2::Crc;
use flate2::FlushCompress;
use flate2::Status;
use flate2::write::ZlibEncoder;

use crate::durable;
use crate::durable::TEMPORARY;
use crate::error::Context as _;
use crate::error::Error;
use crate::fault::step;
use crate::id::Hasher;
use crate::id::Kind;
use crate::id::ObjectId;

/// Bytes before the first object: the word PACK, a version, the number of objects.
const HEADER: u64 = 12;
/// Offsets from here on go to a table of their own.
const LARGE_OFFSET: u64 = 1 << 31;

/// From so many bytes on, the disk is kept busy while more is being read.
const FLUSH: u64 = 16 << 20;

thread_local! {
    // Making one takes longer than compressing a small file with it.
    static COMPRESSOR: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(1), true));
}

/// An object as it stands in a pack: kind, size, compressed content.
pub(crate) fn encode(kind: Kind, data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(data.len() / 2 + 64);
    entry_header(kind, data.len() as u64, &mut out);
    if looks_compressed(data) {
        let mut encoder = ZlibEncoder::new(out, Compression::none());
        return encoder
            .write_all(data)
            .and_then(|()| encoder.finish())
            .context("cannot compress", Path::new("a file"));
    }
    COMPRESSOR.with_borrow_mut(|compressor| compress(compressor, data, &mut out))?;
    Ok(out)
}

fn compress(compressor: &mut Compress, data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    compressor.reset();
    loop {
        let read = usize::try_from(compressor.total_in()).unwrap_or(usize::MAX);
        let rest = data.get(read..).unwrap_or_default();
        match compressor.compress_vec(rest, out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(_) => out.reserve(rest.len() / 2 + 4096),
            Err(why) => {
                return Err(std::io::Error::other(why)).context("cannot compress", Path::new("a file"));
            }
        }
    }
}

/// Compressing what is compressed already costs much and gains nothing.
fn looks_compressed(data: &[u8]) -> bool {
    const SAMPLE: usize = 4096;
    let middle = data.len() / 2;
    let Some(sample) = data.get(middle..middle + SAMPLE).filter(|_| data.len() > 16 * SAMPLE) else {
        return false;
    };
    let mut packed = Vec::with_capacity(2 * SAMPLE);
    COMPRESSOR.with_borrow_mut(|compressor| compress(compressor, sample, &mut packed)).is_ok()
        && packed.len() > SAMPLE * 15 / 16
}

fn entry_header(kind: Kind, size: u64, out: &mut Vec<u8>) {
    let mut byte = ((kind as u8) << 4) | (size & 0x0f) as u8;
    let mut rest = size >> 4;
    while rest > 0 {
        out.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    out.push(byte);
}

struct Entry {
    id: ObjectId,
    crc: u32,
    offset: u64,
}

/// A pack that is being written. Nothing is visible to git before `finish`.
pub(crate) struct PackWriter {
    directory: PathBuf,
    path: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    entries: Vec<Entry>,
    flusher: Option<Flusher>,
}

/// Syncs what is written so far, again and again, so that little is left to sync at the end.
struct Flusher {
    wake: std::sync::mpsc::SyncSender<()>,
    thread: std::thread::JoinHandle<std::io::Result<()>>,
    next: u64,
}

impl Flusher {
    fn start(file: &File, next: u64) -> Option<Self> {
        let file = file.try_clone().ok()?;
        let (wake, woken) = std::sync::mpsc::sync_channel(1);
        // The system tells of a lost write once. If it tells here, the sync at the end would not know.
        let thread = std::thread::spawn(move || woken.iter().try_for_each(|()| file.sync_data()));
        Some(Self { wake, thread, next })
    }
}

impl PackWriter {
    /// A new pack in an `objects/pack` directory.
    pub(crate) fn new(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(format!("{TEMPORARY}pack"));
        let mut file = BufWriter::with_capacity(1 << 18, durable::create(&path)?);
        file.write_all(&[0; HEADER as usize]).context("cannot write", &path)?;
        Ok(Self {
            directory: directory.to_owned(),
            path,
            file,
            offset: HEADER,
            entries: Vec::new(),
            flusher: None,
        })
    }

    /// How many bytes it has so far.
    pub(crate) fn size(&self) -> u64 {
        self.offset
    }

    /// Adds an object that was encoded before.
    pub(crate) fn append(&mut self, id: ObjectId, encoded: &[u8]) -> Result<(), Error> {
        let mut crc = Crc::new();
        crc.update(encoded);
        self.file.write_all(encoded).context("cannot write", &self.path)?;
        self.entries.push(Entry { id, crc: crc.sum(), offset: self.offset });
        self.offset += encoded.len() as u64;
        if self.offset > self.flusher.as_ref().map_or(FLUSH, |flusher| flusher.next) {
            self.flush_soon();
        }
        Ok(())
    }

    fn flush_soon(&mut self) {
        let next = self.offset + FLUSH;
        match &mut self.flusher {
            Some(flusher) => {
                flusher.next = next;
                // If it is still at it, the next one will do.
                let _ = flusher.wake.try_send(());
            }
            None => self.flusher = Flusher::start(self.file.get_ref(), next),
        }
    }

    /// Adds a blob that is too large for memory. False, and nothing is added, if it is not what `id` says.
    pub(crate) fn stream(&mut self, id: ObjectId, size: u64, from: &mut impl Read) -> Result<bool, Error> {
        let start = self.offset;
        let mut head = Vec::new();
        entry_header(Kind::Blob, size, &mut head);
        let mut out = Counted { inner: &mut self.file, crc: Crc::new(), written: 0 };
        let mut hasher = Hasher::object(Kind::Blob, size);
        let mut copied = || -> std::io::Result<()> {
            out.write_all(&head)?;
            let mut encoder = ZlibEncoder::new(&mut out, Compression::new(1));
            let mut buffer = vec![0; 1 << 18];
            loop {
                let read = from.read(&mut buffer)?;
                if read == 0 {
                    break;
                }
                let bytes = buffer.get(..read).unwrap_or_default();
                hasher.update(bytes);
                encoder.write_all(bytes)?;
            }
            encoder.finish().map(drop)
        };
        let copied = copied();
        let (crc, written) = (out.crc.sum(), out.written);
        if copied.is_ok() && hasher.finish() == id {
            self.entries.push(Entry { id, crc, offset: start });
            self.offset += written;
            return Ok(true);
        }
        // Whatever follows overwrites the half-written object.
        self.file.seek(SeekFrom::Start(start)).context("cannot write", &self.path)?;
        copied.context("cannot copy to", &self.path)?;
        Ok(false)
    }

    /// Writes what is still missing and makes the pack known and durable. An empty one is dropped.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        if self.entries.is_empty() {
            durable::remove(&self.path)?;
            return Ok(());
        }
        let path = self.path.clone();
        let checksum = self.complete().context("cannot write", &path)?;
        let index = self.index(checksum);
        let unnamed = self.directory.join(format!("{TEMPORARY}idx"));
        let mut file = durable::create(&unnamed)?;
        step();
        file.write_all(&index).context("cannot write", &unnamed)?;
        step();
        file.sync_all().context("cannot sync", &unnamed)?;
        // Git looks for indexes, so the pack must have its name first.
        let name = self.directory.join(format!("pack-{checksum}.pack"));
        durable::rename(&self.path, &name)?;
        durable::rename(&unnamed, &name.with_extension("idx"))?;
        durable::sync_dir(&self.directory)
    }

    /// The header needs the number of objects and the checksum covers the header, so the pack is read once more.
    fn complete(&mut self) -> std::io::Result<ObjectId> {
        step();
        self.file.flush()?;
        if let Some(flusher) = self.flusher.take() {
            drop(flusher.wake);
            flusher.thread.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread died")))?;
        }
        let file = self.file.get_mut();
        file.set_len(self.offset)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(b"PACK\0\0\0\x02")?;
        file.write_all(&(self.entries.len() as u32).to_be_bytes())?;
        file.seek(SeekFrom::Start(0))?;
        let mut hasher = Hasher::plain();
        let mut buffer = vec![0; 1 << 18];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            hasher.update(buffer.get(..read).unwrap_or_default());
        }
        let checksum = hasher.finish();
        file.write_all(checksum.as_bytes())?;
        step();
        file.sync_all()?;
        Ok(checksum)
    }

    fn index(&mut self, pack: ObjectId) -> Vec<u8> {
        self.entries.sort_unstable_by_key(|entry| entry.id);
        let mut out = Vec::with_capacity(1100 + self.entries.len() * 40);
        out.extend_from_slice(b"\xfftOc\0\0\0\x02");
        let mut counts = [0u32; 256];
        for entry in &self.entries {
            if let Some(count) = counts.get_mut(usize::from(entry.id.as_bytes()[0])) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in counts {
            sum += count;
            out.extend_from_slice(&sum.to_be_bytes());
        }
        self.entries.iter().for_each(|entry| out.extend_from_slice(entry.id.as_bytes()));
        self.entries.iter().for_each(|entry| out.extend_from_slice(&entry.crc.to_be_bytes()));
        let mut large = Vec::new();
        for entry in &self.entries {
            let offset = if entry.offset < LARGE_OFFSET {
                entry.offset as u32
            } else {
                large.push(entry.offset);
                (large.len() as u32 - 1) | (1 << 31)
            };
            out.extend_from_slice(&offset.to_be_bytes());
        }
        large.iter().for_each(|offset| out.extend_from_slice(&offset.to_be_bytes()));
        out.extend_from_slice(pack.as_bytes());
        let checksum = crate::id::checksum(&out);
        out.extend_from_slice(checksum.as_bytes());
        out
    }
}

/// Counts and checks what passes through.
struct Counted<'a, W> {
    inner: &'a mut W,
    crc: Crc,
    written: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.inner.write_all(bytes)?;
        self.crc.update(bytes);
        self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
