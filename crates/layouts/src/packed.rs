//! Compressed files as bytes, and their hashes.

use std::io::Read as _;
use std::io::Write as _;

use sha2::Digest as _;

use crate::files::Damage;
use crate::files::MOST_FILE;

/// Compresses; the same bytes give the same bytes, whenever it is done.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::new(6));
    // Writing to memory cannot fail.
    let _ = packer.write_all(bytes);
    packer.finish().unwrap_or_default()
}

/// Unpacks, up to the size that a file may have.
///
/// # Errors
/// If it is not whole, or unpacks to too much.
pub fn gunzip(name: &str, bytes: &[u8]) -> Result<Vec<u8>, Damage> {
    let mut out = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(bytes).take(MOST_FILE + 1);
    reader.read_to_end(&mut out).map_err(|why| Damage::new(name, format!("it cannot be unpacked: {why}")))?;
    if out.len() as u64 > MOST_FILE {
        return Err(Damage::new(name, format!("it unpacks to more than {} MB", MOST_FILE >> 20)));
    }
    Ok(out)
}

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(sha2::Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
