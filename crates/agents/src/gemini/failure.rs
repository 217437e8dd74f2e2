//! What Gemini CLI says when something goes wrong.

use super::wire::Answer;
use super::wire::ErrorInfo;
use crate::classify::classify;
use crate::classify::status_in;
use crate::event::AgentEvent;
use crate::outcome::ErrorClass;
use crate::outcome::OutcomeKind;

/// An error that ended a run.
pub(super) struct Failure {
    pub(super) verdict: OutcomeKind,
    pub(super) text: String,
    pub(super) api_status: Option<u16>,
    class: ErrorClass,
}

impl Failure {
    /// The error is words, or the provider's answer in brackets: `[API Error: {"error":{…}}]`.
    pub(super) fn read(error: &ErrorInfo) -> Self {
        let message = error.message.as_deref().unwrap_or_default();
        let rest = message.strip_prefix("[API Error: ");
        // Advice for the person may follow the bracket.
        let inner = rest.map(|rest| match rest.split_once("]\n") {
            Some((inner, _)) => inner,
            None => rest.strip_suffix(']').unwrap_or(rest),
        });
        let advice = rest.map_or("", |rest| &rest[inner.map_or(0, str::len)..]);
        let answer = inner.and_then(|inner| {
            serde_json::Deserializer::from_str(inner).into_iter::<Answer>().next()?.ok()?.error
        });
        let status = answer.as_ref().and_then(|answer| answer.code).or_else(|| status_in(message));
        let code = answer.as_ref().and_then(|answer| answer.status.as_deref());
        let text = match &answer {
            Some(answer) => answer.message.clone().unwrap_or_default(),
            None => inner.unwrap_or(message).to_owned(),
        };
        let kind = error.r#type.as_deref().unwrap_or_default();
        let class = match (kind, code) {
            ("FatalAuthenticationError", _) => ErrorClass::Authentication,
            ("FatalInputError" | "FatalConfigError" | "FatalSandboxError", _) => ErrorClass::Setup,
            (_, Some("UNAUTHENTICATED" | "PERMISSION_DENIED")) => ErrorClass::Authentication,
            (_, Some("RESOURCE_EXHAUSTED")) | ("RetryableQuotaError" | "TerminalQuotaError", _) => {
                ErrorClass::Limit
            }
            // Where the status is lost, this is what is left of it.
            _ if advice.contains("increase your limits") => ErrorClass::Limit,
            (_, Some("UNAVAILABLE")) => ErrorClass::Overloaded,
            // How a connection that was cut sounds.
            _ if text == "terminated" || text.contains("fetch failed") => ErrorClass::Network,
            _ => classify(status, None, &text),
        };
        let verdict = match kind {
            "FatalTurnLimitedError" => OutcomeKind::MaxTurns,
            "FatalCancellationError" => OutcomeKind::Interrupted,
            _ if class == ErrorClass::Limit => OutcomeKind::Limit,
            _ => OutcomeKind::Failed,
        };
        Self { verdict, text, api_status: status, class }
    }

    pub(super) fn event(&self) -> AgentEvent {
        AgentEvent::Error { message: self.text.clone(), class: self.class, api_status: self.api_status }
    }
}

/// A problem told beside the work, and what it makes of a success that may still be reported.
pub(super) fn trouble(severity: Option<&str>, message: &str) -> (AgentEvent, Option<OutcomeKind>) {
    let against = if message.starts_with("Agent execution blocked") {
        Some(OutcomeKind::Denied)
    } else if message.contains("aximum session turns") {
        Some(OutcomeKind::MaxTurns)
    } else if message.starts_with("Loop detected") {
        Some(OutcomeKind::Failed)
    } else {
        None
    };
    let event = if severity == Some("error") {
        let error = ErrorInfo { r#type: None, message: Some(message.to_owned()) };
        Failure::read(&error).event()
    } else {
        let level = severity.unwrap_or("warning").to_owned();
        AgentEvent::Notice { level, text: message.to_owned() }
    };
    (event, against)
}
