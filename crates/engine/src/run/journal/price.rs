//! What a run costs by the price list, as long as its agent does not say.

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_core::Command;
use segno_core::Fact;
use segno_core::State;

use super::Recorder;
use crate::engine::fresh_key;

/// What is known of the price of a run.
pub(super) struct Pricing {
    /// The model, as the agent or whoever started it said.
    model: Option<String>,
    /// Its agent says itself what it costs, at its end at the latest.
    tells: bool,
    /// Somebody caps money: what is spent has to be known as it goes.
    capped: bool,
    /// The model whose price nobody knows, once it has used something.
    unknown: Option<String>,
}

impl Pricing {
    pub(super) fn new(agent: &dyn Agent, state: &State, day_capped: bool) -> Self {
        let run = state.run.as_ref();
        Self {
            model: run.and_then(|run| run.model.clone()),
            // A log that is read while a person works tells no cost.
            tells: agent.capabilities().tells_cost && !run.is_some_and(|run| run.interactive),
            capped: day_capped,
            unknown: None,
        }
    }
}

impl Recorder<'_> {
    /// What whoever starts a run knows: the model it asks for, and that there is a cap on the money of this run.
    pub(in crate::run) fn price_as(&mut self, model: Option<String>, capped: bool) {
        self.pricing.model = self.pricing.model.take().or(model);
        self.pricing.capped |= capped;
    }

    /// The model, if the agent named it only beside what it used, or without a conversation: nobody has recorded it.
    pub(in crate::run) fn model_beside(&self) -> Option<String> {
        let recorded = self.state.run.as_ref().is_some_and(|run| run.model.is_some());
        self.pricing.model.clone().filter(|_| !recorded)
    }

    /// Hears which model used something, if nobody has said yet which one works.
    pub(super) fn hear_model(&mut self, event: &AgentEvent) {
        if let AgentEvent::Tokens { model: Some(model), .. }
        | AgentEvent::SessionStarted { model: Some(model), .. } = event
            && self.pricing.model.is_none()
        {
            self.pricing.model = Some(segno_core::text::shorten(model, segno_core::limits::NAME));
        }
    }

    /// Hears what the agent said of its model and of what it used.
    pub(super) fn hear_price(&mut self, facts: &[Fact]) {
        let mut used = false;
        for fact in facts {
            match fact {
                Fact::RunNamed(named) if named.model.is_some() => self.pricing.model.clone_from(&named.model),
                Fact::TokensRecorded { tokens, .. } => {
                    used = true;
                    let rates = self.rates();
                    let known = rates.is_some_and(|rates| rates.micros(tokens).is_some());
                    let model = self
                        .pricing
                        .model
                        .clone()
                        .unwrap_or_else(|| "the model that the agent does not name".to_owned());
                    self.pricing.unknown = (!known).then_some(model);
                }
                Fact::CostRecorded { .. } => self.pricing.unknown = None,
                _ => {}
            }
        }
        if used && self.is_money_capped() {
            self.reckon();
        }
    }

    /// Reckons what nobody has told of the cost so far.
    pub(in crate::run) fn reckon(&mut self) {
        if let Some(rates) = self.rates() {
            self.queue(fresh_key(), self.engine.now(), [Command::PriceByList { rates }]);
        }
    }

    /// Why a cap on money cannot hold: the model whose price nobody knows, and whose agent does not say what it costs.
    pub(in crate::run) fn cost_unknown(&self) -> Option<&str> {
        let stops = self.pricing.capped || (self.state.cost.hard && self.state.cost.limit_micros.is_some());
        self.pricing.unknown.as_deref().filter(|_| stops && !self.pricing.tells)
    }

    fn is_money_capped(&self) -> bool {
        self.pricing.capped || self.state.cost.limit_micros.is_some()
    }

    fn rates(&self) -> Option<segno_core::rates::Rates> {
        self.engine.prices().ok()?.rates(self.pricing.model.as_deref()?)
    }
}
