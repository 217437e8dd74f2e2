//! The files of `.prp-session/`, as the document and its siblings name their members. What a session has not is null, so
//! that nothing old stays in a file.

use std::collections::BTreeMap;

use segno_core::Timestamp;
use serde::Serialize;
use serde::Serializer;
use serde_json::Value;

use crate::snapshot::Extension;

/// The main state.
pub(super) const LOOP_STATE: &str = "loop-state.json";
/// The circuit breaker.
pub(super) const BREAKER: &str = "circuit-breaker.json";
/// Numbers by phase.
pub(super) const METRICS: &str = "metrics.json";
/// Windows of calls.
pub(super) const RATE_LIMIT: &str = "rate-limit.json";
/// The exit gate.
pub(super) const GATE: &str = "dual-gate.json";
/// The blocks of the agent's status.
pub(super) const STATUS_LOG: &str = "phase-status.log";
/// The last phase of newer versions.
pub(super) const QA: &str = "qa-state.json";

/// Every file of the family, in the order in which they are written: the one that is looked for comes last.
pub(super) const FILES: [&str; 7] = [METRICS, BREAKER, RATE_LIMIT, GATE, QA, STATUS_LOG, LOOP_STATE];

/// The phases; newer versions have the last one.
pub(super) const PHASES: [&str; 5] = ["RED", "GREEN", "REFACTOR", "DOCUMENT", "QA"];

/// The members that a file of ours has: what else is in it is somebody else's.
pub(super) fn members(file: &str) -> &'static [&'static str] {
    match file {
        BREAKER => &[
            "state",
            "no_progress_count",
            "same_error_count",
            "last_progress_metric",
            "last_error_hash",
            "opened_at",
            "open_reason",
            "history",
        ],
        RATE_LIMIT => &["hourly", "anthropic_5h", "paused", "pause_reason", "paused_at"],
        GATE => &["phase", "iteration", "gate_1", "gate_2", "can_exit", "timestamp"],
        QA => &["attempt", "last_verdict", "report_path", "memory_context"],
        _ => &[],
    }
}

#[derive(Serialize)]
pub(super) struct LoopState {
    pub session_id: String,
    pub prp_file: String,
    pub started_at: Timestamp,
    pub current_phase: String,
    pub current_iteration: u64,
    pub last_activity: Timestamp,
    pub status: &'static str,
    pub halt_reason: Option<String>,
    pub phases_completed: Vec<String>,
    pub error_history: Vec<ErrorEntry>,
    pub phase_history: BTreeMap<String, PhaseEntry>,
    pub total_agent_calls: u64,
    pub pause_reason: Option<String>,
    pub paused_at: Option<Timestamp>,
    pub resumed_at: Value,
    pub completed_at: Option<Timestamp>,
    pub qa_attempts: u64,
    pub segno: Extension,
}

#[derive(Serialize)]
pub(super) struct ErrorEntry {
    pub timestamp: Timestamp,
    pub phase: Option<String>,
    pub iteration: u64,
    pub error: String,
    pub hash: String,
}

/// What came with the session is written as it came.
#[derive(Serialize)]
pub(super) struct PhaseEntry {
    pub started_at: Value,
    pub completed_at: Value,
    pub iterations: u64,
    pub exit_reason: Value,
}

#[derive(Serialize)]
pub(super) struct CircuitBreaker {
    pub state: String,
    pub no_progress_count: u64,
    pub same_error_count: u64,
    pub last_progress_metric: Value,
    pub last_error_hash: Option<String>,
    pub opened_at: Option<Timestamp>,
    pub open_reason: Option<String>,
    pub history: Vec<Value>,
}

#[derive(Serialize)]
pub(super) struct BreakerEntry {
    pub timestamp: Timestamp,
    pub event: &'static str,
    pub from_state: &'static str,
    pub to_state: &'static str,
    pub reason: String,
}

#[derive(Serialize)]
pub(super) struct Metrics {
    pub session_id: String,
    pub prp_file: String,
    pub started_at: Timestamp,
    pub current_phase: String,
    #[serde(serialize_with = "in_order")]
    pub phases: Vec<(&'static str, Option<PhaseMetrics>)>,
}

fn in_order<S: Serializer>(
    phases: &[(&'static str, Option<PhaseMetrics>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(phases.iter().map(|(name, stand)| (name, stand)))
}

/// What came with the session is written as it came.
#[derive(Serialize)]
pub(super) struct PhaseMetrics {
    pub started_at: Value,
    pub completed_at: Value,
    pub iterations: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_metrics: Option<BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_metrics: Option<BTreeMap<String, Value>>,
    pub history: Vec<Value>,
}

#[derive(Serialize)]
pub(super) struct RateLimit {
    pub hourly: Hourly,
    pub anthropic_5h: FiveHours,
    pub paused: bool,
    pub pause_reason: Option<String>,
    pub paused_at: Option<Timestamp>,
}

#[derive(Serialize)]
pub(super) struct Hourly {
    pub calls_made: u64,
    pub limit: u64,
    pub window_start: Timestamp,
    pub next_reset: Timestamp,
}

#[derive(Serialize)]
pub(super) struct FiveHours {
    pub detected: bool,
    pub detected_at: Option<Timestamp>,
    pub resume_at: Option<Timestamp>,
    pub waiting: bool,
}

#[derive(Serialize)]
pub(super) struct DualGate {
    pub phase: String,
    pub iteration: u64,
    pub gate_1: FirstGate,
    pub gate_2: SecondGate,
    pub can_exit: bool,
    pub timestamp: Timestamp,
}

#[derive(Serialize)]
pub(super) struct FirstGate {
    pub satisfied: bool,
    pub condition: String,
    pub values: BTreeMap<String, Value>,
}

#[derive(Serialize)]
pub(super) struct SecondGate {
    pub satisfied: bool,
    pub source: &'static str,
}

#[derive(Serialize)]
pub(super) struct QaState {
    pub attempt: u64,
    pub last_verdict: Value,
    pub report_path: Value,
    pub memory_context: Value,
}
