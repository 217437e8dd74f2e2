//! Folding a stored journal: the one way from events to a state.

use segno_core::Event;
use segno_core::Mark;
use segno_core::SessionId;
use segno_core::State;
use segno_core::event::Project;
use segno_core::event::SessionCreated;
use segno_core::state::Applied;

use crate::Error;
use crate::Store;
use crate::types::EventRow;
use crate::types::Known;

/// How many events are read at once.
pub(crate) const PAGE: usize = 1_000;

/// A fold under way. Damaged events are skipped and named.
pub(crate) struct Fold {
    session: SessionId,
    known: Option<Known>,
    state: Option<State>,
    after: u64,
    notices: Vec<String>,
}

/// An event that was folded in.
pub(crate) struct Folded<'a> {
    pub(crate) state: &'a State,
    pub(crate) mark: Mark,
    pub(crate) event: Event,
    pub(crate) applied: Applied,
}

impl Fold {
    /// From the beginning, or from where `start` ends. `known` is what is known of the session beside its journal: it
    /// stands in for a first event that cannot be read, so that all the others still make a session.
    pub(crate) fn new(session: SessionId, start: Option<State>, known: Option<Known>) -> Self {
        let after = start.as_ref().map_or(0, |state| state.seq);
        Self { session, known, state: start, after, notices: Vec::new() }
    }

    /// The last event that was given.
    pub(crate) fn after(&self) -> u64 {
        self.after
    }

    /// Takes the next event.
    pub(crate) fn take(&mut self, row: EventRow) -> Option<Folded<'_>> {
        let stored = match row {
            EventRow::Whole(stored) => stored,
            EventRow::Damaged { seq, what } => {
                self.skip(seq, &what);
                return None;
            }
        };
        let mark = stored.mark();
        let event = match stored.event() {
            Ok(event) => event,
            Err(why) => {
                self.skip(stored.seq, &why.to_string());
                return None;
            }
        };
        self.after = stored.seq;
        let applied = match &mut self.state {
            Some(state) => state.apply(&mark, &event),
            None => match State::begin(&mark, &event) {
                Ok(begun) => {
                    self.state = Some(begun);
                    Applied::Counted
                }
                Err(why) => {
                    self.skip(stored.seq, &why.to_string());
                    return None;
                }
            },
        };
        self.state.as_ref().map(|state| Folded { state, mark, event, applied })
    }

    fn skip(&mut self, seq: u64, what: &str) {
        self.after = seq;
        self.notices.push(format!("event {seq}: {what}"));
        if self.state.is_none()
            && let Some(known) = self.known.take()
        {
            let mark = Mark { seq, at: self.session.timestamp(), run: None };
            self.state = State::begin(&mark, &stand_in(self.session, known)).ok();
        }
    }

    /// The state, and what is wrong with the journal.
    pub(crate) fn finish(self) -> Result<(State, Vec<String>), Error> {
        match self.state {
            Some(state) => Ok((state, self.notices)),
            None => Err(Error::SessionDamaged {
                session: self.session,
                what: self
                    .notices
                    .into_iter()
                    .next()
                    .unwrap_or_else(|| "its journal has no beginning".to_owned()),
            }),
        }
    }
}

/// A beginning made of what the store's own list says.
fn stand_in(session: SessionId, known: Known) -> Event {
    let name = known.project.rsplit('/').next().unwrap_or_default().to_owned();
    Event::SessionCreated(SessionCreated {
        project: Project { path: known.project, name, kind: None },
        ..SessionCreated::new(session, known.uid, known.made_by)
    })
}

/// A session's state at one of its events, folded from the journal. Damaged events are skipped and named.
pub fn state_at(store: &dyn Store, session: SessionId, seq: u64) -> Result<(State, Vec<String>), Error> {
    let mut fold = Fold::new(session, None, store.known(session)?);
    'pages: loop {
        let rows = store.events(session, fold.after(), PAGE)?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            if row.seq() > seq {
                break 'pages;
            }
            fold.take(row);
        }
    }
    fold.finish()
}
