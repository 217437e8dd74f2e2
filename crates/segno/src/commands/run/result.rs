//! The result of a run as one document.

use segno_engine::redact::Redactor;
use segno_engine::run::Report;
use segno_engine::run::outcome_word;
use serde_json::Value;
use serde_json::json;

use super::exit_of;

/// The document that `segno run --json` ends with.
pub fn document(report: &Report, redactor: &Redactor) -> Value {
    let outcome = &report.outcome;
    let mut document = json!({
        "kind": "result",
        "outcome": outcome_word(outcome.outcome),
        "exit_code": exit_of(outcome.outcome).number(),
        "reason": outcome.reason,
        "session_id": report.state.session_id,
        "session_status": report.state.status,
        "run": report.run,
        "native_id": outcome.native_id,
        "model": outcome.model,
        "text": outcome.text,
        "turns": outcome.turns,
        "tool_calls": outcome.tool_calls,
        "duration_ms": u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
        "agent_duration_ms": outcome.duration_ms,
        "api_duration_ms": outcome.api_duration_ms,
        "tokens": outcome.tokens,
        "tokens_exact": outcome.tokens_exact,
        "cost_usd": outcome.cost_usd,
        "denials": outcome.denials,
        "open_calls": outcome.open_calls,
        "error": outcome.error,
        "limit": outcome.limit,
        "lines": outcome.lines,
        "unparsed": outcome.unparsed,
        "swept": report.swept,
        "agent_exit_code": outcome.exit_code,
        "agent_exit_signal": outcome.exit_signal,
        "stderr": report.stderr,
        "kept_capture": report.kept_capture,
    });
    // It is read by others than the one who ran it.
    redactor.json(&mut document);
    document
}
