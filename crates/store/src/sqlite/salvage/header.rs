//! A new beginning for a file that lost its own. Only ever used on a copy.
//!
//! The first page of a database says where its tables begin. Every database that was made in the newest form has them
//! in the same places, so the first page of an empty one fits. If it does not fit, the hash chain shows it.

use std::fs::OpenOptions;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;

use super::empty;
use super::open;
use crate::Error;

/// How much of the beginning to replace.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// The file's header: the list of tables after it may still be there.
    Header,
    /// The whole first page, list of tables included.
    Page,
}

const HEADER: usize = 100;
/// The page size of every database that we make.
const PAGE: usize = 4096;

/// Replaces the beginning of `copy` by that of an empty database, made in `folder` for the purpose.
pub(super) fn replace(copy: &Path, part: Part, folder: &Path) -> Result<(), Error> {
    let io = |why: std::io::Error| super::io_fault(&copy.display().to_string(), &why);
    let path = folder.join("template.db");
    drop(empty(&path)?);
    let template = std::fs::read(&path);
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let _ = std::fs::remove_file(open::beside(&path, suffix));
    }
    let mut page = template.map_err(io)?;
    page.truncate(match part {
        Part::Header => HEADER,
        Part::Page => PAGE,
    });
    // Write-ahead logging, for the log that may lie beside it.
    page[18..20].copy_from_slice(&[2, 2]);
    // Counters that disagree make SQLite take the number of pages from the size of the file.
    page[24..28].copy_from_slice(&2_u32.to_be_bytes());
    page[92..96].copy_from_slice(&1_u32.to_be_bytes());
    // No list of free pages: it is not needed for reading.
    page[32..40].fill(0);
    let mut file = OpenOptions::new().write(true).open(copy).map_err(io)?;
    file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&page)).map_err(io)
}
