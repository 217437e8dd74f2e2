//! What an error message means. Used only on text the agent itself reports as an error: the same words in a file that
//! the agent reads must never look like a limit.

use serde::Deserialize;

use crate::event::AgentEvent;
use crate::limit::Limit;
use crate::limit::LimitClass;
use crate::limit::ResetTime;
use crate::limit::class_in;
use crate::outcome::ErrorClass;
use crate::outcome::OutcomeKind;

/// A provider's refusal, as agents pass it on as text. What is in the error differs from one provider to the next.
#[derive(Debug, Deserialize)]
#[serde(default, bound = "E: Deserialize<'de>")]
pub(crate) struct ProviderAnswer<E> {
    pub(crate) error: Option<E>,
}

impl<E> Default for ProviderAnswer<E> {
    fn default() -> Self {
        Self { error: None }
    }
}

/// What an error means: its class, and the limit behind it if there is one.
#[derive(Debug, Clone)]
pub(crate) struct Meaning {
    pub(crate) class: ErrorClass,
    pub(crate) limit: Option<Box<Limit>>,
}

impl Meaning {
    /// A limit, and the class of error that follows from it.
    pub(crate) fn limited(limit: Limit) -> Self {
        Self { class: limit.class.into(), limit: Some(Box::new(limit)) }
    }

    /// An error of a class that is already known, with what its text says of a limit.
    pub(crate) fn known(class: ErrorClass, text: &str) -> Self {
        match class.limit_class() {
            Some(limit) => Self::limited(Limit::from_text(limit, text)),
            None => Self { class, limit: None },
        }
    }

    /// The same with an exact time, if there is one.
    pub(crate) fn until(mut self, time: Option<ResetTime>) -> Self {
        if let (Some(limit), Some(time)) = (&mut self.limit, time) {
            limit.resets = Some(time);
        }
        self
    }

    /// What it makes of the turn that it ended. What only a person can mend is a failure: waiting is of no use.
    pub(crate) fn verdict(&self) -> OutcomeKind {
        match self.class {
            ErrorClass::Limit => OutcomeKind::Limit,
            ErrorClass::Budget => OutcomeKind::Budget,
            _ => OutcomeKind::Failed,
        }
    }

    /// The event that tells of it.
    pub(crate) fn event(&self, message: impl Into<String>, api_status: Option<u16>) -> AgentEvent {
        AgentEvent::Error {
            message: message.into(),
            class: self.class,
            api_status,
            limit: self.limit.clone(),
        }
    }
}

/// The meaning of an error from the vendor's code, its text and its HTTP status, in that order of trust. Only the codes
/// that lump many causes together yield to the text.
pub(crate) fn understand(status: Option<u16>, code: Option<&str>, text: &str) -> Meaning {
    let lower = text.to_lowercase().replace('\u{2019}', "'");
    let coded = code.and_then(by_code);
    let class = match coded {
        Some(Coded::Sure(class)) => return Meaning::known(class, text),
        Some(Coded::Limit(otherwise)) => {
            let told = class_in(&lower)
                .filter(|class| matches!(class, LimitClass::Plan | LimitClass::Transient | LimitClass::Pay));
            return Meaning::limited(Limit::from_text(told.unwrap_or(otherwise), text));
        }
        Some(Coded::Lump(class)) => Some(class),
        None => None,
    };
    if let Some(limit) = class_in(&lower) {
        return Meaning::limited(Limit::from_text(limit, text));
    }
    let class = by_text(&lower)
        .or(class)
        .or_else(|| status.or_else(|| status_in(&lower)).map(by_status))
        .unwrap_or(ErrorClass::Unknown);
    Meaning::known(class, text)
}

/// What a code says.
enum Coded {
    /// Just this.
    Sure(ErrorClass),
    /// A limit; which one, the text may say.
    Limit(LimitClass),
    /// One of many causes.
    Lump(ErrorClass),
}

fn by_code(code: &str) -> Option<Coded> {
    Some(match code {
        "authentication_failed"
        | "oauth_org_not_allowed"
        | "account_on_hold"
        | "verification_required"
        | "cloud_credential_error"
        | "authentication_error"
        | "permission_error"
        | "unauthorized" => Coded::Sure(ErrorClass::Authentication),
        "billing_error" | "insufficient_quota" | "usage_not_included" => Coded::Sure(ErrorClass::Billing),
        "rate_limit" | "rate_limit_error" | "rate_limit_exceeded" => Coded::Limit(LimitClass::Transient),
        "usage_limit_reached" | "usage_limit_exceeded" => Coded::Limit(LimitClass::Plan),
        "overloaded" | "overloaded_error" | "server_overloaded" | "server_is_overloaded" | "slow_down" => {
            Coded::Sure(ErrorClass::Overloaded)
        }
        "session_budget_exceeded" => Coded::Sure(ErrorClass::Budget),
        "prompt_too_long"
        | "rapid_refill_breaker"
        | "blocking_limit"
        | "context_window_exceeded"
        | "context_length_exceeded" => Coded::Sure(ErrorClass::Context),
        "invalid_request"
        | "invalid_request_error"
        | "bad_request"
        | "model_not_found"
        | "not_found_error"
        | "max_output_tokens"
        | "image_error" => Coded::Lump(ErrorClass::InvalidRequest),
        "server_error" | "api_error" | "internal_server_error" => Coded::Lump(ErrorClass::Server),
        "turn_setup_failed" => Coded::Sure(ErrorClass::Setup),
        _ => return None,
    })
}

/// What agents say when they are told to resume a conversation that they do not know.
const UNKNOWN_CONVERSATION: &[&str] = &[
    "no conversation found",
    "no rollout found",
    "no thread with id",
    "invalid session identifier",
    "session not found",
];

/// Whether an agent that was told to resume a conversation says that it does not know it.
pub fn says_unknown_conversation(text: &str) -> bool {
    let lower = text.to_lowercase();
    // Whoever says it in other words says that something was not found.
    UNKNOWN_CONVERSATION.iter().any(|words| lower.contains(words)) || lower.contains("not found")
}

/// What is no limit of the provider's.
fn by_text(lower: &str) -> Option<ErrorClass> {
    const TABLE: &[(ErrorClass, &[&str])] = &[
        (ErrorClass::Context, &["context window", "prompt is too long", "context_length_exceeded"]),
        (ErrorClass::Setup, UNKNOWN_CONVERSATION),
        (
            ErrorClass::Setup,
            &[
                "missing environment variable",
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
                "please run /login",
                "validation_required",
            ],
        ),
        (
            ErrorClass::Network,
            &["stream disconnected", "network error", "connection", "timed out", "idle timeout"],
        ),
        (ErrorClass::InvalidRequest, &["invalid_request_error"]),
    ];
    TABLE.iter().find(|(_, words)| words.iter().any(|word| lower.contains(word))).map(|(class, _)| *class)
}

pub(crate) fn by_status(status: u16) -> ErrorClass {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        use ErrorClass::*;
        for (status, code, text, class) in [
            (Some(429), None, "", Limit),
            (Some(529), None, "", Overloaded),
            (Some(400), Some("invalid_request_error"), "Prompt is too long", Context),
            (Some(400), Some("invalid_request_error"), "no", InvalidRequest),
            (Some(400), Some("unknown"), "API Error: 400 bad", InvalidRequest),
            (None, Some("blocking_limit"), "Context limit reached", Context),
            (None, None, "exceeded retry limit, last status: 429 Too Many Requests", Limit),
            (None, None, "unexpected status 401 Unauthorized: Incorrect API key", Authentication),
            (None, None, "You\u{2019}ve hit your usage limit.", Limit),
            (None, None, "Quota exceeded. Check your plan and billing details.", Billing),
            (None, None, "ran out of room in the model's context window", Context),
            (None, None, "stream disconnected before completion", Network),
            (None, None, "weird", Unknown),
        ] {
            assert_eq!(understand(status, code, text).class, class, "{text}");
        }
    }

    #[test]
    fn a_code_for_limits_lets_the_text_say_which() {
        use LimitClass::*;
        for (code, text, class) in [
            ("rate_limit", "You've hit your weekly limit", Plan),
            ("rate_limit", "You've hit your org's monthly spend limit \u{b7} ask your admin", Pay),
            ("rate_limit", "anything", Transient),
            ("usage_limit_exceeded", "Your workspace is out of credits. Add credits to continue.", Pay),
            ("usage_limit_exceeded", "anything", Plan),
            ("rate_limit_exceeded", "Overloaded", Transient),
            ("insufficient_quota", "You've hit your weekly limit", Pay),
            ("server_is_overloaded", "Rate limit", Overload),
        ] {
            let limit = understand(None, Some(code), text).limit.map(|limit| limit.class);
            assert_eq!(limit, Some(class), "{code} {text}");
        }
    }
}
