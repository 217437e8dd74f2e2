//! Archives: a session is removed from the store only after a file that holds all of it has been read back.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::State;
use segno_store::chain;

use super::Format;
use super::document;
use super::document::Entry;
use super::document::ExportedRow;
use super::document::Listener;
use super::document::ReadError;
use super::packed::Packing;
use super::packed::write_file;
use crate::Engine;
use crate::Error;

/// Writes a session to a file in `folder`, reads the file back, and removes the session if nothing is missing in it.
/// If anything is, the session stays as it is. An older archive is never replaced.
pub fn archive_and_remove(engine: &Engine, session: SessionId, folder: &Path) -> Result<PathBuf, Error> {
    crate::files::private_directory(folder).map_err(|why| Error::file(folder, why))?;
    let fresh = folder.join(format!("{session}.json.zst.new"));
    let refused = |why: String| Error::NotArchived { session, why };
    let tried = write_file(engine, session, Format::Json, Packing::Zstd, &fresh)
        .and_then(|_| check(&fresh).map_err(refused))
        .and_then(|held| Ok((held, settle(&fresh, folder, session)?)));
    let (held, path) = match tried {
        Ok(done) => done,
        Err(why) => {
            // What does not hold everything must not be taken for an archive.
            let _ = std::fs::remove_file(&fresh);
            return Err(why);
        }
    };
    // Only what is in the file is removed: whatever was recorded meanwhile keeps the session.
    match engine.delete_at(session, held.seq) {
        Ok(_) => Ok(path),
        Err(why) => {
            // Somebody else archived and removed it in the same moment: theirs is enough.
            if matches!(why, Error::SessionNotFound { .. }) {
                let _ = std::fs::remove_file(&path);
            }
            Err(why)
        }
    }
}

/// Gives a whole archive the session's name, or the next one that is free.
fn settle(fresh: &Path, folder: &Path, session: SessionId) -> Result<PathBuf, Error> {
    for number in 1_u32.. {
        let name = match number {
            1 => format!("{session}.json.zst"),
            more => format!("{session}.{more}.json.zst"),
        };
        let path = folder.join(name);
        match crate::files::rename_to_free(fresh, &path) {
            Ok(()) => return Ok(path),
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(Error::file(&path, why)),
        }
    }
    Err(Error::file(folder, "there is no free name"))
}

/// What a whole archive holds.
struct Held {
    seq: u64,
}

/// Reads an archive from the disk, from its first byte to its last.
fn check(path: &Path) -> Result<Held, String> {
    let io = |why: std::io::Error| format!("it cannot be read back: {why}");
    let file = std::fs::File::open(path).map_err(io)?;
    let unpacked = zstd::Decoder::new(file).map_err(io)?;
    let mut whole = Whole::default();
    document::read(unpacked, &mut whole).map_err(|why| match why {
        ReadError::Foreign => "it cannot be read back: it is no export".to_owned(),
        ReadError::Form(form) => format!("it cannot be read back: it has form {form}"),
        ReadError::Bad(why) => why,
    })?;
    let Some(state) = whole.state else { return Err("it has no session".to_owned()) };
    if whole.seq != state.seq {
        return Err(format!("it ends at event {} of {}", whole.seq, state.seq));
    }
    match whole.wanted.first() {
        Some(text) => Err(format!("the text {} is missing", document::hex(text))),
        None => Ok(Held { seq: state.seq }),
    }
}

/// Follows the chain of a document and the texts that its events refer to.
#[derive(Default)]
struct Whole {
    state: Option<State>,
    seq: u64,
    hash: [u8; 32],
    wanted: BTreeSet<[u8; 32]>,
}

impl Listener for Whole {
    fn session(&mut self, state: State) -> Result<(), String> {
        self.hash = chain::start(&state.uid);
        self.state = Some(state);
        Ok(())
    }

    fn row(&mut self, list: &str, index: usize, row: ExportedRow) -> Result<(), String> {
        // The journal is what counts; its rows only have to be ones that can be read.
        if row.key.is_empty() { Err(format!("row {} of its {list} has no key", index + 1)) } else { Ok(()) }
    }

    fn entry(&mut self, entry: Entry) -> Result<(), String> {
        let event = match entry {
            Entry::Event(event) => event,
            Entry::Damaged { seq, what } => return Err(format!("event {seq} is damaged: {what}")),
        };
        let hash = event.hash_after(&self.hash).filter(|_| event.seq == self.seq + 1);
        let Some(hash) = hash else { return Err(format!("event {} is not what was recorded", event.seq)) };
        self.wanted.extend(segno_store::references(event.body.get()));
        (self.seq, self.hash) = (event.seq, hash);
        Ok(())
    }

    fn text(&mut self, name: &str, text: String) -> Result<(), String> {
        let hash = blake3::hash(text.as_bytes());
        if hash.to_hex().as_str() != name {
            return Err(format!("the text {name} is not what was recorded"));
        }
        self.wanted.remove(hash.as_bytes());
        Ok(())
    }
}
