//! How a run ended, in words, from its row.

use std::time::Duration;

use serde_json::Value;

use crate::output::style::Meaning;
use crate::output::{Text, units};

/// The lines about a run that `segno show` has.
pub fn describe(run: &Value) -> Vec<(&'static str, Text)> {
    let text = |name: &str| run.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let number = |name: &str| run.get(name).and_then(Value::as_u64);
    let mut who = Text::new().plain(text("agent").unwrap_or("?"));
    for part in [text("version"), text("model")].into_iter().flatten() {
        who = who.plain(format!(" {part}"));
    }
    if let Some(ledger) = text("ledger") {
        who = who.painted(Meaning::Dim, format!("   ledger {}", ledger.replace('_', "-")));
    }
    let mut lines = vec![("run", who)];
    if let Some(native) = text("native_id") {
        lines.push(("conversation", Text::new().painted(Meaning::Dim, native)));
    }
    let Some(outcome) = text("outcome") else {
        let pid = number("pid").map_or(String::new(), |pid| format!(" (pid {pid})"));
        lines.push(("run ended", Text::new().plain(format!("not yet{pid}"))));
        return lines;
    };
    let meaning = match outcome {
        "completed" => Meaning::Done,
        "failed" | "interrupted" | "agent_missing" => Meaning::Lost,
        _ => Meaning::Waiting,
    };
    let mut how = Text::new().painted(meaning, outcome.replace('_', " "));
    if let Some(reason) = text("reason").filter(|reason| *reason != outcome) {
        how = how.plain(format!(": {reason}"));
    }
    let mut parts = Vec::new();
    if let Some(took) = number("duration_ms") {
        parts.push(format!("in {}", units::duration(Duration::from_millis(took))));
    }
    match (run.get("exit_code").and_then(Value::as_i64), run.get("signal").and_then(Value::as_i64)) {
        (_, Some(signal)) => parts.push(format!("killed by signal {signal}")),
        (Some(code), None) if code != 0 => parts.push(format!("exit {code}")),
        _ => {}
    }
    parts.extend(number("turns").filter(|n| *n > 0).map(|n| units::things(n, "turn")));
    if run.get("estimated").and_then(Value::as_bool) == Some(true) {
        let used = |name: &str| run.get("tokens").and_then(|tokens| tokens.get(name)?.as_u64()).unwrap_or(0);
        let all = ["input", "output", "cache_read", "cache_write", "other"].map(used);
        parts.push(format!("~{}", units::tokens(all.iter().sum())));
    }
    parts.extend(number("denials").filter(|n| *n > 0).map(|n| format!("{n} denied")));
    parts.extend(number("unparsed").filter(|n| *n > 0).map(|n| format!("{n} not understood")));
    parts.extend(number("swept").filter(|n| *n > 0).map(|n| format!("{n} left behind, ended")));
    if !parts.is_empty() {
        how = how.painted(Meaning::Dim, format!("   {}", parts.join(", ")));
    }
    lines.push(("run ended", how));
    for (label, name) in [("error", "error"), ("stderr", "stderr")] {
        let last =
            excerpt(run.get(name)).and_then(|text| text.trim_end().lines().last().map(ToOwned::to_owned));
        lines.extend(last.filter(|line| !line.trim().is_empty()).map(|line| (label, Text::from(line))));
    }
    lines
}

/// Text that may have been set aside.
fn excerpt(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Object(aside) => aside.get("excerpt").and_then(Value::as_str).map(ToOwned::to_owned),
        _ => None,
    }
}
