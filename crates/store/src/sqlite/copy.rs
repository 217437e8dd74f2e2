//! Copies of a database: backups, and the one that is made before its form changes.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::OpenFlags;

use super::fault;
use super::open::beside;
use super::upkeep::integrity;
use crate::Error;
use crate::error::Certainty;

/// How many copies of one form are looked at before that is an error.
const MOST_COPIES: u32 = 1_000;

/// Copies a database before it is brought to the form `to`. A copy that is there counts only if it is of this database
/// as it is now: one of an earlier time is kept, and the new one goes beside it.
pub(super) fn before_form(
    connection: &Connection,
    path: &Path,
    location: &str,
    to: u32,
) -> Result<(), Error> {
    // One moment for the look and the copy.
    let moment = connection.unchecked_transaction().map_err(|e| fault(location, e))?;
    let now = heads(&moment).map_err(|e| fault(location, e))?;
    for number in 1..=MOST_COPIES {
        let suffix = if number == 1 { String::new() } else { format!(".{number}") };
        let copy = beside(path, &format!(".before-form-{to}{suffix}"));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let same = || Connection::open_with_flags(&copy, flags).and_then(|there| heads(&there));
        if !copy.exists() {
            match backup(&moment, location, &copy) {
                // Another process may have been quicker, with this database or another one that was there.
                Err(why) if !copy.exists() => return Err(why),
                Err(_) => {}
                Ok(_) => return Ok(()),
            }
        }
        if same().is_ok_and(|there| there == now) {
            return Ok(());
        }
    }
    Err(Error::UnusableLocation {
        location: location.to_owned(),
        why: "there are too many copies of earlier forms beside it".to_owned(),
    })
}

/// The newest event of every session: two databases that agree in it hold the same journals.
fn heads(connection: &Connection) -> rusqlite::Result<Vec<(String, u64, Vec<u8>)>> {
    let mut ask = connection.prepare("SELECT id, head_seq, head_hash FROM sessions ORDER BY id")?;
    let rows = ask.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

/// Gives a finished copy its name. If somebody made a file of that name meanwhile, theirs stays.
fn put_in_place(from: &Path, to: &Path) -> std::io::Result<()> {
    use rustix::fs::CWD;
    match rustix::fs::renameat_with(CWD, from, CWD, to, rustix::fs::RenameFlags::NOREPLACE) {
        // Not every file system can; a hard link fails in the same way where that can be had.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::hard_link(from, to),
        other => Ok(other?),
    }
}

/// Copies the database as it is at one moment, while others go on writing. The copy is whole or not there.
pub(super) fn backup(connection: &Connection, location: &str, to: &Path) -> Result<u64, Error> {
    let failed = |what: String| Error::Failed {
        location: location.to_owned(),
        what,
        certainty: Certainty::NotWritten,
    };
    let io = |why: std::io::Error| Error::UnusableLocation {
        location: to.display().to_string(),
        why: why.to_string(),
    };
    if to.exists() {
        return Err(Error::UnusableLocation {
            location: to.display().to_string(),
            why: "it exists already".to_owned(),
        });
    }
    let partial = Partial::make(to).map_err(io)?;
    copy_into(connection, location, &partial.path)?;
    partial.file.sync_all().map_err(io)?;
    let bytes = partial.file.metadata().map_err(io)?.len();
    put_in_place(&partial.path, to).map_err(io)?;
    drop(partial);
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(parent).and_then(|dir| dir.sync_all()).map_err(|why| failed(why.to_string()))?;
    Ok(bytes)
}

/// A copy in the making, gone when this is. What a killed process left behind is cleared away by the next.
struct Partial {
    path: PathBuf,
    file: std::fs::File,
}

impl Partial {
    fn make(to: &Path) -> std::io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self::clear(to);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Each has its own: two that copy to the same place must not write into one file.
        let path = beside(to, &format!(".partial-{}-{count}", std::process::id()));
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { path, file })
    }

    /// Removes those whose makers are gone.
    fn clear(to: &Path) {
        let (Some(parent), Some(name)) = (to.parent(), to.file_name()) else { return };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let Ok(entries) = std::fs::read_dir(parent) else { return };
        for entry in entries.flatten() {
            let found = entry.file_name();
            let maker = found
                .to_str()
                .and_then(|found| found.strip_prefix(name.to_str()?)?.strip_prefix(".partial-"))
                .and_then(|rest| rest.split('-').next()?.parse().ok())
                .filter(|pid| *pid > 0)
                .and_then(rustix::process::Pid::from_raw);
            if let Some(maker) = maker
                && rustix::process::test_kill_process(maker) == Err(rustix::io::Errno::SRCH)
            {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn copy_into(connection: &Connection, location: &str, to: &Path) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    let mut copy = super::open::scratch(to, location)?;
    {
        // Reading once fixes the moment that is copied. Otherwise every write of another process would make the copy
        // begin anew, and beside a busy writer it would never end.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(sql)?;
        let backup = rusqlite::backup::Backup::new(connection, &mut copy).map_err(sql)?;
        backup.run_to_completion(2_000, Duration::from_millis(2), None).map_err(sql)?;
    }
    // Not a write-ahead-log database, so that the copy is one file.
    let mode: String =
        copy.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0)).map_err(sql)?;
    let problems = integrity(&copy, location, false)?;
    if mode != "delete" || !problems.is_empty() {
        let what =
            problems.into_iter().next().unwrap_or_else(|| format!("the copy's journal mode is {mode}"));
        return Err(Error::Damaged { location: to.display().to_string(), what });
    }
    copy.close().map_err(|(_, e)| sql(e))
}
