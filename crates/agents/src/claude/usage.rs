//! How full the windows of the plan are, asked through Claude Code's control requests.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::usage::UsageAnswer;
use crate::usage::UsageQuestion;
use crate::usage::UsageWindow;

/// The id of our question.
const ID: &str = "segno-usage";

pub(super) fn question() -> UsageQuestion {
    let request = serde_json::json!({
        "type": "control_request",
        "request_id": ID,
        "request": { "subtype": "get_usage", "skip_behaviors": true },
    });
    UsageQuestion {
        args: ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
            .map(str::to_owned)
            .into(),
        input: format!("{request}\n").into_bytes(),
        read,
    }
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    request_id: String,
    response: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    rate_limits: Option<BTreeMap<String, Value>>,
}

/// One window. The share is in per cent, the time in words.
#[derive(Deserialize)]
struct Window {
    display_name: Option<String>,
    utilization: f64,
    resets_at: Option<String>,
}

impl Window {
    fn named(self, name: &str, model: Option<String>) -> UsageWindow {
        let end = self.resets_at.and_then(|time| time.parse::<jiff::Timestamp>().ok());
        UsageWindow {
            name: name.to_owned(),
            used: self.utilization / 100.0,
            resets_at: end.map(jiff::Timestamp::as_second),
            model,
        }
    }
}

fn read(line: &[u8]) -> Option<UsageAnswer> {
    let line: Line = serde_json::from_slice(line).ok()?;
    if line.kind != "control_response" || line.response.request_id != ID {
        return None;
    }
    let Some(limits) = line.response.response.and_then(|usage| usage.rate_limits) else {
        return Some(UsageAnswer::CannotTell);
    };
    // More may be used for money: a window that is full refuses nothing then.
    if limits.get("extra_usage").is_some_and(|extra| extra["is_enabled"] == true) {
        return Some(UsageAnswer::CannotTell);
    }
    let window = |value: &Value| Window::deserialize(value).ok();
    let mut windows = Vec::new();
    for name in ["five_hour", "seven_day", "seven_day_opus", "seven_day_sonnet"] {
        let model = name.strip_prefix("seven_day_").map(ToOwned::to_owned);
        windows.extend(limits.get(name).and_then(window).map(|window| window.named(name, model)));
    }
    let scoped = limits.get("model_scoped").and_then(Value::as_array).into_iter().flatten();
    for window in scoped.filter_map(window) {
        let model = window.display_name.clone();
        windows.push(window.named("model", Some(model.unwrap_or_default())));
    }
    Some(if windows.is_empty() { UsageAnswer::CannotTell } else { UsageAnswer::Windows(windows) })
}
