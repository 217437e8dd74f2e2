//! The rules: what follows from a command, given the present state.

mod arrange;
mod budget;
mod check;
mod checkpoint;
mod fact;
mod iteration;
mod looping;
mod question;
mod recovery;
mod run;
mod turn;

use budget::decide_budget;
use check::check_branch;
use check::check_parent;
use check::check_percent;
use check::check_project;
use check::check_step;
use check::check_workflow;
use check::known_phase;
use check::not_empty;
use check::room;
pub use fact::events_of_fact;
use recovery::settle_call;
use run::decide_run;

use crate::command::Command;
use crate::command::Need;
use crate::event as ev;
use crate::event::CheckpointReason;
use crate::event::Event;
use crate::event::FactEvent;
use crate::id::CheckpointId;
use crate::input::Input;
use crate::limits;
use crate::refusal::Refusal;
use crate::state::OpenRequest;
use crate::state::State;
use crate::state::percent_done;
use crate::state::step_of;
use crate::state::weighted;
use crate::status::Status;

/// The first event of a new session, as somebody would like it. Its id is a wish: the store moves it on if it is taken.
pub fn create(creation: ev::SessionCreated) -> Result<Event, Refusal> {
    if let Some(topic) = &creation.topic {
        limits::line("topic", topic)?;
    }
    if let Some(file) = &creation.file {
        limits::line("file", file)?;
    }
    check_project(&creation.project)?;
    if let Some(workflow) = &creation.workflow {
        check_workflow(workflow)?;
    }
    if let Some(phase) = &creation.phase {
        limits::name("phase", phase)?;
        known_phase(creation.workflow.as_ref(), phase)?;
    }
    if creation.budget.total_budget == 0 {
        return Err(Refusal::bad("budget", "a budget is more than 0"));
    }
    check_percent(creation.budget.warn_percent)?;
    check_percent(creation.cost.warn_percent)?;
    if creation.cost.limit_micros == Some(0) {
        return Err(Refusal::bad("cost budget", "a budget is more than 0"));
    }
    // A workflow whose phases are known starts in the first of them unless somebody says otherwise.
    let first = creation.workflow.as_ref().and_then(|workflow| workflow.phases.first().cloned());
    let phase = creation.phase.or(first);
    Ok(ev::SessionCreated { phase, ..creation }.into())
}

/// What follows from a command or a fact: events to record, or why not.
pub fn decide(state: &State, input: impl Into<Input>) -> Result<Vec<Event>, Refusal> {
    match input.into() {
        Input::Command(command) => decide_command(state, command),
        Input::Fact(fact) => {
            let events = events_of_fact(Some(state), fact)?;
            Ok(events.into_iter().map(FactEvent::into_event).collect())
        }
    }
}

fn decide_command(state: &State, command: Command) -> Result<Vec<Event>, Refusal> {
    check_need(state, &command)?;
    match command {
        Command::Pause { reason, details } => one(ev::SessionPaused { reason, details }),
        Command::Resume { reset_breaker, details } => {
            if state.status == Status::Halted && !reset_breaker && state.breaker_holds() {
                return Err(Refusal::BreakerOpen);
            }
            one(ev::SessionResumed {
                breaker_reset: reset_breaker && state.status == Status::Halted,
                details,
            })
        }
        Command::Interrupt { reason, details, at } => {
            if state.driver.is_none() {
                return Err(Refusal::NoDriver);
            }
            Ok(in_doubt(state).chain([ev::SessionInterrupted { reason, details, at }.into()]).collect())
        }
        Command::Halt { reason } => one(ev::SessionHalted { reason }),
        Command::Complete { summary } => Ok(vec![
            checkpoint(state, Some("final"), CheckpointReason::Final, Some(100)),
            ev::SessionCompleted { summary }.into(),
        ]),
        Command::Abort { reason } => one(ev::SessionAborted { reason }),
        Command::Fail { reason } => one(ev::SessionFailed { reason }),
        Command::AttachDriver { epoch, holder } => {
            if state.unknown > 0 {
                return Err(Refusal::NewerEvents { count: state.unknown });
            }
            for text in [&holder.host, &holder.pid_namespace, &holder.boot_id, &holder.what] {
                limits::line_or_empty("driver", text)?;
            }
            // What an earlier driver was asked for is not asked of this one.
            let gone = answers(state, false, Some("its driver was gone"));
            Ok(gone.chain([ev::DriverAttached { epoch, holder }.into()]).collect())
        }
        Command::MakeRequest { request, details } => {
            if state.driver.is_none() {
                return Err(Refusal::NoDriver);
            }
            // A driver does what it was asked for first. Whoever wants another end than that hears so, and does not
            // believe that it will come.
            let other = |open: &&OpenRequest| open.request.leads_to() != request.leads_to();
            if let Some(open) = state.requests.first().filter(other)
                && !request.ends_the_run_only()
            {
                return Err(Refusal::AskedBefore { request: open.request });
            }
            room("open requests", false, state.requests.len(), limits::ENTRIES)?;
            one(ev::RequestMade { request, details })
        }
        Command::AnswerRequest { request, obeyed, details } => {
            if !state.requests.iter().any(|open| open.seq == request) {
                return Err(Refusal::Unknown { what: "open request", id: request.to_string() });
            }
            one(ev::RequestAnswered { request, obeyed, details })
        }
        Command::AskQuestion(asked) => question::ask(state, *asked),
        Command::AnswerQuestion(answered) => question::answer(state, answered),
        Command::CloseQuestion(closed) => question::close(state, closed),
        Command::CountBelow { .. }
        | Command::PriceByList { .. }
        | Command::SetBudget { .. }
        | Command::ExtendBudget { .. } => decide_budget(state, command),
        Command::Arrange(wish) => arrange::arrange(state, wish),
        Command::SetIntent { .. }
        | Command::SetProject { .. }
        | Command::SetGitBranch { .. }
        | Command::SetWorkflow { .. }
        | Command::AdvancePhase { .. }
        | Command::SetStep { .. }
        | Command::StartIteration
        | Command::StartAttempt
        | Command::VerifyPhase { .. }
        | Command::SetWorkflowState { .. }
        | Command::SetProgress { .. } => decide_plan(state, command),
        Command::ReadyCheckpoint(_)
        | Command::FailCheckpoint { .. }
        | Command::PinCheckpoint { .. }
        | Command::DropCheckpoint { .. }
        | Command::InvalidateCheckpoints { .. }
        | Command::RecordRestore(_)
        | Command::RestoreState { .. } => checkpoint::decide_checkpoint(state, command),
        Command::StartRun(_) | Command::AdoptRun { .. } | Command::EndRun(_) => decide_run(state, command),
        Command::SettleCall { call, end, output, evidence } => {
            settle_call(state, call, end, output, evidence)
        }
        Command::Loop(command) => looping::decide_loop(state, *command),
        Command::RecordArtifact { .. }
        | Command::RecordOutput { .. }
        | Command::SetMetric { .. }
        | Command::AddTask { .. }
        | Command::EndTask { .. }
        | Command::SwitchAgent { .. }
        | Command::SetAgentState { .. }
        | Command::SetPosition { .. }
        | Command::ReachMilestone { .. }
        | Command::ReachBreakpoint { .. }
        | Command::ContinueBreakpoint { .. }
        | Command::Decide { .. }
        | Command::SwitchBranch { .. }
        | Command::SetCache { .. }
        | Command::RemoveCache { .. }
        | Command::CreateCheckpoint { .. } => decide_work(state, command),
    }
}

/// The answer to everything that is asked of the driver.
fn answers<'a>(
    state: &'a State,
    obeyed: bool,
    details: Option<&'static str>,
) -> impl Iterator<Item = Event> + 'a {
    state.requests.iter().map(move |open| {
        let details = details.map(Into::into);
        ev::RequestAnswered { request: open.seq, obeyed, details }.into()
    })
}

/// Nobody will hear any more how the open calls ended.
fn in_doubt(state: &State) -> impl Iterator<Item = Event> + '_ {
    state.calls.open.keys().map(|call| {
        let ended = ev::ToolEnded {
            call: call.clone(),
            tool: None,
            end: ev::CallEnd::InDoubt,
            output: None,
            source: ev::Source::Hand,
            evidence: None,
            // It is named as the ledger has it.
            recurs: false,
        };
        Event::from(ended)
    })
}

/// Whether the status lets the command through.
pub fn check_need(state: &State, command: &Command) -> Result<(), Refusal> {
    let status = state.status;
    match command.need() {
        Need::Step(to) if status.may_become(to) => Ok(()),
        Need::Step(to) => Err(Refusal::InvalidTransition { from: status, to }),
        Need::Active if status == Status::Active => match &state.breakpoint {
            Some(waiting) if command.moves_on() => {
                Err(Refusal::AtBreakpoint { name: waiting.name.clone(), doing: command.verb() })
            }
            _ => Ok(()),
        },
        Need::Active if matches!(command, Command::AdvancePhase { .. }) => {
            Err(Refusal::InvalidForPhaseAdvance { status })
        }
        Need::Active => Err(Refusal::NotActive { status, doing: command.verb() }),
        Need::Open if status.is_open() => Ok(()),
        Need::Open => Err(Refusal::Ended { status, doing: command.verb() }),
        Need::Nothing => Ok(()),
    }
}

fn one(event: impl Into<Event>) -> Result<Vec<Event>, Refusal> {
    Ok(vec![event.into()])
}

/// For commands that `decide` sends elsewhere; a test asks every command for its rule.
fn no_rule(command: &Command) -> Result<Vec<Event>, Refusal> {
    Err(Refusal::bad("command", format!("there is no rule to {}", command.verb())))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`decide` sends only these here; a test asks for every rule"
)]
fn decide_plan(state: &State, command: Command) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::SetIntent { intent } => {
            not_empty("intent", &intent)?;
            one(ev::IntentSet { intent })
        }
        Command::SetProject { project } => {
            limits::line("project path", &project.path)?;
            check_project(&project)?;
            one(ev::ProjectSet { project })
        }
        Command::SetGitBranch { branch, commit } => {
            limits::optional_line("branch", branch.as_deref())?;
            limits::optional_name("commit", commit.as_deref())?;
            one(ev::GitBranchSet { branch, commit })
        }
        Command::SetWorkflow { workflow } => {
            check_workflow(&workflow)?;
            one(ev::WorkflowSet { workflow })
        }
        Command::AdvancePhase { to, step, of } => {
            limits::name("phase", &to)?;
            known_phase(state.workflow.as_ref(), &to)?;
            if state.phase.as_deref() == Some(&to) {
                return Err(Refusal::Already(format!("the session is in phase {to} already")));
            }
            let (known_step, known_of) = step_of(state.workflow.as_ref(), Some(&to));
            let of = of.or(known_of).or(state.of.filter(|_| step.is_some()));
            let step = step.or(known_step);
            check_step(step, of)?;
            let advanced = ev::PhaseAdvanced { from: state.phase.clone(), to, step, of };
            // The checkpoint stands for the end of the phase that is left, and carries its name.
            let name = state.phase.clone().unwrap_or_else(|| "start".to_owned());
            let weighted = || weighted(state.workflow.as_ref(), Some(&advanced.to), 0);
            let progress = state.progress_set.or_else(weighted).or_else(|| percent_done(step, of));
            let made = checkpoint(state, Some(&name), CheckpointReason::PhaseComplete, progress);
            Ok(vec![advanced.into(), made])
        }
        Command::SetStep { step, of } => {
            let of = of.or(state.of);
            check_step(Some(step), of)?;
            one(ev::StepSet { step, of })
        }
        Command::StartIteration => {
            // One that was cut short with its driver is begun again.
            let again = state.looping.as_ref().is_some_and(|looping| looping.open) && state.iteration > 0;
            let iteration = if again { state.iteration } else { state.iteration.saturating_add(1) };
            one(ev::IterationStarted { iteration })
        }
        Command::StartAttempt => one(ev::AttemptStarted { attempt: state.attempt.saturating_add(1) }),
        Command::VerifyPhase { phase, check, verdict, details } => {
            limits::name("check", &check)?;
            limits::optional_name("phase", phase.as_deref())?;
            let phase = phase.or_else(|| state.phase.clone());
            one(ev::PhaseVerified { phase, check, verdict, details })
        }
        Command::SetWorkflowState { state: value } => {
            limits::json("workflow state", &value)?;
            one(ev::WorkflowStateSet { state: value })
        }
        Command::SetProgress { percent } => {
            check_percent(percent)?;
            one(ev::ProgressSet { percent })
        }
        other => no_rule(&other),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`decide` sends only these here; a test asks for every rule"
)]
fn decide_work(state: &State, command: Command) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::RecordArtifact { path, artifact_type, phase } => {
            limits::line("path", &path)?;
            if path.starts_with('/') || path.split('/').any(|part| part == "..") {
                return Err(Refusal::bad(
                    "path",
                    "an artifact is named by its path from the project's root on",
                ));
            }
            if artifact_type == ev::Change::Deleted {
                return Err(Refusal::bad("artifact type", "an artifact is created or modified"));
            }
            limits::optional_name("phase", phase.as_deref())?;
            one(ev::ArtifactRecorded { path, artifact_type, phase: phase.or_else(|| state.phase.clone()) })
        }
        Command::RecordOutput { name, kind, content } => {
            limits::name("output", &name)?;
            room("outputs", state.outputs.contains_key(&name), state.outputs.len(), limits::ENTRIES)?;
            one(ev::OutputRecorded { name, kind, content })
        }
        Command::SetMetric { name, value } => {
            limits::name("metric", &name)?;
            if matches!(value, ev::Metric::Number(n) if !n.is_finite()) {
                return Err(Refusal::bad("metric", "it is no finite number"));
            }
            room("metrics", state.metrics.contains_key(&name), state.metrics.len(), limits::ENTRIES)?;
            one(ev::MetricSet { name, value })
        }
        Command::AddTask { text } => {
            not_empty("task", &text)?;
            room("open tasks", false, state.tasks.open.len(), limits::OPEN_TASKS)?;
            one(ev::TaskAdded { task: state.tasks.added.saturating_add(1), text })
        }
        Command::EndTask { task, done } => {
            if !state.tasks.open.contains_key(&task) {
                return Err(Refusal::Unknown { what: "open task", id: task.to_string() });
            }
            one(ev::TaskEnded { task, done })
        }
        Command::SwitchAgent { to } => {
            limits::name("agent", &to)?;
            if state.agent.as_deref() == Some(&to) {
                return Err(Refusal::Already(format!("{to} works on the session already")));
            }
            room("agents", state.agents.contains_key(&to), state.agents.len(), limits::ENTRIES)?;
            let made =
                checkpoint(state, Some(&format!("to {to}")), CheckpointReason::AgentSwitch, state.progress());
            Ok(vec![ev::AgentSwitched { from: state.agent.clone(), to }.into(), made])
        }
        Command::SetAgentState { agent, active, state: value } => {
            limits::name("agent", &agent)?;
            limits::depth("agent state", &value)?;
            room("agents", state.agents.contains_key(&agent), state.agents.len(), limits::ENTRIES)?;
            let others = state.agents.iter().filter(|(name, _)| **name != agent);
            let kept: usize = others.map(|(_, mark)| mark.state.to_string().len()).sum();
            if kept + value.to_string().len() > limits::JSON {
                return Err(Refusal::TooMany { what: "bytes of agent states", limit: limits::JSON });
            }
            one(ev::AgentStateSet { agent, active, state: value })
        }
        Command::SetPosition { file, line } => {
            if let Some(file) = &file {
                limits::line("file", file)?;
            }
            if line == Some(0) {
                return Err(Refusal::bad("line", "lines count from 1"));
            }
            one(ev::PositionSet { file, line })
        }
        Command::ReachMilestone { name, details } => {
            limits::name("milestone", &name)?;
            let made = checkpoint(state, Some(&name), CheckpointReason::Milestone, state.progress());
            Ok(vec![ev::MilestoneReached { name, details }.into(), made])
        }
        Command::ReachBreakpoint { name, details } => {
            limits::name("breakpoint", &name)?;
            if let Some(waiting) = &state.breakpoint {
                return Err(Refusal::Already(format!(
                    "the session waits at breakpoint {} already",
                    waiting.name
                )));
            }
            let made = checkpoint(state, Some(&name), CheckpointReason::Breakpoint, state.progress());
            Ok(vec![ev::BreakpointReached { name, details }.into(), made])
        }
        Command::ContinueBreakpoint { details } => {
            let Some(waiting) = &state.breakpoint else {
                return Err(Refusal::Already("the session waits at no breakpoint".to_owned()));
            };
            one(ev::BreakpointContinued { name: waiting.name.clone(), details })
        }
        Command::Decide { question, choice, reason, alternatives, parent, branch } => {
            not_empty("question", &question)?;
            not_empty("choice", &choice)?;
            if alternatives.len() > limits::ENTRIES {
                return Err(Refusal::TooMany { what: "alternatives", limit: limits::ENTRIES });
            }
            let branch = branch.unwrap_or_else(|| state.decisions.branch.clone());
            check_branch(state, &branch)?;
            check_parent(state, parent)?;
            // On a new branch the decision grows from where work is now.
            let head = |branch: &String| state.decisions.heads.get(branch).copied();
            let parent = parent.or_else(|| head(&branch)).or_else(|| head(&state.decisions.branch));
            let decision = state.decisions.count.saturating_add(1);
            one(ev::DecisionMade { decision, parent, branch, question, choice, reason, alternatives })
        }
        Command::SwitchBranch { branch, from } => {
            check_branch(state, &branch)?;
            check_parent(state, from)?;
            let is_new = !state.decisions.heads.contains_key(&branch);
            let here = state.decisions.heads.get(&state.decisions.branch).copied();
            one(ev::BranchSwitched { branch, from: from.or(here.filter(|_| is_new)) })
        }
        Command::SetCache { key, value } => {
            limits::name("cache key", &key)?;
            limits::depth("cache entry", &value)?;
            room("cache entries", state.cache.contains_key(&key), state.cache.len(), limits::ENTRIES)?;
            let others = state.cache.iter().filter(|(name, _)| **name != key);
            let kept: usize = others.map(|(name, value)| name.len() + value.to_string().len()).sum();
            if kept + key.len() + value.to_string().len() > limits::JSON {
                return Err(Refusal::TooMany { what: "bytes in the cache", limit: limits::JSON });
            }
            one(ev::CacheSet { key, value })
        }
        Command::RemoveCache { key } => {
            if !state.cache.contains_key(&key) {
                return Err(Refusal::Unknown { what: "cache entry", id: key });
            }
            one(ev::CacheRemoved { key })
        }
        Command::CreateCheckpoint { name, reason } => {
            limits::optional_name("checkpoint name", name.as_deref())?;
            let name = name.or_else(|| state.phase.clone());
            Ok(vec![checkpoint(state, name.as_deref(), reason, state.progress())])
        }
        other => no_rule(&other),
    }
}

fn checkpoint(state: &State, name: Option<&str>, reason: CheckpointReason, progress: Option<u8>) -> Event {
    let ordinal = state.counts.checkpoints.saturating_add(1);
    let name = name.unwrap_or(reason.as_str());
    ev::CheckpointCreated {
        id: CheckpointId::new(ordinal, name),
        ordinal,
        name: name.to_owned(),
        reason,
        tool_count: state.calls.total,
        progress,
    }
    .into()
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
