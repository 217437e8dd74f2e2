//! The one place that opens a database, and makes sure that it is what we rely on.

use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use rusqlite::Connection;
use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;

use segno_core::StoreId;

use super::fault;
use super::schema;
use crate::Error;
use crate::Purpose;
use crate::types::Identity;
use crate::types::Standing;

/// Before this version SQLite could corrupt a database that several processes write (WAL reset).
const OLDEST_SQLITE: i32 = 3_051_003;
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= OLDEST_SQLITE, "the bundled SQLite is too old");

/// One page of the smallest size.
const SMALLEST_DATABASE: u64 = 512;

/// How many pages the log may hold before a process that stays copies them into the database: 16 MiB.
pub(super) const LOG_PAGES: u32 = 4_096;
/// The same while others want to write: they wait while it is copied, so that is done in smaller steps.
pub(super) const FEW_PAGES: u32 = 1_024;
/// How much of the database a process that stays keeps in memory, in KiB; SQLite wants it negative. Not more than it needs for
/// what it appends to: the system keeps the file in memory anyway, and a driver that reads a long session would hold all of it.
const CACHE_KIB: i32 = -2_048;

/// File systems on which locks or shared memory cannot be relied on.
const NETWORK_FILE_SYSTEMS: &[(i64, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x5346_414F, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
    (0x0BD0_0BD0, "Lustre"),
    (0x0116_1970, "GFS2"),
    // Also what virtiofs and shared folders of virtual machines say they are.
    (0x6573_5546, "FUSE"),
    (0x786F_4256, "vboxsf"),
];

/// SQLite sets aside one block of each 4 KiB of the memory that processes share; with smaller blocks the rest is taken
/// when it is touched, and a full disk ends the process.
const SHARED_PAGE: u64 = 4_096;
/// How much room there must be then.
const SHARED_ROOM: u64 = 256 * 1024;

/// Which file a connection was opened on: a name can come to mean another one.
#[derive(Debug)]
pub(super) struct OpenFile {
    path: PathBuf,
    file: Option<(u64, u64)>,
    identity: Identity,
}

impl OpenFile {
    fn at(path: &Path) -> Self {
        // Until it is known which store this is.
        let identity = Identity { id: StoreId::new(uuid::Uuid::nil()), standing: Standing::Original };
        Self { path: path.to_owned(), file: identity_of(path), identity }
    }

    /// Which store it is.
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// It became a store of its own.
    pub(super) fn becomes(&mut self, identity: Identity) {
        self.identity = identity;
    }

    /// Whether its path is another file's now, or nobody's. Writing on would be writing into nowhere.
    pub(super) fn has_moved(&self) -> bool {
        identity_of(&self.path) != self.file
    }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Opens the database for what the options say, making it first if there is none and `create` allows it.
pub(super) fn open(
    path: &Path,
    create: bool,
    options: &crate::OpenOptions,
) -> Result<(Connection, OpenFile), Error> {
    let purpose = options.purpose;
    let location = path.display().to_string();
    check_sqlite()?;
    if purpose == Purpose::Inspect {
        return inspect(path, &location);
    }
    super::busy::patience_of(options);
    let begun = Instant::now();
    loop {
        match open_once(path, &location, purpose, create) {
            // Some of the locks that opening takes are not waited for by SQLite: two that open a new database.
            Err(Error::Busy { .. }) if !super::busy::left(begun.elapsed()).is_zero() => {
                std::thread::sleep(Duration::from_millis(2));
            }
            other => return other,
        }
    }
}

fn open_once(
    path: &Path,
    location: &str,
    purpose: Purpose,
    create: bool,
) -> Result<(Connection, OpenFile), Error> {
    let bad = |why: String| Error::UnusableLocation { location: location.to_owned(), why };
    if super::salvage::is_under_way(path) {
        let what = "saving it was cut short, and must be done again first".to_owned();
        return Err(Error::Damaged { location: location.to_owned(), what });
    }
    let mode = match std::fs::symlink_metadata(path) {
        Ok(meta) => {
            check_directory(path, location)?;
            check_file(&meta, path, location)?;
            Some(meta.mode())
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound && create => {
            make_file(path, location)?;
            None
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::NoStore(location.to_owned()));
        }
        Err(why) => return Err(bad(why.to_string())),
    };
    refuse_network(path, location)?;
    // Before SQLite sees it: it gives the files beside a database the database's own mode.
    if mode.is_some_and(|mode| mode & 0o077 != 0) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .map_err(|why| bad(format!("it can be read by others, and that cannot be changed: {why}")))?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(|e| fault(location, e))?;
    let mut file = OpenFile::at(path);
    super::busy::wait(&mut connection).map_err(|e| fault(location, e))?;
    if let Err(why) = check_ours(&connection, location) {
        // What is not ours is left as it was.
        if let Some(mode) = mode {
            let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o7777));
        }
        return Err(why);
    }
    settle(&mut connection, location, purpose)?;
    let found = schema::version(&connection).map_err(|e| fault(location, e))?;
    if found < schema::NEWEST {
        bring_up(&mut connection, path, location, found)?;
    }
    file.becomes(super::identity::settle(&mut connection, path, location)?);
    Ok((connection, file))
}

/// Another program's database must not get our tables.
fn check_ours(connection: &Connection, location: &str) -> Result<(), Error> {
    let sql = |e| fault(location, e);
    // The last process to close a database would copy the whole log into it and delete the log: slow for a short
    // process, a hazard when another is just opening it, and not ours to do if the database is not ours.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(sql)?;
    let is_marked = || -> Result<bool, Error> {
        let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sql)?;
        Ok(id == schema::APPLICATION_ID)
    };
    if is_marked()? {
        return Ok(());
    }
    let (tables, ours): (u64, bool) = connection
        .query_row("SELECT count(*), coalesce(max(name = 'blob_refs'), 0) FROM sqlite_schema", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .map_err(sql)?;
    match (tables, ours) {
        (0, _) => Ok(()),
        // Somebody made it between the two looks.
        _ if is_marked()? => Ok(()),
        (_, true) => {
            let what = "its header does not say that it is ours, but its tables do".to_owned();
            Err(Error::Damaged { location: location.to_owned(), what })
        }
        (_, false) => Err(Error::UnusableLocation {
            location: location.to_owned(),
            why: "it is the database of another program".to_owned(),
        }),
    }
}

fn check_sqlite() -> Result<(), Error> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        let why =
            format!("SQLite {} can corrupt it; 3.51.3 is the oldest that does not", rusqlite::version());
        return Err(Error::UnusableLocation { location: "this machine".to_owned(), why });
    }
    Ok(())
}

/// What we rely on is set and then read back: a setting that did not take is an error, not a hope.
fn settle(connection: &mut Connection, location: &str, purpose: Purpose) -> Result<(), Error> {
    let bad = |what: String| Error::UnusableLocation { location: location.to_owned(), why: what };
    let sql = |e| fault(location, e);
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(sql)?;
    if mode != "wal" {
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)).map_err(sql)?;
        if mode != "wal" {
            return Err(bad(format!("the journal mode is {mode}, and write-ahead logging cannot be had")));
        }
    }
    // Each statement takes as long as it takes to compile it: what is so already is only looked at.
    if cfg!(target_os = "macos") {
        connection.execute_batch("PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON;").map_err(sql)?;
    }
    for (pragma, wanted) in [("synchronous", 2), ("mmap_size", 0)] {
        if number_of(connection, pragma).map_err(sql)? == wanted {
            continue;
        }
        connection.pragma_update(None, pragma, wanted).map_err(sql)?;
        let got = number_of(connection, pragma).map_err(sql)?;
        if got != wanted {
            return Err(bad(format!("{pragma} is {got}, not {wanted}")));
        }
    }
    if connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(sql)? {
        return Err(bad("trusted_schema cannot be switched off".to_owned()));
    }
    connection.pragma_update(None, "cell_size_check", true).map_err(sql)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(sql)?;
    let pages = match purpose {
        // Nobody would know afterwards what was copied: only a log that is cut is short for whoever opens the store next.
        Purpose::OneShot | Purpose::Recurring | Purpose::Inspect => 0,
        // A process that stays writes the same pages again and again: it copies them to their place less often.
        Purpose::LongLived => LOG_PAGES,
    };
    copy_log_after(connection, pages).map_err(sql)?;
    if purpose == Purpose::LongLived {
        connection.pragma_update(None, "cache_size", CACHE_KIB).map_err(sql)?;
    }
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// The log is copied into the database by whoever commits when it holds so many pages.
pub(super) fn copy_log_after(connection: &Connection, pages: u32) -> rusqlite::Result<()> {
    connection.pragma_update(None, "wal_autocheckpoint", pages)
}

/// What a pragma says. Where memory mapping is compiled out the question has no answer.
fn number_of(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    match connection.pragma_query_value(None, pragma, |row| row.get(0)) {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(0),
        other => other,
    }
}

/// An older database is copied before its form changes, and is left alone while somebody works with it.
fn bring_up(connection: &mut Connection, path: &Path, location: &str, found: u32) -> Result<(), Error> {
    if found > 0 {
        let drivers = schema::drivers(connection, location)?;
        if drivers > 0 {
            return Err(Error::DriversAlive { location: location.to_owned(), to: schema::NEWEST, drivers });
        }
        super::copy::before_form(connection, path, location, schema::NEWEST)?;
    }
    schema::migrate(connection, location, schema::NEWEST)
}

fn inspect(path: &Path, location: &str) -> Result<(Connection, OpenFile), Error> {
    if !path.exists() {
        return Err(Error::NoStore(location.to_owned()));
    }
    let connection = peek(path, location)?;
    let mut file = OpenFile::at(path);
    // An older one, or a damaged one, may not say.
    if let Ok(identity) = super::identity::look(&connection, path, location) {
        file.becomes(identity);
    }
    Ok((connection, file))
}

/// A look at a database that takes no lock and leaves no file beside it, so that it works on read-only media. What is in
/// its log only is not seen.
pub(super) fn peek(path: &Path, location: &str) -> Result<Connection, Error> {
    let readable = path.to_str().ok_or_else(|| Error::UnusableLocation {
        location: location.to_owned(),
        why: "its path is not valid UTF-8".to_owned(),
    })?;
    let encoded = readable.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{encoded}?immutable=1"), flags)
        .map_err(|e| fault(location, e))?;
    connection
        .execute_batch(
            "PRAGMA trusted_schema=OFF; PRAGMA mmap_size=0; PRAGMA cell_size_check=ON; PRAGMA query_only=ON;",
        )
        .map_err(|e| fault(location, e))?;
    Ok(connection)
}

/// What can be seen without opening the file. Only SQLite may open it: closing it once more would let go of every lock
/// that this process holds on it.
fn check_file(meta: &std::fs::Metadata, path: &Path, location: &str) -> Result<(), Error> {
    let bad = |why: &str| Error::UnusableLocation { location: location.to_owned(), why: why.to_owned() };
    if meta.file_type().is_symlink() {
        return Err(bad("it is a symbolic link"));
    }
    if !meta.is_file() {
        return Err(bad("it is not a file"));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(bad("it belongs to another user"));
    }
    if meta.len() == 0 && std::fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() > 0) {
        return Err(Error::Damaged {
            location: location.to_owned(),
            what: "it is empty, but its log is not".to_owned(),
        });
    }
    // SQLite takes a file of one byte for an empty one, and would write over it.
    if (1..SMALLEST_DATABASE).contains(&meta.len()) {
        let what = "it is too small for a database".to_owned();
        return Err(Error::Damaged { location: location.to_owned(), what });
    }
    Ok(())
}

/// The database's own file is made first, private whatever the umask: SQLite gives its log the same mode.
fn make_file(path: &Path, location: &str) -> Result<(), Error> {
    let bad =
        |why: std::io::Error| Error::UnusableLocation { location: location.to_owned(), why: why.to_string() };
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        segno_files::make_directory(parent).map_err(bad)?;
    }
    check_directory(path, location)?;
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file.set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(bad),
        // Another process was quicker, and made it just so.
        Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(why) => Err(bad(why)),
    }
}

/// A new file that only its owner can read; one that is there already will do.
pub(super) fn private_file(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Whoever may write the directory may replace the database in it.
fn check_directory(path: &Path, location: &str) -> Result<(), Error> {
    let bad = |why: String| Error::UnusableLocation { location: location.to_owned(), why };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let meta = std::fs::metadata(parent).map_err(|why| bad(why.to_string()))?;
    if meta.mode() & 0o022 != 0 && meta.mode() & 0o1000 == 0 {
        return Err(bad(format!("others may write the directory {}", parent.display())));
    }
    Ok(())
}

/// Refuses where a store cannot be kept safely.
fn refuse_network(path: &Path, location: &str) -> Result<(), Error> {
    let Ok(stat) = rustix::fs::statfs(path) else { return Ok(()) };
    let free = stat.f_bavail.saturating_mul(block_size(stat.f_bsize));
    if block_size(stat.f_bsize) < SHARED_PAGE && free < SHARED_ROOM {
        return Err(Error::Full { location: location.to_owned() });
    }
    match network(number(stat.f_type)) {
        Some(name) => Err(Error::UnusableLocation {
            location: location.to_owned(),
            why: format!("it is on a network or shared file system ({name}), where file locks may not hold"),
        }),
        None => Ok(()),
    }
}

fn block_size(size: impl TryInto<u64>) -> u64 {
    size.try_into().unwrap_or(SHARED_PAGE)
}

/// The number of a file system. Machines differ in its type, and in whether its 32 bits have a sign.
fn number(kind: impl TryInto<i64>) -> i64 {
    kind.try_into().unwrap_or(0) & 0xFFFF_FFFF
}

/// The name of a network file system with this number.
fn network(kind: i64) -> Option<&'static str> {
    NETWORK_FILE_SYSTEMS.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

/// A file that SQLite keeps beside the database.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A database of our own making that nobody else has: a copy, or one that is being rebuilt.
pub(super) fn scratch(path: &Path, location: &str) -> Result<Connection, Error> {
    try_scratch(path).map_err(|e| fault(location, e))
}

/// The same, with SQLite's own word for what went wrong.
pub(super) fn try_scratch(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch("PRAGMA synchronous=FULL; PRAGMA trusted_schema=OFF;")?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        for (magic, name) in [
            (0x6969, "NFS"),
            (0xFF53_4D42, "CIFS"),
            (0x0102_1997, "9P"),
            (0x6573_5546, "FUSE"),
            (0x786F_4256, "vboxsf"),
        ] {
            assert_eq!(network(magic), Some(name));
        }
        // ext4, XFS, Btrfs, tmpfs, ZFS, overlay.
        for local in [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x2FC1_2FC1, 0x794C_7630] {
            assert_eq!(network(local), None);
        }
        assert_eq!(network(number(0xFF53_4D42_u32)), Some("CIFS"));
        assert_eq!(network(number(0xFF53_4D42_u32.cast_signed())), Some("CIFS"));
        assert_eq!(network(number(u64::MAX)), None);
    }
}
