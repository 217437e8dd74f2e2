//! Reading events back with their chain checked.

use rusqlite::Connection;
use rusqlite::OptionalExtension;

use super::fault;
use super::session;
use super::session::Row;
use crate::Error;
use crate::chain;
use crate::types::EventRow;
use crate::types::StoredEvent;

/// How many missing events in a row are told one by one: a damaged number of events must cost neither memory nor time.
const MISSING_AT_ONCE: u64 = 1_000;

/// The hashes that the next event may be chained to. They differ only after an event that is not what was written:
/// what it is stored with may be right and its content wrong, or the other way round. None if nothing is known:
/// after a gap the chain is taken up again at the next event's own hash.
#[derive(Default)]
struct Before {
    stored: Option<[u8; 32]>,
    computed: Option<[u8; 32]>,
}

impl Before {
    fn start(row: &Row) -> Self {
        Self { stored: Some(chain::start(&row.uid)), computed: None }
    }

    /// Whether an event fits; what follows is chained to it.
    fn take(&mut self, stored: &StoredEvent) -> bool {
        let link = stored.link();
        if let Some(seal) = stored.seal {
            let mut candidates = [self.stored, self.computed].into_iter().flatten().peekable();
            let unknown = candidates.peek().is_none();
            let fits = candidates.any(|before| chain::seal(&before, &stored.hash, &link) == seal);
            *self = Self { stored: Some(stored.hash), computed: None };
            return fits || unknown;
        }
        let mut candidates = [self.stored, self.computed].into_iter().flatten().peekable();
        let unknown = candidates.peek().is_none();
        let mut computed = None;
        let fits = candidates.any(|before| {
            let hash = chain::next(&before, &link);
            computed.get_or_insert(hash);
            hash == stored.hash
        });
        *self = Self { stored: Some(stored.hash), computed: if fits { None } else { computed } };
        fits || unknown
    }
}

/// Events after one with their chain checked. Damaged ones are told apart, never left out.
pub(super) fn events(
    connection: &Connection,
    location: &str,
    row: &Row,
    after: u64,
    limit: usize,
) -> Result<Vec<EventRow>, Error> {
    if limit == 0 || after >= row.head_seq {
        return Ok(Vec::new());
    }
    let sql = |e| fault(location, e);
    let mut before = before(connection, location, row, after)?;
    let mut statement = connection
        .prepare_cached(
            "SELECT id, key, at_us, run, epoch, kind, version, body, hash FROM events
             WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3",
        )
        .map_err(sql)?;
    let (from, to) = (session::event_id(row.pk, after), session::event_id(row.pk, row.head_seq));
    let mut rows = statement.query((from, to, i64::try_from(limit).unwrap_or(i64::MAX))).map_err(sql)?;
    let mut found = Vec::new();
    let mut expected = after + 1;
    loop {
        let next = match rows.next() {
            Ok(Some(next)) => next,
            Ok(None) => break,
            // A page of this session cannot be read; what came before it can.
            Err(e) => match fault(location, e) {
                Error::Damaged { what, .. } => {
                    found.push(EventRow::Damaged { seq: expected, what });
                    return Ok(found);
                }
                other => return Err(other),
            },
        };
        let seq = session::seq_of(next.get(0).map_err(sql)?);
        if expected < seq {
            before = Before::default();
        }
        if tell_missing(&mut found, &mut expected, seq, limit) {
            return Ok(found);
        }
        match read_event(next, seq) {
            Ok(stored) if before.take(&stored) => found.push(EventRow::Whole(stored)),
            Ok(_) => {
                found.push(EventRow::Damaged { seq, what: "its hash does not fit its content".to_owned() });
            }
            Err(e) => {
                before = Before::default();
                found.push(EventRow::Damaged { seq, what: e.to_string() });
            }
        }
        expected = seq + 1;
    }
    tell_missing(&mut found, &mut expected, row.head_seq + 1, limit);
    Ok(found)
}

/// Adds the events before `seq` that are not there. True if there is no room for more.
fn tell_missing(found: &mut Vec<EventRow>, expected: &mut u64, seq: u64, limit: usize) -> bool {
    // A number that was made up stands for more events than anybody can list.
    let gap = seq.saturating_sub(*expected);
    if gap > MISSING_AT_ONCE && found.len() < limit {
        let what = format!("it and the {} before it are missing", gap - 1);
        found.push(EventRow::Damaged { seq: seq - 1, what });
        *expected = seq;
        return found.len() >= limit;
    }
    while *expected < seq && found.len() < limit {
        found.push(EventRow::Damaged { seq: *expected, what: "it is missing".to_owned() });
        *expected += 1;
    }
    found.len() >= limit || *expected < seq
}

/// What the event after `seq` is chained to.
fn before(connection: &Connection, location: &str, row: &Row, seq: u64) -> Result<Before, Error> {
    if seq == 0 {
        return Ok(Before::start(row));
    }
    let mut before = match seq {
        1 => Before::start(row),
        _ => Before { stored: session::hash_at(connection, location, row.pk, seq - 1)?, computed: None },
    };
    let found = connection
        .prepare_cached(
            "SELECT id, key, at_us, run, epoch, kind, version, body, hash FROM events WHERE id = ?1",
        )
        .and_then(|mut ask| {
            ask.query_row([session::event_id(row.pk, seq)], |row| read_event(row, seq)).optional()
        });
    match found.map_err(|e| fault(location, e)) {
        Ok(Some(stored)) => {
            before.take(&stored);
            Ok(before)
        }
        Ok(None) | Err(Error::Damaged { .. }) => Ok(Before::default()),
        Err(other) => Err(other),
    }
}

pub(super) fn read_event(row: &rusqlite::Row<'_>, seq: u64) -> rusqlite::Result<StoredEvent> {
    let Hashes { hash, seal } = row.get(8)?;
    Ok(StoredEvent {
        seq,
        key: row.get(1)?,
        at: segno_core::Timestamp::from_micros(row.get(2)?),
        run: row.get(3)?,
        epoch: row.get(4)?,
        kind: row.get(5)?,
        version: row.get(6)?,
        body: row.get(7)?,
        hash,
        seal,
    })
}

/// What an event is stored with: its hash, and behind it the seal if texts were taken out of it.
pub(super) struct Hashes {
    pub(super) hash: [u8; 32],
    pub(super) seal: Option<[u8; 32]>,
}

impl rusqlite::types::FromSql for Hashes {
    fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
        let bytes = value.as_blob()?;
        let wrong =
            rusqlite::types::FromSqlError::InvalidBlobSize { expected_size: 32, blob_size: bytes.len() };
        match bytes.as_chunks::<32>() {
            ([hash], []) => Ok(Self { hash: *hash, seal: None }),
            ([hash, seal], []) => Ok(Self { hash: *hash, seal: Some(*seal) }),
            _ => Err(wrong),
        }
    }
}
