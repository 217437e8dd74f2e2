//! How a run ended, in words, from its row.

use std::time::Duration;

use segno_engine::core::rows::RunRow;

use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// The lines about a run that `segno show` has.
pub fn describe(run: &RunRow) -> Vec<(&'static str, Text)> {
    let said = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
    let mut who = Text::new().plain(if run.agent.is_empty() { "?" } else { run.agent.as_str() });
    for part in [said(&run.version), said(&run.model)].into_iter().flatten() {
        who = who.plain(format!(" {part}"));
    }
    if let Some(ledger) = said(&run.ledger) {
        who = who.painted(Meaning::Dim, format!("   ledger {}", ledger.replace('_', "-")));
    }
    let mut lines = vec![("run", who)];
    if let Some(native) = said(&run.native_id) {
        lines.push(("conversation", Text::new().painted(Meaning::Dim, native)));
    }
    let Some(outcome) = said(&run.outcome) else {
        let pid = run.pid.map_or(String::new(), |pid| format!(" (pid {pid})"));
        lines.push(("run ended", Text::new().plain(format!("not yet{pid}"))));
        return lines;
    };
    let meaning = match outcome.as_str() {
        "completed" => Meaning::Done,
        "failed" | "interrupted" | "agent_missing" => Meaning::Lost,
        _ => Meaning::Waiting,
    };
    let mut how = Text::new().painted(meaning, outcome.replace('_', " "));
    let reason = run.reason.as_ref().map(|reason| reason.excerpt());
    if let Some(reason) = reason.filter(|reason| !reason.is_empty() && *reason != outcome) {
        how = how.plain(format!(": {reason}"));
    }
    let mut parts = Vec::new();
    if let Some(took) = run.duration_ms {
        parts.push(format!("in {}", units::duration(Duration::from_millis(took))));
    }
    match (run.exit_code, run.signal) {
        (_, Some(signal)) => parts.push(format!("killed by signal {signal}")),
        (Some(code), None) if code != 0 => parts.push(format!("exit {code}")),
        _ => {}
    }
    let some = |n: u64| Some(n).filter(|n| *n > 0);
    parts.extend(some(run.turns).map(|n| units::things(n, "turn")));
    if run.estimated {
        parts.push(format!("~{}", units::tokens(run.tokens.unwrap_or_default().total())));
    }
    parts.extend(some(run.denials).map(|n| format!("{n} denied")));
    parts.extend(some(run.unparsed).map(|n| format!("{n} not understood")));
    parts.extend(some(run.swept).map(|n| format!("{n} left behind, ended")));
    if !parts.is_empty() {
        how = how.painted(Meaning::Dim, format!("   {}", parts.join(", ")));
    }
    lines.push(("run ended", how));
    for (label, text) in [("error", &run.error), ("stderr", &run.stderr)] {
        let last = text.as_ref().and_then(|text| text.excerpt().trim_end().lines().last());
        let last = last.filter(|line| !line.trim().is_empty());
        lines.extend(last.map(|line| (label, Text::from(line.to_owned()))));
    }
    lines
}
