//! What is in hand is given to the store, in order; what it cannot take stays in hand.

use std::time::Duration;

use segno_core::Event;
use segno_core::Fact;
use segno_core::Input;
use segno_core::State;
use segno_store::Append;
use segno_store::What;
use serde_json::json;

use super::Flushed;
use super::Item;
use super::Prepared;
use super::Recorder;
use super::UnderWay;
use super::is_mere_use;
use crate::Error;
use crate::engine::fresh_key;
use crate::run::News;
use crate::view;

/// Most appends in one transaction: others want to write too.
const BATCH: usize = 512;
/// What an event takes in the store beside its text: numbers, hashes, its key and its places in the indexes.
const EVENT: u64 = 200;
/// How long an answer of the store is waited for before something else is looked at.
const ANSWER: Duration = Duration::from_millis(20);

impl Recorder<'_> {
    /// Whether the store has been given something and has not answered yet. It is asked for a moment only: whoever
    /// drives has other things to see to.
    pub(in crate::run) fn waits_for_answer(&mut self) -> bool {
        let Some(under_way) = &mut self.under_way else { return false };
        if under_way.results.is_none() {
            under_way.results = under_way.answer.within(ANSWER);
        }
        under_way.results.is_none()
    }

    /// Waits for the answer however long it takes.
    pub(in crate::run) fn wait_for_answer(&mut self) {
        while self.waits_for_answer() {}
    }

    /// Whether something waits to be given to the store.
    pub(in crate::run) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether something waits to be journaled.
    pub(in crate::run) fn is_behind(&self) -> bool {
        !self.pending.is_empty() || self.under_way.is_some()
    }

    /// Writes what is in hand. An error means that this driver has no say any more.
    pub(in crate::run) fn flush(&mut self) -> Result<Flushed, Error> {
        self.give(true)
    }

    /// Gives what is in hand to the store and does not wait for the last of it: the next can be made ready meanwhile.
    /// What was in hand the last time is in the journal then.
    pub(in crate::run) fn advance(&mut self) -> Result<Flushed, Error> {
        self.give(false)
    }

    fn give(&mut self, and_wait: bool) -> Result<Flushed, Error> {
        self.give_texts();
        loop {
            if let Some(why) = self.settle()? {
                return Ok(Flushed::NotYet(why));
            }
            if self.pending.is_empty() {
                break;
            }
            self.send();
            if self.pending.is_empty() && !and_wait {
                break;
            }
        }
        self.refresh_view(false);
        Ok(Flushed::All)
    }

    fn send(&mut self) {
        let heard = self.feed.is_heard();
        let count = self.pending.len().min(BATCH);
        let items: Vec<Item> = self.pending.drain(..count).collect();
        let batch = items
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let what = match &item.what {
                    Prepared::Facts(facts) => What::Facts(facts.clone()),
                    Prepared::Inputs(inputs) => self.engine.decide_as(inputs.clone(), Some(self.epoch)),
                };
                let decided = matches!(item.what, Prepared::Inputs(_));
                Append {
                    run: Some(self.run.clone()),
                    epoch: Some(self.epoch),
                    want_state: index + 1 == count || (heard && decided),
                    ..Append::new(self.session, item.key.clone(), item.at, what)
                }
            })
            .collect();
        let answer = self.engine.store().append_soon(batch);
        self.under_way = Some(UnderWay { items, heard, answer, results: None });
    }

    /// Waits for what the store was given. What it could not take is in hand again, and why is told.
    fn settle(&mut self) -> Result<Option<String>, Error> {
        let Some(UnderWay { items, heard, answer, results }) = self.under_way.take() else {
            return Ok(None);
        };
        let mut kept = Vec::new();
        let mut problem = None;
        let mut over = None;
        for (item, result) in items.into_iter().zip(results.unwrap_or_else(|| answer.wait())) {
            match result {
                Ok(appended) => self.appended(item, appended, heard),
                // Nothing can be recorded here as our own any more; what was said is told as late.
                Err(why @ (segno_store::Error::StaleEpoch { .. } | segno_store::Error::NotFound(_))) => {
                    over = Some(why);
                    kept.push(item);
                }
                Err(segno_store::Error::Refused(refusal)) => self.refused(item, &refusal),
                Err(why) => {
                    let session = self.session;
                    tracing::warn!(%session, run = self.run, %why, "the store cannot take it now: kept in hand");
                    problem.get_or_insert_with(|| why.to_string());
                    kept.push(item);
                }
            }
        }
        for item in kept.into_iter().rev() {
            self.pending.push_front(item);
        }
        match over {
            Some(why) => Err(why.into()),
            None => Ok(problem),
        }
    }

    fn appended(&mut self, item: Item, appended: segno_store::Appended, heard: bool) {
        let shows = match &item.what {
            Prepared::Facts(facts) => facts.iter().any(|fact| view::shows(fact.event())),
            Prepared::Inputs(inputs) => !inputs.iter().all(|input| input.fact().is_some_and(is_mere_use)),
        };
        if let (Prepared::Facts(facts), false) = (&item.what, appended.repeated) {
            let texts = facts.iter().map(|fact| {
                let aside = fact.blobs().iter().map(|blob| blob.content.len()).sum::<usize>();
                (fact.body().len() + aside) as u64
            });
            self.recorded += EVENT * facts.len() as u64 + texts.sum::<u64>();
        }
        self.view_due |= shows && !appended.repeated;
        self.view_stale |= !appended.repeated;
        if heard && !appended.repeated {
            let tell = |(index, event): (usize, Event)| {
                self.feed.publish(News::Recorded {
                    seq: appended.first + index as u64,
                    at: item.at,
                    event: Box::new(event),
                });
            };
            match item.what {
                Prepared::Facts(facts) => {
                    facts.iter().map(|fact| fact.event().clone()).enumerate().for_each(tell);
                }
                Prepared::Inputs(_) => appended.events.iter().cloned().enumerate().for_each(tell),
            }
        }
        if let Some(state) = appended.state {
            self.view_due |= crossed(&self.state, &state);
            self.state = *state;
        }
    }

    /// What the rules do not let in is kept as a report, so that nothing the agent said is lost.
    fn refused(&mut self, item: Item, refusal: &segno_core::Refusal) {
        let Prepared::Inputs(inputs) = item.what else { return };
        let reckons =
            |input: &Input| matches!(input, Input::Command(segno_core::Command::PriceByList { .. }));
        if matches!(refusal, segno_core::Refusal::Already(_)) && inputs.iter().all(reckons) {
            // The agent has told what it costs meanwhile.
            return;
        }
        let verbs: Vec<&str> = inputs.iter().map(Input::verb).collect();
        let body = json!({ "commands": format!("{inputs:?}"), "doing": verbs, "why": refusal.to_string() });
        let report = Fact::Reported { what: "refused".to_owned(), body };
        let key = format!("{}!", item.key).parse().unwrap_or_else(|_| fresh_key());
        self.put(key, vec![report]);
    }

    /// Records what is in hand as late: somebody else drives. False if that could not be done.
    pub(in crate::run) fn flush_late(&mut self) -> bool {
        let run = Some(self.run.clone());
        for item in std::mem::take(&mut self.pending) {
            let events: Vec<Event> = match item.what {
                Prepared::Facts(facts) => facts.iter().map(|fact| fact.event().clone()).collect(),
                // What depended on having the right to drive has no effect any more.
                Prepared::Inputs(inputs) => {
                    let decided = inputs.into_iter().map(|input| segno_core::decide(&self.state, input));
                    decided.filter_map(Result::ok).flatten().collect()
                }
            };
            let late = events.iter().filter_map(|event| self.engine.late(self.epoch, event).ok()).collect();
            let append = Append {
                run: run.clone(),
                ..Append::new(self.session, item.key, item.at, What::Facts(late))
            };
            if self.engine.append_one(append).is_err() {
                return false;
            }
        }
        true
    }

    /// Looks at what others recorded.
    pub(in crate::run) fn refresh(&mut self) -> Result<(), Error> {
        self.tell_above();
        self.look_at_shared_caps();
        // The answer to what is under way brings the newest state.
        if self.under_way.is_some() {
            return Ok(());
        }
        let newest = self.engine.store().wait_after(self.session, self.state.seq, Duration::ZERO)?;
        if newest > self.state.seq {
            self.state = self.engine.store().load(self.session)?.state;
            self.view_due = true;
        }
        Ok(())
    }
}

/// Whether a budget ran low or out in between.
fn crossed(before: &State, after: &State) -> bool {
    let tokens = |state: &State| (state.budget.is_warning(), state.budget.is_over());
    let cost = |state: &State| (state.cost.is_warning(), state.cost.is_over());
    (tokens(before), cost(before)) != (tokens(after), cost(after))
}
