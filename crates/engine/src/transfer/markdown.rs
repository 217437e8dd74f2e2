//! A session as a report for people.

use std::fmt::Write;

use segno_core::List;
use segno_core::State;
use segno_core::budget::dollars;
use serde_json::Value;

use crate::Engine;
use crate::Error;

/// The report.
pub(super) fn report(engine: &Engine, state: &State) -> Result<String, Error> {
    let mut out = String::new();
    let title = state.topic.clone().unwrap_or_else(|| state.session_id.to_string());
    line(&mut out, &format!("# {}", escape(&title)));
    line(&mut out, "");
    line(&mut out, "| | |");
    line(&mut out, "|---|---|");
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            line(&mut out, &format!("| {name} | {} |", escape(&value)));
        }
    };
    fact("session", state.session_id.to_string());
    let reason = state.reason.as_ref().map_or(String::new(), |reason| {
        let details = reason.details.clone().unwrap_or_default();
        format!(
            ": {}",
            [reason.what.clone(), details]
                .iter()
                .filter(|t| !t.is_empty())
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        )
    });
    fact("status", format!("{}{reason}", state.status));
    fact("project", state.project.path.clone());
    fact("workflow", state.workflow.as_ref().map_or(String::new(), |workflow| workflow.name.clone()));
    fact("phase", state.phase_label().unwrap_or_default());
    fact("progress", state.progress().map_or(String::new(), |percent| format!("{percent} %")));
    fact("created", state.created_at.to_string());
    fact("updated", state.updated_at.to_string());
    fact("ended", state.completed_at.map_or(String::new(), |at| at.to_string()));
    let used = state.budget.tokens_used;
    fact(
        "tokens",
        match state.budget.is_unlimited() {
            true => used.to_string(),
            false => format!(
                "{used} of {} ({:.1} %){}",
                state.budget.total_budget,
                state.budget.utilization_percent(),
                if state.budget.is_over() { ", over budget" } else { "" }
            ),
        },
    );
    fact("cost", dollars(state.cost.used_micros));
    if let Some(intent) = &state.intent {
        line(&mut out, "\n## Intent\n");
        line(&mut out, &escape(intent));
    }
    if !state.metrics.is_empty() {
        line(&mut out, "\n## Metrics\n");
        for (name, value) in &state.metrics {
            line(&mut out, &format!("- {}: {}", escape(name), serde_json::json!(value)));
        }
    }
    for (list, heading, columns) in SECTIONS {
        let items = engine.items(state.session_id, *list)?;
        if items.is_empty() {
            continue;
        }
        line(&mut out, &format!("\n## {heading}\n"));
        line(&mut out, &format!("| {} |", columns.join(" | ")));
        line(&mut out, &format!("|{}", "---|".repeat(columns.len())));
        for item in items {
            let cells: Vec<String> = columns.iter().map(|column| cell(&item.body, column)).collect();
            line(&mut out, &format!("| {} |", cells.join(" | ")));
        }
    }
    Ok(out)
}

const SECTIONS: &[(List, &str, &[&str])] = &[
    (List::Tasks, "Tasks", &["task", "state", "text"]),
    (List::Decisions, "Decisions", &["decision", "parent", "branch", "question", "choice", "reason"]),
    (List::Outputs, "Outputs", &["name", "kind", "content"]),
    (List::Artifacts, "Artifacts", &["path", "artifact_type", "phase", "timestamp"]),
    (List::Files, "Files", &["path", "change", "changed_at"]),
    (List::Milestones, "Milestones", &["name", "details", "reached_at"]),
    (List::Checkpoints, "Checkpoints", &["id", "reason", "phase", "created_at"]),
    (List::Verifications, "Verification", &["phase", "check", "verdict", "details"]),
    (List::Errors, "Errors", &["timestamp", "phase", "iteration", "message"]),
    (List::Tools, "Tool calls", &["started_at", "tool", "state", "input"]),
    (List::Memory, "Memory", &["timestamp", "usage", "source", "query"]),
    (List::History, "History", &["timestamp", "action", "phase", "details"]),
];

fn cell(body: &Value, column: &str) -> String {
    let text = match body.get(column) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(members)) if members.contains_key("excerpt") => {
            members.get("excerpt").and_then(Value::as_str).unwrap_or("").to_owned() + "…"
        }
        Some(other) => other.to_string(),
    };
    escape(&segno_core::text::shorten(&text, 300))
}

/// One line of text as Markdown: text from outside must not become markup, a table border, a link or a control sequence.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, c) in text.trim().chars().enumerate() {
        match c {
            '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']' | '#' | '\\' | '~' | '&' | '!' | '$' | '@' => {
                out.push('\\');
                out.push(c);
            }
            // At the start of a line these make lists, rules and headings.
            '-' | '+' | '=' | ':' if index == 0 => {
                out.push('\\');
                out.push(c);
            }
            // These make numbered lists, and links of bare addresses.
            '.' | ')' | ':' if index > 0 && is_marker(&out) => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\r' | '\t' => out.push(' '),
            c if c.is_control() || is_invisible(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Whether what comes before a dot, parenthesis or colon would make a numbered list or an address of it.
fn is_marker(before: &str) -> bool {
    let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
    before.bytes().all(|byte| byte.is_ascii_digit())
        || matches!(word.to_ascii_lowercase().as_str(), "http" | "https" | "ftp" | "mailto" | "www")
}

/// Characters that change the direction of text or hide in it.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn line(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests {
    use segno_core::rows;

    use super::*;

    #[test]
    fn every_column_is_a_field_of_its_row() {
        for (list, _, columns) in SECTIONS {
            for column in *columns {
                assert!(rows::fields(*list).contains(column), "{list:?} {column}");
            }
        }
    }
}
