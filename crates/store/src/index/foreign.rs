//! The database of an agent: two questions are asked of it, and nothing is written.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::OpenFlags;

use crate::Error;
use crate::sqlite::fault;

/// A conversation in an agent's database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignConversation {
    /// Its id.
    pub id: String,
    /// The conversation whose sub-agent it is.
    pub parent: Option<String>,
    /// Where the agent worked.
    pub directory: Option<String>,
    /// When it was last changed, in whatever unit the agent has.
    pub changed: i64,
    /// The line that its lines begin with.
    pub line: String,
}

/// Opens it so that nothing in it can be changed. Without a log nobody writes it now, and not even a lock is taken.
fn open(path: &Path) -> Result<(Connection, String), Error> {
    let location = path.display().to_string();
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let quiet = std::fs::metadata(&log).map_or(true, |meta| meta.len() == 0);
    let escaped: String = location
        .bytes()
        .map(|byte| match byte {
            b'?' | b'#' | b'%' => format!("%{byte:02x}"),
            other => char::from(other).to_string(),
        })
        .collect();
    let name = match location.is_ascii() && quiet {
        true => format!("file:{escaped}?immutable=1"),
        false => location.clone(),
    };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(name, flags).map_err(|e| fault(&location, e))?;
    connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(|e| fault(&location, e))?;
    Ok((connection, location))
}

/// The conversations of a database.
///
/// # Errors
/// If it cannot be read, or has another form.
pub fn foreign_conversations(path: &Path, question: &str) -> Result<Vec<ForeignConversation>, Error> {
    let (connection, location) = open(path)?;
    let sql = |e| fault(&location, e);
    let mut ask = connection.prepare(question).map_err(sql)?;
    let found = ask
        .query_map([], |row| {
            Ok(ForeignConversation {
                id: row.get(0)?,
                parent: row.get(1)?,
                directory: row.get(2)?,
                changed: row.get(3)?,
                line: row.get(4)?,
            })
        })
        .map_err(sql)?;
    found.collect::<rusqlite::Result<_>>().map_err(sql)
}

/// Gives the lines of a conversation, one by one.
///
/// # Errors
/// If it cannot be read, or whoever takes the lines cannot go on.
pub fn foreign_lines<E: From<Error>>(
    path: &Path,
    question: &str,
    id: &str,
    mut take: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let (connection, location) = open(path)?;
    let sql = |e| fault(&location, e);
    let mut ask = connection.prepare(question).map_err(sql)?;
    let mut rows = ask.query([id]).map_err(sql)?;
    while let Some(row) = rows.next().map_err(sql)? {
        let line: Option<String> = row.get(0).map_err(sql)?;
        if let Some(line) = line {
            take(&line)?;
        }
    }
    Ok(())
}
