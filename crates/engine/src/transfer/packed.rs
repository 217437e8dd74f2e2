//! Exports as files: compressed if wanted, there whole or not at all.

use std::io::BufWriter;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use segno_core::SessionId;

use super::Format;
use super::export;
use crate::Engine;
use crate::Error;
use crate::files::Access;
use crate::files::Draft;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// With gzip.
    Gzip,
    /// With zstd.
    Zstd,
}

/// Writes an export to a private file. When this returns, the file survives a loss of power; if it fails, whatever was
/// there before is untouched. Answers with its size.
pub fn write_file(
    engine: &Engine,
    session: SessionId,
    format: Format,
    packing: Packing,
    path: &Path,
) -> Result<u64, Error> {
    let io = |why: std::io::Error| Error::file(path, why);
    let mut draft = Draft::begin(path, Access::Private).map_err(io)?;
    {
        let mut out = BufWriter::with_capacity(1 << 16, draft.file());
        match packing {
            Packing::Plain => export(engine, session, format, &mut out)?,
            Packing::Gzip => {
                let mut packed = flate2::write::GzEncoder::new(&mut out, flate2::Compression::default());
                export(engine, session, format, &mut packed)?;
                packed.finish().map_err(io)?;
            }
            Packing::Zstd => {
                let mut packed = zstd::Encoder::new(&mut out, 3).map_err(io)?;
                export(engine, session, format, &mut packed)?;
                packed.finish().map_err(io)?;
            }
        }
        out.flush().map_err(io)?;
    }
    draft.finish().map_err(io)
}

/// What any file may unpack to, however small it is: the same line again and again packs very well.
const PLAUSIBLE: u64 = 64 << 20;
/// How much larger than the file its content may be beyond that.
const GROWTH: u64 = 1_000;
/// What a file may unpack to in any case.
const MOST: u64 = 16 << 30;

/// Something to be imported. It is read more than once: to check it, and to take it in.
#[derive(Clone)]
pub struct Source(Arc<dyn Fn() -> std::io::Result<Box<dyn Read>> + Send + Sync>);

impl Source {
    /// A text.
    pub fn text(text: &str) -> Self {
        let bytes: Arc<[u8]> = text.as_bytes().into();
        Self(Arc::new(move || Ok(Box::new(std::io::Cursor::new(Arc::clone(&bytes))))))
    }

    /// A file, compressed or not: what its first bytes say counts, not its name.
    pub fn file(path: &Path) -> Self {
        let path = path.to_owned();
        Self(Arc::new(move || unpack(&path)))
    }

    /// From its beginning.
    pub(crate) fn open(&self) -> std::io::Result<Box<dyn Read>> {
        (self.0)()
    }
}

fn unpack(path: &Path) -> std::io::Result<Box<dyn Read>> {
    let mut file = std::fs::File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut start = [0; 4];
    let mut length = 0;
    while length < start.len() {
        match file.read(&mut start[length..])? {
            0 => break,
            more => length += more,
        }
    }
    let whole = std::io::Cursor::new(start[..length].to_vec()).chain(file);
    let unpacked: Box<dyn Read> = match &start[..length] {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::GzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(whole)?),
        _ => Box::new(whole),
    };
    // A large file must be large for a reason: what grows a thousandfold was made to fill the disk.
    let most = MOST.min(PLAUSIBLE.max(meta.len().saturating_mul(GROWTH)));
    Ok(Box::new(Limited { inner: unpacked, left: most, most }))
}

/// Ends in an error, not in silence, when there is more than there may be.
struct Limited {
    inner: Box<dyn Read>,
    left: u64,
    most: u64,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            std::io::Error::other(format!("it unpacks to more than {} MB", self.most >> 20))
        })?;
        Ok(read)
    }
}
