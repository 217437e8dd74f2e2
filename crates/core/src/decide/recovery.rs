//! The rules for coming back.

use super::no_rule;
use super::one;
use crate::command::Command;
use crate::event as ev;
use crate::event::Event;
use crate::limits;
use crate::refusal::Refusal;
use crate::state::State;

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`decide` sends only these here; a test asks for every rule"
)]
pub(super) fn decide_recovery(state: &State, command: Command) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::SettleCall { call, end, output, evidence } => {
            limits::name("call id", &call)?;
            limits::line("evidence", &evidence)?;
            if end == ev::CallEnd::InDoubt {
                return Err(Refusal::bad("end", "what was found out is not in doubt"));
            }
            if !state.calls.in_doubt.contains_key(&call) {
                return Err(Refusal::Unknown { what: "call in doubt", id: call });
            }
            one(ev::ToolEnded {
                call,
                tool: None,
                end,
                output,
                source: ev::Source::Hand,
                evidence: Some(evidence),
                recurs: false,
            })
        }
        Command::ChooseRecovery(chosen) => {
            limits::optional_name("target", chosen.target.as_deref())?;
            for way in &chosen.offered {
                limits::optional_name("target", way.target.as_deref())?;
                limits::line("way", &way.text)?;
                limits::line("loss", &way.loses)?;
            }
            if chosen.offered.len() > limits::WAYS {
                return Err(Refusal::TooMany { what: "ways to go on", limit: limits::WAYS });
            }
            one(*chosen)
        }
        Command::AttemptResume(attempted) => {
            if attempted.attempt == 0 || attempted.attempt > attempted.of {
                return Err(Refusal::bad(
                    "attempt",
                    format!("attempt {} of {}", attempted.attempt, attempted.of),
                ));
            }
            one(attempted)
        }
        other => no_rule(&other),
    }
}
