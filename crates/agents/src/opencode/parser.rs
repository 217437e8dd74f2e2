//! From opencode's lines to events.
//!
//! The stream has neither a beginning nor an end. Both are made here: the conversation begins with the first line that
//! names it, and a turn ends with a step after which the program takes no other.

use super::answer;
use super::calls::After;
use super::calls::{self};
use super::wire::ErrorLine;
use super::wire::Line;
use super::wire::Part;
use crate::classify::Meaning;
use crate::event::AgentEvent;
use crate::lenient;
use crate::outcome::ErrorClass;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::LineMeta;
use crate::reader::StreamParser;

const TYPES: &[&str] = &["step_start", "text", "reasoning", "tool_use", "step_finish", "error"];

/// What must be remembered from line to line.
#[derive(Debug, Default)]
pub(super) struct OpencodeParser {
    session: Option<String>,
    /// The last turn is over; whatever comes now begins another.
    over: bool,
    /// A call of this step was refused in a way that ends the run.
    rejected: Option<String>,
    steps: u64,
    turns: u64,
    last_text: Option<String>,
}

impl OpencodeParser {
    /// `None` means that the line has a type or a shape not known here.
    fn line(&mut self, line: Line, out: &mut Vec<AgentEvent>) -> Option<()> {
        let kind = line.r#type?;
        self.begin(line.session_id, out);
        match (kind.as_str(), line.part) {
            ("step_start", Some(_)) => out.push(AgentEvent::Progress {
                call_id: None,
                what: Some("step".to_owned()),
                elapsed_seconds: None,
                heartbeat: false,
            }),
            ("text", Some(part)) => {
                let text = part.text?;
                self.last_text = Some(text.clone());
                out.push(AgentEvent::Text { message_id: part.message_id, text, parent: None });
            }
            ("reasoning", Some(part)) => {
                let (message_id, text) = (part.message_id, part.text?);
                out.push(AgentEvent::Thinking { message_id, text, parent: None });
            }
            ("tool_use", Some(part)) => self.call(part, out)?,
            ("step_finish", Some(part)) => self.step(part, out),
            ("error", _) => self.error(line.error?, out),
            _ => return None,
        }
        Some(())
    }

    /// What the program does not say: that a conversation is open, that a turn begins.
    fn begin(&mut self, session: Option<String>, out: &mut Vec<AgentEvent>) {
        if let Some(native_id) = session.filter(|id| self.session.as_ref() != Some(id)) {
            self.session = Some(native_id.clone());
            out.push(AgentEvent::SessionStarted {
                native_id,
                model: None,
                cwd: None,
                version: None,
                permission_mode: None,
                tools: Vec::new(),
            });
        }
        if std::mem::take(&mut self.over) {
            out.push(AgentEvent::TurnStarted);
        }
    }

    fn call(&mut self, part: Part, out: &mut Vec<AgentEvent>) -> Option<()> {
        match calls::ended(part, out)? {
            After::GoesOn => {}
            After::Ends => {
                let refused = out.iter().rev().find_map(|event| match event {
                    AgentEvent::ToolDenied { reason, .. } => Some(reason.clone()),
                    _ => None,
                });
                self.rejected = refused;
            }
            // Neither what is new nor a total is known: the sum of this run is no longer exact.
            After::NullParser => out.push(AgentEvent::Tokens { model: None, delta: None, total: None }),
        }
        Some(())
    }

    fn step(&mut self, part: Part, out: &mut Vec<AgentEvent>) {
        self.steps += 1;
        if let Some(tokens) = part.tokens {
            let delta = Some(tokens.counts());
            out.push(AgentEvent::Tokens { model: None, delta, total: None });
        }
        if let Some(cost) = part.cost {
            out.push(AgentEvent::Cost { delta_usd: Some(cost), total_usd: None });
        }
        let reason = part.reason.unwrap_or_default();
        match (reason.as_str(), self.rejected.take()) {
            (_, Some(why)) => self.turn(OutcomeKind::Denied, Some(why), &reason, out),
            // After these the model is asked again.
            ("tool-calls" | "unknown" | "", None) => {}
            ("stop" | "end_turn" | "other", None) => self.turn(OutcomeKind::Completed, None, &reason, out),
            (_, None) => {
                let message = format!("the model's answer was cut off: {reason}");
                out.push(Meaning::known(ErrorClass::Unknown, &message).event(&message, None));
                self.turn(OutcomeKind::Failed, Some(message), &reason, out);
            }
        }
    }

    fn error(&mut self, error: ErrorLine, out: &mut Vec<AgentEvent>) {
        let name = error.name.unwrap_or_default();
        let message = error.data.message.clone().unwrap_or_else(|| name.clone());
        let api_status = error.data.status_code;
        let meaning = match name.as_str() {
            "ProviderAuthError" => Meaning::known(ErrorClass::Authentication, &message),
            "ContextOverflowError" => Meaning::known(ErrorClass::Context, &message),
            _ => answer::understand(&error.data, &message),
        };
        let verdict = match name.as_str() {
            "MessageAbortedError" => OutcomeKind::Interrupted,
            _ => meaning.verdict(),
        };
        out.push(meaning.event(&message, api_status));
        self.turn(verdict, Some(message), "error", out);
    }

    fn turn(
        &mut self,
        verdict: OutcomeKind,
        reason: Option<String>,
        stop_reason: &str,
        out: &mut Vec<AgentEvent>,
    ) {
        out.push(AgentEvent::TurnCompleted {
            turn: self.turns,
            steps: Some(std::mem::take(&mut self.steps)),
            duration_ms: None,
            api_duration_ms: None,
            stop_reason: Some(stop_reason.to_owned()),
        });
        self.turns += 1;
        self.over = true;
        let text = self.last_text.take();
        out.push(AgentEvent::Result { verdict, text, reason, api_status: None });
    }
}

impl StreamParser for OpencodeParser {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta {
        let before = out.len();
        let (session, over) = (self.session.clone(), self.over);
        let mut wrong = Vec::new();
        let line = lenient::read::<Line>(json, &mut wrong);
        let meta = line.as_ref().map_or_else(LineMeta::default, |line| LineMeta {
            session_id: line.session_id.clone(),
            event_id: line.part.as_ref().and_then(|part| part.id.clone()),
            at: line.timestamp.and_then(rfc3339),
        });
        if line.and_then(|line| self.line(line, out)).is_none() {
            // It begins nothing: whatever is understood next says so.
            out.truncate(before);
            (self.session, self.over) = (session, over);
            out.push(match Raw::parse(json) {
                Ok(raw) => AgentEvent::Unknown { raw },
                Err(_) => AgentEvent::Noise { text: json.to_owned() },
            });
        }
        out.extend(lenient::notice(&mut wrong));
        meta
    }

    fn knows(&self, event_type: &str) -> bool {
        TYPES.contains(&event_type)
    }

    fn holds(&self) -> bool {
        self.rejected.is_some()
    }
}

/// Milliseconds since 1970 as a date; `None` outside of the years that a clock could mean.
pub(super) fn rfc3339(ms: i64) -> Option<String> {
    let (seconds, ms) = (ms.div_euclid(1000), ms.rem_euclid(1000));
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    if !(0..2_932_897).contains(&days) {
        return None;
    }
    // Years that begin in March make the leap day the last one: then months follow a plain pattern.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"))
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn dates() {
        for (ms, date) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_794_766_769_308, "2026-11-15T18:19:29.308Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(ms).as_deref(), Some(date));
        }
        assert_eq!(rfc3339(-1), None);
        assert_eq!(rfc3339(i64::MAX), None);
    }
}
