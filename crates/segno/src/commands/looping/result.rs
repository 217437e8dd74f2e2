//! How a loop came to stand still: for a person, for a program, and as an exit code.

use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::looping::BreakerState;
use segno_engine::core::looping::CapKind;
use segno_engine::core::looping::LoopVerdict;
use segno_engine::core::looping::PersonNeed;
use segno_engine::core::looping::queue_status;
use segno_engine::core::looping::why;
use segno_engine::looping::LoopEnded;
use serde_json::Value;
use serde_json::json;

use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::units;

/// Says how it ended; anything but completed is an exit code of its own.
pub(super) fn report(ctx: &CommandContext<'_>, ended: &LoopEnded) -> Outcome {
    let printer = &ctx.context.printer;
    let (exit, word) = exit_of(ended);
    if printer.is_json() {
        let mut document = document(ended, exit, word);
        ctx.engine.redactor().json(&mut document);
        printer.json_line(&document)?;
    } else {
        super::queue::summary(ctx, &ended.state)?;
        printer.talk(summary(&ended.state));
    }
    ctx.finish();
    if exit == ExitCode::Ok {
        let id = ctx.engine.ending(ended.state.session_id);
        let has_queue = ended.state.looping.as_ref().is_some_and(|looping| looping.plan.queue.is_some());
        printer.hint(match has_queue {
            // The work was done in the sessions of its items, which are named above.
            true => format!("segno loop status {id}   segno ls --all   segno cost --by session"),
            false => {
                format!("segno show {id}   segno cost --by phase --session {id}   segno undo --session {id}")
            }
        });
        return Ok(());
    }
    let why = format!("the loop stands still: {}: {}", word.replace('_', " "), why_alone(ended));
    let mut error = CommandError::new(exit, word, why).hint(hint(ctx, ended));
    if exit != ExitCode::LoopHalted && ended.state.status.is_open() && is_breaker_open(&ended.state) {
        let id = ctx.engine.ending(ended.state.session_id);
        error = error.hint(format!(
            "segno breaker status {id}   its breaker is open too: what is tried next must bring something"
        ));
    }
    Err(error)
}

/// Why it stands still, without the line of its last iteration: that was said when it ended.
fn why_alone(ended: &LoopEnded) -> String {
    let line = ended.state.looping.as_ref().and_then(|looping| looping.line.as_ref());
    let more = line.and_then(|line| ended.why.strip_prefix(line.as_str()));
    match (&ended.verdict, more) {
        (Some(verdict), Some(more)) => format!("{}{more}", why(verdict)),
        _ => ended.why.clone(),
    }
}

fn exit_of(ended: &LoopEnded) -> (ExitCode, &'static str) {
    match (&ended.verdict, ended.state.status) {
        (Some(LoopVerdict::Complete), Status::Completed) => (ExitCode::Ok, "completed"),
        // Somebody ended it meanwhile, whatever its gate says.
        (_, Status::Completed | Status::Aborted | Status::Failed) => (ExitCode::RunStopped, "stopped"),
        (Some(LoopVerdict::Halt { .. }), _) | (_, Status::Halted) => (ExitCode::LoopHalted, "halted"),
        (Some(LoopVerdict::NeedsPerson { .. }), _) => (ExitCode::NeedsPerson, "needs_person"),
        (Some(LoopVerdict::Park { .. } | LoopVerdict::BackOff { .. }), _) => (ExitCode::RunLimit, "parked"),
        (Some(LoopVerdict::Cap { which, .. }), _) => match which {
            CapKind::Iterations | CapKind::PhaseIterations => (ExitCode::RunMaxTurns, "max_iterations"),
            CapKind::Seconds | CapKind::PhaseSeconds => (ExitCode::RunTimedOut, "timed_out"),
            CapKind::IterationTokens
            | CapKind::IterationMoney
            | CapKind::DayTokens
            | CapKind::DayMoney
            | CapKind::Budget => (ExitCode::BudgetExhausted, "budget"),
            CapKind::Plan => (ExitCode::RunLimit, "plan_share"),
        },
        _ if waits(ended).is_some() => (ExitCode::RunLimit, "parked"),
        _ => (ExitCode::RunStopped, "stopped"),
    }
}

/// Until when it waits, if it is parked with a time.
fn waits(ended: &LoopEnded) -> Option<segno_engine::core::Timestamp> {
    let looping = ended.state.looping.as_ref().filter(|_| ended.state.status == Status::Paused)?;
    looping.parked.as_ref()?.until
}

/// What can be typed next.
fn hint(ctx: &CommandContext<'_>, ended: &LoopEnded) -> String {
    let id = ctx.engine.ending(ended.state.session_id);
    if ended.state.breakpoint.is_some() {
        return format!(
            "look at it, then: segno breakpoint continue --session {id}   and: segno resume {id}"
        );
    }
    if ended.state.status.is_terminal() {
        return format!("segno show {id}   segno gate show {id}");
    }
    match exit_of(ended).0 {
        ExitCode::LoopHalted => {
            format!("segno resume {id}   shows the ways out   (or: segno breaker status {id}, and why)")
        }
        ExitCode::NeedsPerson if cannot_act(ended) => {
            let seen = ended.state.looping.as_ref().and_then(|looping| looping.last.as_ref());
            let rules = seen.map(|seen| seen.allow.clone()).unwrap_or_default();
            let rules = if rules.is_empty() { "\u{2026}".to_owned() } else { rules.join("\", \"") };
            format!(
                "allow it in the agent's own settings, or in yours: [run] permissions = \"deny\", \
                 allow = [\"{rules}\"]   then: segno resume {id}"
            )
        }
        ExitCode::BudgetExhausted => match ctx.cap_hint(&ended.state) {
            // Money alone does not close a breaker.
            Some(more) if is_breaker_open(&ended.state) => {
                format!("{more}   segno breaker reset {id}   then: segno resume {id}")
            }
            Some(more) => format!("{more}   then: segno resume {id}"),
            // One iteration used more than one may: the next has as much again.
            None => format!("segno show {id} --runs   then: segno resume {id}"),
        },
        ExitCode::RunMaxTurns => format!("segno loop status {id}   segno loop resume {id} --more 10"),
        ExitCode::RunTimedOut => format!("segno loop status {id}   segno loop resume {id} --more-time 1h"),
        ExitCode::RunLimit => format!("segno loop resume {id}   goes on when it is due, with --now at once"),
        _ => format!("segno loop status {id}   segno resume {id}"),
    }
}

/// Whether its breaker is open, whatever else it stands still for.
fn is_breaker_open(state: &State) -> bool {
    state.looping.as_ref().is_some_and(|looping| looping.breaker.state == BreakerState::Open)
}

/// Whether all that its agent tried was denied.
fn cannot_act(ended: &LoopEnded) -> bool {
    matches!(ended.verdict, Some(LoopVerdict::NeedsPerson { need: PersonNeed::CannotAct, .. }))
}

/// One document, as the last line of `--json`.
fn document(ended: &LoopEnded, exit: ExitCode, word: &str) -> Value {
    let state = &ended.state;
    let looping = state.looping.as_ref();
    json!({
        "kind": "result",
        "outcome": word,
        "exit_code": exit.number(),
        "reason": ended.why,
        "session_id": state.session_id,
        "session_status": state.status,
        "verdict": ended.verdict,
        "phase": state.phase,
        "phases_completed": state.phases_completed,
        "iterations": looping.map(|looping| looping.total),
        "tests": looping.and_then(|looping| looping.tests.as_ref()),
        "gate": looping.and_then(|looping| looping.gate.as_ref()),
        "breaker": looping.map(|looping| &looping.breaker),
        "waiting_until": waits(ended),
        "items": looping.and_then(|looping| queue_status(looping, state.updated_at)).map(|queue| queue.items),
        "tokens": state.tokens,
        "cost_micros": state.cost.used_micros,
        "unpriced_tokens": state.unpriced_tokens(),
    })
}

fn summary(state: &State) -> String {
    let iterations = state.looping.as_ref().map_or(0, |looping| looping.total);
    let tests =
        state.looping.as_ref().and_then(|looping| looping.tests.as_ref()).filter(|tests| tests.total > 0);
    let tests =
        tests.map_or_else(String::new, |tests| format!("   {} of {} tests pass", tests.passed, tests.total));
    let (tokens, micros, unpriced) = (state.tokens.total(), state.cost.used_micros, state.unpriced_tokens());
    let used = match iterations > 0 && tokens == 0 && micros == 0 {
        // An agent that tells nothing has not worked for nothing.
        true => "what it used its agent does not tell".to_owned(),
        false => format!("{}   {}", units::tokens(tokens), units::money(micros, unpriced)),
    };
    format!(
        "  {} {}   {}{tests}   {used}",
        state.status,
        short(state.session_id),
        units::things(iterations, "iteration"),
    )
}
