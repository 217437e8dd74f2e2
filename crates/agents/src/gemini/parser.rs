//! From Gemini CLI's lines to events.

use super::calls::Calls;
use super::failure::Failure;
use super::failure::trouble;
use super::wire::Line;
use super::wire::Stats;
use crate::event::AgentEvent;
use crate::event::InputSource;
use crate::event::PartialPart;
use crate::lenient;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::LineMeta;
use crate::reader::StreamParser;

const TYPES: &[&str] = &["init", "message", "tool_use", "tool_result", "error", "result"];

/// A message in pieces that is longer than this is told in parts.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// What must be remembered from line to line.
#[derive(Debug, Default)]
pub(super) struct GeminiParser {
    calls: Calls,
    /// The message being written: it comes in pieces only, and its end is whatever line comes next.
    message: Option<String>,
    last_text: Option<String>,
    /// Why a success that may still be reported is none.
    against: Option<(OutcomeKind, String)>,
    turns: u64,
}

impl GeminiParser {
    /// `None` means that the line has a type or a shape not known here.
    fn line(&mut self, line: Line, out: &mut Vec<AgentEvent>) -> Option<()> {
        let kind = line.r#type.clone()?;
        if kind != "message" || line.role.as_deref() != Some("assistant") {
            self.end(out);
        }
        match kind.as_str() {
            "init" => out.push(AgentEvent::SessionStarted {
                native_id: line.session_id?,
                model: line.model,
                cwd: None,
                version: None,
                permission_mode: None,
                tools: Vec::new(),
            }),
            "message" => self.message(line, out)?,
            "tool_use" => self.calls.started(line, out)?,
            "tool_result" => {
                if let Some(why) = self.calls.ended(line, out)? {
                    self.against = Some((OutcomeKind::Stopped, why));
                }
            }
            "error" => {
                let message = line.message?;
                let (event, against) = trouble(line.severity.as_deref(), &message);
                out.push(event);
                if let Some(verdict) = against {
                    self.against = Some((verdict, message));
                }
            }
            "result" => self.result(line, out),
            _ => return None,
        }
        Some(())
    }

    fn message(&mut self, line: Line, out: &mut Vec<AgentEvent>) -> Option<()> {
        let text = line.content?;
        match line.role.as_deref()? {
            "user" => out.push(AgentEvent::Input { source: InputSource::Replay, text, parent: None }),
            "assistant" => {
                let message = self.message.get_or_insert_default();
                message.push_str(&text);
                let long = message.len() > MAX_MESSAGE;
                if line.delta == Some(true) {
                    out.push(AgentEvent::Partial {
                        message_id: None,
                        part: PartialPart::Text,
                        text,
                        parent: None,
                    });
                }
                if long || line.delta != Some(true) {
                    self.end(out);
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn result(&mut self, line: Line, out: &mut Vec<AgentEvent>) {
        let failed = line.status.as_deref() != Some("success");
        let failure = line.error.as_ref().map(Failure::read);
        out.extend(failure.as_ref().map(Failure::event));
        let duration_ms = line.stats.as_ref().and_then(|stats| stats.duration_ms).filter(|ms| *ms > 0);
        if let Some(stats) = line.stats {
            spent(&stats, failed, out);
        }
        out.push(AgentEvent::TurnCompleted {
            turn: self.turns,
            steps: None,
            duration_ms,
            api_duration_ms: None,
            stop_reason: None,
        });
        self.turns += 1;
        let api_status = failure.as_ref().and_then(|failure| failure.api_status);
        let (verdict, reason) = match (failure, self.against.take()) {
            (Some(failure), _) => (failure.verdict, Some(failure.text)),
            (None, Some((verdict, why))) => (verdict, Some(why)),
            // What went wrong was told by the error before.
            (None, None) if failed => (OutcomeKind::Failed, None),
            (None, None) => (OutcomeKind::Completed, None),
        };
        out.push(AgentEvent::Result { verdict, text: self.last_text.take(), reason, api_status });
    }
}

impl StreamParser for GeminiParser {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta {
        let mut wrong = Vec::new();
        let Some(line) = lenient::read::<Line>(json, &mut wrong) else {
            out.push(unknown(json));
            return LineMeta::default();
        };
        let meta =
            LineMeta { session_id: line.session_id.clone(), event_id: None, at: line.timestamp.clone() };
        if self.line(line, out).is_none() {
            out.push(unknown(json));
        }
        out.extend(lenient::notice(&mut wrong));
        meta
    }

    fn knows(&self, event_type: &str) -> bool {
        TYPES.contains(&event_type)
    }

    fn holds(&self) -> bool {
        self.message.is_some() || self.against.is_some()
    }

    fn end(&mut self, out: &mut Vec<AgentEvent>) {
        if let Some(text) = self.message.take() {
            self.last_text = Some(text.clone());
            out.push(AgentEvent::Text { message_id: None, text, parent: None });
        }
    }
}

fn spent(stats: &Stats, failed: bool, out: &mut Vec<AgentEvent>) {
    // A request that failed is counted with nothing, whatever it used.
    if failed && stats.all.counts().is_zero() {
        return;
    }
    for (model, used) in &stats.models {
        let delta = Some(used.counts());
        out.push(AgentEvent::Tokens { model: Some(model.clone()), delta, total: None });
    }
    if stats.models.is_empty() {
        out.push(AgentEvent::Tokens { model: None, delta: Some(stats.all.counts()), total: None });
    }
}

fn unknown(json: &str) -> AgentEvent {
    match Raw::parse(json) {
        Ok(raw) => AgentEvent::Unknown { raw },
        Err(_) => AgentEvent::Noise { text: json.to_owned() },
    }
}
