//! What lies beside a store and is another's: it is left where it is, and named.

use std::path::PathBuf;

use segno_core::RunId;
use serde::Serialize;

use crate::Engine;
use crate::run::capture;
use crate::spool;

/// Something that is not this store's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftAlone {
    /// Where it is.
    pub path: PathBuf,
    /// What it is, and whose.
    pub what: String,
}

impl Engine {
    /// What was found in the spool and among the captures and is not this store's.
    pub fn left_alone(&self) -> Vec<LeftAlone> {
        let mut left = Vec::new();
        for path in self.options.spool.iter().flat_map(|dir| spool::waiting(dir)) {
            let line = std::fs::read(&path).ok().and_then(|bytes| spool::Line::read(&bytes).ok());
            // What cannot be read is set apart when the spool is taken in.
            let Some(line) = line else { continue };
            if matches!(self.is_ours(&line), Ok(false)) {
                let what = match line.store {
                    Some(store) => format!("facts for the store {store}"),
                    None => format!("facts for {}, which is not in this store", line.session),
                };
                left.push(LeftAlone { path, what });
            }
        }
        let captures = self.options.captures.as_ref().and_then(|dir| std::fs::read_dir(dir).ok());
        for dir in captures.into_iter().flatten().flatten().map(|entry| entry.path()) {
            let is_run = dir
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.parse::<RunId>().is_ok());
            let what = match capture::read_note(&dir) {
                Ok(note) if is_run && self.is_our_store(&note) => continue,
                Ok(note) if is_run => format!("the output of a run of the store {}", note.store),
                _ => "no output of a run, though it lies there".to_owned(),
            };
            left.push(LeftAlone { path: dir, what });
        }
        left
    }
}
