//! What Google's details, and the way Gemini CLI ends, say of a limit.

use serde::Deserialize;

use crate::classify::understand;
use crate::limit::Limit;
use crate::limit::LimitClass;
use crate::limit::ResetTime;
use crate::limit::delay;
use crate::outcome::ExitInfo;

/// All kinds of details in one shape: each has its own few of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Detail {
    violations: Vec<Violation>,
    retry_delay: Option<String>,
    reason: Option<String>,
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Violation {
    quota_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    quota_reset_time_stamp: Option<String>,
    quota_reset_delay: Option<String>,
}

/// The class that the details name, and when the limit ends.
pub(super) fn told(details: &[Detail]) -> (Option<LimitClass>, Option<ResetTime>) {
    let quotas =
        details.iter().flat_map(|detail| &detail.violations).filter_map(|one| one.quota_id.as_deref());
    let mut class = details.iter().find_map(|detail| by_reason(detail.reason.as_deref()?));
    for quota in quotas {
        if quota.contains("PerDay") || quota.contains("Daily") {
            class = Some(LimitClass::Plan);
        } else if class.is_none() && quota.contains("PerMinute") {
            class = Some(LimitClass::Transient);
        }
    }
    let stamp = details.iter().find_map(|detail| detail.metadata.quota_reset_time_stamp.as_deref());
    let at = stamp.and_then(|stamp| stamp.parse::<jiff::Timestamp>().ok());
    let delays = details.iter().flat_map(|detail| [&detail.metadata.quota_reset_delay, &detail.retry_delay]);
    let after = delays.flatten().find_map(|words| delay(&words.to_ascii_lowercase()));
    (class, at.map(|at| ResetTime::At(at.as_second())).or(after.map(ResetTime::After)))
}

fn by_reason(reason: &str) -> Option<LimitClass> {
    Some(match reason {
        "QUOTA_EXHAUSTED" => LimitClass::Plan,
        "RATE_LIMIT_EXCEEDED" => LimitClass::Transient,
        "MODEL_CAPACITY_EXHAUSTED" | "MODEL_CAPACITY_EXCEEDED" => LimitClass::Overload,
        "INSUFFICIENT_G1_CREDITS_BALANCE" => LimitClass::Pay,
        "VALIDATION_REQUIRED" => LimitClass::Auth,
        _ => return None,
    })
}

/// The exit code is the HTTP status as far as it fits into a byte; standard error ends with the rest.
pub(super) fn by_exit(exit: &ExitInfo) -> Option<Limit> {
    let class = match exit.code? {
        173 => LimitClass::Transient,
        247 => LimitClass::Overload,
        145 => LimitClass::Auth,
        _ => return None,
    };
    let stderr = exit.stderr.as_deref().unwrap_or_default();
    let last = |name: &str| {
        let value =
            |line: &str| Some(line.trim().strip_prefix(name)?.trim_matches([',', '\'', '"', ' ']).to_owned());
        stderr.lines().rev().find_map(value)
    };
    let named = last("reason: ").and_then(|reason| by_reason(&reason));
    let ms = last("retryDelayMs: ").and_then(|ms| ms.parse::<f64>().ok());
    let ms = ms.filter(|ms| (0.0..1e12).contains(ms)).map(|ms| ResetTime::After(ms.round() as u64));
    Some(Limit { resets: ms, ..Limit::new(named.unwrap_or(class)) })
}

/// What it says on standard error, and nowhere else, when it waits for its provider to let it go on:
/// `Attempt 1 failed: WORDS. Retrying after 68940000ms...`
pub(super) fn silent_wait(stderr: &str) -> Option<Limit> {
    let line = stderr.lines().rev().find(|line| line.starts_with("Attempt "))?;
    let (_, rest) = line.split_once(" failed: ")?;
    let (words, delay) = rest.rsplit_once(" Retrying after ")?;
    let ms: u64 = delay.split_once("ms")?.0.trim().parse().ok()?;
    let words = words.trim().trim_end_matches('.');
    let limit = understand(None, None, words).limit.filter(|limit| limit.class.ends_by_itself())?;
    Some(Limit { resets: Some(ResetTime::After(ms)), ..*limit }.in_words(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_only_standard_error_tells() {
        let said = "Ripgrep is not available. Falling back to GrepTool.\nAttempt 1 failed: You have exhausted your \
            capacity on this model. Your quota will reset after 19h14m47s.. Retrying after 74109420ms...\n";
        let limit = silent_wait(said).unwrap();
        assert_eq!((limit.class, limit.resets), (LimitClass::Plan, Some(ResetTime::After(74_109_420))));
        // Not a limit, and not a wait.
        assert_eq!(silent_wait("Attempt 1 failed: fetch failed. Retrying after 500ms...\n"), None);
        assert_eq!(silent_wait("Attempt 3 failed: Too many requests. Max attempts reached\n"), None);
    }
}
