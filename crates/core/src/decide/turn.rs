//! The beginning of an iteration with an account that other loops use too.

use super::one;
use crate::event as ev;
use crate::event::Event;
use crate::event::PauseReason;
use crate::id::SessionId;
use crate::limits;
use crate::looping::AccountLoop;
use crate::looping::AccountTurn;
use crate::looping::LoopState;
use crate::looping::ParkReason;
use crate::looping::account_turn;
use crate::looping::another;
use crate::looping::moment;
use crate::looping::next_open;
use crate::looping::spread;
use crate::refusal::Refusal;
use crate::state::State;
use crate::text::Text;
use crate::time::Timestamp;

/// Who is to work, and what the others do.
pub(super) struct Turn {
    pub(super) account: String,
    pub(super) agent: String,
    pub(super) others: Vec<AccountLoop>,
    pub(super) at: Timestamp,
    pub(super) jitter: u64,
    pub(super) now: bool,
}

/// An iteration begins; or, where another loop knows that the account is at its limit, another agent takes over, or it
/// waits for the same time. Nobody has to run into a limit that is known.
pub(super) fn take_turn(state: &State, looping: &LoopState, turn: &Turn) -> Result<Vec<Event>, Refusal> {
    limits::name("account", &turn.account)?;
    limits::name("agent", &turn.agent)?;
    // Who was woken although others wait on was woken by a person, who wants to know: the waking looked at the others.
    let tries = looping.tries.as_deref() == Some(turn.account.as_str());
    match account_turn(state.session_id, &turn.account, &turn.others, turn.at) {
        AccountTurn::Later { until, session } if !tries && !turn.now => {
            Ok(instead(looping, turn, until, session))
        }
        // It did not wait for that account itself, and may find out what it is like.
        AccountTurn::Later { .. } | AccountTurn::Behind { .. } | AccountTurn::Go => {
            // One that was cut short with its driver is begun again.
            let again = looping.open && state.iteration > 0;
            let iteration = if again { state.iteration } else { state.iteration.saturating_add(1) };
            one(ev::IterationStarted { iteration })
        }
    }
}

fn instead(looping: &LoopState, turn: &Turn, until: Timestamp, knows: SessionId) -> Vec<Event> {
    let words = known_by(knows, until);
    if let Some(to) = another(looping, Some(&turn.agent), turn.at) {
        let from_agent = Some(turn.agent.clone());
        return vec![ev::HandedOver { from_agent, to_agent: to, why: words, until: Some(until) }.into()];
    }
    // The other one wakes first: what it waits for has its own spread, and this one comes behind.
    let until = next_open(&looping.plan.limits, until.plus_seconds(spread(turn.jitter)));
    let details = Some(Text::from(words.as_str()));
    let parked = ev::LoopParked {
        until: Some(until),
        class: ParkReason::Plan,
        account: Some(turn.account.clone()),
        window: None,
        windows_waited: looping.windows_waited,
        words,
    };
    vec![parked.into(), ev::SessionPaused { reason: PauseReason::Limit, details }.into()]
}

/// In words.
pub(super) fn known_by(session: SessionId, until: Timestamp) -> String {
    format!("its account is at its limit: {session} waits for it until {}", moment(until))
}
