//! The parts of a session beside the talk.

use std::time::Duration;

use segno_engine::core::State;
use segno_engine::core::Timestamp;
use segno_engine::core::call::subject;
use segno_engine::core::event::Verdict;
use segno_engine::core::looping::LoopStatus;
use segno_engine::core::looping::loop_status;
use segno_engine::core::rows::CheckpointRow;
use segno_engine::core::rows::DecisionRow;
use segno_engine::core::rows::RunRow;
use segno_engine::core::rows::ToolRow;
use segno_engine::core::state::OpenCall;

use super::age;
use super::clock;
use super::talk::rule;
use crate::commands::budget;
use crate::commands::looping::breaker_words;
use crate::output::Text;
use crate::output::event_words;
use crate::output::style::Meaning;
use crate::output::units;
use crate::top::look;
use crate::top::state::Top;

/// The heights of a small chart.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn dim(text: impl Into<String>) -> Text {
    Text::new().painted(Meaning::Dim, text)
}

/// A name and what it is, one below the other.
fn fact(name: &str, value: impl Into<Text>) -> Text {
    Text::new().painted(Meaning::Dim, format!("{name:<12}")).then(value)
}

/// Calls: those in doubt first, then the open ones, then the newest.
pub(super) fn ledger(top: &Top, state: &State, rows: &[ToolRow], width: usize) -> Vec<Text> {
    let calls = &state.calls;
    let open = calls.open.len() as u64 + calls.open_beyond;
    let mut lines = vec![dim(format!(
        "{}: {} completed, {} failed, {} denied, {open} open, {} in doubt",
        units::things(calls.total, "call"),
        calls.completed,
        calls.failed,
        calls.denied,
        calls.in_doubt.len(),
    ))];
    if !calls.in_doubt.is_empty() {
        lines.push(rule("in doubt: nobody knows whether these were done", width));
        let all = calls.in_doubt.values();
        lines.extend(all.map(|call| pending(top, call, ("?", "in doubt", Meaning::Waiting), width)));
    }
    if !calls.open.is_empty() {
        lines.push(rule("open", width));
        lines.extend(
            calls.open.values().map(|call| pending(top, call, ("…", "running", Meaning::Plain), width)),
        );
    }
    lines.push(rule("newest first", width));
    let ended = rows.iter().filter(|row| !matches!(row.state.as_str(), "open" | "in_doubt"));
    lines.extend(ended.map(|row| tool(top, row, width)));
    lines
}

fn pending(top: &Top, call: &OpenCall, (mark, word, meaning): (&str, &str, Meaning), width: usize) -> Text {
    let what = serde_json::from_str(&call.input).map_or_else(|_| call.input.clone(), |it| subject(&it));
    let left = dim(format!("{} ", clock(top, call.at)))
        .painted(meaning, format!("{mark} {}  ", call.tool))
        .plain(what);
    let ahead = if call.write_ahead { "" } else { "  observed" };
    sided(left, dim(format!("{}  {word}{ahead}", age(top, call.at))), width)
}

fn tool(top: &Top, row: &ToolRow, width: usize) -> Text {
    let (mark, meaning) = match row.state.as_str() {
        "completed" => ("▸", Meaning::Plain),
        "denied" => ("✗", Meaning::Lost),
        _ => ("✗", Meaning::Waiting),
    };
    let at = row.started_at.or(row.ended_at).unwrap_or(Timestamp::EPOCH);
    let what = row.input.as_ref().map(subject).unwrap_or_default();
    let left =
        dim(format!("{} ", clock(top, at))).painted(meaning, format!("{mark} {}  ", row.tool)).plain(what);
    let mut result = Vec::new();
    if let (Some(from), Some(to)) = (row.started_at, row.ended_at) {
        result.push(units::duration(Duration::from_micros(to.micros_since(from))));
    }
    if row.state != "completed" {
        result.push(row.state.clone());
    }
    if let Some(evidence) = &row.evidence {
        result.push(format!("by {evidence}"));
    }
    sided(left, dim(result.join("  ")), width)
}

/// Something at the left and something at the right of one line.
fn sided(left: Text, right: Text, width: usize) -> Text {
    let right = right.cut(width / 2);
    let room = width.saturating_sub(look::width(&right) + 1);
    look::fit(left, room).plain(" ").then(right)
}

/// Phases, gate and breaker, with why.
pub(super) fn phases(top: &Top, state: &State) -> Vec<Text> {
    let mut lines = Vec::new();
    match loop_status(state, top.now) {
        Some(status) => looped(&status, &mut lines),
        None => plain_phases(state, &mut lines),
    }
    if let Some(reason) = &state.reason {
        let details = reason.details.as_deref().map_or(String::new(), |details| format!(": {details}"));
        lines.push(fact("stands at", format!("{}, {}{details}", state.status, reason.what)));
    }
    if let Some(point) = &state.breakpoint {
        let words = format!("at breakpoint {} for {}; a answers", point.name, age(top, point.since));
        lines.push(fact("waits", Text::new().painted(Meaning::Waiting, words)));
    }
    if let Some(stop) = &state.recovery {
        let words = format!("{}, {}", clock(top, stop.interrupted_at), stop.interrupt_reason);
        lines.push(fact("last stop", words));
    }
    for (number, task) in &state.tasks.open {
        lines.push(fact("task", format!("{number}  {task}")));
    }
    if state.errors.count > 0 {
        let message = state.errors.message.clone().unwrap_or_default();
        let text = format!("{}, the last: {message}", units::things(state.errors.count, "error"));
        lines.push(fact("errors", Text::new().painted(Meaning::Waiting, text)));
    }
    if lines.is_empty() {
        lines.push(dim("this session has no phases"));
    }
    lines
}

fn plain_phases(state: &State, lines: &mut Vec<Text>) {
    if let Some(workflow) = &state.workflow {
        lines.push(fact("workflow", workflow.name.clone()));
        for phase in &workflow.phases {
            let now = state.phase.as_ref() == Some(phase) && state.status.is_open();
            let (mark, meaning) = match (now, state.phases_completed.contains(phase)) {
                (true, _) => ("▸", Meaning::Strong),
                (_, true) => ("✓", Meaning::Done),
                _ => (" ", Meaning::Dim),
            };
            lines.push(Text::new().plain("  ").painted(meaning, format!("{mark} {phase}")));
        }
    }
    if let Some(label) = state.phase_label() {
        lines.push(fact(
            "phase",
            format!("{label}   iteration {}, attempt {}", state.iteration, state.attempt),
        ));
    }
    for (check, verdict) in &state.verification {
        let (mark, meaning) = match verdict {
            Verdict::Pass => ("✓", Meaning::Done),
            Verdict::Skip => ("–", Meaning::Waiting),
            Verdict::Fail => ("✗", Meaning::Lost),
        };
        lines.push(fact(
            "check",
            Text::new().painted(meaning, format!("{mark} {check} {}", verdict.as_str())),
        ));
    }
}

fn looped(status: &LoopStatus, lines: &mut Vec<Text>) {
    lines.push(fact("workflow", status.workflow.clone()));
    for phase in &status.phases {
        let (mark, meaning) = match phase.state {
            "now" => ("▸", Meaning::Strong),
            "done" => ("✓", Meaning::Done),
            "skipped" | "sent back" => ("–", Meaning::Waiting),
            _ => (" ", Meaning::Dim),
        };
        let mut used = Vec::new();
        if phase.iterations > 0 {
            used.push(units::things(phase.iterations, "iteration"));
        }
        if phase.tokens > 0 {
            used.push(units::tokens(phase.tokens));
        }
        if phase.cost_micros > 0 {
            used.push(units::dollars(phase.cost_micros));
        }
        let text = Text::new().plain("  ").painted(meaning, format!("{mark} {:<18}", phase.name));
        lines.push(text.plain(format!("{:<10}", phase.state)).painted(Meaning::Dim, used.join("   ")));
    }
    let most = status.most.map_or_else(String::new, |most| format!(" of at most {most}"));
    let text = format!("{} in {}; {}{most} done", status.iteration, status.phase, status.total);
    lines.push(fact("iteration", text));
    gate(status, lines);
    let breaker = breaker_words(&status.breaker);
    let open = status.breaker.reason.is_some();
    let meaning = if open { Meaning::Lost } else { Meaning::Plain };
    let hint = if open { "   b closes it" } else { "" };
    lines.push(fact("breaker", Text::new().painted(meaning, breaker).painted(Meaning::Dim, hint)));
    for what in &status.breaker.would_count {
        lines.push(fact("", dim(format!("would count as progress: {what}"))));
    }
    if let Some(words) = &status.waiting_for {
        let left = status.countdown.as_deref().unwrap_or("until you say so");
        lines.push(fact("waits", Text::new().painted(Meaning::Waiting, format!("{left}: {words}"))));
    }
    lines.extend(status.notes.iter().map(|note| fact("note", note.clone())));
    lines.extend(status.line.iter().map(|line| fact("last", line.clone())));
    lines.push(fact("next", status.next.clone()));
}

fn gate(status: &LoopStatus, lines: &mut Vec<Text>) {
    let Some(gate) = &status.gate else {
        lines.push(fact("gate", dim("not measured yet")));
        return;
    };
    for condition in &gate.conditions {
        let (mark, meaning) = if condition.holds { ("✓", Meaning::Done) } else { ("✗", Meaning::Lost) };
        let wanted = if condition.holds { String::new() } else { format!(" (wanted: {})", condition.wanted) };
        let text = Text::new()
            .painted(meaning, mark)
            .plain(format!(" {}: {}{wanted}", condition.name, condition.value));
        lines.push(fact("gate", text));
    }
    if let Some(said) = gate.gate_2 {
        let words = if said {
            "✓ the agent says that it is done"
        } else {
            "✗ the agent has not said that it is done"
        };
        lines.push(fact("gate", words));
    }
    lines.extend(
        gate.warnings
            .iter()
            .map(|warning| fact("gate", Text::new().painted(Meaning::Waiting, format!("! {warning}")))),
    );
}

/// Tests over the iterations.
pub(super) fn tests(state: &State, width: usize) -> Vec<Text> {
    let Some(looping) = &state.looping else {
        let metrics: Vec<Text> = state
            .metrics
            .iter()
            .map(|(name, value)| fact(name, serde_json::json!(value).to_string()))
            .collect();
        let none = vec![dim("this session is no loop, and no metrics were recorded")];
        return if metrics.is_empty() { none } else { metrics };
    };
    let mut lines = Vec::new();
    if let Some(tests) = &looping.tests {
        let meaning = if tests.failed > 0 || tests.build_failed { Meaning::Waiting } else { Meaning::Done };
        let words = match tests.build_failed {
            true => "they do not build".to_owned(),
            false => format!(
                "{} of {} pass, {} fail, {} skipped",
                tests.passed, tests.total, tests.failed, tests.skipped
            ),
        };
        let runner = dim(format!("   {}", tests.runner));
        lines.push(fact("tests", Text::new().painted(meaning, words).then(runner)));
    }
    let shares: Vec<u64> = looping
        .recent
        .iter()
        .filter_map(|one| {
            one.tests.filter(|(_, all)| *all > 0).map(|(passed, all)| passed.saturating_mul(100) / all)
        })
        .collect();
    if !shares.is_empty() {
        lines.push(fact(
            "passing",
            format!("{}  per iteration, of 100 %", chart(&shares, 100, width.saturating_sub(40))),
        ));
        lines.push(Text::new());
    }
    for one in looping.recent.iter().rev() {
        let bar = one.tests.map_or_else(String::new, |(passed, all)| {
            let filled =
                usize::try_from(passed.saturating_mul(20).checked_div(all).unwrap_or(0)).unwrap_or(0).min(20);
            format!("{}{}  {passed} of {all}", "█".repeat(filled), "░".repeat(20 - filled))
        });
        let (mark, meaning) = if one.progress {
            ("▸ progress", Meaning::Done)
        } else {
            ("– nothing new", Meaning::Waiting)
        };
        let text = dim(format!("{:>4}  {:<12} ", one.iteration, one.phase)).plain(format!("{bar:<34} "));
        lines.push(text.painted(meaning, mark));
    }
    if lines.is_empty() {
        lines.push(dim("no iteration has ended yet"));
    }
    lines
}

/// One character for each value, the last ones if there is no room for all.
fn chart(values: &[u64], most: u64, width: usize) -> String {
    let from = values.len().saturating_sub(width.max(8));
    let height = |value: &u64| {
        let at = usize::try_from(value.saturating_mul(7).checked_div(most.max(1)).unwrap_or(0)).unwrap_or(7);
        BARS[at.min(7)]
    };
    values[from..].iter().map(height).collect()
}

/// Budgets, and what was used over time.
pub(super) fn cost(top: &Top, state: &State, runs: &[RunRow], width: usize) -> Vec<Text> {
    let mut lines = Vec::new();
    let tokens = &state.budget;
    let meaning = |over: bool, low: bool| match (over, low) {
        (true, _) => Meaning::Lost,
        (_, true) => Meaning::Waiting,
        _ => Meaning::Plain,
    };
    let text =
        Text::new().painted(meaning(tokens.is_over(), tokens.is_warning()), budget::tokens_used(state));
    lines.push(fact("tokens", text));
    if !tokens.is_unlimited() {
        lines.push(fact("", gauge(tokens.tokens_used, tokens.total_budget, width)));
    }
    let limit =
        state.cost.limit_micros.map_or(String::new(), |limit| format!(" of {}", units::dollars(limit)));
    let money = units::money(state.cost.used_micros, state.unpriced_tokens());
    let text = format!("{money}{limit}{}", budget::money_low(state));
    lines.push(fact(
        "cost",
        Text::new().painted(meaning(state.cost.is_over(), state.cost.is_warning()), text),
    ));
    if let Some(limit) = state.cost.limit_micros {
        lines.push(fact("", gauge(state.cost.used_micros, limit, width)));
    }
    let kinds = &state.tokens;
    lines.push(fact(
        "by kind",
        format!(
            "{} in   {} out   {} cache written   {} cache read",
            units::count(kinds.input.saturating_add(kinds.other)),
            units::count(kinds.output),
            units::count(kinds.cache_write),
            units::count(kinds.cache_read)
        ),
    ));
    over_time(top, state, width, &mut lines);
    lines.push(rule("runs, newest first", width));
    lines.extend(runs.iter().map(|run| one_run(top, run, width)));
    lines
}

/// How much of something is used.
fn gauge(used: u64, of: u64, width: usize) -> String {
    let room = width.saturating_sub(22).clamp(8, 60);
    let share = u128::from(used) * room as u128 / u128::from(of.max(1));
    let filled = usize::try_from(share).unwrap_or(room).min(room);
    format!("{}{} {}", "█".repeat(filled), "░".repeat(room - filled), units::percent(used, of))
}

/// What was used in each quarter of an hour, the last two days at most.
fn over_time(top: &Top, state: &State, width: usize, lines: &mut Vec<Text>) {
    const QUARTER: i64 = 15 * 60;
    let quarters = (width.saturating_sub(36)).clamp(8, 96);
    let end = top.now.as_micros().div_euclid(QUARTER * 1_000_000) * QUARTER + QUARTER;
    let mut money = Vec::new();
    let mut tokens = Vec::new();
    let mut later = segno_engine::core::lately::Used::default();
    for back in 1..=quarters as i64 {
        let from = Timestamp::from_micros((end - back * QUARTER).saturating_mul(1_000_000));
        let since = state.lately.since(from);
        money.push(since.micros.saturating_sub(later.micros));
        tokens.push(since.uncached.saturating_sub(later.uncached));
        later = since;
    }
    money.reverse();
    tokens.reverse();
    let hours = quarters / 4;
    for (name, values, total) in
        [("tokens", tokens, units::tokens(later.uncached)), ("money", money, units::dollars(later.micros))]
    {
        let most = values.iter().copied().max().unwrap_or(0);
        if most > 0 {
            let chart: String = chart(&values, most, quarters)
                .chars()
                .zip(&values)
                .map(|(bar, value)| if *value == 0 { ' ' } else { bar })
                .collect();
            lines.push(fact(name, format!("{chart}  {total} in {hours} h")));
        }
    }
}

fn one_run(top: &Top, run: &RunRow, width: usize) -> Text {
    let at = run.started_at.unwrap_or(Timestamp::EPOCH);
    let model = run.model.as_deref().map_or(String::new(), |model| format!(" {model}"));
    let how = run.outcome.clone().unwrap_or_else(|| run.state.clone()).replace('_', " ");
    let left = dim(format!("{}  ", clock(top, at))).plain(format!("{}{model}  {how}", run.agent));
    let mut right: Vec<String> = Vec::new();
    right.extend(run.duration_ms.map(|ms| units::duration(Duration::from_millis(ms))));
    right.extend(run.tokens.map(|tokens| units::tokens(tokens.total())));
    right.extend(run.money().map(units::dollars));
    sided(left, dim(right.join("   ")), width)
}

/// The windows of the agents' plans as they were last told.
pub(super) fn limits(top: &Top, state: &State) -> Vec<Text> {
    let mut lines = Vec::new();
    for window in state.limits.values() {
        let share =
            window.utilization.map_or(String::new(), |share| format!("{:>5.0} % used   ", share * 100.0));
        let meaning = match window.status.as_deref() {
            Some("rejected") => Meaning::Lost,
            Some("warning") => Meaning::Waiting,
            _ if window.utilization.is_some_and(|share| share >= 0.9) => Meaning::Waiting,
            _ => Meaning::Plain,
        };
        let model = window.model.as_deref().map_or(String::new(), |model| format!(" {model}"));
        let resets =
            window.resets_at.map_or(String::new(), |at| format!("opens again {}   ", clock(top, at)));
        let status = window.status.clone().unwrap_or_default();
        let name = format!("{:<28} ", format!("{} {}{model}", window.agent, window.window));
        let text = Text::new().plain(name).painted(meaning, format!("{share}{status}   ")).plain(resets);
        lines.push(text.painted(Meaning::Dim, format!("told {} ago", age(top, window.at))));
    }
    if let Some(looping) = &state.looping {
        if let Some(parked) = &looping.parked {
            let until = parked
                .until
                .map_or("until somebody says so".to_owned(), |at| format!("until {}", clock(top, at)));
            let text = format!("parked {until}: {}: {}", parked.class.as_str(), parked.words);
            lines.push(Text::new().painted(Meaning::Waiting, text));
        }
        lines.extend(
            looping
                .limited
                .iter()
                .map(|(agent, at)| Text::from(format!("{agent} is at its limit until {}", clock(top, *at)))),
        );
    }
    if lines.is_empty() {
        lines.push(dim("no agent of this session has told of its plan's windows"));
    }
    lines
}

/// The checkpoints, newest first.
pub(super) fn checkpoints(top: &Top, rows: &[CheckpointRow], width: usize) -> Vec<Text> {
    if rows.is_empty() {
        return vec![dim("no checkpoints yet; c makes one")];
    }
    let mut lines =
        vec![dim("d or Enter shows what changed after the chosen one; u takes the last turn back")];
    for (index, row) in rows.iter().enumerate() {
        let chosen = index == top.chosen;
        let files = match (&row.snapshot, &row.dropped, &row.problem) {
            (_, Some(why), _) => format!("given up: {why}"),
            (_, _, Some(_)) => "without files".to_owned(),
            (Some(snapshot), ..) => units::things(snapshot.changed, "file"),
            (None, ..) if row.ready => String::new(),
            (None, ..) => "not ready".to_owned(),
        };
        let mark = if chosen { "▸ " } else { "  " };
        let meaning = match (chosen, row.valid) {
            (true, _) => Meaning::Strong,
            (_, false) => Meaning::Dim,
            _ => Meaning::Plain,
        };
        let undone = if row.valid { "" } else { "  (rolled back)" };
        let left = Text::new()
            .painted(meaning, format!("{mark}{}", row.id))
            .painted(Meaning::Dim, format!("   {}{undone}", event_words::recorded_reason(&row.reason)));
        let phase = row.of_phase().map_or(String::new(), |phase| format!("{phase}   "));
        lines.push(sided(left, dim(format!("{phase}{files}   {}", clock(top, row.created_at))), width));
    }
    lines
}

/// The decisions, newest first.
pub(super) fn decisions(top: &Top, rows: &[DecisionRow], width: usize) -> Vec<Text> {
    if rows.is_empty() {
        return vec![dim("no decisions were recorded")];
    }
    let mut lines = Vec::new();
    for row in rows {
        let words = |text: &Option<segno_engine::core::Text>| {
            text.as_ref().map(|text| text.short(400)).unwrap_or_default()
        };
        let parent = row.parent.map_or(String::new(), |parent| format!(" after {parent}"));
        let left = dim(format!("{:>3}  ", row.decision)).painted(Meaning::Strong, words(&row.question));
        let at = row.decided_at.map(|at| clock(top, at)).unwrap_or_default();
        lines.push(sided(left, dim(format!("{}{parent}   {at}", row.branch)), width));
        lines.push(Text::new().plain("     ").painted(Meaning::Done, "→ ").plain(words(&row.choice)));
        let because = words(&row.reason);
        if !because.is_empty() {
            lines.push(dim(format!("       because {because}")));
        }
        lines.extend(row.alternatives.iter().map(|other| dim(format!("       not {}", other.short(200)))));
    }
    lines
}
