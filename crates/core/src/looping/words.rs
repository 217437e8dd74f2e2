//! One line that says what an iteration did, and why the loop goes on or stops.

use super::gate::GateResult;
use super::observation::Observation;
use super::observation::RunEnd;
use super::progress::things;
use super::state::LoopState;
use super::verdict::Iteration;
use super::verdict::LoopVerdict;
use super::window::moment;
use crate::budget::dollars;
use crate::limits;
use crate::text::shorten;

/// Why a loop goes on whose measurements are all as they should be.
pub const NOT_SAID: &str = "the agent has not said that it is done";

/// Such as `iter 7  GREEN  6→8/10 tests  +3 files  $0.41  goes on: gate 1 fails (2 failing tests)`.
pub(super) fn line(state: &LoopState, iteration: &Iteration<'_>, verdict: &LoopVerdict) -> String {
    let seen = iteration.seen;
    let head = match seen.end {
        RunEnd::Ran | RunEnd::Cut | RunEnd::CannotAct => format!("iter {}", state.total.saturating_add(1)),
        RunEnd::StartFailed => "no start".to_owned(),
        RunEnd::Limited => "limit".to_owned(),
        RunEnd::Stopped => "stopped".to_owned(),
    };
    let mut parts = vec![head, state.phase.clone()];
    parts.extend(tests(state, seen));
    parts.extend(changes(seen));
    parts.extend(cost(seen));
    parts.extend(end(seen));
    let why = why(verdict);
    parts.push(if why.is_empty() { verdict.word().to_owned() } else { format!("{}: {why}", verdict.word()) });
    shorten(&parts.join("  ").replace(['\n', '\r', '\t'], " "), limits::LOOP_TEXT)
}

fn tests(state: &LoopState, seen: &Observation) -> Option<String> {
    let now = seen.tests.as_ref()?;
    if now.build_failed {
        return Some("no build".to_owned());
    }
    let before = state.tests.as_ref().filter(|before| !before.build_failed && before.passed != now.passed);
    let before = before.map_or(String::new(), |before| format!("{}→", before.passed));
    Some(format!("{before}{}/{} tests", now.passed, now.total))
}

fn changes(seen: &Observation) -> Option<String> {
    let commits = (seen.commits > 0).then(|| things(seen.commits, "commit"));
    let files = (seen.files_changed > 0).then(|| format!("+{}", things(seen.files_changed, "file")));
    match (files, commits) {
        (Some(files), Some(commits)) => Some(format!("{files}, {commits}")),
        (files, commits) => files.or(commits),
    }
}

/// What it cost; what nobody can price is not free.
fn cost(seen: &Observation) -> Option<String> {
    match seen.micros {
        Some(micros) => Some(dollars(micros)),
        None => (seen.tokens > 0).then(|| format!("{} tokens (unpriced)", seen.tokens)),
    }
}

/// How its agent ended, if not by itself and well: what is measured says nothing of that.
fn end(seen: &Observation) -> Option<String> {
    let words = match (seen.end, seen.outcome.as_str()) {
        (RunEnd::Ran | RunEnd::Cut | RunEnd::CannotAct, "failed") => "its agent failed",
        (RunEnd::Ran | RunEnd::Cut | RunEnd::CannotAct, "interrupted") => "its agent died",
        (RunEnd::Ran | RunEnd::Cut | RunEnd::CannotAct, "timed_out") => "its agent was out of time",
        _ => return None,
    };
    Some(words.to_owned())
}

/// The reason of a verdict.
pub fn why(verdict: &LoopVerdict) -> String {
    match verdict {
        LoopVerdict::Continue { why }
        | LoopVerdict::Cap { why, .. }
        | LoopVerdict::Halt { why }
        | LoopVerdict::NeedsPerson { why, .. } => why.clone(),
        LoopVerdict::NextPhase { to } => to.clone(),
        LoopVerdict::Complete => String::new(),
        LoopVerdict::BackTo { phase, why, .. } => format!("to {phase}, {why}"),
        LoopVerdict::Stopped { how } => how.as_str().to_owned(),
        LoopVerdict::Park { until, why, .. } | LoopVerdict::BackOff { until, why } => {
            format!("until {}, {why}", moment(*until))
        }
        LoopVerdict::HandOver { to, why } => format!("to {to}, {why}"),
    }
}

/// Why a phase is not done yet, in a few words.
pub(super) fn why_not_done(seen: &Observation, gate: &GateResult) -> String {
    match seen.end {
        RunEnd::StartFailed => return "the agent could not be started".to_owned(),
        RunEnd::Limited => return "the account was at a limit".to_owned(),
        RunEnd::Ran | RunEnd::CannotAct | RunEnd::Cut | RunEnd::Stopped => {}
    }
    let open: Vec<String> = gate
        .conditions
        .iter()
        .filter(|one| !one.holds)
        .map(|one| {
            let value = shorten(&one.value, 40);
            format!("{}: {value}", one.name)
        })
        .collect();
    let contradiction = seen.claims.contradiction.as_ref();
    let contradiction = contradiction.map(|why| format!("its status block contradicts itself: {why}"));
    let measured = match open.as_slice() {
        [] if gate.gate_1 => {
            return contradiction.unwrap_or_else(|| NOT_SAID.to_owned());
        }
        [] => "nothing was measured".to_owned(),
        [one] => format!("gate 1 fails ({one})"),
        [first, rest @ ..] => format!("gate 1 fails ({first}, and {} more)", rest.len()),
    };
    contradiction.map_or(measured.clone(), |why| format!("{measured}; {why}"))
}
