//! Saving what can be saved from a damaged database. The damaged files are moved aside whole, never changed.
//!
//! It may be killed at any moment. Until the new database is complete nothing is moved; while files are moved a mark
//! beside the database says so, no store opens, and salvaging again finishes what was begun.
//!
//! Damage is stepped over; a fault of the machine (no room, a failing disk, no memory) is not: what cannot be read or
//! written for such a reason may be whole, so the repair ends there and everything stays as it was.

mod check;
mod deep;
mod header;
mod rows;
mod scan;

use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;
use segno_core::SessionId;
use serde::Deserialize;
use serde::Serialize;

use super::SqliteStore;
use super::fault;
use super::identity;
use super::open;
use super::schema;
use crate::Error;
use crate::OpenOptions;
use crate::Purpose;
use crate::Store;
use crate::types::EventRow;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Salvaged {
    /// Where the damaged files are now.
    pub kept_in: PathBuf,
    /// Sessions saved whole.
    pub whole: Vec<String>,
    /// Sessions saved in part: their name, and what is missing.
    pub partly: Vec<(String, String)>,
    /// Events saved.
    pub events: u64,
    /// What could not be saved, in words.
    pub lost: Vec<String>,
    /// How many of these words are about something that is in the damaged files only, or in no file any more.
    #[serde(default)]
    pub left_behind: u64,
}

impl Salvaged {
    /// Whether the new database holds everything that the damaged one did.
    pub fn is_complete(&self) -> bool {
        self.left_behind == 0 && self.partly.is_empty()
    }

    /// Tells of something that the new database does not hold.
    fn lose(&mut self, what: String) {
        self.lost.push(what);
        self.left_behind += 1;
    }
}

/// The answer to a question to a damaged database; none if damage is why there is no answer.
fn unless_damaged<T>(location: &str, answer: rusqlite::Result<T>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(e) if is_damage(&e) => Ok(None),
        Err(e) => Err(fault(location, e)),
    }
}

/// Whether an error comes from what is in the file. Whatever else it may be is taken for a fault of the machine, which
/// says nothing of the file.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    let Some(found) = error.sqlite_error() else {
        // A value of another type than was stored.
        return true;
    };
    match found.code {
        ErrorCode::DatabaseCorrupt
        | ErrorCode::NotADatabase
        | ErrorCode::ConstraintViolation
        | ErrorCode::TypeMismatch
        | ErrorCode::TooBig => true,
        // A file that ends too early.
        ErrorCode::SystemIoFailure => found.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ,
        // No such table or column: the list of tables is damaged.
        ErrorCode::Unknown => found.extended_code == rusqlite::ffi::SQLITE_ERROR,
        _ => false,
    }
}

/// What the copy that is read is called.
const READING: &str = "reading.db";
/// What the new database is called until it is in its place.
const SAVED: &str = "saved.db";

/// Whether files are being moved, or were when somebody was killed.
pub(super) fn is_under_way(path: &Path) -> bool {
    mark(path).exists()
}

fn mark(path: &Path) -> PathBuf {
    open::beside(path, ".salvaging")
}

/// Moves a damaged database aside and puts in its place a new one with everything that can still be read.
///
/// `stamp` names the folder that the damaged files go to; it must be new. If an earlier call was cut short while it
/// moved files, this one finishes it and gives that call's answer.
///
/// This process should have no store open on it: reading the files as files lets go of the locks that it holds on them.
pub fn salvage(path: &Path, stamp: &str) -> Result<Salvaged, Error> {
    let location = path.display().to_string();
    let io =
        |why: std::io::Error| Error::UnusableLocation { location: location.clone(), why: why.to_string() };
    if let Some(begun) = begun(path).map_err(io)? {
        finish(path, &begun).map_err(io)?;
        return Ok(begun);
    }
    if !path.exists() && !open::beside(path, "-wal").exists() {
        return Err(Error::NoStore(location));
    }
    let kept_in = make_folder(path, stamp).map_err(io)?;
    let done = save_into(path, &kept_in);
    // Once the mark is set only finishing is possible, and that needs the folder.
    if done.is_err() && mark(path).try_exists().is_ok_and(|set| !set) {
        let _ = std::fs::remove_dir_all(&kept_in);
        // Gone only if it is empty.
        let _ = std::fs::remove_dir(parent(&kept_in));
    }
    done
}

fn save_into(path: &Path, kept_in: &Path) -> Result<Salvaged, Error> {
    let location = path.display().to_string();
    let io = |why: std::io::Error| io_fault(&location, &why);
    // Writers that have it open wait, and see afterwards that it is another.
    let lock = lock(path)?;
    let before = check::Look::at(path).map_err(io)?;
    // The new database is built from a copy, so that reading cannot change the damaged files, log included.
    let copy = kept_in.join(READING);
    for suffix in ["", "-wal"] {
        let from = open::beside(path, suffix);
        if from.try_exists().map_err(io)? {
            std::fs::copy(&from, open::beside(&copy, suffix)).map_err(io)?;
        }
    }
    let mut salvaged = Salvaged { kept_in: kept_in.to_owned(), ..Salvaged::default() };
    let saved = kept_in.join(SAVED);
    build(&copy, &saved, path, &mut salvaged)?;
    check::saved(&saved, &copy, &salvaged)?;
    // Where there is no lock to be had somebody may have written meanwhile.
    if lock.is_none() && check::Look::at(path).map_err(io)? != before {
        return Err(Error::Busy { location });
    }
    set_mark(path, &salvaged).map_err(io)?;
    finish(path, &salvaged).map_err(io)?;
    drop(lock);
    Ok(salvaged)
}

/// What an error of the file system means for the repair.
fn io_fault(location: &str, why: &std::io::Error) -> Error {
    match why.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            Error::Full { location: location.to_owned() }
        }
        _ => Error::UnusableLocation { location: location.to_owned(), why: why.to_string() },
    }
}

/// The folder for the damaged files. One that is there already may hold the files of another time.
fn make_folder(path: &Path, stamp: &str) -> std::io::Result<PathBuf> {
    if stamp.is_empty() || stamp.starts_with('.') || stamp.contains('/') {
        return Err(std::io::Error::other("the folder for the damaged files needs a plain name"));
    }
    let quarantine = parent(path).join("quarantine");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&quarantine)?;
    let kept_in = quarantine.join(stamp);
    std::fs::DirBuilder::new().mode(0o700).create(&kept_in)?;
    Ok(kept_in)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The right to write the damaged database; none if it is too damaged to give it.
fn lock(path: &Path) -> Result<Option<Connection>, Error> {
    let location = path.display().to_string();
    // SQLite removes the log of an empty database.
    if std::fs::metadata(path).map_or(0, |meta| meta.len()) == 0 {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let locked = || -> rusqlite::Result<Connection> {
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        super::busy::patience(OpenOptions::default().busy);
        super::busy::wait(&mut connection)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(connection)
    };
    match locked() {
        // A damaged header can make a database read-only.
        Err(e) if e.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly) => Ok(None),
        other => unless_damaged(&location, other),
    }
}

fn begun(path: &Path) -> std::io::Result<Option<Salvaged>> {
    match std::fs::read(mark(path)) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why),
    }
}

/// From here on only finishing is possible. The mark is whole or not there.
fn set_mark(path: &Path, salvaged: &Salvaged) -> std::io::Result<()> {
    let draft = salvaged.kept_in.join("mark");
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(&serde_json::to_vec(salvaged)?)?;
    file.sync_all()?;
    std::fs::File::open(salvaged.kept_in.join(SAVED))?.sync_all()?;
    sync_folder(&salvaged.kept_in)?;
    sync_folder(parent(&salvaged.kept_in))?;
    sync_folder(parent(path))?;
    std::fs::rename(draft, mark(path))?;
    sync_folder(parent(path))
}

/// Puts the files in their places. Every step may have been done before.
fn finish(path: &Path, salvaged: &Salvaged) -> std::io::Result<()> {
    let saved = salvaged.kept_in.join(SAVED);
    if saved.try_exists()? {
        // The log goes first and the new database comes last: no log ever lies beside a database it is not of.
        for suffix in ["-shm", "-wal", ""] {
            let from = open::beside(path, suffix);
            let to = salvaged.kept_in.join(from.file_name().unwrap_or_default());
            if from.try_exists()? && !to.try_exists()? {
                std::fs::rename(&from, &to)?;
            }
        }
        sync_folder(&salvaged.kept_in)?;
        std::fs::rename(&saved, path)?;
    }
    // Where it was written, nobody waits for a turn any more.
    let _ = std::fs::remove_file(open::beside(&saved, super::turn::TURN));
    sync_folder(parent(path))?;
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(open::beside(&salvaged.kept_in.join(READING), suffix));
    }
    std::fs::remove_file(mark(path))?;
    sync_folder(parent(path))
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

fn build(copy: &Path, fresh_path: &Path, path: &Path, salvaged: &mut Salvaged) -> Result<(), Error> {
    let location = fresh_path.display().to_string();
    let mut fresh = empty(fresh_path)?;
    let mut kept = None;
    match readable(copy, salvaged) {
        Ok(old) => {
            kept = identity::kept(&old, path, fresh_path, &location)?;
            rows::copy(&old, &mut fresh, &location, salvaged)?;
        }
        Err(Unreadable::Damaged(why)) => {
            salvaged.lose(format!("the database cannot be read at all: {why}"));
        }
        Err(Unreadable::Fault(why)) => return Err(why),
    }
    fresh.close().map_err(|(_, e)| fault(&location, e))?;
    refold(fresh_path, kept, salvaged)
}

/// A new database of the newest form.
fn empty(path: &Path) -> Result<Connection, Error> {
    let location = path.display().to_string();
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|why| Error::UnusableLocation { location: location.clone(), why: why.to_string() })?;
    let mut fresh = open::scratch(path, &location)?;
    schema::migrate(&mut fresh, &location, schema::NEWEST)?;
    Ok(fresh)
}

/// Why a copy cannot be read.
enum Unreadable {
    /// Because of what is in it.
    Damaged(String),
    /// For a reason that has nothing to do with it.
    Fault(Error),
}

/// The copy, with another beginning if its own is destroyed.
fn readable(copy: &Path, salvaged: &mut Salvaged) -> Result<Connection, Unreadable> {
    let location = copy.display().to_string();
    let mut why = "it is empty".to_owned();
    for attempt in [None, Some(header::Part::Header), Some(header::Part::Page)] {
        if let Some(part) = attempt {
            header::replace(copy, part, &salvaged.kept_in).map_err(Unreadable::Fault)?;
        } else if std::fs::metadata(copy).map_or(0, |meta| meta.len()) == 0 {
            // SQLite would remove the log of an empty database, and the log may hold everything.
            continue;
        }
        match look(copy) {
            Ok(connection) => {
                if attempt.is_some() {
                    salvaged.lost.push("the beginning of the file, which was made anew".to_owned());
                }
                return Ok(connection);
            }
            // A damaged header can make a database read-only.
            Err(e) if is_damage(&e) || e.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly) => {
                why = e.to_string();
            }
            Err(e) => return Err(Unreadable::Fault(fault(&location, e))),
        }
    }
    Err(Unreadable::Damaged(why))
}

/// A header that cannot be read, or tables that cannot be found, show at the first question. Digging for rows writes
/// into the copy, so that must work too.
fn look(copy: &Path) -> rusqlite::Result<Connection> {
    let connection = open::try_scratch(copy)?;
    connection.execute_batch("PRAGMA cell_size_check=ON")?;
    connection.prepare("SELECT id FROM events").map(drop)?;
    // Every one of ours has the same: read in another way, no text would be what was written.
    let encoding: String = connection.pragma_query_value(None, "encoding", |row| row.get(0))?;
    if encoding != "UTF-8" {
        return Err(rusqlite::Error::InvalidQuery);
    }
    connection.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
    Ok(connection)
}

/// Folds every saved session anew, and says which are whole.
fn refold(path: &Path, kept: Option<identity::Kept>, salvaged: &mut Salvaged) -> Result<(), Error> {
    let store = SqliteStore::open(
        path,
        OpenOptions { purpose: Purpose::OneShot, create: false, ..OpenOptions::default() },
    )?;
    let summaries = store.list(&crate::types::Filter::default())?.sessions;
    let mut ids: Vec<SessionId> = summaries.iter().map(|summary| summary.session_id).collect();
    ids.sort_unstable();
    for id in ids {
        match store.rebuild(id) {
            Ok(loaded) if loaded.notices.is_empty() => {
                // One that only lost its end folds well; that something of it is missing is known all the same.
                let missing = format!("session {id}: events ");
                match salvaged.lost.iter().find(|lost| lost.starts_with(&missing)).cloned() {
                    Some(lost) => salvaged.partly.push((id.to_string(), lost)),
                    None => salvaged.whole.push(id.to_string()),
                }
            }
            Ok(loaded) => salvaged.partly.push((id.to_string(), loaded.notices.join("; "))),
            Err(why @ (Error::SessionDamaged { .. } | Error::Damaged { .. })) => {
                salvaged.partly.push((id.to_string(), why.to_string()));
            }
            Err(fault) => return Err(fault),
        }
        let mut after = 0;
        loop {
            let rows = store.events(id, after, 1_000)?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                match row {
                    EventRow::Whole(stored) => after = stored.seq,
                    EventRow::Damaged { seq, what } => {
                        after = seq;
                        store.quarantine(id, seq, &what)?;
                    }
                }
            }
        }
    }
    drop(store);
    // The log goes into the file, so that moving the file moves everything.
    let location = path.display().to_string();
    let connection = open::scratch(path, &location)?;
    // Last of all: what was saved from a copy is a copy, and could not be written to from here on.
    if let Some(kept) = kept {
        kept.write(&connection).map_err(|e| fault(&location, e))?;
    }
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(|e| fault(&location, e))?;
    connection.close().map_err(|(_, e)| fault(&location, e))?;
    for suffix in ["-wal", "-shm", super::turn::TURN] {
        let _ = std::fs::remove_file(open::beside(path, suffix));
    }
    Ok(())
}
