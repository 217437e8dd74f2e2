//! What many sessions have in common, read from the record. The rules are [`segno_core::insights`]; here sessions are read,
//! one after the other and each page by page, so that memory does not grow with them.

use std::path::Path;

use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_core::event::Maker;
use segno_core::insights::Gatherer;
use segno_core::insights::Insights;
use segno_core::insights::Spent;
use segno_core::rows::ErrorRow;
use segno_core::rows::RunRow;
use segno_core::rows::ToolRow;
use segno_store::EventRow;
use segno_store::Filter;
use segno_store::Item;
use segno_store::ItemPosition;
use segno_store::Page;
use serde::Serialize;
use serde_json::Value;

use crate::Engine;
use crate::Error;
use crate::cost::Sum;

/// How many rows or events are read at once.
const PAGE: usize = 500;

/// Which sessions are looked at.
#[derive(Clone, Debug, Default)]
pub struct InsightsWish {
    /// These; all that the project has, if none are named.
    pub sessions: Vec<SessionId>,
    /// Of this project; of all projects if none is named.
    pub project: Option<String>,
    /// Only what has happened since then.
    pub since: Option<Timestamp>,
}

/// What was found, and what could not be read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// What was found.
    #[serde(flatten)]
    pub insights: Insights,
    /// The day of the list prices that money was reckoned by, if some was.
    pub prices_as_of: Option<String>,
    /// Sessions that could not be read, and why.
    pub notices: Vec<String>,
}

impl Engine {
    /// What sessions have in common. Nothing is recorded, and no model is asked: the same record gives the same answer.
    ///
    /// # Errors
    /// If a session that is named is not there, or the record cannot be read. One of many that cannot be read is told, and
    /// left out.
    pub fn insights(&self, wish: &InsightsWish) -> Result<Found, Error> {
        let mut gatherer = Gatherer::new(wish.since);
        let mut notices = Vec::new();
        let mut listed = 0;
        if wish.sessions.is_empty() {
            let filter = Filter { project: wish.project.clone(), since: wish.since, ..Filter::default() };
            for summary in self.listing(&filter)?.sessions {
                if let Err(why) =
                    self.add_insights(summary.session_id, wish.since, &mut gatherer, &mut listed)
                {
                    notices.push(format!("session {} was left out: {why}", summary.session_id));
                }
            }
        }
        for session in &wish.sessions {
            self.add_insights(*session, wish.since, &mut gatherer, &mut listed)?;
        }
        let prices_as_of = if listed > 0 { Some(self.prices()?.as_of.clone()) } else { None };
        Ok(Found { insights: gatherer.finish(), prices_as_of, notices })
    }

    fn add_insights(
        &self,
        session: SessionId,
        since: Option<Timestamp>,
        gatherer: &mut Gatherer,
        listed: &mut u64,
    ) -> Result<(), Error> {
        let state = self.load(session)?.state;
        // What costs to read is read first: one that cannot be read is then left out as a whole, as far as can be.
        let project = state.project.path.clone();
        let is_import = state.made_by == Maker::Import;
        gatherer.begin(&Summary::from(&state));
        let risky = self.options.tree.as_ref().map_or(&[][..], |options| options.risky.as_slice());
        self.each(session, List::Errors, |item| gatherer.error(item.seq, &item.row::<ErrorRow>()))?;
        self.each(session, List::Tools, |item| {
            let row: ToolRow = item.row();
            let input = row.input.as_ref().unwrap_or(&Value::Null);
            let is_denied = row.state == "denied";
            let is_risky =
                is_denied && crate::tree::risky::why(&row.tool, input, Path::new(&project), risky).is_some();
            gatherer.call(item.seq, &row, is_risky);
        })?;
        self.each_event(session, gatherer)?;
        self.add_spent(state, since, is_import, gatherer, listed)
    }

    fn each(&self, session: SessionId, list: List, mut take: impl FnMut(&Item)) -> Result<(), Error> {
        let mut after = None;
        loop {
            let page = Page { after, limit: PAGE, newest_first: false };
            let items = self.store().page(session, list, &page)?;
            items.iter().for_each(&mut take);
            let Some(last) = items.last().filter(|_| items.len() == PAGE) else { return Ok(()) };
            after = Some(ItemPosition { seq: last.seq, key: last.key.clone() });
        }
    }

    fn each_event(&self, session: SessionId, gatherer: &mut Gatherer) -> Result<(), Error> {
        let mut after = 0;
        loop {
            let rows = self.events(session, after, PAGE)?;
            let is_last = rows.len() < PAGE;
            for row in rows {
                after = row.seq();
                let EventRow::Whole(stored) = row else { continue };
                if gatherer.wants(&stored.kind)
                    && let Ok(event) = stored.event()
                {
                    gatherer.event(&stored.mark(), &event);
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn add_spent(
        &self,
        state: State,
        since: Option<Timestamp>,
        is_import: bool,
        gatherer: &mut Gatherer,
        listed: &mut u64,
    ) -> Result<(), Error> {
        let updated_at = state.updated_at;
        for (run, Sum { tokens, micros, by_list_price_micros, unpriced_tokens, .. }) in self.used_of(state)? {
            let at = run.as_ref().and_then(|run| run.started_at).unwrap_or(updated_at);
            if since.is_some_and(|since| at < since) {
                continue;
            }
            *listed += u64::from(by_list_price_micros > 0);
            let day = crate::cost::day(at, self.options.zone.get());
            let it = run.as_ref();
            // Who sat at its terminal also thought, and ate; what a history tells of is a whole day.
            let ms = it.filter(|run| !run.interactive && !is_import).and_then(|run: &RunRow| run.duration_ms);
            gatherer.spent(&Spent {
                is_run: it.is_some(),
                model: it.and_then(|run| run.model.as_deref()),
                phase: it.and_then(|run| run.phase.as_deref()),
                day: &day,
                outcome: it.and_then(|run| run.outcome.as_deref()),
                tokens: tokens.total(),
                micros,
                unpriced_tokens,
                ms,
            });
        }
        Ok(())
    }
}
