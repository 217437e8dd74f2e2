//! What a session has to know of others: which there are, and what they use of caps that they share, added up from their
//! lines in the list of sessions.

use rusqlite::Connection;
use segno_core::SessionId;
use segno_core::State;
use segno_core::lately::UsedLately;
use serde::Deserialize;

use super::fault;
use crate::Error;
use crate::types::Filter;
use crate::types::OthersQuery;
use crate::types::OthersView;

/// Of a session's line only this matters here. One that was written before there was such a thing has none.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    lately: UsedLately,
}

/// Reads a session's state.
pub(super) type Load<'a> = dyn Fn(SessionId) -> Result<State, Error> + 'a;

/// What is asked for, as it is in the store.
pub(super) fn read(
    connection: &Connection,
    location: &str,
    query: &OthersQuery,
    load: &Load<'_>,
) -> Result<OthersView, Error> {
    let used = read_with(connection, location, query, &|_| None, load)?;
    let Some(filter) = &query.sessions else { return Ok(used) };
    let filter = Filter { limit: None, ..filter.clone() };
    Ok(OthersView { sessions: super::pages::list(connection, location, &filter)?.sessions, ..used })
}

/// What is used of caps that are shared; of a session that is in hand, its state there counts.
pub(super) fn read_with<'a>(
    connection: &Connection,
    location: &str,
    query: &OthersQuery,
    in_hand: &dyn Fn(SessionId) -> Option<&'a State>,
    load: &Load<'_>,
) -> Result<OthersView, Error> {
    let mut shared = OthersView::default();
    if let Some((project, since)) = &query.project {
        let sql = |e| fault(location, e);
        let mut ask = connection
            .prepare_cached("SELECT id, summary FROM sessions WHERE project = ?1 AND updated_us >= ?2")
            .map_err(sql)?;
        let rows = ask
            .query_map((project, since.as_micros()), |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })
            .map_err(sql)?;
        for row in rows {
            let (id, summary) = row.map_err(sql)?;
            let id: Option<SessionId> = id.parse().ok();
            let lately = match (id.and_then(in_hand), serde_json::from_str::<Line>(&summary), id) {
                (Some(state), ..) => state.lately.clone(),
                (None, Ok(line), _) => line.lately,
                // A line that cannot be read does not make what was used unused: the journal tells it.
                (None, Err(_), Some(id)) => load(id)?.lately,
                // Nothing of ours is called so.
                (None, Err(_), None) => continue,
            };
            shared.project = shared.project.plus(&lately.since(*since));
        }
    }
    if let Some(session) = query.cap_from {
        shared.cap_from = match in_hand(session) {
            Some(state) => Some(Box::new(state.clone())),
            None => match load(session) {
                Ok(state) => Some(Box::new(state)),
                // It is in another store, or was removed.
                Err(Error::NotFound(_)) => None,
                Err(why) => return Err(why),
            },
        };
    }
    Ok(shared)
}
