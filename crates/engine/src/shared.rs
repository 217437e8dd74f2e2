//! Caps that sessions share: what all sessions of a project may use in a day, and what is left of a cap that several
//! sessions go on with. What the others used is read at the moment at which it is decided on it.

use jiff::tz::TimeZone;
use segno_core::Command;
use segno_core::Input;
use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::day::DayCaps;
use segno_core::event::Unit;
use segno_core::lately::Used;
use segno_core::looping::DayUse;
use segno_core::looping::LoopCommand;
use segno_store::OthersQuery;
use segno_store::OthersView;

use crate::Engine;
use crate::Error;
use crate::fault::Guard;
use crate::fault::broken;

/// What is used and allowed in one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayStand {
    /// What is allowed.
    pub caps: DayCaps,
    /// What all sessions of the project used.
    pub used: Used,
    /// When the day began.
    pub since: Timestamp,
    /// When the next one begins.
    pub until: Timestamp,
}

impl Engine {
    /// What was used today in a project, and what may be.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn day_stand(&self, project: &str) -> Result<DayStand, Error> {
        let (since, until) = self.today();
        let question = OthersQuery { project: Some((project.to_owned(), since)), ..OthersQuery::default() };
        let used = self.store().others(&question)?.project;
        Ok(DayStand { caps: self.options.day, used, since, until })
    }

    /// Why nothing may be started in a project today. It is asked before a session is made for it.
    ///
    /// # Errors
    /// If a cap on the day is used up.
    pub(crate) fn check_day(&self, project: &str) -> Result<(), Error> {
        if !self.options.day.is_set() || broken(Guard::Cap) {
            return Ok(());
        }
        let day = self.day_stand(project)?;
        match day.caps.reached(&day.used) {
            Some((unit, used, total)) => Err(Error::DayCapReached { unit, used, total, until: day.until }),
            None => Ok(()),
        }
    }

    /// When the user's day began, and when the next one does.
    fn today(&self) -> (Timestamp, Timestamp) {
        day_of(self.now(), self.options.zone.get())
    }

    /// Why nothing may be started in a session, by the caps that it shares with others.
    ///
    /// # Errors
    /// If such a cap is used up, or it cannot be read what is used of it.
    pub(crate) fn check_shared(&self, state: &State) -> Result<(), Error> {
        let Some(question) = self.question(state) else { return Ok(()) };
        let shared = self.store().others(&question)?;
        check(state, &shared, &self.options.day).map_err(|why| self.shared_error(why))
    }

    /// A refusal by such a cap as an error.
    pub(crate) fn shared_error(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::DayCap { unit, used, total } => {
                Error::DayCapReached { unit, used, total, until: self.today().1 }
            }
            other => other.into(),
        }
    }

    /// What has to be known of others before it is decided on these, if anything has.
    pub(crate) fn shared_question(
        &self,
        session: SessionId,
        inputs: &[Input],
    ) -> Result<Option<OthersQuery>, Error> {
        let asks = |input: &Input| is_start(input) || is_end_of_iteration(input);
        if !inputs.iter().any(asks) {
            return Ok(None);
        }
        Ok(self.question(&self.load(session)?.state))
    }

    /// Whether what all sessions of its project use in a day is capped.
    pub(crate) fn is_capped_by_day(&self, state: &State) -> bool {
        let planned = state.looping.as_ref().is_some_and(|looping| {
            looping.plan.caps.day_tokens.is_some() || looping.plan.caps.day_micros.is_some()
        });
        self.options.day.is_set() || planned
    }

    fn question(&self, state: &State) -> Option<OthersQuery> {
        let project = self.is_capped_by_day(state).then(|| (state.project.path.clone(), self.today().0));
        let cap_from = state.cap_from.map(|cap| cap.session);
        (project.is_some() || cap_from.is_some()).then_some(OthersQuery { sessions: None, project, cap_from })
    }

    /// What others used, as it has to be known for these.
    pub(crate) fn day_caps(&self) -> DayCaps {
        self.options.day
    }
}

/// Looks at what others used, and tells a loop of it. Called with the store's newest word.
pub(crate) fn judge(
    inputs: &mut [Input],
    state: &State,
    shared: &OthersView,
    caps: &DayCaps,
) -> Result<(), Refusal> {
    if inputs.iter().any(is_start) {
        check(state, shared, caps)?;
    }
    for input in inputs {
        if let Input::Command(Command::Loop(command)) = input
            && let LoopCommand::EndIteration { observation, .. } = command.as_mut()
        {
            observation.day = DayUse {
                tokens: shared.project.tokens(caps.count),
                micros: shared.project.micros,
                most_tokens: caps.tokens,
                most_micros: caps.micros,
            };
        }
    }
    Ok(())
}

fn is_start(input: &Input) -> bool {
    matches!(input, Input::Command(Command::StartRun(_)))
}

fn is_end_of_iteration(input: &Input) -> bool {
    matches!(input, Input::Command(Command::Loop(command)) if matches!(**command, LoopCommand::EndIteration { .. }))
}

/// Whether a cap is used up that this session shares with others.
fn check(state: &State, shared: &OthersView, caps: &DayCaps) -> Result<(), Refusal> {
    if broken(Guard::Cap) {
        return Ok(());
    }
    if let Some((unit, used, total)) = caps.reached(&shared.project) {
        return Err(Refusal::DayCap { unit, used, total });
    }
    let Some(first) = &shared.cap_from else { return Ok(()) };
    let reached = [used_together(state, first, Unit::Tokens), used_together(state, first, Unit::Cost)];
    match reached.into_iter().flatten().find(|(_, used, total)| used >= total) {
        Some((unit, used, total)) => Err(Refusal::SharedCap { session: first.session_id, unit, used, total }),
        None => Ok(()),
    }
}

/// What is used of a cap that stops by all sessions that go on with it: where it began everything is counted, but what
/// this one used counts as it knows it itself.
fn used_together(state: &State, first: &State, unit: Unit) -> Option<(Unit, u64, u64)> {
    let told = first.below.get(&state.uid.to_string()).copied().unwrap_or_default();
    match unit {
        Unit::Tokens => {
            let (count, total) = (state.budget.count, state.budget.total_budget);
            let mut all = first.budget;
            all.count_as(count, &first.tokens);
            let others = all.tokens_used.saturating_sub(told.tokens.counted(count));
            state.budget.hard.then(|| (unit, others.saturating_add(state.tokens.counted(count)), total))
        }
        Unit::Cost => {
            let total = state.cost.limit_micros.filter(|_| state.cost.hard)?;
            let own = state.cost.used_micros.saturating_sub(state.cap_from.map_or(0, |cap| cap.micros));
            let others = first.cost.used_micros.saturating_sub(told.micros);
            Some((unit, others.saturating_add(own), total))
        }
    }
}

/// The day that a moment is in: when it began there, and when the next one does. Days are longer or shorter when clocks
/// are changed.
fn day_of(now: Timestamp, zone: &TimeZone) -> (Timestamp, Timestamp) {
    const DAY: i64 = 86_400_000_000;
    let here = jiff::Timestamp::from_microsecond(now.as_micros()).ok().map(|at| at.to_zoned(zone.clone()));
    let begins = here.as_ref().and_then(|here| here.start_of_day().ok());
    let next = here.and_then(|here| here.tomorrow().ok()?.start_of_day().ok());
    let moment = |at: jiff::Zoned| Timestamp::from_micros(at.timestamp().as_microsecond());
    let since = begins.map_or_else(
        // No calendar goes that far: a day of UTC.
        || Timestamp::from_micros(now.as_micros() - now.as_micros().rem_euclid(DAY)),
        moment,
    );
    (since, next.map_or_else(|| Timestamp::from_micros(since.as_micros().saturating_add(DAY)), moment))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::utc("UTC0", "2026-11-18T23:59:59Z", "2026-11-18T00:00:00.000000Z", "2026-11-19T00:00:00.000000Z")]
    #[case::ahead(
        "CET-1",
        "2026-11-18T23:30:00Z",
        "2026-11-18T23:00:00.000000Z",
        "2026-11-19T23:00:00.000000Z"
    )]
    #[case::behind(
        "EST5",
        "2026-11-18T03:00:00Z",
        "2026-11-17T05:00:00.000000Z",
        "2026-11-18T05:00:00.000000Z"
    )]
    #[case::a_quarter(
        "<+0545>-5:45",
        "2026-11-18T18:20:00Z",
        "2026-11-18T18:15:00.000000Z",
        "2026-11-19T18:15:00.000000Z"
    )]
    #[case::clocks_go_back(
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "2026-10-25T12:00:00Z",
        "2026-10-24T22:00:00.000000Z",
        "2026-10-25T23:00:00.000000Z"
    )]
    fn days_of_the_user(#[case] tz: &str, #[case] now: &str, #[case] since: &str, #[case] until: &str) {
        let (began, next) = day_of(now.parse().unwrap(), &TimeZone::posix(tz).unwrap());
        assert_eq!((began.to_string().as_str(), next.to_string().as_str()), (since, until));
    }
}
