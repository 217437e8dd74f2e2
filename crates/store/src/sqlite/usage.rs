//! How much room sessions take.

use rusqlite::Connection;

use super::fault;
use super::session;
use crate::Error;
use crate::types::Usage;

/// Every session with what it takes. Whoever asks wants all of them, so every row is looked at once.
pub(super) fn usage(connection: &Connection, location: &str) -> Result<Vec<Usage>, Error> {
    let sql = |e| fault(location, e);
    let mut sessions = connection.prepare("SELECT pk, id, project FROM sessions ORDER BY pk").map_err(sql)?;
    let mut journal = connection
        .prepare(
            "SELECT count(*), coalesce(sum(length(CAST(body AS BLOB)) + length(key) + length(kind) + 64), 0)
             FROM events WHERE id >= ?1 AND id < ?2",
        )
        .map_err(sql)?;
    let mut lists = connection
        .prepare(
            "SELECT (SELECT coalesce(sum(length(CAST(body AS BLOB)) + length(key) + 32), 0) FROM items
                     WHERE session = ?1)
                  + (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM states WHERE session = ?1)",
        )
        .map_err(sql)?;
    let mut texts = connection
        .prepare(
            "SELECT coalesce(sum(length(content)), 0) FROM blobs
             WHERE hash IN (SELECT hash FROM blob_refs WHERE session = ?1)",
        )
        .map_err(sql)?;
    let rows = sessions
        .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?)))
        .map_err(sql)?;
    let mut found = Vec::new();
    for row in rows {
        let (pk, id, project) = row.map_err(sql)?;
        // A name that cannot be read belongs to a damaged row; the doctor tells of it.
        let Ok(session) = id.parse() else { continue };
        let range = (session::event_id(pk, 0), session::event_id(pk + 1, 0));
        let (events, journal) =
            journal.query_row(range, |row| Ok((row.get(0)?, row.get(1)?))).map_err(sql)?;
        let lists = lists.query_row([pk], |row| row.get(0)).map_err(sql)?;
        let texts = texts.query_row([pk], |row| row.get(0)).map_err(sql)?;
        found.push(Usage { session, project, events, journal, lists, texts });
    }
    Ok(found)
}
