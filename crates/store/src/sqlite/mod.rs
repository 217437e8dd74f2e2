//! The embedded backend: one SQLite database, many processes.

mod append;
mod busy;
mod copy;
mod create;
mod forget;
mod heads;
mod identity;
mod journal;
mod lease;
mod lists;
mod open;
mod pages;
mod read;
mod restore;
pub mod salvage;
pub mod schema;
mod session;
mod shared;
mod texts;
mod turn;
mod upkeep;
mod usage;
mod write;
mod writer;

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::ErrorCode;

pub use forget::file_holds;

use crate::Error;
use crate::OpenOptions;
use crate::Purpose;
use crate::error::Certainty;
use crate::types::Identity;
use crate::types::Standing;
use lease::Held;
use session::Cache;
use turn::Turn;
use turn::Turns;
use writer::Writer;

/// What lies beside a database while it is not known whether its last commit is on the disk.
const IN_DOUBT: &str = ".in-doubt";

/// Whoever waited for so long was not alone.
const CONTENDED: Duration = Duration::from_millis(1);
/// Whoever was alone for so many appends in a row is alone.
const LONG_ALONE: u32 = 64;

/// A store in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    location: String,
    reader: Mutex<Direct>,
    writer: Option<Writer>,
    purpose: Purpose,
    identity: Mutex<Identity>,
    waited: Arc<AtomicU64>,
}

/// A connection with what is remembered about it.
pub(crate) struct Direct {
    path: PathBuf,
    location: String,
    options: OpenOptions,
    connection: Option<Connection>,
    file: open::OpenFile,
    /// A commit failed, and what it wrote may be in the system's memory and nowhere else.
    in_doubt: bool,
    cache: Cache,
    turns: Turns,
    held: Held,
    /// How long the next append has stood behind others who were in no hurry either.
    stood: Duration,
    /// How long the newest append had to wait for other writers, in microseconds.
    waited: Arc<AtomicU64>,
    /// How many appends in a row did not have to.
    alone: u32,
    /// After how many pages the log is copied now.
    log_pages: u32,
}

impl Direct {
    fn open(path: &Path, options: OpenOptions, waited: Arc<AtomicU64>) -> Result<Self, Error> {
        let (connection, file) = open::open(path, options.create, &options)?;
        Ok(Self {
            path: path.to_owned(),
            location: path.display().to_string(),
            options,
            connection: Some(connection),
            file,
            in_doubt: false,
            cache: Cache::default(),
            turns: Turns::default(),
            held: Held::default(),
            stood: Duration::ZERO,
            waited,
            alone: 0,
            log_pages: open::LOG_PAGES,
        })
    }

    /// The next append stood behind others for so long.
    fn stood(&mut self, stood: Duration) {
        self.stood = stood;
    }

    /// Remembers how long was waited for other writers just now.
    fn note_waited(&mut self) {
        let waited = busy::waited() + std::mem::take(&mut self.stood);
        self.waited.store(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.alone = if waited < CONTENDED { self.alone.saturating_add(1) } else { 0 };
        if self.options.purpose == Purpose::LongLived
            && let Some(connection) = &self.connection
        {
            let pages = match self.alone {
                0 => open::FEW_PAGES,
                LONG_ALONE => open::LOG_PAGES,
                _ => self.log_pages,
            };
            // If it does not take, the log is copied more often or less, and that is all.
            if pages != self.log_pages && open::copy_log_after(connection, pages).is_ok() {
                self.log_pages = pages;
            }
        }
    }

    /// The connection, opened anew if a failed write put it in doubt or another file has taken the place of ours.
    fn connection(&mut self) -> Result<(&mut Connection, &mut Cache, &open::OpenFile), Error> {
        busy::patience_of(&self.options);
        self.opened()
    }

    fn opened(&mut self) -> Result<(&mut Connection, &mut Cache, &open::OpenFile), Error> {
        if self.connection.is_some() && self.file.has_moved() {
            self.invalidate_connection();
        }
        if self.connection.is_none() {
            self.cache.clear();
            let (again, file) = open::open(&self.path, false, &self.options)?;
            self.connection = Some(again);
            self.log_pages = open::LOG_PAGES;
            self.file = file;
        }
        match &mut self.connection {
            Some(connection) => Ok((connection, &mut self.cache, &self.file)),
            None => Err(Error::NoStore(self.location.clone())),
        }
    }

    /// The connection, to write, and the turn to do so. What an earlier commit left in doubt is settled first; reading needs
    /// no such thing.
    fn for_writing(&mut self) -> Result<(&mut Connection, &mut Cache, &open::OpenFile, Turn), Error> {
        self.settle_doubt()?;
        // Said anew before it is waited: by now all of it is left.
        busy::patience_of(&self.options);
        let turn = self.turns.take(&self.path);
        let (connection, cache, file) = self.opened()?;
        Ok((connection, cache, file, turn))
    }

    fn settle_doubt(&mut self) -> Result<(), Error> {
        // Whoever was in doubt may have been another process: the mark says so to all.
        let mark = open::beside(&self.path, IN_DOUBT);
        if self.in_doubt || mark.exists() {
            let location = self.location.clone();
            let (connection, _, _) = self.connection()?;
            upkeep::settle_doubt(connection, &location)?;
            self.in_doubt = false;
            let _ = std::fs::remove_file(mark);
        }
        Ok(())
    }

    /// Makes a copy a store of its own.
    fn adopt(&mut self) -> Result<Identity, Error> {
        let (path, location) = (self.path.clone(), self.location.clone());
        let (connection, _, _) = self.connection()?;
        let adopted = identity::adopt(connection, &path, &location)?;
        self.file.becomes(adopted.clone());
        Ok(adopted)
    }

    /// After a failed write nothing that this connection remembers can be trusted.
    fn invalidate_connection(&mut self) {
        self.connection = None;
        self.cache.clear();
    }

    /// A commit failed. What it was to write may be there or not; only looking tells.
    fn commit_failed(&mut self, error: rusqlite::Error) -> Error {
        let error = commit_fault(&self.location, error);
        self.in_doubt = error.certainty() == Certainty::Unknown;
        if self.in_doubt {
            // Where even that cannot be written, this process still knows.
            let _ = open::private_file(&open::beside(&self.path, IN_DOUBT));
        }
        self.invalidate_connection();
        error
    }

    /// An error that nobody expected may have left anything behind, an open transaction too.
    fn invalidate_after<T>(&mut self, result: &Result<T, Error>) {
        if matches!(result, Err(Error::Failed { .. })) {
            self.invalidate_connection();
        }
    }
}

impl SqliteStore {
    /// Opens a store in the file at `path`.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Self, Error> {
        let purpose = options.purpose;
        let waited = Arc::<AtomicU64>::default();
        let reader = Direct::open(path, options.clone(), Arc::clone(&waited))?;
        let writer = match purpose {
            Purpose::LongLived => Some(Writer::start(Direct::open(path, options, Arc::clone(&waited))?)?),
            Purpose::OneShot | Purpose::Recurring | Purpose::Inspect => None,
        };
        let location = path.display().to_string();
        let identity = Mutex::new(reader.file.identity().clone());
        Ok(Self {
            path: path.to_owned(),
            location,
            reader: Mutex::new(reader),
            writer,
            purpose,
            identity,
            waited,
        })
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn direct(&self) -> MutexGuard<'_, Direct> {
        // A panic while holding it leaves at worst an open transaction, which dies with its guard.
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs something on the writing connection, in its thread if there is one.
    fn write<T, F>(&self, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Direct) -> Result<T, Error> + Send + 'static,
    {
        if self.purpose == Purpose::Inspect {
            return Err(Error::ReadOnly { location: self.location.clone() });
        }
        let job = |direct: &mut Direct| {
            let result = job(direct);
            direct.invalidate_after(&result);
            result
        };
        match &self.writer {
            Some(writer) => writer.run(job),
            None => job(&mut self.direct()),
        }
    }
}

/// Refuses to write a database that a newer segno has changed, or that is no longer the one at its place. Asked in
/// every write transaction: whoever moves a database away holds its lock meanwhile.
fn check_form(connection: &Connection, location: &str, file: &open::OpenFile) -> Result<(), Error> {
    if file.has_moved() {
        return Err(Error::Busy { location: location.to_owned() });
    }
    if let Standing::Copy { of } = &file.identity().standing {
        return Err(Error::Copy { location: location.to_owned(), of: of.display().to_string() });
    }
    let found = schema::version(connection).map_err(|e| fault(location, e))?;
    if found > schema::SEALED {
        return Err(Error::Newer { location: location.to_owned(), found, known: schema::SEALED });
    }
    Ok(())
}

/// What an error of SQLite means. Before a commit nothing is written; [`commit_fault`] is for the commit itself.
pub(crate) fn fault(location: &str, error: rusqlite::Error) -> Error {
    let location = location.to_owned();
    let what = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            Error::Busy { location }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Damaged { location, what },
        Some(ErrorCode::DiskFull) => Error::Full { location },
        Some(ErrorCode::ReadOnly) => Error::ReadOnly { location },
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            Error::UnusableLocation { location, why: what }
        }
        _ => match error {
            // A stored value of the wrong type is damage, not a fault of the machine.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..) => Error::Damaged { location, what },
            _ => Error::Failed { location, what, certainty: Certainty::NotWritten },
        },
    }
}

/// A commit that failed may have happened: only reading it back tells.
fn commit_fault(location: &str, error: rusqlite::Error) -> Error {
    match fault(location, error) {
        busy @ Error::Busy { .. } => busy,
        other => Error::Failed {
            location: location.to_owned(),
            what: other.to_string(),
            certainty: Certainty::Unknown,
        },
    }
}
