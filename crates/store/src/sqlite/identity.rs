//! Which store a database is, and whether it is the store itself or a copy of it.
//!
//! The database says which file it is in. A file that is not that one may be the store all the same: it was moved, or
//! restored from a copy. It is a copy as long as the file that it names is still there. A copy is not written to, and
//! nothing that belongs to the store is touched on its behalf, until somebody makes it a store of its own.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::TransactionBehavior;
use segno_core::StoreId;

use super::fault;
use crate::Error;
use crate::types::Identity;
use crate::types::Standing;

/// A file, told apart from others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileIdentity {
    path: PathBuf,
    device: i64,
    inode: i64,
}

impl FileIdentity {
    /// Where a file is now.
    fn of(path: &Path) -> Option<Self> {
        let path = std::fs::canonicalize(path).ok()?;
        let meta = std::fs::metadata(&path).ok()?;
        // SQLite's numbers have a sign; what matters is only whether two are the same.
        Some(Self { path, device: meta.dev().cast_signed(), inode: meta.ino().cast_signed() })
    }

    /// The numbers of devices change when a machine is started anew, so a file that kept its name need not keep those.
    fn is_same_file(&self, other: &Self) -> bool {
        self.inode == other.inode && (self.device == other.device || self.path == other.path)
    }
}

/// Who a database is; nothing is noted.
pub(super) fn look(connection: &Connection, path: &Path, location: &str) -> Result<Identity, Error> {
    let (id, noted) = read(connection, location)?;
    Ok(Identity { id, standing: standing(id, noted.as_ref(), FileIdentity::of(path).as_ref()) })
}

/// Reads who a database is, and notes where it is if that has changed.
pub(super) fn settle(connection: &mut Connection, path: &Path, location: &str) -> Result<Identity, Error> {
    let sql = |e| fault(location, e);
    let (id, noted) = read(connection, location)?;
    let here = FileIdentity::of(path);
    let identity = Identity { id, standing: standing(id, noted.as_ref(), here.as_ref()) };
    let Some(here) = here.filter(|here| noted.as_ref() != Some(here)) else { return Ok(identity) };
    // What a newer program keeps there is not ours to change.
    let is_newer = super::schema::version(connection).map_err(sql)? > super::schema::SEALED;
    if is_newer || matches!(identity.standing, Standing::Copy { .. }) {
        return Ok(identity);
    }
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    if read(&tx, location)?.1 != noted {
        // Another process has noted it meanwhile, and says so.
        return Ok(Identity { id, standing: Standing::Original });
    }
    write(&tx, id, &here).map_err(sql)?;
    tx.commit().map_err(sql)?;
    Ok(identity)
}

/// What a file is that says `noted` of where the store is, and is `here` itself.
fn standing(id: StoreId, noted: Option<&FileIdentity>, here: Option<&FileIdentity>) -> Standing {
    let (Some(noted), Some(here)) = (noted, here) else { return Standing::Original };
    if noted.is_same_file(here) {
        return Standing::Original;
    }
    let there = FileIdentity::of(&noted.path).filter(|there| !there.is_same_file(here));
    let is_still_there = there.is_some_and(|there| there.is_same_file(noted) || !is_another(&noted.path, id));
    if is_still_there {
        Standing::Copy { of: noted.path.clone() }
    } else {
        Standing::Restored { from: noted.path.clone() }
    }
}

/// Whether a file is known to be another store than this. One that cannot be read may be the same.
fn is_another(path: &Path, id: StoreId) -> bool {
    let location = path.display().to_string();
    let found = super::open::peek(path, &location).and_then(|connection| read(&connection, &location));
    found.is_ok_and(|(found, _)| found != id)
}

/// Makes a copy a store of its own.
pub(super) fn adopt(connection: &mut Connection, path: &Path, location: &str) -> Result<Identity, Error> {
    let sql = |e| fault(location, e);
    let here = FileIdentity::of(path).ok_or_else(|| Error::NoStore(location.to_owned()))?;
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    let fresh: String =
        tx.query_row("SELECT lower(hex(randomblob(16)))", [], |row| row.get(0)).map_err(sql)?;
    let id = parse(&fresh, location)?;
    write(&tx, id, &here).map_err(sql)?;
    tx.commit().map_err(sql)?;
    Ok(Identity { id, standing: Standing::Original })
}

/// What a database that is built anew says of itself.
pub(super) struct Kept {
    id: StoreId,
    seat: FileIdentity,
}

impl Kept {
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        write(connection, self.id, &self.seat)
    }
}

/// The identity that passes from the damaged database at `path`, read as `old`, to the new one at `fresh`, which will
/// take its place: the store stays the store, and a copy a copy. One that cannot be read is not kept.
pub(super) fn kept(
    old: &Connection,
    path: &Path,
    fresh: &Path,
    location: &str,
) -> Result<Option<Kept>, Error> {
    const FIRST_WITH_IDENTITY: u32 = 3;
    if super::schema::version(old).map_err(|e| fault(location, e))? < FIRST_WITH_IDENTITY {
        return Ok(None);
    }
    let (id, noted) = match read(old, location) {
        Ok(found) => found,
        Err(Error::Damaged { .. }) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    let is_itself = noted
        .as_ref()
        .is_none_or(|noted| FileIdentity::of(path).is_some_and(|damaged| noted.is_same_file(&damaged)));
    // The file keeps its number when it is moved to its place.
    let seat = if is_itself { FileIdentity::of(fresh) } else { noted };
    Ok(seat.map(|seat| Kept { id, seat }))
}

/// A database's row about itself: its id, and the path, device and number of its file.
type Noted = (String, Option<String>, Option<i64>, Option<i64>);

fn read(connection: &Connection, location: &str) -> Result<(StoreId, Option<FileIdentity>), Error> {
    let row: Option<Noted> = connection
        .query_row("SELECT id, path, device, inode FROM identity WHERE one = 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .optional()
        .map_err(|e| fault(location, e))?;
    let missing =
        || Error::Damaged { location: location.to_owned(), what: "it does not say which store it is".into() };
    let (id, path, device, inode) = row.ok_or_else(missing)?;
    let seat = path.zip(device).zip(inode).map(|((path, device), inode)| FileIdentity {
        path: PathBuf::from(path),
        device,
        inode,
    });
    Ok((parse(&id, location)?, seat))
}

fn parse(id: &str, location: &str) -> Result<StoreId, Error> {
    id.parse().map_err(|_| Error::Damaged {
        location: location.to_owned(),
        what: "what it says of which store it is cannot be read".to_owned(),
    })
}

fn write(connection: &Connection, id: StoreId, seat: &FileIdentity) -> rusqlite::Result<()> {
    connection
        .execute(
            "UPDATE identity SET id = ?1, path = ?2, device = ?3, inode = ?4 WHERE one = 1",
            (id.simple(), seat.path.to_string_lossy(), seat.device, seat.inode),
        )
        .map(drop)
}
