//! What a loop that is driven can do whether it iterates itself or takes items from a queue.

use segno_core::Command;
use segno_core::Refusal;
use segno_core::State;
use segno_core::Status;
use segno_core::Summary;
use segno_core::event::PauseReason;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopVerdict;
use segno_store::Append;
use segno_store::Filter;
use segno_store::OthersQuery;
use segno_store::OthersView;
use segno_store::What;

use super::drive::LoopEnded;
use super::drive::LoopHost;
use super::drive::Stretch;
use super::drive::the_loop;
use super::news::LoopNews;
use crate::Acted;
use crate::Engine;
use crate::Error;
use crate::engine::fresh_key;
use crate::engine::record;
use crate::lease::Driver;
use crate::tree::At;

/// A loop under one lease.
pub(crate) struct Driven<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) host: &'a LoopHost<'a>,
    pub(crate) driver: &'a Driver<'a>,
}

impl Driven<'_> {
    pub(crate) fn act(&self, command: LoopCommand) -> Result<State, Error> {
        let acted = self.driver.act(Command::Loop(Box::new(command)))?;
        self.tell(acted.notices);
        Ok(acted.state)
    }

    /// Says what came of what was recorded, each thing once in a loop: files that stay left alone would say so at every step.
    pub(crate) fn tell(&self, notices: Vec<String>) {
        let session = self.driver.session();
        for notice in notices.into_iter().filter(|notice| self.engine.views.is_news(session, notice)) {
            self.host.listener.hear(&LoopNews::Problem(notice));
        }
    }

    pub(crate) fn state(&self) -> Result<State, Error> {
        Ok(self.engine.load(self.driver.session())?.state)
    }

    pub(crate) fn ended(&self, verdict: Option<LoopVerdict>, why: String) -> Result<Stretch, Error> {
        let state = self.state()?;
        let by_hand = verdict.is_none().then(|| ended_by_hand(state.status)).flatten();
        let why = by_hand.map_or(why, ToOwned::to_owned);
        Ok(Stretch::Ended(Box::new(LoopEnded { state, verdict, why })))
    }

    /// It ends here for now, because of how the session stands.
    pub(crate) fn ended_as(&self, state: &State) -> Result<Stretch, Error> {
        self.ended(None, why_it_stands(state))
    }

    /// The session is paused, and the loop stands still.
    pub(crate) fn paused(&self, reason: PauseReason, verdict: LoopVerdict) -> Result<Stretch, Error> {
        let why = segno_core::looping::why(&verdict);
        self.driver.act(Command::Pause { reason, details: Some(why.as_str().into()) })?;
        self.ended(Some(verdict), why)
    }

    /// It waits, and gives the lease back.
    pub(crate) fn parked(
        &self,
        state: State,
        verdict: Option<LoopVerdict>,
        why: String,
    ) -> Result<Stretch, Error> {
        let until = the_loop(&state)?.parked.as_ref().and_then(|parked| parked.until);
        self.host.listener.hear(&LoopNews::Parked { until, words: why.clone() });
        Ok(Stretch::Parked(Box::new(LoopEnded { state, verdict, why })))
    }

    /// Whether somebody wants it to stop. A request of somebody else is answered when this is over; only that it is there
    /// matters here.
    pub(crate) fn stops(&self) -> bool {
        self.host.stop.asked().0 > 0 || self.state().is_ok_and(|state| !state.requests.is_empty())
    }
}

/// What became of a loop that was ended while it worked, and not by its gate.
fn ended_by_hand(status: Status) -> Option<&'static str> {
    match status {
        Status::Completed => Some("somebody completed it; its gate has not passed"),
        Status::Aborted => Some("somebody gave it up"),
        Status::Failed => Some("somebody said that it failed"),
        Status::Active | Status::Paused | Status::Interrupted | Status::Halted => None,
    }
}

/// Why a session stands where it does, in words.
pub(crate) fn why_it_stands(state: &State) -> String {
    match &state.reason {
        Some(reason) if reason.what == PauseReason::Asked.as_str() => "somebody asked for it".to_owned(),
        Some(reason) => reason.what.clone(),
        None => state.status.to_string(),
    }
}

impl Engine {
    /// Does what follows for a loop from what other sessions do, as its driver, in one transaction.
    pub(crate) fn act_with_others(
        &self,
        driver: &Driver<'_>,
        sessions: Filter,
        mut command: impl FnMut(&State, &[Summary]) -> Result<Option<LoopCommand>, Refusal> + Send + 'static,
    ) -> Result<Acted, Error> {
        let (session, redactor) = (driver.session(), self.redactor());
        let decide = move |state: &State, others: &OthersView| {
            let Some(command) = command(state, &others.sessions)? else { return Ok(Vec::new()) };
            let events = segno_core::decide(state, Command::Loop(Box::new(command)))?;
            events.into_iter().map(|event| record(&redactor, event)).collect()
        };
        let query = OthersQuery { sessions: Some(sessions), ..OthersQuery::default() };
        let what = What::DecideWithOthers(query, Box::new(decide));
        let append = Append {
            epoch: Some(driver.epoch()),
            want_state: true,
            ..Append::new(session, fresh_key(), self.now(), what)
        };
        let appended = self.append_one(append)?;
        self.acted(session, appended, Some(&At { epoch: Some(driver.epoch()), ..At::default() }))
    }
}
