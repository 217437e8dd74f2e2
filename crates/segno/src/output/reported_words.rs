//! Reports of agents and drivers in words. What is reported has no type of its own: a kind and plain values.

use serde_json::Value;

use super::event_words::Line;
use super::event_words::colored;
use super::event_words::line;
use super::event_words::noted;
use super::event_words::parts;
use super::style::Meaning;
use super::units;

/// What an agent or its driver reported. Kinds that are not known show their plain values.
pub(super) fn reported(what: &str, body: &Value) -> Line {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |name: &str| body.get(name).and_then(Value::as_u64);
    let told = match what {
        "tools" => {
            let count = body.get("tools").and_then(Value::as_array).map_or(0, Vec::len);
            line("tools", format!("the agent has {}", units::things(count as u64, "tool")))
        }
        "result" => return noted("result", parts(&[text("verdict"), text("text")]), text("error")),
        "progress" => line("progress", or(text("what"), "the agent is alive")),
        "retry" => {
            let of = number("max").map_or(String::new(), |max| format!(" of {max}"));
            let what = format!("attempt {}{of}", number("attempt").unwrap_or_default());
            return colored(Meaning::Waiting, noted("retry", what, text("error")));
        }
        "limit" => {
            let share = body.get("utilization").and_then(Value::as_f64).map(|share| {
                let percent = (share * 100.0).round();
                format!("{percent} % used")
            });
            let what = parts(&[text("status"), share.unwrap_or_default()]);
            return colored(Meaning::Waiting, noted("limit", what, text("window")));
        }
        "compaction" => {
            let sizes = match (number("tokens_before"), number("tokens_after")) {
                (Some(before), Some(after)) => {
                    format!("{} → {}", units::tokens(before), units::tokens(after))
                }
                _ => String::new(),
            };
            noted("compaction", format!("of the conversation: {}", text("phase")), sizes)
        }
        "watchdog" | "stopping" => {
            return colored(Meaning::Waiting, noted(what, text("why"), text("did")));
        }
        "signal" => {
            line("signal", format!("{} to pid {}", text("signal"), number("pid").unwrap_or_default()))
        }
        "sub_agent_started" => line("sub-agent", or(text("description"), &text("agent_type"))),
        "sub_agent_stopped" => noted("sub-agent", text("status"), text("summary")),
        "task_started" => noted("background", or(text("description"), &text("task_id")), "begins"),
        "task_stopped" => noted("background", or(text("summary"), &text("task_id")), text("status")),
        "launched" => line("background", format!("{} goes on in the background", text("task"))),
        "permission_requested" => line("asks", format!("whether it may use {}", text("tool"))),
        "permission_answered" => {
            let by = match text("by") {
                by if by.is_empty() => String::new(),
                by => format!("by {by}"),
            };
            noted("permission", format!("{}: {}", text("tool"), text("answer")), by)
        }
        "hook" => line("hook", parts(&[text("event"), text("phase")])),
        "notice" => line("notice", text("text")),
        "state" => line("state", format!("the agent is {}", text("state"))),
        "record" => noted("agent's log", text("did"), text("why")),
        "refused" => noted("refused", text("why"), ""),
        "unreadable" | "unknown" => {
            line("unread", format!("output that is not understood: {}", plain_values(body)))
        }
        _ => noted("reported", what.replace('_', " "), plain_values(body)),
    };
    colored(Meaning::Dim, told)
}

pub(super) fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text }
}

pub(super) fn plain_values(body: &Value) -> String {
    let values = body.as_object().into_iter().flatten().filter_map(|(name, value)| match value {
        Value::String(text) if !text.is_empty() => Some(format!("{name} {text}")),
        Value::Number(number) => Some(format!("{name} {number}")),
        Value::Bool(true) => Some(name.clone()),
        _ => None,
    });
    values.take(4).collect::<Vec<_>>().join(", ")
}
