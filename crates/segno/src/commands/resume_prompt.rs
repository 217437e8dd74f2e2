//! The box of the PRP document about a session that can be gone on with.

use std::time::Duration;

use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::Timestamp;
use segno_engine::core::event::Metric;
use segno_engine::core::text::shorten;
use unicode_width::UnicodeWidthStr as _;

use crate::output::units;

/// Between the two sides.
const WIDTH: usize = 60;

/// The box, line by line. `id` is the name that the session has where it is.
pub(super) fn lines(state: &State, id: &str, now: Timestamp) -> Vec<String> {
    let micros = u64::try_from(now.as_micros() - last_active(state).as_micros()).unwrap_or(0);
    let mut lines = vec![edge('╔', '╗'), centred("PREVIOUS SESSION DETECTED"), edge('╠', '╣'), row("")];
    let file = state.file.as_deref().map_or("–", |file| file.rsplit('/').next().unwrap_or(file));
    for (label, value) in [
        ("Session ID:", id.to_owned()),
        ("PRP:", file.to_owned()),
        ("Phase:", state.phase.clone().unwrap_or_else(|| "–".to_owned())),
        ("Iteration:", state.iteration.to_string()),
        ("Last Active:", format!("{} ago", units::age(Duration::from_micros(micros)))),
        ("Status:", status(state)),
    ] {
        lines.push(row(&format!("{label:<13}{value}")));
    }
    lines.push(row(""));
    let progress = progress(state);
    if !progress.is_empty() {
        lines.push(row("Progress:"));
        let last = progress.len() - 1;
        for (index, (phase, how)) in progress.into_iter().enumerate() {
            let branch = if index == last { "└──" } else { "├──" };
            lines.push(row(&format!("{branch} {:<9} {how}", format!("{phase}:"))));
        }
        lines.push(row(""));
    }
    lines.push(edge('╠', '╣'));
    lines.push(row("[R]esume  - Continue from where you left off"));
    lines.push(row("[N]ew     - Start fresh (its record stays)"));
    lines.push(row("[A]bort   - Cancel execution"));
    lines.push(edge('╚', '╝'));
    lines
}

fn last_active(state: &State) -> Timestamp {
    let stopped = state.recovery.as_ref().filter(|_| state.status != Status::Active);
    stopped.map_or(state.updated_at, |stopped| stopped.interrupted_at)
}

fn status(state: &State) -> String {
    let word = state.status.as_str().to_uppercase();
    match state.reason.as_ref().map(|reason| reason.details.as_deref().unwrap_or(&reason.what)) {
        Some(why) if !why.is_empty() => format!("{word} ({why})"),
        _ => word,
    }
}

/// Each phase that was begun, and how it stands.
fn progress(state: &State) -> Vec<(String, String)> {
    let current = state.phase.as_ref().filter(|phase| !state.phases_completed.contains(phase));
    let done = state.phases_completed.iter().map(|phase| (phase, "✅ Complete"));
    let all = done.chain(current.map(|phase| (phase, "⏳ In progress")));
    all.map(|(phase, how)| {
        let numbers = numbers(state, phase).map_or(String::new(), |numbers| format!(" ({numbers})"));
        (phase.clone(), format!("{how}{numbers}"))
    })
    .collect()
}

/// What was counted in a phase, in the document's words.
fn numbers(state: &State, phase: &str) -> Option<String> {
    let known = state.phase_metrics.get(phase);
    let number = |name: &str| match known?.get(name)? {
        Metric::Number(number) => Some(*number),
        Metric::Flag(_) => None,
    };
    let tests = state.looping.as_ref().filter(|looping| looping.phase == phase);
    let tests = tests.and_then(|looping| looping.tests.as_ref());
    match phase {
        "RED" => number("tests_generated").map(|tests| format!("{tests} tests generated")),
        "DOCUMENT" => number("docs_generated").map(|docs| format!("{docs} documents")),
        _ => match (tests, number("tests_passing"), number("tests_total")) {
            (Some(tests), ..) => Some(format!("{}/{} tests passing", tests.passed, tests.total)),
            (None, Some(passing), Some(total)) => Some(format!("{passing}/{total} tests passing")),
            _ => None,
        },
    }
}

fn edge(left: char, right: char) -> String {
    format!("{left}{}{right}", "═".repeat(WIDTH))
}

fn row(text: &str) -> String {
    let text = shorten(text, WIDTH - 4);
    format!("║  {text}{}║", " ".repeat((WIDTH - 2).saturating_sub(text.width())))
}

fn centred(text: &str) -> String {
    let before = (WIDTH - text.width()) / 2;
    format!("║{}{text}{}║", " ".repeat(before), " ".repeat(WIDTH - before - text.width()))
}
