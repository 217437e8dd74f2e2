//! How a session stands at one moment, in the words of the documents: its numbers, its gate, and the block that the status
//! log has for it.

use std::collections::BTreeMap;

use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::looping::Breaker;
use segno_core::looping::BreakerState;
use segno_core::looping::Condition;
use segno_core::looping::GateResult;
use segno_core::looping::LoopState as Looping;
use segno_core::looping::ParkReason;
use segno_core::looping::Parked;
use segno_core::looping::PhaseEnd;
use segno_core::looping::PhaseStand;
use serde_json::Value;
use serde_json::json;

use super::status_log;
use super::wire::PHASES;

/// Calls in an hour that the document allows, as the loop of the document is told.
const CALLS_PER_HOUR: u64 = 100;

/// A state that is in a phase of the document.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub state: &'a State,
    pub phase: &'static str,
    pub looping: Option<&'a Looping>,
}

/// The document's name of a phase; none if it does not know it.
pub(super) fn known(phase: Option<&str>) -> Option<&'static str> {
    PHASES.into_iter().find(|known| Some(*known) == phase)
}

impl<'a> Moment<'a> {
    /// None if the session is in no phase, or in one that the document does not know.
    pub(super) fn of(state: &'a State) -> Option<Self> {
        let phase = known(state.phase.as_deref())?;
        Some(Self { state, phase, looping: state.looping.as_deref() })
    }

    pub(super) fn stand(&self, phase: &str) -> Option<&'a PhaseStand> {
        self.looping?.phases.iter().find(|stand| stand.name == phase)
    }

    /// The newest iteration of the phase that has been measured; none yet is 0. One that goes on has shown nothing.
    pub(super) fn measured(&self) -> u64 {
        let open = self.looping.is_some_and(|looping| looping.open);
        self.state.iteration.saturating_sub(u64::from(open))
    }

    /// The numbers of the phase, by the document's names where it has some.
    pub(super) fn numbers(&self) -> BTreeMap<String, Value> {
        let state = self.state;
        let kept = state.phase_metrics.get(self.phase).into_iter().flatten().chain(&state.metrics);
        let mut all: BTreeMap<String, Value> =
            kept.map(|(name, metric)| (name.clone(), json!(metric))).collect();
        let Some(looping) = self.looping else { return all };
        let mut put = |name: &str, value: Value| drop(all.insert(name.to_owned(), value));
        for (name, number) in &looping.metrics {
            put(name, typed(name, *number));
        }
        if let Some(tests) = &looping.tests {
            put("tests_total", json!(tests.total));
            put("tests_passing", json!(tests.passed));
            put("tests_failing", json!(tests.failed));
            put("tests_generated", json!(if self.phase == "RED" { looping.new_tests } else { tests.total }));
        }
        put("consecutive_green_runs", json!(looping.green_runs));
        put("iteration", json!(state.iteration));
        if self.phase == "QA"
            && let Some(review) = self.review()
        {
            put("checks_passing", json!(review.passing));
            put("blocking_issues", json!(review.blocking));
            put("verdict", json!(review.verdict));
        }
        all
    }

    /// The gate as it was measured last in this phase.
    pub(super) fn gate(&self) -> Option<&'a GateResult> {
        self.looping?.gate.as_ref()
    }

    /// Both gates, and whether the phase may end.
    pub(super) fn gates(&self) -> [bool; 3] {
        self.gate()
            .map_or([false; 3], |gate| [gate.gate_1, gate.gate_2.unwrap_or(gate.gate_1), gate.can_exit])
    }

    /// What the review said that was measured last.
    pub(super) fn review(&self) -> Option<status_log::Review> {
        let gate = self.gate()?;
        let claims = &self.looping?.last.as_ref()?.claims;
        let said = |name: &str| claims.metrics.get(name).copied().map(whole);
        Some(status_log::Review {
            total: gate.conditions.len(),
            passing: gate.conditions.iter().filter(|one| one.holds).count(),
            blocking: said("blocking_issues"),
            warnings: said("warning_issues"),
            verdict: claims.verdict.clone(),
        })
    }

    /// Calls of this hour, and how many there may be.
    pub(super) fn hourly(&self) -> (u64, u64) {
        let made = self.looping.map_or(0, |looping| looping.hour.calls);
        let limit = self.looping.and_then(|looping| looping.plan.own.calls_per_hour);
        // The file has no word for no limit. Without one, none is ever reached.
        (made, limit.unwrap_or_else(|| CALLS_PER_HOUR.max(made.saturating_add(1))))
    }

    /// Since when and until when the loop waits for its plan.
    pub(super) fn at_limit(&self) -> Option<&'a Parked> {
        let parked = self.looping?.parked.as_ref()?;
        matches!(parked.class, ParkReason::Plan | ParkReason::Vendor).then_some(parked)
    }

    /// The breaker in the words of the log.
    fn breaker(&self) -> (String, u64) {
        let closed = Breaker::default();
        let breaker = self.looping.map_or(&closed, |looping| &looping.breaker);
        let halted = self.looping.is_none() && self.state.status == Status::Halted;
        let state = if halted { BreakerState::Open } else { breaker.state };
        (state.as_str().to_owned(), u64::from(breaker.no_progress))
    }

    /// The block of the log that says how it stands.
    pub(super) fn entry(&self) -> status_log::Entry {
        let state = self.state;
        let status = match state.status {
            Status::Completed => "COMPLETE",
            Status::Halted | Status::Failed | Status::Aborted => "BLOCKED",
            Status::Active | Status::Paused | Status::Interrupted => "IN_PROGRESS",
        };
        let tests = self.looping.and_then(|looping| looping.tests.as_ref()).map_or([0; 4], |tests| {
            let known = tests.passed + tests.failed + tests.skipped;
            [known, tests.passed, tests.failed, tests.skipped]
        });
        let reason = state.reason.as_ref().filter(|_| status == "BLOCKED");
        let reason = reason.map(|reason| reason.details.clone().unwrap_or_else(|| reason.what.clone()));
        let counts = &state.counts;
        let said = match status {
            "COMPLETE" => "nothing is left to do".to_owned(),
            _ => format!("go on with {}", self.phase),
        };
        let line = self.looping.filter(|_| status != "COMPLETE").and_then(|looping| {
            // What was said of the phase before says nothing of this one.
            looping.line.clone().filter(|_| looping.gate.is_some())
        });
        let is_qa = self.phase == "QA";
        status_log::Entry {
            at: state.updated_at,
            phase: self.phase,
            status,
            iteration: self.measured().max(1),
            progress: state.progress().unwrap_or(0),
            tests,
            files: [counts.files_created, counts.files_modified, counts.files_deleted],
            breaker: self.breaker(),
            // Whoever completes a session says that its phase is done.
            gate: if status == "COMPLETE" { [true; 3] } else { self.gates() },
            hourly: self.hourly(),
            at_limit: self.at_limit().is_some(),
            review: is_qa.then(|| self.review().unwrap_or_default()),
            attempt: is_qa.then(|| self.stand("QA").map_or(1, |stand| stand.iterations.max(1))),
            blockers: reason.into_iter().collect(),
            recommendation: line.unwrap_or(said),
        }
    }

    /// The block that says how the phase was left: how a loop left it, or where somebody went from it.
    pub(super) fn left(&self, end: Option<PhaseEnd>, to: Option<&str>, at: Timestamp) -> status_log::Entry {
        let back = to.is_some_and(|to| index(to) < index(self.phase));
        let (status, words) = match end {
            Some(PhaseEnd::Passed) => ("COMPLETE", "both gates passed".to_owned()),
            Some(PhaseEnd::Skipped) => ("BLOCKED", "left without its gate".to_owned()),
            Some(PhaseEnd::SentBack) => ("BLOCKED", "the work was sent back to an earlier phase".to_owned()),
            None if back => ("BLOCKED", format!("gone back to {}", to.unwrap_or_default())),
            // Without a loop there is no gate but the word of whoever moved it on.
            None => ("COMPLETE", format!("gone on to {}", to.unwrap_or("another phase"))),
        };
        let done = status == "COMPLETE";
        let entry = self.entry();
        status_log::Entry {
            at,
            status,
            progress: if done { 100 } else { entry.progress },
            gate: if done { [true; 3] } else { entry.gate },
            blockers: (!done).then(|| words.clone()).into_iter().collect(),
            recommendation: words,
            ..entry
        }
    }
}

/// Where a phase is in the document's order.
fn index(phase: &str) -> Option<usize> {
    PHASES.iter().position(|known| *known == phase)
}

/// A whole number as such.
fn whole(number: f64) -> Value {
    json!(segno_core::event::Metric::Number(number))
}

/// A number that the document has a flag for.
fn typed(name: &str, number: f64) -> Value {
    if name.starts_with("has_") { json!(number >= 1.0) } else { whole(number) }
}

/// A condition of a gate in the document's terms: the name of what is looked at, what it is, and the whole of it in words.
pub(super) fn condition(one: &Condition) -> (String, Value, String) {
    const NAMES: [(&str, &str); 14] = [
        ("new failing tests", "tests_failing"),
        ("new passing tests", "tests_passing"),
        ("new tests", "tests_generated"),
        ("tests", "tests_total"),
        ("number of tests", "tests_total"),
        ("failing tests", "tests_failing"),
        ("passing runs in a row", "consecutive_green_runs"),
        ("refactored", "refactoring_complete"),
        ("verdict of the review", "verdict"),
        ("blocking issues", "blocking_issues"),
        ("tests that passed before and fail", "tests_newly_failing"),
        ("removed tests", "tests_removed"),
        ("newly skipped tests", "tests_newly_skipped"),
        ("stable tests", "tests_stable"),
    ];
    let known = NAMES.iter().find(|(ours, _)| *ours == one.name).map(|(_, theirs)| (*theirs).to_owned());
    let name = known.unwrap_or_else(|| {
        one.name.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
    });
    let number = |text: &str| {
        let text = text.strip_prefix("exit ").unwrap_or(text);
        let digits: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        digits.parse::<f64>().ok()
    };
    let is_flag = name.starts_with("has_") || name == "refactoring_complete" || name == "tests_stable";
    let value = match (is_flag, number(&one.value)) {
        (true, _) => json!(one.holds),
        (false, Some(number)) => whole(number),
        (false, None) if one.value == "not measured" || one.value == "not said" => Value::Null,
        (false, None) => json!(one.value),
    };
    let words = match one.wanted.split_once("at least ").or_else(|| one.wanted.split_once("at most ")) {
        _ if is_flag => name.clone(),
        Some(("", limit)) if one.wanted.starts_with("at least") => format!("{name} >= {limit}"),
        Some(("", limit)) => format!("{name} <= {limit}"),
        _ => match number(&one.wanted) {
            Some(_) => format!("{name} == {}", one.wanted.trim_start_matches("exit ")),
            None => format!("{name} == {:?}", one.wanted),
        },
    };
    (name, value, words)
}
