//! What an error message means. Used only on text the agent itself reports as an error: the same words in a file that
//! the agent reads must never look like a limit.

use crate::outcome::ErrorClass;
use crate::outcome::LimitHit;

/// The class of an error from the vendor's code, its text and its HTTP status, in that order of trust. Only the codes
/// that lump many causes together yield to the text.
pub(crate) fn classify(status: Option<u16>, code: Option<&str>, text: &str) -> ErrorClass {
    let coded = code.and_then(by_code);
    if let Some(class) =
        coded.filter(|class| !matches!(class, ErrorClass::InvalidRequest | ErrorClass::Server))
    {
        return class;
    }
    let lower = text.to_lowercase().replace('\u{2019}', "'");
    by_text(&lower)
        .or(coded)
        .or_else(|| status.or_else(|| status_in(&lower)).map(by_status))
        .unwrap_or(ErrorClass::Unknown)
}

fn by_code(code: &str) -> Option<ErrorClass> {
    Some(match code {
        "authentication_failed"
        | "oauth_org_not_allowed"
        | "account_on_hold"
        | "verification_required"
        | "cloud_credential_error"
        | "authentication_error"
        | "permission_error" => ErrorClass::Authentication,
        "billing_error" | "insufficient_quota" => ErrorClass::Billing,
        "rate_limit" | "rate_limit_error" | "usage_limit_reached" | "blocking_limit" => ErrorClass::Limit,
        "overloaded" | "overloaded_error" => ErrorClass::Overloaded,
        "prompt_too_long" | "rapid_refill_breaker" => ErrorClass::Context,
        "invalid_request"
        | "invalid_request_error"
        | "model_not_found"
        | "not_found_error"
        | "max_output_tokens"
        | "image_error" => ErrorClass::InvalidRequest,
        "server_error" | "api_error" => ErrorClass::Server,
        "turn_setup_failed" => ErrorClass::Setup,
        _ => return None,
    })
}

fn by_text(lower: &str) -> Option<ErrorClass> {
    const TABLE: &[(ErrorClass, &[&str])] = &[
        (
            ErrorClass::Limit,
            &[
                "hit your usage limit",
                "hit your limit",
                "usage limit reached",
                "-hour limit",
                "weekly limit",
                "out of extra usage",
                "rate limit",
                "too many requests",
            ],
        ),
        (ErrorClass::Billing, &["quota exceeded", "insufficient_quota", "credit balance"]),
        (ErrorClass::Context, &["context window", "prompt is too long", "context_length_exceeded"]),
        (
            ErrorClass::Setup,
            &[
                "missing environment variable",
                "no conversation found",
                "no rollout found",
                "invalid session identifier",
                "session not found",
                "already in use",
                "model provider",
                "unknown option",
                "unexpected argument",
            ],
        ),
        (
            ErrorClass::Authentication,
            &[
                "401 unauthorized",
                "incorrect api key",
                "invalid api key",
                "api key not valid",
                "must specify the gemini_api_key",
                "not logged in",
            ],
        ),
        (ErrorClass::Overloaded, &["experiencing high demand", "overloaded"]),
        (
            ErrorClass::Network,
            &["stream disconnected", "network error", "connection", "timed out", "idle timeout"],
        ),
        (ErrorClass::InvalidRequest, &["invalid_request_error"]),
    ];
    TABLE.iter().find(|(_, words)| words.iter().any(|word| lower.contains(word))).map(|(class, _)| *class)
}

fn by_status(status: u16) -> ErrorClass {
    match status {
        401 | 403 => ErrorClass::Authentication,
        402 => ErrorClass::Billing,
        429 => ErrorClass::Limit,
        529 | 503 => ErrorClass::Overloaded,
        413 => ErrorClass::Context,
        400..=499 => ErrorClass::InvalidRequest,
        500..=599 => ErrorClass::Server,
        _ => ErrorClass::Unknown,
    }
}

/// An HTTP status that the text names as such.
pub(crate) fn status_in(text: &str) -> Option<u16> {
    let lower = text.to_lowercase();
    ["status: ", "status ", "error: "].iter().find_map(|word| {
        let at = lower.find(word)? + word.len();
        let digits: String = lower[at..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|status| (400..600).contains(status))
    })
}

/// What an error text says about the end of a limit.
pub(crate) fn limit_in(text: &str) -> LimitHit {
    LimitHit { resets_text: reset_words(text), retry_after_ms: retry_after(text), ..LimitHit::default() }
}

fn reset_words(text: &str) -> Option<String> {
    ["try again at ", "will reset at ", "resets at ", "resets "].iter().find_map(|word| {
        let rest = &text[text.find(word)? + word.len()..];
        let rest = rest.lines().next()?.trim().trim_end_matches('.');
        (!rest.is_empty() && rest.len() <= 80).then(|| rest.to_owned())
    })
}

fn retry_after(text: &str) -> Option<u64> {
    let rest = &text[text.find("try again in ")? + "try again in ".len()..];
    let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let unit: String =
        rest[number.len()..].trim_start().chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    let scale = match unit.as_str() {
        "ms" => 1.0,
        "s" | "sec" | "second" | "seconds" => 1000.0,
        "m" | "min" | "minute" | "minutes" => 60_000.0,
        "h" | "hour" | "hours" => 3_600_000.0,
        _ => return None,
    };
    let value: f64 = number.trim_end_matches('.').parse().ok()?;
    Some((value * scale).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_say_when_they_end() {
        let at =
            limit_in("You've hit your usage limit. Visit the page or try again at Jan 16th, 2030 3:51 AM.");
        assert_eq!(at.resets_text.as_deref(), Some("Jan 16th, 2030 3:51 AM"));
        assert_eq!(limit_in("limit · resets 7:04pm (UTC)").resets_text.as_deref(), Some("7:04pm (UTC)"));
        assert_eq!(limit_in("Please try again in 1.2s").retry_after_ms, Some(1200));
        assert_eq!(limit_in("try again in 5 minutes").retry_after_ms, Some(300_000));
        assert_eq!(limit_in("try again in a while").retry_after_ms, None);
    }

    #[test]
    fn classes() {
        use ErrorClass::*;
        for (status, code, text, class) in [
            (Some(429), None, "", Limit),
            (Some(529), None, "", Overloaded),
            (Some(400), Some("invalid_request_error"), "Prompt is too long", Context),
            (Some(400), Some("invalid_request_error"), "no", InvalidRequest),
            (Some(400), Some("unknown"), "API Error: 400 bad", InvalidRequest),
            (None, None, "exceeded retry limit, last status: 429 Too Many Requests", Limit),
            (None, None, "unexpected status 401 Unauthorized: Incorrect API key", Authentication),
            (None, None, "You\u{2019}ve hit your usage limit.", Limit),
            (None, None, "Quota exceeded. Check your plan and billing details.", Billing),
            (None, None, "ran out of room in the model's context window", Context),
            (None, None, "stream disconnected before completion", Network),
            (None, None, "weird", Unknown),
        ] {
            assert_eq!(classify(status, code, text), class, "{text}");
        }
    }
}
