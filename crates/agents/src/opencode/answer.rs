//! What a provider's answer says of a limit: opencode passes it on whole.

use jiff::fmt::rfc2822;
use serde::Deserialize;
use serde_json::Value;

use super::wire::ErrorData;
use crate::classify::Meaning;
use crate::classify::understand as by_words;
use crate::limit::Limit;
use crate::limit::LimitClass;
use crate::limit::ResetTime;

/// A provider's refusal, in the form that most of them have.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    error: BodyError,
    metadata: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BodyError {
    r#type: Value,
    code: Value,
    message: Value,
    metadata: Value,
    /// Epoch seconds.
    resets_at: Value,
}

/// What an error with the provider's answer means.
pub(super) fn understand(data: &ErrorData, message: &str) -> Meaning {
    let raw = data.response_body.as_deref().unwrap_or_default();
    let body: Body = serde_json::from_str(raw).unwrap_or_default();
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let kind = word(&body.error.r#type);
    let time = (body.error.resets_at.as_i64().map(ResetTime::At)).or_else(|| told_in_headers(data));
    if kind.as_deref().is_some_and(|kind| ["GoUsageLimitError", "FreeUsageLimitError"].contains(&kind)) {
        let name = ["limitName", "limit_name"].iter().find_map(|key| {
            [&body.error.metadata, &body.metadata].into_iter().find_map(|from| word(from.get(key)?))
        });
        let limit = Limit::from_text(LimitClass::Plan, message);
        let window = name.filter(|name| !name.is_empty()).or_else(|| limit.window.clone());
        return Meaning::limited(Limit { window, ..limit }).until(time);
    }
    // The more exact of the two comes second.
    let code = word(&body.error.code).or(kind);
    let said = word(&body.error.message).filter(|said| !message.contains(said.as_str()));
    let text = said.map_or_else(|| message.to_owned(), |said| format!("{message}\n{said}"));
    let meaning = by_words(data.status_code, code.as_deref(), &text);
    let waits = meaning.limit.as_ref().is_some_and(|limit| limit.class.ends_by_itself());
    meaning.until(time.filter(|_| waits))
}

/// How long the provider asks to wait.
fn told_in_headers(data: &ErrorData) -> Option<ResetTime> {
    let headers = data.response_headers.as_ref()?;
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| (0.0..1e12).contains(value));
    if let Some(ms) = header("retry-after-ms").and_then(number) {
        return Some(ResetTime::After(ms.round() as u64));
    }
    let after = header("retry-after")?;
    match number(after) {
        Some(seconds) => Some(ResetTime::After((seconds * 1000.0).round() as u64)),
        None => rfc2822::parse(after).ok().map(|at| ResetTime::At(at.timestamp().as_second())),
    }
}
