//! The rules for runs.

use super::answers;
use super::in_doubt;
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
pub(super) fn decide_run(state: &State, command: Command) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::StartRun(started) => {
            limits::name("run", &started.run)?;
            limits::name("agent", &started.agent)?;
            limits::optional_name("version", started.version.as_deref())?;
            limits::optional_name("conversation", started.native_id.as_deref())?;
            limits::optional_name("conversation", started.resumed.as_deref())?;
            limits::json("environment", &started.environment)?;
            if let Some(file) = &started.file {
                limits::line("file", file)?;
            }
            if let Some(running) = state.run.as_ref().filter(|run| run.is_running()) {
                return Err(Refusal::Already(format!(
                    "{} (pid {}) runs in the session already",
                    running.agent, running.pid
                )));
            }
            let agent = started.agent.clone();
            let mut events: Vec<Event> = vec![(*started).into()];
            // Who works is one of the things a session knows; a run by another agent is a switch.
            let another = state.agent.as_ref().is_some_and(|before| *before != agent);
            if another && (state.agents.contains_key(&agent) || state.agents.len() < limits::ENTRIES) {
                events.push(ev::AgentSwitched { from: state.agent.clone(), to: agent }.into());
            }
            Ok(events)
        }
        Command::AdoptRun { run, epoch } => {
            match &state.run {
                Some(mark) if mark.id == run && mark.is_running() => {}
                _ => return Err(Refusal::Unknown { what: "running run", id: run }),
            }
            one(ev::RunAdopted { run, epoch })
        }
        Command::EndRun(ended) => {
            limits::name("run", &ended.run)?;
            limits::name("outcome", &ended.outcome)?;
            limits::optional_name("conversation", ended.native_id.as_deref())?;
            limits::optional_name("model", ended.model.as_deref())?;
            // Whatever was asked of the driver was asked of this run, up to this very moment.
            Ok(in_doubt(state).chain([(*ended).into()]).chain(answers(state, true, None)).collect())
        }
        other => no_rule(&other),
    }
}
