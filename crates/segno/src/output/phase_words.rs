//! What each phase of a workflow brought, in words: `RED done (10 tests)`, `GREEN 6 of 10 tests passing`.

use std::collections::BTreeMap;

use segno_engine::core::State;
use segno_engine::core::event::Metric;
use segno_engine::core::text::shorten;

use super::units;

/// How many metrics are named of one phase.
const MOST: usize = 3;
/// The longest text that is told of a check.
const LONGEST: usize = 60;
/// Names under which tests are counted, the better ones first.
const PASSING: &[&str] = &["tests_passing", "tests_passed"];
const TOTAL: &[&str] = &["tests_total", "tests", "tests_generated", "tests_written"];

type Metrics = BTreeMap<String, Metric>;

/// One text for each phase that is done, and one for the present phase if it has brought something. A phase without
/// metrics is told by what was said when it was checked.
pub fn phases(state: &State, checked: &BTreeMap<String, String>) -> Vec<String> {
    let brought = |phase: &String| {
        state.phase_metrics.get(phase).map(|metrics| brought(metrics, state)).filter(|text| !text.is_empty())
    };
    let said = |phase: &String| checked.get(phase).map(|text| shorten(text, LONGEST));
    let done = state.phases_completed.iter().map(|phase| match brought(phase).or_else(|| said(phase)) {
        Some(text) => format!("{phase} done ({text})"),
        None => format!("{phase} done"),
    });
    let present = state.phase.iter().filter(|phase| !state.phases_completed.contains(phase));
    done.chain(present.filter_map(|phase| brought(phase).map(|text| format!("{phase} {text}")))).collect()
}

/// The metrics that no phase speaks of.
pub fn metrics_beside(state: &State) -> Vec<String> {
    let told = |name: &String| state.phase_metrics.values().any(|metrics| metrics.contains_key(name));
    state.metrics.iter().filter(|(name, _)| !told(name)).map(|(name, value)| said(name, *value)).collect()
}

fn brought(metrics: &Metrics, state: &State) -> String {
    let passing = number(metrics, PASSING);
    // How many tests there are may have been said in the phase that wrote them.
    let total = number(metrics, TOTAL).or_else(|| passing.and_then(|_| number(&state.metrics, TOTAL)));
    let tests = match (passing, total) {
        (Some(passing), Some(total)) => {
            Some(format!("{passing} of {} passing", units::things(total, "test")))
        }
        (Some(passing), None) => Some(format!("{} passing", units::things(passing, "test"))),
        (None, Some(total)) => Some(units::things(total, "test")),
        (None, None) => None,
    };
    let counted = |name: &str| PASSING.contains(&name) || TOTAL.contains(&name);
    let others = metrics.iter().filter(|(name, _)| !counted(name)).map(|(name, value)| said(name, *value));
    tests.into_iter().chain(others).take(MOST).collect::<Vec<_>>().join(", ")
}

fn number(metrics: &Metrics, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| match metrics.get(*name) {
        Some(Metric::Number(number)) if *number >= 0.0 => Some(*number as u64),
        _ => None,
    })
}

fn said(name: &str, value: Metric) -> String {
    match value {
        Metric::Number(number) => format!("{} {number}", name.replace('_', " ")),
        Metric::Flag(true) => name.replace('_', " "),
        Metric::Flag(false) => format!("not {}", name.replace('_', " ")),
    }
}
