//! Loops that share an account. Whose turn it is is decided in the transaction in which one of them goes on.

use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Summary;
use segno_core::event::Maker;
use segno_core::limits;
use segno_core::looping::AccountLoop;
use segno_core::looping::AccountTurn;
use segno_core::looping::DueLoops;
use segno_core::looping::LoopCommand;
use segno_core::looping::account_turn;
use segno_core::text::shorten;
use segno_store::Filter;

use crate::Acted;
use crate::Engine;
use crate::Error;
use crate::launch::LaunchSettings;
use crate::lease::Driver;

/// The account that an agent works with: the agent and the home that its configuration and its login are in. What is in
/// that home is never read.
pub(crate) fn account_of(agent: &str, settings: &LaunchSettings) -> String {
    let home = segno_agents::home_variable(agent).and_then(|name| settings.variable_of(agent, name));
    let name = home.map_or_else(|| agent.to_owned(), |home| format!("{agent} in {home}"));
    shorten(&name, limits::NAME)
}

/// Where loops are found that wait for an account, or try one.
fn loops() -> Filter {
    Filter { statuses: vec![Status::Active, Status::Paused], made_by: Some(Maker::Loop), ..Filter::default() }
}

fn sharing(summaries: &[Summary]) -> Vec<AccountLoop> {
    summaries.iter().filter_map(AccountLoop::of).collect()
}

impl Engine {
    /// The loops that wait for a time, and those whose time has come, by account.
    ///
    /// # Errors
    /// If the sessions cannot be listed.
    pub fn due_loops(&self) -> Result<Vec<DueLoops>, Error> {
        let filter = Filter { statuses: vec![Status::Paused], ..loops() };
        Ok(segno_core::looping::due_in_order(&self.list(&filter)?, self.now()))
    }

    /// Whether a parked loop would have to stay behind another one of its account, as far as can be told without
    /// deciding it.
    ///
    /// # Errors
    /// If the sessions cannot be listed.
    pub fn loop_is_behind(&self, state: &State) -> Result<Option<SessionId>, Error> {
        let parked = state.looping.as_ref().and_then(|looping| looping.parked.as_ref());
        let Some(account) = parked.and_then(|parked| parked.account.as_deref()) else { return Ok(None) };
        let others = sharing(&self.list(&loops())?);
        match account_turn(state.session_id, account, &others, self.now()) {
            AccountTurn::Behind { session } => {
                // One whose driver died tries nothing any more.
                self.settle_session(session)?;
                Ok(Some(session))
            }
            AccountTurn::Go | AccountTurn::Later { .. } => Ok(None),
        }
    }

    /// Does what a loop is asked for with a view of the loops that share an account, in one transaction.
    pub(crate) fn act_by_account(
        &self,
        driver: &Driver<'_>,
        command: impl Fn(Vec<AccountLoop>) -> LoopCommand + Send + 'static,
    ) -> Result<Acted, Error> {
        self.act_with_others(driver, loops(), move |_, others| Ok(Some(command(sharing(others)))))
    }
}
