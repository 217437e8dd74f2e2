//! Exports as files: compressed if wanted, there whole or not at all.

use std::io::BufWriter;
use std::io::Write;
use std::path::Path;

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
