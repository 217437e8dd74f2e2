//! Where a loop stands.

use segno_engine::core::State;
use segno_engine::core::looping::BreakerState;
use segno_engine::core::looping::BreakerStatus;
use segno_engine::core::looping::GateResult;
use segno_engine::core::looping::LoopStatus;
use segno_engine::core::looping::loop_status;
use serde_json::json;

use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::commands::args::SessionRef;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// The heights of a small chart.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Runs `segno loop status`.
pub(super) fn run(context: &Context, id: Option<&SessionRef>) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let state = ctx.load(ctx.loop_to_read(id)?)?;
    let status = the_status(&ctx, &state)?;
    let printer = &context.printer;
    if printer.is_json() {
        let mut document = serde_json::to_value(&status).unwrap_or_default();
        document["session_id"] = json!(state.session_id);
        document["topic"] = json!(state.topic);
        document["timer_armed"] = json!(super::watch::timer_armed(&ctx));
        return printer.json(&document);
    }
    printer.data(format!(
        "{}  {}   {}   workflow {}",
        short(state.session_id),
        state.topic.as_deref().unwrap_or(""),
        status.status,
        status.workflow
    ))?;
    if let Some(queue) = &status.queue {
        super::queue::status(&ctx, &status, queue)?;
        ctx.finish();
        return Ok(());
    }
    if let (Some(item), Some(parent)) = (&status.item, status.parent) {
        printer.data(format!("  item       {} of loop {}", item.id, short(parent)))?;
    }
    printer.data(phases(&status))?;
    let most = status.most.map_or_else(String::new, |most| format!(" of at most {most}"));
    printer.data(format!(
        "  iteration  {} in {}; {}{most} done",
        status.iteration, status.phase, status.total
    ))?;
    if let Some(tests) = tests(&status) {
        printer.data(tests)?;
    }
    if let Some(gate) = &status.gate {
        gate_lines(context, gate)?;
    }
    printer.data(format!("  breaker    {}", breaker_words(&status.breaker)))?;
    printer.data(format!("  used       {}", used(&status)))?;
    if let Some(budget) = budget(&ctx, &state) {
        printer.data(format!("  budget     {budget}"))?;
    }
    if let Some(words) = &status.waiting_for {
        let left = status.countdown.as_deref().unwrap_or("until you say so");
        printer.data(format!("  waits      {left}: {words}"))?;
        if status.waiting_until.is_some() {
            let timer = super::watch::timer_armed(&ctx);
            let words =
                if timer { "the timer of segno schedule" } else { "no timer: segno schedule installs one" };
            printer.data(format!(
                "  woken by   {words}, the process that waits for it, or segno loop resume --due"
            ))?;
        }
    }
    for (index, note) in status.notes.iter().enumerate() {
        let again =
            if index < status.told_before { "   (told again: its iteration was cut short)" } else { "" };
        printer.data(format!("  note       {note}{again}"))?;
    }
    if let Some(line) = &status.line {
        printer.data(format!("  last       {line}"))?;
    }
    printer.data(format!("  next       {}", status.next))?;
    ctx.finish();
    Ok(())
}

/// Where the loop of a session stands.
pub(in crate::commands) fn the_status(ctx: &CommandContext<'_>, state: &State) -> Outcome<LoopStatus> {
    loop_status(state, ctx.engine.now()).ok_or_else(|| {
        let why = format!("{} is no loop", short(state.session_id));
        CommandError::new(ExitCode::Refused, "no_loop", why).hint("segno loop --help")
    })
}

/// What it used, in one line. An agent that tells nothing has not worked for nothing.
pub(super) fn used(status: &LoopStatus) -> String {
    if status.total > 0 && status.tokens == 0 && status.cost_micros == 0 {
        return "its agent does not tell".to_owned();
    }
    let cost = units::money(status.cost_micros, status.unpriced);
    format!("{}   {cost}", units::tokens(status.tokens))
}

/// What of its caps is used, as far as it has some: of the session, and of the day.
fn budget(ctx: &CommandContext<'_>, state: &State) -> Option<String> {
    let day = ctx.engine.day_stand(&state.project.path).ok();
    let capped = state.budget.hard || state.cost.limit_micros.is_some();
    let today = day.as_ref().is_some_and(|day| day.caps.is_set());
    (capped || today).then(|| super::live::used(state, day.as_ref(), 0).join("   "))
}

/// The phases as a bar.
fn phases(status: &LoopStatus) -> Text {
    let mut text = Text::new().plain("  phases     ");
    for (index, phase) in status.phases.iter().enumerate() {
        if index > 0 {
            text = text.painted(Meaning::Dim, " → ");
        }
        let (mark, meaning) = match phase.state {
            "now" => ("▸ ", Meaning::Strong),
            "done" => ("✓ ", Meaning::Done),
            "skipped" => ("– ", Meaning::Waiting),
            _ => ("", Meaning::Dim),
        };
        text = text.painted(meaning, format!("{mark}{}", phase.name));
    }
    text
}

/// Tests over the newest iterations, as a small chart.
fn tests(status: &LoopStatus) -> Option<String> {
    let counts = status.tests.as_ref().filter(|tests| tests.total > 0)?;
    let chart: String = status
        .recent
        .iter()
        .filter_map(|recent| recent.tests.filter(|(_, all)| *all > 0))
        .map(|(passed, all)| {
            let height = usize::try_from(passed.saturating_mul(7) / all).unwrap_or(0);
            BARS[height.min(BARS.len() - 1)]
        })
        .collect();
    let chart = if chart.is_empty() { chart } else { format!("{chart} ") };
    Some(format!("  tests      {chart}{} of {} pass, {} fail", counts.passed, counts.total, counts.failed))
}

/// Each condition of a gate with its value.
pub(in crate::commands) fn gate_lines(context: &Context, gate: &GateResult) -> Outcome {
    let printer = &context.printer;
    for condition in &gate.conditions {
        let (mark, meaning) = if condition.holds { ("✓", Meaning::Done) } else { ("✗", Meaning::Lost) };
        let text = Text::new().plain("  gate       ").painted(meaning, mark).plain(format!(
            " {}: {}{}",
            condition.name,
            condition.value,
            if condition.holds { String::new() } else { format!(" (wanted: {})", condition.wanted) }
        ));
        printer.data(text)?;
    }
    if let Some(said) = gate.gate_2 {
        let words = if said {
            "✓ the agent says that it is done"
        } else {
            "✗ the agent has not said that it is done"
        };
        printer.data(format!("  gate       {words}"))?;
    }
    for warning in &gate.warnings {
        printer.data(format!("  gate       ! {warning}"))?;
    }
    Ok(())
}

/// Where the breaker stands, and which counter stands where.
pub(crate) fn breaker_words(breaker: &BreakerStatus) -> String {
    let counted: Vec<String> = breaker
        .counters
        .iter()
        .filter(|counter| counter.value > 0)
        .map(|counter| format!("{} {} of {}", counter.name, counter.value, counter.limit))
        .collect();
    let state = breaker.state.as_str();
    match &breaker.reason {
        Some(reason) if breaker.state == BreakerState::Open => format!("{state}: {reason}"),
        _ if counted.is_empty() => state.to_owned(),
        _ => format!("{state}   {}", counted.join(", ")),
    }
}
