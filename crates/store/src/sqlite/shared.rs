//! What sessions use of caps that they share, added up from their lines in the list of sessions.

use rusqlite::Connection;
use segno_core::SessionId;
use segno_core::State;
use segno_core::lately::UsedLately;
use serde::Deserialize;

use super::fault;
use crate::Error;
use crate::types::SharedQuestion;
use crate::types::SharedUse;

/// Of a session's line only this matters here. One that was written before there was such a thing has none.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    lately: UsedLately,
}

/// Reads a session's state.
pub(super) type Load<'a> = dyn Fn(SessionId) -> Result<State, Error> + 'a;

/// What is used, as it is in the store.
pub(super) fn read(
    connection: &Connection,
    place: &str,
    question: &SharedQuestion,
    load: &Load<'_>,
) -> Result<SharedUse, Error> {
    read_with(connection, place, question, &|_| None, load)
}

/// The same; of a session that is in hand, its state there counts.
pub(super) fn read_with<'a>(
    connection: &Connection,
    place: &str,
    question: &SharedQuestion,
    in_hand: &dyn Fn(SessionId) -> Option<&'a State>,
    load: &Load<'_>,
) -> Result<SharedUse, Error> {
    let mut shared = SharedUse::default();
    if let Some((project, since)) = &question.project {
        let sql = |e| fault(place, e);
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
    if let Some(session) = question.cap_from {
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
