//! A session as the files of `.prp-session/`.

use std::collections::BTreeMap;

use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::Metric;
use segno_core::looping::BreakerState;
use segno_core::looping::LoopState as Looping;
use segno_core::looping::ParkReason;
use segno_core::looping::PhaseEnd;
use segno_core::rows::ErrorRow;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::status_log;
use super::wire;
use super::wire::BREAKER;
use super::wire::GATE;
use super::wire::LOOP_STATE;
use super::wire::METRICS;
use super::wire::PHASES;
use super::wire::QA;
use super::wire::RATE_LIMIT;
use super::wire::STATUS_LOG;
use super::word;
use crate::family::Family;
use crate::files::FileSet;
use crate::packed::sha256;
use crate::snapshot::Snapshot;

/// The newest errors that are kept, and how much of each.
const ERRORS: usize = 50;
const ERROR: usize = 500;
/// The document's iterations end here.
const MOST_ITERATIONS: u64 = 100;
/// The newest numbers of a phase that are kept.
const HISTORY: usize = 100;
/// Calls in an hour, if nobody said otherwise.
const CALLS_PER_HOUR: u64 = 100;

/// The files, the main state last: a set that is half written is either the old one or one that is not found yet.
///
/// # Errors
/// If the session is in no phase, or in one that the document does not know.
pub fn write(snapshot: &Snapshot<'_>, existing: &FileSet) -> Result<Vec<(String, Vec<u8>)>, String> {
    let state = snapshot.state;
    let phase = match &state.phase {
        None => {
            let known = PHASES.join(", ");
            return Err(format!("it has no phase, and these files need one of {known}"));
        }
        Some(phase) => PHASES.into_iter().find(|known| known == phase).ok_or_else(|| {
            format!(
                "the phase {phase} is none of {}, so these files cannot say where it stands",
                PHASES.join(", ")
            )
        })?,
    };
    let writer = Writer { snapshot, existing, phase, looping: state.looping.as_deref() };
    let family = Family::Prp;
    let mut files = vec![
        snapshot.json((family, METRICS), &writer.metrics(), existing, &[]),
        snapshot.json((family, BREAKER), &writer.breaker(), existing, &[]),
        snapshot.json((family, RATE_LIMIT), &writer.rate_limit(), existing, &["hourly", "anthropic_5h"]),
        snapshot.json((family, GATE), &writer.gate(), existing, &["gate_1", "gate_2"]),
    ];
    if writer.has_qa() {
        files.push(snapshot.json((family, QA), &writer.qa(), existing, &["memory_context"]));
    }
    files.push((STATUS_LOG.to_owned(), writer.status_log().into_bytes()));
    files.push(snapshot.json((family, LOOP_STATE), &writer.loop_state(), existing, &[]));
    Ok(files)
}

struct Writer<'a> {
    snapshot: &'a Snapshot<'a>,
    existing: &'a FileSet,
    phase: &'static str,
    looping: Option<&'a Looping>,
}

impl Writer<'_> {
    fn state(&self) -> &State {
        self.snapshot.state
    }

    fn session_id(&self) -> String {
        self.snapshot.name(Family::Prp)
    }

    fn prp_file(&self) -> String {
        self.state().file.clone().unwrap_or_default()
    }

    fn has_qa(&self) -> bool {
        let phases = self.state().workflow.iter().flat_map(|workflow| &workflow.phases);
        let planned = self.looping.into_iter().flat_map(|looping| &looping.phases).map(|stand| &stand.name);
        phases.chain(planned).any(|phase| phase == "QA") || self.phase == "QA"
    }

    fn loop_state(&self) -> wire::LoopState {
        let state = self.state();
        let reason = state.reason.as_ref().map(|reason| match &reason.details {
            Some(details) => details.clone(),
            None => reason.what.clone(),
        });
        let of = |status: Status| reason.clone().filter(|_| state.status == status);
        let known = |phase: &&String| PHASES.contains(&phase.as_str());
        let errors: Vec<ErrorRow> = self.snapshot.rows();
        let newest = errors.len().saturating_sub(ERRORS);
        wire::LoopState {
            session_id: self.session_id(),
            prp_file: self.prp_file(),
            started_at: state.created_at,
            current_phase: self.phase.to_owned(),
            current_iteration: state.iteration.min(MOST_ITERATIONS),
            last_activity: state.updated_at,
            status: word(state.status),
            halt_reason: of(Status::Halted),
            phases_completed: state.phases_completed.iter().filter(known).cloned().collect(),
            error_history: errors[newest..].iter().map(|row| self.error(row)).collect(),
            phase_history: self.phase_history(),
            total_agent_calls: state.counts.runs,
            pause_reason: of(Status::Paused),
            paused_at: (state.status == Status::Paused).then_some(state.updated_at),
            completed_at: state.completed_at,
            qa_attempts: self.stand("QA").map_or(0, |stand| stand.iterations),
            segno: self.snapshot.extension(),
        }
    }

    fn error(&self, row: &ErrorRow) -> wire::ErrorEntry {
        let text = row.message.clone().unwrap_or_default();
        let is_hash = row.fingerprint.len() == 64 && row.fingerprint.bytes().all(|b| b.is_ascii_hexdigit());
        wire::ErrorEntry {
            timestamp: row.timestamp.unwrap_or(self.state().updated_at),
            phase: row.phase.clone(),
            iteration: row.iteration,
            hash: if is_hash { row.fingerprint.clone() } else { sha256(text.excerpt().as_bytes()) },
            error: text.short(ERROR),
        }
    }

    fn stand(&self, phase: &str) -> Option<&segno_core::looping::PhaseStand> {
        self.looping?.phases.iter().find(|stand| stand.name == phase)
    }

    fn phase_history(&self) -> BTreeMap<String, wire::PhaseEntry> {
        let known = self.looping.into_iter().flat_map(|looping| &looping.phases);
        let begun = known.filter(|stand| stand.started_at.is_some());
        let entries = begun.map(|stand| {
            let exit_reason = stand.end.map(|end| match end {
                PhaseEnd::Passed => "gate_passed",
                PhaseEnd::Skipped => "forced_exit",
                PhaseEnd::SentBack => "sent_back",
            });
            let entry = wire::PhaseEntry {
                started_at: stand.started_at,
                completed_at: stand.ended_at,
                iterations: stand.iterations,
                exit_reason,
            };
            (stand.name.clone(), entry)
        });
        entries.collect()
    }

    /// The newest iteration of the phase that has been measured; none yet is 0. One that goes on has shown nothing.
    fn measured(&self) -> u64 {
        let open = self.looping.is_some_and(|looping| looping.open);
        self.state().iteration.saturating_sub(u64::from(open))
    }

    /// How the tests came out in a phase the last time: all, passed, failed.
    fn tests_of(&self, phase: &str) -> Option<[u64; 3]> {
        let of = |recent: &&segno_core::looping::Recent| recent.phase == phase && recent.tests.is_some();
        let (passed, total) = self.looping?.recent.iter().rev().find(of)?.tests?;
        Some([total, passed, total.saturating_sub(passed)])
    }

    /// The numbers that a phase was left with: those of the record, and what its file said when it was the present one.
    fn last_numbers(&self, phase: &str, before: Option<&Value>) -> BTreeMap<String, Metric> {
        let mut all = BTreeMap::new();
        for member in ["current_metrics", "final_metrics"] {
            if let Some(Value::Object(numbers)) = before.and_then(|before| before.get(member)) {
                all.extend(crate::found::metrics(&mut numbers.clone()));
            }
        }
        if let Some([total, passed, failed]) = self.tests_of(phase) {
            let named = [("tests_total", total), ("tests_passing", passed), ("tests_failing", failed)];
            all.extend(named.map(|(name, number)| (name.to_owned(), Metric::Number(number as f64))));
        }
        all.extend(self.numbers(phase));
        all
    }

    /// The numbers of a phase, in the document's words where it has some.
    fn numbers(&self, phase: &str) -> BTreeMap<String, Metric> {
        let state = self.state();
        let mut all = state.phase_metrics.get(phase).cloned().unwrap_or_default();
        if phase != self.phase {
            return all;
        }
        all.extend(state.metrics.clone());
        let Some(looping) = self.looping else { return all };
        let mut put = |name: &str, number: u64| {
            // A count of tests is far below where such a number is rounded.
            all.insert(name.to_owned(), Metric::Number(number as f64));
        };
        if let Some(tests) = &looping.tests {
            put("tests_total", tests.total);
            put("tests_passing", tests.passed);
            put("tests_failing", tests.failed);
            put("tests_generated", if phase == "RED" { looping.new_tests } else { tests.total });
        }
        put("consecutive_green_runs", u64::from(looping.green_runs));
        put("iteration", state.iteration);
        all
    }

    fn metrics(&self) -> wire::Metrics {
        let state = self.state();
        let before = self.existing.object(METRICS).ok().flatten().unwrap_or_default();
        let of = |phase: &'static str| {
            let stand = self.stand(phase);
            let is_current = phase == self.phase;
            let known = before.get("phases").and_then(|phases| phases.get(phase));
            let numbers = if is_current { self.numbers(phase) } else { self.last_numbers(phase, known) };
            let done = state.phases_completed.iter().any(|done| done == phase);
            if !is_current && !done && stand.is_none_or(|stand| stand.started_at.is_none()) {
                return None;
            }
            let known = known.and_then(|phase| phase.get("history")?.as_array());
            let mut history = known.cloned().unwrap_or_default();
            if is_current && self.measured() > 0 {
                self.note(&mut history, &numbers);
            }
            history.drain(..history.len().saturating_sub(HISTORY));
            Some(wire::PhaseMetrics {
                started_at: stand
                    .and_then(|stand| stand.started_at)
                    .or(is_current.then_some(state.phase_since)),
                completed_at: stand.and_then(|stand| stand.ended_at).filter(|_| !is_current),
                iterations: stand
                    .map_or(if is_current { state.iteration } else { 0 }, |stand| stand.iterations),
                current_metrics: is_current.then(|| numbers.clone()),
                final_metrics: (!is_current).then_some(numbers),
                history,
            })
        };
        let phases = PHASES.into_iter().filter(|phase| *phase != "QA" || self.has_qa());
        wire::Metrics {
            session_id: self.session_id(),
            prp_file: self.prp_file(),
            started_at: state.created_at,
            current_phase: self.phase.to_owned(),
            phases: phases.map(|phase| (phase, of(phase))).collect(),
        }
    }

    /// Puts the numbers of the newest measured iteration into a history; those of the same one are replaced.
    fn note(&self, history: &mut Vec<Value>, numbers: &BTreeMap<String, Metric>) {
        let numbers = numbers.iter().filter(|(name, _)| *name != "iteration");
        let mut entry: Map<String, Value> =
            numbers.map(|(name, metric)| (name.clone(), json!(metric))).collect();
        entry.insert("iteration".to_owned(), json!(self.measured()));
        let same = history.last().filter(|last| last.get("iteration") == entry.get("iteration"));
        let before = same.and_then(|last| last.get("timestamp")).cloned();
        let is_known = same.and_then(Value::as_object).is_some_and(|last| {
            let others = last.iter().filter(|(name, _)| *name != "timestamp");
            others.count() == entry.len() && entry.iter().all(|(name, value)| last.get(name) == Some(value))
        });
        if before.is_some() {
            history.pop();
        }
        let at = before.filter(|_| is_known).unwrap_or_else(|| json!(self.state().updated_at));
        entry.insert("timestamp".to_owned(), at);
        history.push(Value::Object(entry));
    }

    fn breaker(&self) -> wire::CircuitBreaker {
        let Some(looping) = self.looping else { return self.kept_breaker() };
        let breaker = &looping.breaker;
        let name = match self.phase {
            "RED" => "tests_generated",
            "GREEN" => "tests_passing",
            "REFACTOR" => "patterns_applied",
            "DOCUMENT" => "docs_generated",
            _ => "checks_passing",
        };
        let metric = self.numbers(self.phase).get(name).copied();
        let changes = looping.breaker_changes.iter().map(|change| {
            json!(wire::BreakerEntry {
                timestamp: change.at,
                event: "state_change",
                from_state: change.from.as_str(),
                to_state: change.to.as_str(),
                reason: change.reason.clone(),
            })
        });
        wire::CircuitBreaker {
            state: breaker.state.as_str().to_owned(),
            no_progress_count: u64::from(breaker.no_progress),
            same_error_count: u64::from(breaker.same_error),
            last_progress_metric: metric
                .map_or_else(|| json!({}), |metric| json!({ self.phase: { name: metric } })),
            last_error_hash: breaker.last_error.clone(),
            opened_at: breaker.opened_at.filter(|_| breaker.state == BreakerState::Open),
            open_reason: breaker.reason.clone().filter(|_| breaker.state == BreakerState::Open),
            history: changes.collect(),
        }
    }

    /// A session that is no loop has no breaker of its own: what it came with stays, as far as its status allows.
    fn kept_breaker(&self) -> wire::CircuitBreaker {
        let state = self.state();
        let kept = self.snapshot.carried_file(Family::Prp, BREAKER).cloned().unwrap_or_default();
        let number = |name: &str| kept.get(name).and_then(Value::as_u64).unwrap_or(0);
        let halted = state.status == Status::Halted;
        let was_open = kept.get("state").and_then(Value::as_str) == Some("OPEN");
        let word = match kept.get("state").and_then(Value::as_str) {
            _ if halted => "OPEN",
            Some("HALF_OPEN") => "HALF_OPEN",
            _ => "CLOSED",
        };
        // A reset begins to count anew.
        let reset = was_open && !halted;
        let count = |name: &str| if reset { 0 } else { number(name) };
        wire::CircuitBreaker {
            state: word.to_owned(),
            no_progress_count: count("no_progress_count"),
            same_error_count: count("same_error_count"),
            last_progress_metric: kept.get("last_progress_metric").cloned().unwrap_or_else(|| json!({})),
            last_error_hash: kept.get("last_error_hash").and_then(Value::as_str).map(ToOwned::to_owned),
            opened_at: halted.then_some(state.updated_at),
            open_reason: halted
                .then(|| state.reason.as_ref().map(|why| why.details.clone().unwrap_or(why.what.clone())))
                .flatten(),
            history: kept.get("history").and_then(Value::as_array).cloned().unwrap_or_default(),
        }
    }

    fn hourly(&self) -> (u64, u64) {
        let made = self.looping.map_or(0, |looping| looping.hour.calls);
        let limit = self.looping.and_then(|looping| looping.plan.own.calls_per_hour);
        (made, limit.unwrap_or(CALLS_PER_HOUR))
    }

    /// Since when and until when the loop waits for its plan.
    fn at_limit(&self) -> Option<&segno_core::looping::Parked> {
        self.looping?
            .parked
            .as_ref()
            .filter(|parked| matches!(parked.class, ParkReason::Plan | ParkReason::Vendor))
    }

    fn rate_limit(&self) -> wire::RateLimit {
        let state = self.state();
        let (calls_made, limit) = self.hourly();
        let window_start = self.looping.and_then(|looping| looping.hour.start).unwrap_or(state.created_at);
        let own = self.looping.and_then(|looping| looping.parked.as_ref());
        let own = own.filter(|parked| parked.class == ParkReason::Own);
        let five = self.at_limit();
        wire::RateLimit {
            hourly: wire::Hourly {
                calls_made,
                limit,
                window_start,
                next_reset: window_start.plus_seconds(3_600),
            },
            anthropic_5h: wire::FiveHours {
                detected: five.is_some(),
                detected_at: five.map(|parked| parked.since),
                resume_at: five.and_then(|parked| parked.until),
                waiting: five.is_some(),
            },
            paused: own.is_some(),
            pause_reason: own.map(|parked| parked.words.clone()),
            paused_at: own.map(|parked| parked.since),
        }
    }

    fn gates(&self) -> [bool; 3] {
        let gate = self.looping.and_then(|looping| looping.gate.as_ref());
        gate.map_or([false; 3], |gate| [gate.gate_1, gate.gate_2.unwrap_or(false), gate.can_exit])
    }

    fn gate(&self) -> wire::DualGate {
        let state = self.state();
        let conditions =
            self.looping.and_then(|looping| looping.gate.as_ref()).map_or(&[][..], |gate| &gate.conditions);
        let words: Vec<String> =
            conditions.iter().map(|condition| format!("{} {}", condition.name, condition.wanted)).collect();
        let [satisfied, signal, can_exit] = self.gates();
        wire::DualGate {
            phase: self.phase.to_owned(),
            iteration: state.iteration,
            gate_1: wire::FirstGate {
                satisfied,
                condition: words.join(" && "),
                values: conditions
                    .iter()
                    .map(|condition| (condition.name.clone(), condition.value.clone()))
                    .collect(),
            },
            gate_2: wire::SecondGate {
                satisfied: signal,
                source: if signal { "explicit_signal" } else { "none" },
            },
            can_exit,
            timestamp: state.updated_at,
        }
    }

    fn qa(&self) -> wire::QaState {
        let stand = self.stand("QA");
        let verdict = stand.and_then(|stand| stand.end).map(|end| match end {
            PhaseEnd::Passed => "APPROVE",
            PhaseEnd::SentBack => "REJECT",
            PhaseEnd::Skipped => "ESCALATE",
        });
        wire::QaState {
            attempt: stand.map_or(0, |stand| stand.iterations),
            last_verdict: verdict,
            report_path: None,
            memory_context: json!({}),
        }
    }

    /// The log with what it does not say yet: how a phase was left, and how the present one stands.
    fn status_log(&self) -> String {
        let log = self.existing.get(STATUS_LOG).map(String::from_utf8_lossy).unwrap_or_default();
        let mut log = log.into_owned();
        for stand in self.looping.into_iter().flat_map(|looping| &looping.phases) {
            if let (Some(end), Some(at)) = (stand.end, stand.ended_at)
                && stand.name != self.phase
                && let Some(phase) = PHASES.into_iter().find(|known| *known == stand.name)
            {
                log = status_log::with_left(&log, &self.left_entry(phase, stand.iterations, end, at));
            }
        }
        status_log::with(&log, &self.status_entry(), self.measured() > 0)
    }

    fn status_entry(&self) -> status_log::Entry<'static> {
        let state = self.state();
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
        let breaker = self.breaker();
        let counts = &state.counts;
        status_log::Entry {
            at: state.updated_at,
            phase: self.phase,
            status,
            iteration: self.measured().max(1),
            progress: state.progress().unwrap_or(0),
            tests,
            files: [counts.files_created, counts.files_modified, counts.files_deleted],
            breaker: (breaker.state, breaker.no_progress_count),
            gate: self.gates(),
            hourly: self.hourly(),
            at_limit: self.at_limit().is_some(),
            blockers: reason.into_iter().collect(),
            recommendation: self.looping.and_then(|looping| looping.line.clone()).unwrap_or_else(|| {
                state.last_action.clone().unwrap_or_else(|| "go on with the present phase".to_owned())
            }),
        }
    }

    /// How a phase stood when it was left.
    fn left_entry(
        &self,
        phase: &'static str,
        iterations: u64,
        end: PhaseEnd,
        at: Timestamp,
    ) -> status_log::Entry<'static> {
        let (status, passed, recommendation) = match end {
            PhaseEnd::Passed => ("COMPLETE", true, "both gates passed"),
            PhaseEnd::Skipped => ("COMPLETE", false, "left without its gate"),
            PhaseEnd::SentBack => ("BLOCKED", false, "the work was sent back to an earlier phase"),
        };
        let [total, passing, failing] = self.tests_of(phase).unwrap_or_default();
        let sent_back = (status == "BLOCKED").then(|| recommendation.to_owned());
        status_log::Entry {
            at,
            phase,
            status,
            iteration: iterations.max(1),
            progress: if status == "COMPLETE" { 100 } else { self.status_entry().progress },
            tests: [total, passing, failing, 0],
            gate: [passed; 3],
            // A phase is left with a breaker that lets it go on.
            breaker: ("CLOSED".to_owned(), 0),
            blockers: sent_back.into_iter().collect(),
            recommendation: recommendation.to_owned(),
            ..self.status_entry()
        }
    }
}
