//! How money and tokens grew in a session, over its time.

use segno_core::Event;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_store::EventRow;
use serde::Serialize;

use crate::Engine;
use crate::Error;

/// How many events are read at once.
const EVENTS: usize = 1_000;
/// More points than this say no more on a picture: neighbours are merged.
const POINTS: usize = 600;

/// What had been used at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// When, in microseconds since 1970.
    pub at_us: i64,
    /// Tokens of all kinds but what was read from a cache.
    pub tokens: u64,
    /// Money, in millionths of a dollar.
    pub micros: u64,
}

/// How it grew. Reading on costs what is new.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Course {
    /// The points, the oldest first.
    pub points: Vec<Point>,
    /// Up to this event.
    pub until: u64,
    /// What list prices put in that the agent has not said itself.
    #[serde(skip)]
    listed: u64,
}

impl Course {
    /// Reads on from where it is.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn read_on(&mut self, engine: &Engine, session: SessionId) -> Result<(), Error> {
        loop {
            let rows = engine.events(session, self.until, EVENTS)?;
            let read = rows.len();
            for row in rows {
                self.until = row.seq();
                let EventRow::Whole(stored) = row else { continue };
                if matches!(stored.kind.as_str(), "tokens_recorded" | "cost_recorded")
                    && let Ok(event) = stored.event()
                {
                    self.take(stored.at, &event);
                }
            }
            if read < EVENTS {
                return Ok(());
            }
        }
    }

    fn take(&mut self, at: Timestamp, event: &Event) {
        let mut point = self.points.last().copied().unwrap_or_default();
        point.at_us = at.as_micros().max(point.at_us);
        match event {
            Event::TokensRecorded(e) => {
                let counted = e.tokens.total().saturating_sub(e.tokens.cache_read);
                point.tokens = point.tokens.saturating_add(counted);
            }
            Event::CostRecorded(e) => {
                // What the agent says counts instead of what a price list said before.
                if e.list.is_none() {
                    point.micros = point.micros.saturating_sub(self.listed);
                    self.listed = 0;
                } else {
                    self.listed = self.listed.saturating_add(e.micros);
                }
                point.micros = point.micros.saturating_add(e.micros);
            }
            _ => return,
        }
        self.points.push(point);
        if self.points.len() > POINTS {
            // Every other one, the newest always.
            let last = self.points.len() - 1;
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                (index - 1) % 2 == 0 || index - 1 == last
            });
        }
    }
}
