//! How full the windows of the plan are, asked through Codex's app-server.

use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::limits::RateLimits;
use crate::usage::UsageAnswer;
use crate::usage::UsageQuestion;
use crate::usage::UsageWindow;

/// The number of our question.
const ID: u64 = 2;

pub(super) fn question() -> UsageQuestion {
    let client = json!({ "name": "segno", "version": env!("CARGO_PKG_VERSION") });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "clientInfo": client } }),
        json!({ "jsonrpc": "2.0", "method": "initialized" }),
        json!({ "jsonrpc": "2.0", "id": ID, "method": "account/rateLimits/read" }),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    UsageQuestion { args: vec!["app-server".to_owned()], input: input.into_bytes(), read }
}

#[derive(Deserialize)]
struct Line {
    id: Option<Value>,
    result: Option<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "rateLimits")]
    rate_limits: Option<RateLimits>,
}

fn read(line: &[u8]) -> Option<UsageAnswer> {
    let line: Line = serde_json::from_slice(line).ok()?;
    if line.id != Some(ID.into()) {
        return None;
    }
    let limits = line.result.and_then(|answer| answer.rate_limits);
    let told = limits.iter().flat_map(RateLimits::told_windows);
    let windows: Vec<UsageWindow> = told
        .filter_map(|window| {
            let (name, resets_at, model) = (window.name, window.resets_at, None);
            Some(UsageWindow { name, used: window.utilization?, resets_at, model })
        })
        .collect();
    Some(if windows.is_empty() { UsageAnswer::CannotTell } else { UsageAnswer::Windows(windows) })
}
