//! Whether an agent may be started in a session: its caps, those of the session it is started in, and breakpoints.

use segno_core::Command;
use segno_core::CostBudget;
use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::State;
use segno_core::TokenBudget;
use segno_core::event::Unit;
use segno_store::Append;

use crate::Engine;
use crate::Error;
use crate::engine::fresh_key;
use crate::fault::Guard;
use crate::fault::broken;
use crate::run::Request;

impl Engine {
    /// Why no agent may be started in a session now. It is asked before anything is changed, and again by whoever
    /// starts one.
    ///
    /// # Errors
    /// If a cap of the session, or of the one whose agent asks for it, is used up; or if it waits at a breakpoint.
    pub fn check_start(&self, state: &State) -> Result<(), Error> {
        check_caps(state)?;
        self.check_shared(state)?;
        self.check_cost_known(state)?;
        if let Some(waiting) = &state.breakpoint {
            let doing = "run an agent";
            return Err(Error::Refused(Refusal::AtBreakpoint { name: waiting.name.clone(), doing }));
        }
        self.check_start_below()
    }

    /// Under a cap on money that stops, nothing starts while it is not known what was spent. Whoever has given a price for
    /// it meanwhile goes on: then it is reckoned now.
    fn check_cost_known(&self, state: &State) -> Result<(), Error> {
        if !state.is_cost_unknown() || broken(Guard::Cap) {
            return Ok(());
        }
        let prices = self.prices()?;
        let newest = state.run.as_ref().and_then(|run| run.model.as_ref());
        for rates in state.unpriced.keys().chain(newest).filter_map(|model| prices.rates(model)) {
            self.count_in(state.session_id, Command::PriceByList { rates })?;
        }
        let now = self.load(state.session_id)?.state;
        if now.is_cost_unknown() {
            let run = now.run.as_ref().filter(|run| run.unpriced.total() > 0);
            let model = run.and_then(|run| run.model.clone()).or_else(|| now.unpriced.keys().next().cloned());
            let what = model.filter(|model| model != "?");
            return Err(Error::CostUnknown { session: Some(now.session_id), what });
        }
        check_caps(&now)
    }

    /// Why a run cannot be held by a cap on money: its agent does not say what it costs, and nobody knows what its model
    /// does. What is not known before it starts is seen as soon as it has used something.
    ///
    /// # Errors
    /// If that is so.
    pub(crate) fn check_price(&self, state: &State, request: &Request) -> Result<(), Error> {
        let capped = (state.cost.hard && state.cost.limit_micros.is_some())
            || request.limits.micros.is_some()
            || self.options.day.micros.is_some();
        let tells = request.agent.capabilities().tells_cost && request.terminal.is_none();
        let Some(model) = request.launch.model.as_deref().filter(|_| capped && !tells) else { return Ok(()) };
        match self.prices()?.rates(model) {
            Some(_) => Ok(()),
            None => Err(Error::CostUnknown { session: Some(state.session_id), what: Some(model.to_owned()) }),
        }
    }

    /// The same for a session that is yet to be made.
    ///
    /// # Errors
    /// If a cap of the session whose agent asks for it is used up.
    pub fn check_start_below(&self) -> Result<(), Error> {
        match self.options.actor.session {
            Some(above) => match self.load(above) {
                Ok(loaded) => check_caps(&loaded.state),
                // One of another store, or gone meanwhile: it has no cap that could be known here.
                Err(Error::SessionNotFound { .. } | Error::Store(segno_store::Error::NotFound(_))) => Ok(()),
                Err(other) => Err(other),
            },
            None => Ok(()),
        }
    }

    /// The session whose agent starts a run of this one, if it is another.
    pub(crate) fn started_below(&self, session: SessionId) -> Option<SessionId> {
        let above = self.options.actor.session.filter(|above| *above != session)?;
        self.load(above).is_ok().then_some(above)
    }

    /// How many sessions there are above one: the session whose agent started its newest run, the one above that, and
    /// so on.
    pub fn sessions_above(&self, session: SessionId) -> usize {
        // Whoever asks wants to know whether there are a few; a store that goes round in circles is none of ours.
        const ENOUGH: usize = 8;
        let above = |of: &SessionId| self.load(*of).ok()?.state.run?.below;
        std::iter::successors(above(&session), above).take(ENOUGH).count()
    }

    /// Counts what a session has used wherever else a cap is that it uses.
    pub(crate) fn count_above(&self, state: &State) -> Result<(), Error> {
        let below = self.count_run_above(state);
        self.count_where_cap_began(state).and(below)
    }

    /// Counts what a session has used in the one whose cap it goes on with.
    pub(crate) fn count_where_cap_began(&self, state: &State) -> Result<(), Error> {
        let Some(cap) = state.cap_from else { return Ok(()) };
        let micros = state.cost.used_micros.saturating_sub(cap.micros);
        let (run, tokens) = (state.uid.to_string(), state.tokens);
        match self.count_in(cap.session, Command::CountBelow { run, tokens, micros }) {
            // That one is in another store, or was removed.
            Err(Error::SessionNotFound { .. } | Error::Store(segno_store::Error::NotFound(_))) => Ok(()),
            other => other,
        }
    }

    /// Counts what a session has used in another one, once however often it is told.
    pub(crate) fn count_for(&self, above: SessionId, below: SessionId) -> Result<(), Error> {
        let state = self.load(below)?.state;
        if state.cap_from.is_some_and(|cap| cap.session == above) {
            return self.count_where_cap_began(&state);
        }
        let (run, tokens) = (state.uid.to_string(), state.tokens);
        self.count_in(above, Command::CountBelow { run, tokens, micros: state.cost.used_micros })
    }

    /// Counts what the newest run of a session has used where its caps are, if it was started by an agent.
    fn count_run_above(&self, state: &State) -> Result<(), Error> {
        let Some((run, above)) = state.run.as_ref().and_then(|run| Some((run, run.below?))) else {
            return Ok(());
        };
        let tokens = state.tokens.since(&run.before.tokens);
        let micros = state.cost.used_micros.saturating_sub(run.before.micros);
        self.count_in(above, Command::CountBelow { run: run.id.clone(), tokens, micros })
    }

    fn count_in(&self, above: SessionId, count: Command) -> Result<(), Error> {
        let append = Append::new(above, fresh_key(), self.now(), self.decide_as(vec![count.into()], None));
        match self.append_one(append).map_err(Error::from) {
            Ok(_) | Err(Error::Refused(Refusal::Already(_))) => Ok(()),
            Err(why) => Err(why),
        }
    }
}

impl Engine {
    /// Refuses to start anything in a session that has used up a cap, for a face that starts it elsewhere.
    ///
    /// # Errors
    /// If it has.
    pub fn refuse_used_up(&self, state: &State) -> Result<(), Error> {
        check_caps(state)
    }
}

fn check_caps(state: &State) -> Result<(), Error> {
    check_budgets(state.session_id, &state.budget, &state.cost)
}

/// The same for the caps that a session is to have.
pub(super) fn check_budgets(
    session: SessionId,
    budget: &TokenBudget,
    cost: &CostBudget,
) -> Result<(), Error> {
    if broken(Guard::Cap) {
        return Ok(());
    }
    if budget.is_exhausted() {
        let (used, total) = (budget.tokens_used, budget.total_budget);
        return Err(Error::CapReached { session, unit: Unit::Tokens, used, total });
    }
    if cost.is_exhausted() {
        let (used, total) = (cost.used_micros, cost.limit_micros.unwrap_or_default());
        return Err(Error::CapReached { session, unit: Unit::Cost, used, total });
    }
    Ok(())
}
