//! A session as the files of `.prp-session/`.

use std::collections::BTreeMap;

use segno_core::State;
use segno_core::Status;
use segno_core::looping::BreakerState;
use segno_core::looping::LoopState as Looping;
use segno_core::looping::ParkReason;
use segno_core::looping::PhaseEnd;
use segno_core::rows::ErrorRow;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::moment::Moment;
use super::moment::condition;
use super::record::Record;
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
use crate::node::Node;
use crate::packed::sha256;
use crate::snapshot::Snapshot;

/// The newest errors that are kept, and how much of each.
const ERRORS: usize = 50;
const ERROR: usize = 500;
/// The document's iterations end here.
const MOST_ITERATIONS: u64 = 100;

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
    let of_state;
    let record = match &snapshot.record {
        Some(record) => record.as_ref(),
        None => {
            of_state = Record::of_state(state.clone());
            &of_state
        }
    };
    let looping = state.looping.as_deref();
    let writer = Writer { snapshot, record, phase, looping, moment: Moment { state, phase, looping } };
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
    files.push((STATUS_LOG.to_owned(), writer.status_log(existing).into_bytes()));
    files.push(snapshot.json((family, LOOP_STATE), &writer.loop_state(), existing, &[]));
    Ok(files)
}

struct Writer<'a> {
    snapshot: &'a Snapshot<'a>,
    record: &'a Record,
    moment: Moment<'a>,
    phase: &'static str,
    looping: Option<&'a Looping>,
}

impl Writer<'_> {
    fn state(&self) -> &State {
        self.snapshot.state
    }

    /// What an import kept of a file: it is shown until the session has something of its own to say there.
    fn carried(&self, file: &str) -> Option<&Map<String, Value>> {
        self.snapshot.carried_file(Family::Prp, file)?.as_object()
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
        let done = |phase: &&&str| self.is_done(phase);
        let came = self.carried(LOOP_STATE);
        let came = |name: &str| came.and_then(|file| file.get(name)).cloned();
        let calls = came("total_agent_calls").and_then(|calls| calls.as_u64()).unwrap_or(0);
        let reviews = came("qa_attempts").and_then(|reviews| reviews.as_u64()).unwrap_or(0);
        let stop = state.recovery.as_ref();
        let stopped_at = stop.map_or(state.updated_at, |stop| stop.interrupted_at);
        let resumed_at = stop.and_then(|stop| stop.recovered_at).map(|at| json!(at));
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
            phases_completed: PHASES.iter().filter(done).map(|phase| (*phase).to_owned()).collect(),
            error_history: errors[newest..].iter().map(|row| self.error(row)).collect(),
            phase_history: self.phase_history(),
            total_agent_calls: calls.saturating_add(state.counts.runs),
            pause_reason: of(Status::Paused),
            paused_at: (state.status == Status::Paused).then_some(stopped_at),
            resumed_at: resumed_at.or_else(|| came("resumed_at")).unwrap_or_default(),
            completed_at: state.completed_at,
            qa_attempts: self.moment.stand("QA").map_or(reviews, |stand| stand.iterations.max(reviews)),
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

    /// Whether a phase is done. A session that is completed has done the one that it is in.
    fn is_done(&self, phase: &str) -> bool {
        let state = self.state();
        state.phases_completed.iter().any(|done| done == phase)
            || (phase == self.phase && state.status == Status::Completed)
    }

    /// What came with the session about a phase: in the main file, and with the numbers.
    fn came(&self, phase: &str) -> [Option<&Map<String, Value>>; 2] {
        let of = |file: &str, member: &str| self.carried(file)?.get(member)?.get(phase)?.as_object();
        [of(LOOP_STATE, "phase_history"), of(METRICS, "phases")]
    }

    /// When a phase began and ended, how many iterations it had, and how it was left.
    fn phase(&self, phase: &str) -> Option<wire::PhaseEntry> {
        let came = self.came(phase);
        let visit = self.record.visit(phase);
        if visit.is_none() && came == [None, None] && !self.is_done(phase) {
            return None;
        }
        let foreign = |name: &str| {
            let known =
                |file: Option<&Map<String, Value>>| file?.get(name).filter(|value| !value.is_null()).cloned();
            came.into_iter().find_map(known)
        };
        let before = foreign("iterations").and_then(|count| count.as_u64());
        let before = before.unwrap_or_else(|| visit.map_or(0, |visit| visit.before));
        let state = self.state();
        let is_current = phase == self.phase;
        let goes_on = is_current && state.status != Status::Completed;
        let ended_at = visit.and_then(|visit| visit.ended_at).map(|at| json!(at));
        let started_at = visit.and_then(|visit| visit.started_at).map(|at| json!(at));
        let since = is_current.then(|| json!(state.phase_since));
        Some(wire::PhaseEntry {
            started_at: started_at.or_else(|| foreign("started_at")).or(since).unwrap_or_default(),
            completed_at: ended_at
                .or_else(|| foreign("completed_at"))
                .or_else(|| state.completed_at.filter(|_| is_current).map(|at| json!(at)))
                .filter(|_| !goes_on)
                .unwrap_or_default(),
            iterations: before.saturating_add(visit.map_or(0, |visit| visit.iterations)),
            exit_reason: visit
                .and_then(|visit| visit.exit.as_deref())
                .map(|word| json!(word))
                .or_else(|| foreign("exit_reason"))
                .filter(|_| !goes_on)
                .unwrap_or_default(),
        })
    }

    fn phase_history(&self) -> BTreeMap<String, wire::PhaseEntry> {
        let known = PHASES.into_iter().filter_map(|phase| Some((phase.to_owned(), self.phase(phase)?)));
        known.collect()
    }

    fn metrics(&self) -> wire::Metrics {
        let state = self.state();
        let of = |phase: &'static str| {
            let stand = self.phase(phase)?;
            let [_, came] = self.came(phase);
            let goes_on = phase == self.phase && state.status != Status::Completed;
            let of_file =
                |name: &str| came.and_then(|came| came.get(name)?.as_object()).into_iter().flatten();
            let mut numbers: BTreeMap<String, Value> = of_file("final_metrics")
                .chain(of_file("current_metrics"))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            match self.record.visit(phase) {
                _ if phase == self.phase => numbers.extend(self.moment.numbers()),
                Some(visit) if !visit.numbers.is_empty() => numbers.extend(visit.numbers.clone()),
                _ => {
                    let kept = state.phase_metrics.get(phase).into_iter().flatten();
                    numbers.extend(kept.map(|(name, metric)| (name.clone(), json!(metric))));
                }
            }
            let theirs = came.and_then(|came| came.get("history")?.as_array()).into_iter().flatten();
            let ours = self.record.visit(phase).into_iter().flat_map(|visit| &visit.history);
            Some(wire::PhaseMetrics {
                started_at: stand.started_at,
                completed_at: stand.completed_at,
                iterations: stand.iterations,
                current_metrics: goes_on.then(|| numbers.clone()),
                final_metrics: (!goes_on).then_some(numbers),
                history: theirs.chain(ours).cloned().collect(),
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
        let metric = self.moment.numbers().remove(name);
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
        let kept = self.carried(BREAKER).cloned().unwrap_or_default();
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
            opened_at: halted
                .then(|| state.recovery.as_ref().map_or(state.updated_at, |stop| stop.interrupted_at)),
            open_reason: halted
                .then(|| state.reason.as_ref().map(|why| why.details.clone().unwrap_or(why.what.clone())))
                .flatten(),
            history: kept.get("history").and_then(Value::as_array).cloned().unwrap_or_default(),
        }
    }

    fn rate_limit(&self) -> Node {
        let state = self.state();
        // A session that is no loop counts no calls: what it came with stays.
        let came = self.carried(RATE_LIMIT).filter(|came| came.contains_key("hourly"));
        if let Some(came) = came.filter(|_| self.looping.is_none()) {
            return Node::of(came);
        }
        let (calls_made, limit) = self.moment.hourly();
        let window_start = self.looping.and_then(|looping| looping.hour.start).unwrap_or(state.created_at);
        let own = self.looping.and_then(|looping| looping.parked.as_ref());
        let own = own.filter(|parked| parked.class == ParkReason::Own);
        let five = self.moment.at_limit();
        Node::of(&wire::RateLimit {
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
        })
    }

    fn gate(&self) -> Node {
        let state = self.state();
        let came = self.carried(GATE).filter(|_| self.moment.gate().is_none());
        // What came with it is about one phase.
        if let Some(came) = came.filter(|came| came.get("phase") == Some(&json!(self.phase))) {
            let mut came = came.clone();
            let at = came.get("evaluated_at").cloned().unwrap_or_else(|| json!(state.updated_at));
            came.entry("timestamp").or_insert(at);
            return Node::of(&came);
        }
        let conditions = self.moment.gate().map_or(&[][..], |gate| &gate.conditions);
        let all: Vec<_> = conditions.iter().map(condition).collect();
        let [satisfied, signal, can_exit] = self.moment.gates();
        let said = self.moment.gate().is_some_and(|gate| gate.gate_2 == Some(true));
        Node::of(&wire::DualGate {
            phase: self.phase.to_owned(),
            iteration: state.iteration,
            gate_1: wire::FirstGate {
                satisfied,
                condition: all.iter().map(|(_, _, words)| words.as_str()).collect::<Vec<_>>().join(" && "),
                values: all.iter().map(|(name, value, _)| (name.clone(), value.clone())).collect(),
            },
            gate_2: wire::SecondGate {
                satisfied: signal,
                source: if said { "explicit_signal" } else { "none" },
            },
            can_exit,
            timestamp: state.updated_at,
        })
    }

    fn qa(&self) -> wire::QaState {
        let came = self.carried(QA);
        let came =
            |name: &str| came.and_then(|file| file.get(name)).filter(|value| !value.is_null()).cloned();
        let stand = self.moment.stand("QA");
        let verdict = stand.and_then(|stand| stand.end).map(|end| match end {
            PhaseEnd::Passed => json!("APPROVE"),
            PhaseEnd::SentBack => json!("REJECT"),
            PhaseEnd::Skipped => json!("ESCALATE"),
        });
        // While it is reviewed again, what the review before said is still the last word.
        let rejected =
            || PHASES.iter().any(|name| self.moment.stand(name).is_some_and(|it| it.sent_back > 0));
        let verdict = verdict.or_else(|| rejected().then(|| json!("REJECT")));
        let attempts = came("attempt").and_then(|attempt| attempt.as_u64()).unwrap_or(0);
        wire::QaState {
            attempt: stand.map_or(attempts, |stand| stand.iterations.max(attempts)),
            last_verdict: verdict.or_else(|| came("last_verdict")).unwrap_or_default(),
            report_path: came("report_path").unwrap_or_default(),
            memory_context: came("memory_context").unwrap_or_else(|| json!({})),
        }
    }

    /// What came with the session, and what the journal says. Where what came is still in the folder whole, all of it stays.
    fn status_log(&self, existing: &FileSet) -> String {
        let came = self.snapshot.carried_file(Family::Prp, STATUS_LOG).and_then(Value::as_str);
        let Some(came) = came.map(str::trim_end).filter(|came| !came.is_empty()) else {
            return self.record.log().to_owned();
        };
        let there = existing.get(STATUS_LOG).map(String::from_utf8_lossy).unwrap_or_default();
        let whole = there.rfind(came).map_or(came, |at| &there[..at + came.len()]);
        let mut log = format!("{whole}\n");
        status_log::join(&mut log, self.record.log());
        log
    }
}
