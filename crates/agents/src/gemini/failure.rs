//! What Gemini CLI says when something goes wrong.

use super::limits;
use super::limits::Detail;
use super::wire::Answer;
use super::wire::ErrorInfo;
use crate::classify::Meaning;
use crate::classify::status_in;
use crate::classify::understand;
use crate::event::AgentEvent;
use crate::limit::Limit;
use crate::outcome::ErrorClass;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;

/// An error that ended a run.
pub(super) struct Failure {
    pub(super) verdict: OutcomeKind,
    pub(super) text: String,
    pub(super) api_status: Option<u16>,
    meaning: Meaning,
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
        let details = answer.as_ref().map(|answer| answer.details.as_slice()).unwrap_or_default();
        let details: Vec<Detail> = details.iter().filter_map(Raw::read).collect();
        let (named, time) = limits::told(&details);
        let known = |class: ErrorClass| Meaning::known(class, &text);
        let named = named.map(|class| Meaning::limited(Limit::from_text(class, &text)));
        let meaning = named.unwrap_or_else(|| match (kind, code) {
            ("FatalAuthenticationError", _) => known(ErrorClass::Authentication),
            ("FatalInputError" | "FatalConfigError" | "FatalSandboxError", _) => known(ErrorClass::Setup),
            (_, Some("UNAUTHENTICATED" | "PERMISSION_DENIED")) => known(ErrorClass::Authentication),
            ("TerminalQuotaError", _) => understand(status, Some("usage_limit_reached"), &text),
            (_, Some("RESOURCE_EXHAUSTED")) | ("RetryableQuotaError", _) => {
                understand(status, Some("rate_limit"), &text)
            }
            // Where the status is lost, this is what is left of it.
            _ if advice.contains("increase your limits") => understand(status, Some("rate_limit"), &text),
            (_, Some("UNAVAILABLE")) => known(ErrorClass::Overloaded),
            // How a connection that was cut sounds.
            _ if text == "terminated" || text.contains("fetch failed") => known(ErrorClass::Network),
            _ => understand(status, None, &text),
        });
        let meaning = meaning.until(time);
        let verdict = match kind {
            "FatalTurnLimitedError" => OutcomeKind::MaxTurns,
            "FatalCancellationError" => OutcomeKind::Interrupted,
            _ => meaning.verdict(),
        };
        Self { verdict, text, api_status: status, meaning }
    }

    pub(super) fn event(&self) -> AgentEvent {
        self.meaning.event(&self.text, self.api_status)
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
