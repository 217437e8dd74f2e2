//! From Codex's lines to events.

use super::items::Items;
use super::wire::Answer;
use super::wire::Line;
use crate::classify::Meaning;
use crate::classify::status_in;
use crate::classify::understand;
use crate::event::AgentEvent;
use crate::lenient;
use crate::limit::ResetTime;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::LineMeta;
use crate::reader::StreamParser;
use crate::tokens::Baseline;
use crate::tokens::TokenCounts;

/// What must be remembered from line to line.
#[derive(Debug)]
pub(super) struct CodexParser {
    items: Items,
    /// The thread's last known total.
    total: Option<TokenCounts>,
    turns: u64,
    last_text: Option<String>,
}

impl CodexParser {
    pub(super) fn new(baseline: Baseline) -> Self {
        Self { items: Items::default(), total: baseline.counts(), turns: 0, last_text: None }
    }

    /// `None` means that the line has a type or a shape not known here.
    fn line(&mut self, line: Line, out: &mut Vec<AgentEvent>) -> Option<()> {
        match line.r#type.as_deref()? {
            "thread.started" => out.push(AgentEvent::SessionStarted {
                native_id: line.thread_id?,
                model: None,
                cwd: None,
                version: None,
                permission_mode: None,
                tools: Vec::new(),
            }),
            "turn.started" => {
                self.last_text = None;
                out.push(AgentEvent::TurnStarted);
            }
            "turn.completed" => {
                if let Some(usage) = line.usage {
                    out.push(self.tokens(usage.counts()));
                }
                self.turn(OutcomeKind::Completed, None, out);
            }
            "turn.failed" => {
                let failure = Failure::read(&line.error.and_then(|error| error.message).unwrap_or_default());
                out.push(failure.event());
                self.turn(failure.meaning.verdict(), Some(failure.text), out);
            }
            "error" => {
                let message = line.message?;
                out.push(retry(&message).unwrap_or_else(|| Failure::read(&message).event()));
            }
            "item.started" => self.items.started(line.item?, out)?,
            "item.updated" => self.items.updated(line.item?, out)?,
            "item.completed" => self.items.completed(line.item?, out)?,
            _ => return None,
        }
        Some(())
    }

    fn tokens(&mut self, total: TokenCounts) -> AgentEvent {
        let delta = self.total.map(|before| total.since(before));
        self.total = Some(total);
        AgentEvent::Tokens { model: None, delta, total: Some(total) }
    }

    fn turn(&mut self, verdict: OutcomeKind, reason: Option<String>, out: &mut Vec<AgentEvent>) {
        out.push(AgentEvent::TurnCompleted {
            turn: self.turns,
            steps: None,
            duration_ms: None,
            api_duration_ms: None,
            stop_reason: None,
        });
        self.turns += 1;
        out.push(AgentEvent::Result { verdict, text: self.last_text.take(), reason, api_status: None });
    }
}

impl StreamParser for CodexParser {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta {
        let before = out.len();
        let mut wrong = Vec::new();
        let line = lenient::read::<Line>(json, &mut wrong);
        let understood = line.and_then(|line| self.line(line, out)).is_some();
        let wrong = lenient::notice(&mut wrong);
        if !understood {
            out.truncate(before);
            out.push(match Raw::parse(json) {
                Ok(raw) => AgentEvent::Unknown { raw },
                Err(_) => AgentEvent::Noise { text: json.to_owned() },
            });
        }
        if let Some(AgentEvent::Text { text, .. }) = out[before..].last() {
            self.last_text = Some(text.clone());
        }
        out.extend(wrong);
        LineMeta::default()
    }

    fn knows(&self, event_type: &str) -> bool {
        event_type == "error"
            || ["thread.", "turn.", "item."].iter().any(|start| event_type.starts_with(start))
    }
}

/// An error as the turn reports it: words, or the provider's answer as it came.
struct Failure {
    text: String,
    meaning: Meaning,
    api_status: Option<u16>,
}

impl Failure {
    fn read(message: &str) -> Self {
        let answer = serde_json::from_str::<Answer>(message).ok().and_then(|answer| answer.error);
        let code = answer.as_ref().and_then(|error| error.code.as_deref().or(error.r#type.as_deref()));
        let text = answer.as_ref().and_then(|error| error.message.as_deref()).unwrap_or(message);
        let resets = answer.as_ref().and_then(|error| error.resets_at).map(ResetTime::At);
        let meaning = understand(None, code, text).until(resets);
        Self { text: text.to_owned(), meaning, api_status: status_in(message) }
    }

    fn event(&self) -> AgentEvent {
        self.meaning.event(&self.text, self.api_status)
    }
}

/// `Reconnecting... 1/5 (why)` is written as an error and is none.
fn retry(message: &str) -> Option<AgentEvent> {
    let rest = message.strip_prefix("Reconnecting")?.trim_start_matches(['.', '\u{2026}', ' ']);
    let (counts, why) = rest.split_once(' ').unwrap_or((rest, ""));
    let (attempt, max) = counts.split_once('/')?;
    let why = why.trim();
    let error = why.strip_prefix('(').and_then(|why| why.strip_suffix(')')).unwrap_or(why);
    Some(AgentEvent::Retry {
        attempt: attempt.parse().ok()?,
        max: max.parse().ok(),
        delay_ms: None,
        api_status: status_in(error),
        error: error.to_owned(),
    })
}
