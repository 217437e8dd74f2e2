//! The secrets that the driver of a run knows, beside its capture: who takes in what the agent printed may know fewer.
//!
//! The file is as private as the capture itself, which may hold the same, and goes when that goes.

use std::path::Path;

use super::capture;
use crate::Engine;
use crate::Error;

const FILE: &str = "secrets.json";
/// Largest list that is read back.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Writes them down, by name and value.
pub(super) fn write(dir: &Path, secrets: &[(String, String)]) -> Result<(), Error> {
    if secrets.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_vec(secrets).map_err(|why| Error::file(dir, why))?;
    capture::write_private(dir, FILE, &text).map(|_| ())
}

impl Engine {
    /// From now on the secrets of this run are kept out of the record, too.
    pub(super) fn learn_secrets_of(&self, dir: &Path) {
        use std::io::Read as _;
        let mut text = Vec::new();
        let read =
            std::fs::File::open(dir.join(FILE)).and_then(|file| file.take(LARGEST).read_to_end(&mut text));
        // Most runs have none.
        if read.is_ok()
            && let Ok(secrets) = serde_json::from_slice::<Vec<(String, String)>>(&text)
        {
            self.learn(secrets);
        }
    }
}
