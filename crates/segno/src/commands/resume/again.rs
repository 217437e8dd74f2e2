//! Taking an agent up again by itself when it dies, so many times and no more.

use std::time::Duration;
use std::time::Instant;

use segno_engine::agents::Limit;
use segno_engine::agents::LimitClass;
use segno_engine::agents::OutcomeKind;
use segno_engine::agents::is_command;
use segno_engine::core::Command;
use segno_engine::core::Fact;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::event::ResumeAttempted;
use segno_engine::resume::BranchWish;
use segno_engine::resume::Recovery;
use segno_engine::resume::ResumeWish;
use segno_engine::run::Report;
use segno_engine::run::Stop;

use super::take_up;
use crate::ask::Terminal;
use crate::command_context::CommandContext;
use crate::commands::run::Args as RunArgs;
use crate::commands::run::Resumed;
use crate::commands::run::agent_is_there;
use crate::commands::run::has_terminal;
use crate::commands::run::in_between;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::units;

/// How often a waiting driver looks whether somebody has decided otherwise.
const LOOK: Duration = Duration::from_millis(100);

/// How often, and after how long.
#[derive(Clone, Copy, Debug)]
struct Policy {
    attempts: u64,
    delay: Duration,
}

/// The policy that flag and configuration make; none if it is switched off.
fn policy(context: &Context, flag: Option<Option<u32>>) -> Outcome<Option<Policy>> {
    let config = &context.config()?.resume;
    let attempts = match flag {
        Some(Some(attempts)) => attempts,
        Some(None) => config.attempts,
        None if config.auto => config.attempts,
        None => 0,
    };
    let delay = Duration::from_secs(config.delay_seconds);
    Ok((attempts > 0).then_some(Policy { attempts: u64::from(attempts), delay }))
}

/// Takes the agent of a run that ended up again as long as it dies of itself and attempts are left. Answers with how
/// the last run went.
pub(crate) fn again(
    ctx: &CommandContext<'_>,
    base: &RunArgs,
    session: SessionId,
    mut report: Report,
    stop: &Stop,
) -> Outcome<Report> {
    let Some(policy) = policy(ctx.context, base.auto_resume)? else { return Ok(report) };
    let printer = &ctx.context.printer;
    let mut attempt = 0;
    loop {
        let state = ctx.load(session)?;
        let printed = state.seq;
        if !died(&report, &state, stop) {
            return Ok(report);
        }
        if let Some(why) = hindrance(&state, report.outcome.limit.as_ref()) {
            printer.warn(format!("the agent died and is not restarted: {why}"));
            return Ok(report);
        }
        if attempt == policy.attempts {
            let attempts = units::things(policy.attempts, "attempt");
            let reason = format!("{attempts} to restart it used up: {}", report.outcome.reason);
            let acted = ctx.engine.act(session, Command::Fail { reason: Some(reason.as_str().into()) })?;
            printer.warn(format!("the session has failed: {reason}"));
            report.state = acted.state;
            return Ok(report);
        }
        attempt += 1;
        in_between(ctx, base, &report);
        printer.warn(format!(
            "the agent died ({}); it restarts in {}, attempt {attempt} of {}",
            report.outcome.reason,
            units::duration(policy.delay),
            policy.attempts
        ));
        if !wait(ctx, &state, policy.delay, stop)? {
            printer.warn("it is not restarted: the session was stopped meanwhile");
            return Ok(report);
        }
        let attempted = ResumeAttempted {
            attempt,
            of: policy.attempts,
            delay_ms: u64::try_from(policy.delay.as_millis()).unwrap_or(u64::MAX),
            why: report.outcome.reason.as_str().into(),
        };
        ctx.engine.act(session, Fact::ResumeAttempted(attempted))?;
        let run = state.run.as_ref();
        let wish = ResumeWish {
            from: Some(Recovery::Live),
            interactive: run.is_some_and(|run| run.interactive) && has_terminal(),
            branch: BranchWish::Any,
            automatic: true,
            ..ResumeWish::default()
        };
        let is_there = agent_is_there(ctx.context)?;
        let resumption = ctx.engine.prepare_resume(session, &wish, &Terminal::new(ctx.context), &is_there)?;
        let Some(agent) = resumption.agent else { return Ok(report) };
        let interactive = wish.interactive;
        let resumed = Resumed { session, agent, reset_breaker: false, interactive, printed: Some(printed) };
        report = take_up(ctx, base, resumed, stop)?;
    }
}

/// Whether the agent died of itself, and nobody has wished anything since.
fn died(report: &Report, state: &State, stop: &Stop) -> bool {
    report.outcome.outcome == OutcomeKind::Interrupted
        && state.status == Status::Interrupted
        && state.run.as_ref().is_some_and(|run| run.id == report.run)
        && stop.asked().0 == 0
}

/// Why an agent that died is left alone.
fn hindrance(state: &State, limit: Option<&Limit>) -> Option<&'static str> {
    if let Some(limit) = limit.filter(|limit| !limit.is_transient()) {
        Some(match limit.class {
            LimitClass::Plan => "a window of its plan is used up",
            LimitClass::Pay => "there is nothing left to pay its provider with",
            LimitClass::Auth => "its provider does not let it in",
            LimitClass::Budget => "its own cap is used up",
            LimitClass::Setup => "it cannot start like this",
            LimitClass::Transient | LimitClass::Overload => "its provider refuses",
        })
    } else if state.run.as_ref().is_some_and(|run| is_command(&run.agent)) {
        Some("a plain command cannot be told where it was")
    } else if state.budget.is_exhausted() || state.cost.is_exhausted() || state.is_cost_unknown() {
        Some("its budget is used up")
    } else {
        None
    }
}

/// Waits; false if somebody asks to stop, or does something else with the session meanwhile.
fn wait(ctx: &CommandContext<'_>, before: &State, delay: Duration, stop: &Stop) -> Outcome<bool> {
    let _signals = crate::commands::run::listen(stop)?;
    let until = Instant::now() + delay;
    loop {
        let state = ctx.load(before.session_id)?;
        let taken = ctx.engine.lease(before.session_id)?;
        let same = state.run.as_ref().map(|run| &run.id) == before.run.as_ref().map(|run| &run.id);
        if stop.asked().0 > 0 || state.status != Status::Interrupted || taken.is_some() || !same {
            return Ok(false);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(true);
        }
        std::thread::sleep(left.min(LOOK));
    }
}
