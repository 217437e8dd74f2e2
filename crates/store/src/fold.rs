//! Folding a stored journal.

use segno_core::SessionId;
use segno_core::State;

use crate::Error;
use crate::Store;
use crate::types::EventRow;

/// How many events are read at once.
const PAGE: usize = 1_000;

/// A session's state at one of its events, folded from the journal. Damaged events are skipped and named.
pub fn state_at(store: &dyn Store, session: SessionId, seq: u64) -> Result<(State, Vec<String>), Error> {
    let mut state: Option<State> = None;
    let mut notices = Vec::new();
    let mut after = 0;
    'pages: loop {
        let rows = store.events(session, after, PAGE)?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            match row {
                EventRow::Whole(stored) => {
                    if stored.seq > seq {
                        break 'pages;
                    }
                    after = stored.seq;
                    match stored.event() {
                        Ok(event) => match &mut state {
                            Some(state) => {
                                state.apply(&stored.mark(), &event);
                            }
                            None => match State::begin(&stored.mark(), &event) {
                                Ok(begun) => state = Some(begun),
                                Err(why) => notices.push(format!("event {}: {why}", stored.seq)),
                            },
                        },
                        Err(why) => notices.push(format!("event {}: {why}", stored.seq)),
                    }
                }
                EventRow::Damaged { seq: bad, what } => {
                    if bad > seq {
                        break 'pages;
                    }
                    after = bad;
                    notices.push(format!("event {bad}: {what}"));
                }
            }
        }
    }
    match state {
        Some(state) => Ok((state, notices)),
        None => Err(Error::SessionDamaged {
            session,
            what: notices.into_iter().next().unwrap_or_else(|| "its journal has no beginning".to_owned()),
        }),
    }
}
