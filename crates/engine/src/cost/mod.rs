//! What sessions cost, added up by whatever somebody wants to know.
//!
//! Each run counts once, in the session that it is of: one that an agent started below another session is not counted
//! there again. What the agent itself says counts first; where it says nothing, list prices do, and it is shown how much
//! of a sum they are. Tokens that nobody can price are shown as such, never as free.

mod blocks;
mod list;
mod prices;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use segno_core::Event;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::rows::RunRow;
use segno_core::state::RunMark;
use segno_store::EventRow;
use segno_store::Filter;
use segno_store::Item;
use serde::Serialize;

pub use self::list::PriceList;
pub use self::prices::BadPrices;
pub use self::prices::Prices;
use crate::Engine;
use crate::Error;

/// What a sum is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Each phase.
    Phase,
    /// Each iteration of each phase.
    Iteration,
    /// Each run.
    Run,
    /// Each agent.
    Agent,
    /// Each model.
    Model,
    /// Each day, by the user's clock.
    Day,
    /// Each week, by its Monday.
    Week,
    /// Each five hours that a plan counts together: from the hour of the first use on.
    Block,
    /// Each branch of a project's repository.
    Branch,
    /// Each project.
    Project,
    /// Each session.
    Session,
}

/// What something used and cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// How many runs.
    pub runs: u64,
    /// What they used.
    pub tokens: TokenUse,
    /// What that cost, in millionths of a dollar, as far as anybody knows.
    pub micros: u64,
    /// How much of it is by list prices because the agent did not say.
    pub by_list_price_micros: u64,
    /// Tokens whose price nobody knows.
    pub unpriced_tokens: u64,
    /// Whether a part of the tokens is an estimate.
    pub estimated: bool,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.tokens = self.tokens.plus(&other.tokens);
        self.micros = self.micros.saturating_add(other.micros);
        self.by_list_price_micros = self.by_list_price_micros.saturating_add(other.by_list_price_micros);
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(other.unpriced_tokens);
        self.estimated |= other.estimated;
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What it is about: a phase, a day, a session's id, …
    pub name: String,
    /// What it used and cost.
    #[serde(flatten)]
    pub sum: Sum,
}

/// What sessions cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// What the lines are made by.
    pub by: By,
    /// The lines: the dearest first; days, weeks, blocks and runs by time.
    pub lines: Vec<Line>,
    /// All of them together.
    pub total: Sum,
    /// How many sessions were looked at.
    pub sessions: u64,
    /// The day of the list prices that were used, if any were.
    pub prices_as_of: Option<String>,
}

/// Something that was used, and what it belongs to.
struct Used {
    run: Option<RunRow>,
    session: String,
    project: String,
    branch: Option<String>,
    /// When it began; what was recorded by hand, when the session was last changed.
    at: Timestamp,
    day: String,
    week: String,
    /// Which iteration of its session it belongs to, in their order.
    iteration: String,
    sum: Sum,
}

impl Engine {
    /// What the sessions that a filter lets through used and cost; with a time in it, only what began since then.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn costs(&self, filter: &Filter, by: By, prices: &Prices) -> Result<Costs, Error> {
        let listing = self.listing(filter)?;
        let mut sums = Sums::new(by, self.options.zone.get());
        for summary in &listing.sessions {
            self.add_session(summary.session_id, filter.since, prices, &mut sums)?;
        }
        Ok(sums.finish(listing.sessions.len() as u64, prices))
    }

    /// What one session used and cost since some moment, or altogether.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn costs_of(
        &self,
        session: SessionId,
        since: Option<Timestamp>,
        by: By,
        prices: &Prices,
    ) -> Result<Costs, Error> {
        let mut sums = Sums::new(by, self.options.zone.get());
        self.add_session(session, since, prices, &mut sums)?;
        Ok(sums.finish(1, prices))
    }

    /// Adds a session's runs. One session is held in memory at a time.
    fn add_session(
        &self,
        session: SessionId,
        since: Option<Timestamp>,
        prices: &Prices,
        sums: &mut Sums<'_>,
    ) -> Result<(), Error> {
        let used = self.used(session, prices)?;
        let used = used.into_iter().filter(|used| since.is_none_or(|since| used.at >= since));
        match sums.by {
            By::Block => self.add_blocks(session, used, since, sums),
            _ => {
                used.for_each(|used| sums.add(&used));
                Ok(())
            }
        }
    }

    fn used(&self, session: SessionId, prices: &Prices) -> Result<Vec<Used>, Error> {
        self.used_until_now(self.load(session)?.state, prices)
    }

    /// What was used in a session: by each run, and beside them.
    pub(crate) fn used_of(&self, state: State) -> Result<Vec<(Option<RunRow>, Sum)>, Error> {
        let used = self.used_until_now(state, &*self.prices()?)?;
        Ok(used.into_iter().map(|used| (used.run, used.sum)).collect())
    }

    fn used_until_now(&self, mut state: State, prices: &Prices) -> Result<Vec<Used>, Error> {
        let session = state.session_id;
        let before = self.spent_before(&state)?;
        state.cost.used_micros = state.cost.used_micros.saturating_sub(before);
        let runs = self.items(session, List::Runs)?;
        Ok(used_in(&state, runs.iter().map(Item::row).collect(), prices, self.options.zone.get()))
    }

    /// What counts towards a session's cap and was spent by the one that it goes on from.
    fn spent_before(&self, state: &State) -> Result<u64, Error> {
        if state.continues.is_none() {
            return Ok(0);
        }
        let first = self.events(state.session_id, 0, 1)?.into_iter().next();
        Ok(match first {
            Some(EventRow::Whole(stored)) => match stored.event() {
                Ok(Event::SessionCreated(created)) => created.cost.used_micros,
                _ => 0,
            },
            Some(EventRow::Damaged { .. }) | None => 0,
        })
    }
}

/// Everything that was used in a session: by its runs, and what was recorded beside them.
fn used_in(state: &State, runs: Vec<RunRow>, prices: &Prices, zone: &TimeZone) -> Vec<Used> {
    let began = |at: Timestamp| Used {
        run: None,
        session: state.session_id.to_string(),
        project: state.project.path.clone(),
        branch: state.branch.clone(),
        at,
        day: day(at, zone),
        week: week(at, zone),
        iteration: String::new(),
        sum: Sum::default(),
    };
    let mut iterations = Iterations::of(state);
    let mut beside = state.tokens;
    let mut beside_micros = state.cost.used_micros;
    for below in state.below.values() {
        beside = beside.since(&below.tokens);
        beside_micros = beside_micros.saturating_sub(below.micros);
    }
    let mut used = Vec::new();
    for run in runs {
        let going_on = state.run.as_ref().filter(|newest| newest.is_running() && newest.id == run.run);
        let (tokens, sum) = match going_on {
            Some(newest) => so_far(state, newest),
            None => {
                let tokens = run.tokens.unwrap_or_default();
                (tokens, priced(&run, tokens, prices))
            }
        };
        beside = beside.since(&tokens);
        let recorded = if going_on.is_some() { sum.micros } else { run.money().unwrap_or(0) };
        beside_micros = beside_micros.saturating_sub(recorded);
        let at = run.started_at.unwrap_or(state.created_at);
        let iteration = iterations.name(&run);
        used.push(Used { run: Some(run), sum, iteration, ..began(at) });
    }
    if beside.total() > 0 || beside_micros > 0 {
        // Somebody said what these cost, or nobody knows.
        let unpriced = if beside_micros > 0 { 0 } else { beside.total() };
        let sum = Sum { tokens: beside, micros: beside_micros, unpriced_tokens: unpriced, ..Sum::default() };
        used.push(Used { sum, ..began(state.updated_at) });
    }
    used
}

/// Names the iterations of a session, in their order. A phase that is gone back to counts from one again, so its number
/// alone would put two iterations together; runs one after the other with the same number are one that was begun again.
struct Iterations {
    session: String,
    newest: Option<(Option<String>, u64)>,
    count: u64,
}

impl Iterations {
    fn of(state: &State) -> Self {
        let id = state.session_id.to_string();
        let session = format!("…{}", &id[id.len().saturating_sub(6)..]);
        Self { session, newest: None, count: 0 }
    }

    fn name(&mut self, run: &RunRow) -> String {
        if run.iteration == 0 {
            return format!("{}  (no iteration)", self.session);
        }
        let this = (run.phase.clone(), run.iteration);
        if self.newest.as_ref() != Some(&this) {
            self.count += 1;
        }
        let name = run.phase.as_deref().unwrap_or("(no phase)");
        let name = format!("{} {:>4}  {name} {}", self.session, self.count, run.iteration);
        self.newest = Some(this);
        name
    }
}

/// What a run has used that still goes on: its row does not say so yet. Its agent may yet tell what it costs.
fn so_far(state: &State, run: &RunMark) -> (TokenUse, Sum) {
    let mut tokens = state.tokens.since(&run.before.tokens);
    let mut micros = state.cost.used_micros.saturating_sub(run.before.micros);
    let since = |key: &str| key.replace('-', "") > run.id.replace('-', "");
    for (_, below) in state.below.iter().filter(|(key, _)| since(key)) {
        // What others used meanwhile below this session is theirs. Their names sort by time.
        tokens = tokens.since(&below.tokens);
        micros = micros.saturating_sub(below.micros);
    }
    let sum = Sum {
        runs: 1,
        tokens,
        micros,
        by_list_price_micros: run.list_micros,
        unpriced_tokens: run.unpriced.total(),
        estimated: true,
    };
    (tokens, sum)
}

fn priced(run: &RunRow, tokens: TokenUse, prices: &Prices) -> Sum {
    let sum = Sum { runs: 1, tokens, estimated: run.estimated, ..Sum::default() };
    if let Some(micros) = run.told_micros() {
        return Sum { micros, ..sum };
    }
    if run.list_micros > 0 {
        return Sum { micros: run.list_micros, by_list_price_micros: run.list_micros, ..sum };
    }
    match run.model.as_deref().and_then(|model| prices.micros(model, &tokens)) {
        Some(micros) => Sum { micros, by_list_price_micros: micros, ..sum },
        None => Sum { unpriced_tokens: tokens.total(), ..sum },
    }
}

/// The day of a moment, by the user's clock.
pub(crate) fn day(at: segno_core::Timestamp, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_microsecond(at.as_micros()) {
        Ok(moment) => moment.to_zoned(zone.clone()).date().to_string(),
        Err(_) => at.to_string().chars().take("2026-01-01".len()).collect(),
    }
}

/// The Monday of its week, by the user's clock.
fn week(at: Timestamp, zone: &TimeZone) -> String {
    let Ok(moment) = jiff::Timestamp::from_microsecond(at.as_micros()) else { return day(at, zone) };
    let date = moment.to_zoned(zone.clone()).date();
    let since_monday = i64::from(date.weekday().to_monday_zero_offset());
    date.checked_sub(jiff::Span::new().days(since_monday)).unwrap_or(date).to_string()
}

/// Sums in the making: what was added is not kept.
struct Sums<'a> {
    by: By,
    zone: &'a TimeZone,
    lines: BTreeMap<String, Sum>,
    /// For blocks: what was used in each minute.
    minutes: BTreeMap<i64, Sum>,
    total: Sum,
}

impl<'a> Sums<'a> {
    fn new(by: By, zone: &'a TimeZone) -> Self {
        Self { by, zone, lines: BTreeMap::new(), minutes: BTreeMap::new(), total: Sum::default() }
    }

    fn add(&mut self, used: &Used) {
        self.total.add(&used.sum);
        self.lines.entry(used.name(self.by)).or_default().add(&used.sum);
    }

    fn finish(self, sessions: u64, prices: &Prices) -> Costs {
        let Self { by, zone, lines, minutes, total } = self;
        let named = |(name, sum)| Line { name, sum };
        let mut lines: Vec<Line> = match by {
            By::Block => blocks::blocks(minutes, zone).into_iter().map(named).collect(),
            _ => lines.into_iter().map(named).collect(),
        };
        match by {
            By::Day | By::Week | By::Block | By::Run | By::Iteration => {}
            By::Phase | By::Agent | By::Model | By::Project | By::Session | By::Branch => {
                lines.sort_by_key(|line| std::cmp::Reverse((line.sum.micros, line.sum.tokens.total())));
            }
        }
        let prices_as_of = (total.by_list_price_micros > 0).then(|| prices.as_of.clone());
        Costs { by, lines, total, sessions, prices_as_of }
    }
}

impl Used {
    fn name(&self, by: By) -> String {
        let or = |word: &Option<String>, other: &str| word.clone().unwrap_or_else(|| other.to_owned());
        let run = self.run.as_ref();
        let of_run = |name: &dyn Fn(&RunRow) -> String| run.map_or("(recorded by hand)".to_owned(), name);
        match by {
            By::Phase => of_run(&|run| or(&run.phase, "(no phase)")),
            By::Iteration => of_run(&|_| self.iteration.clone()),
            By::Run => of_run(&|run| run.run.clone()),
            By::Agent => of_run(&|run| run.agent.clone()),
            By::Model => of_run(&|run| or(&run.model, "(model not said)")),
            By::Day | By::Block => self.day.clone(),
            By::Week => self.week.clone(),
            By::Branch => or(&self.branch, "(branch not known)"),
            By::Project => self.project.clone(),
            By::Session => self.session.clone(),
        }
    }
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
