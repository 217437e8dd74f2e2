//! opencode's database, for somebody who takes its conversations into another record: how it is asked, and how the answers
//! read.
//!
//! A copy of a conversation repeats the messages of its origin under new ids, with the times that they had: what is older
//! than the conversation is not of it.

use serde::Deserialize;

use super::calls;
use super::parser::rfc3339;
use super::wire::Part;
use super::wire::Tokens;
use crate::event::AgentEvent;
use crate::event::CompactionPhase;
use crate::event::InputSource;
use crate::keeping::DatabaseRows;
use crate::raw::Raw;
use crate::reader::LineMeta;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::reader::StreamParser;
use crate::tally::Ending;
use crate::tally::Tally;

/// What is asked of the database.
pub(super) const ROWS: DatabaseRows = DatabaseRows {
    conversations: "SELECT id, parent_id, directory, time_updated,
        json_object('session', json_object('id', id, 'parent', parent_id, 'cwd', directory, 'version', version,
            'created', time_created))
        FROM session ORDER BY time_created, id",
    lines: "SELECT line FROM (
        SELECT id AS message, '' AS part,
            '{\"message\":{\"id\":' || json_quote(id) || ',\"at\":' || time_created || ',\"data\":' || data || '}}' AS line
        FROM message WHERE session_id = ?1
        UNION ALL
        SELECT message_id, id,
            '{\"part\":{\"id\":' || json_quote(id) || ',\"at\":' || time_created || ',\"data\":' || data || '}}'
        FROM part WHERE session_id = ?1
    ) ORDER BY message, part",
};

/// Parts of a conversation that another one started do not say whose they are.
const SUB_AGENT: &str = "sub-agent";

pub(super) fn reader(options: &ReaderOptions) -> Reader {
    Reader::new(Box::<Rows>::default(), options, Tally::new(Ending::Silent, options))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row {
    session: Option<Session>,
    message: Option<Cell<Message>>,
    part: Option<Cell<Part>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Session {
    id: Option<String>,
    parent: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
    created: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cell<T: Default> {
    id: Option<String>,
    at: i64,
    data: T,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    role: Option<String>,
    #[serde(rename = "modelID")]
    model: Option<String>,
    error: Option<Raw>,
}

/// What must be remembered from row to row.
#[derive(Debug, Default)]
struct Rows {
    session: Session,
    model: Option<String>,
    /// The message that the next parts are of.
    from_model: bool,
    copied: bool,
    turns: u64,
}

impl Rows {
    fn parent(&self) -> Option<String> {
        self.session.parent.as_ref().map(|_| SUB_AGENT.to_owned())
    }

    fn started(&self, model: Option<String>) -> Option<AgentEvent> {
        let native_id = self.session.id.clone().filter(|_| self.session.parent.is_none())?;
        let (cwd, version) = (self.session.cwd.clone(), self.session.version.clone());
        Some(AgentEvent::SessionStarted {
            native_id,
            model,
            cwd,
            version,
            permission_mode: None,
            tools: Vec::new(),
        })
    }

    fn message(&mut self, at: i64, message: Message, out: &mut Vec<AgentEvent>) {
        self.from_model = message.role.as_deref() == Some("assistant");
        self.copied = at < self.session.created;
        if self.copied {
            return;
        }
        if !self.from_model {
            self.turns += 1;
            out.push(AgentEvent::TurnStarted);
        } else if message.model.is_some() && message.model != self.model {
            self.model = message.model;
            out.extend(self.started(self.model.clone()));
        }
        if let Some(error) = message.error {
            let text = error.get().to_owned();
            out.push(crate::classify::understand(None, None, &text).event(text.clone(), None));
        }
    }

    fn part(&mut self, id: Option<String>, part: Part, out: &mut Vec<AgentEvent>) {
        match part.r#type.as_deref() {
            Some("text") => {
                let Some(text) = part.text.filter(|text| !text.is_empty()) else { return };
                out.push(if self.from_model {
                    AgentEvent::Text { message_id: id, text, parent: self.parent() }
                } else {
                    let parent = self.parent();
                    let source = if parent.is_some() { InputSource::SubAgent } else { InputSource::User };
                    AgentEvent::Input { source, text, parent }
                });
            }
            Some("reasoning") => {
                let text = part.text.filter(|text| !text.is_empty());
                let parent = self.parent();
                out.extend(text.map(|text| AgentEvent::Thinking { message_id: id, text, parent }));
            }
            Some("tool") => {
                let state = part.state.as_ref().and_then(|state| state.status.as_deref());
                let over = matches!(state, Some("completed" | "error"));
                let before = out.len();
                let _ = calls::ended(part, out);
                if !over {
                    out.truncate(before + 1);
                }
            }
            Some("compaction") => out.push(AgentEvent::Compaction {
                phase: CompactionPhase::Finished,
                trigger: None,
                tokens_before: None,
                tokens_after: None,
            }),
            Some("step-finish") => self.step(&part, out),
            _ => {}
        }
    }

    fn step(&self, part: &Part, out: &mut Vec<AgentEvent>) {
        let used = part.tokens.as_ref().map(Tokens::counts).filter(|counts| !counts.is_zero());
        out.extend(used.map(|delta| {
            let model = self.model.clone();
            AgentEvent::Tokens { model, delta: Some(delta), total: None }
        }));
        let cost = part.cost.filter(|cost| cost.is_finite() && *cost > 0.0);
        out.extend(cost.map(|delta| AgentEvent::Cost { delta_usd: Some(delta), total_usd: None }));
        if !matches!(part.reason.as_deref(), Some("tool-calls" | "unknown") | None) {
            out.push(AgentEvent::TurnCompleted {
                turn: self.turns,
                steps: None,
                duration_ms: None,
                api_duration_ms: None,
                stop_reason: part.reason.clone(),
            });
        }
    }
}

impl StreamParser for Rows {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta {
        let Ok(row) = serde_json::from_str::<Row>(json) else { return LineMeta::default() };
        if let Some(session) = row.session {
            self.session = session;
            out.extend(self.started(None));
            return LineMeta { at: rfc3339(self.session.created), ..LineMeta::default() };
        }
        if let Some(Cell { id, at, data }) = row.message {
            self.message(at, data, out);
            return LineMeta { session_id: None, event_id: id, at: rfc3339(at) };
        }
        let Some(Cell { id, at, data }) = row.part.filter(|_| !self.copied) else {
            return LineMeta::default();
        };
        self.part(id.clone(), data, out);
        LineMeta { session_id: None, event_id: id, at: rfc3339(at) }
    }

    fn knows(&self, _event_type: &str) -> bool {
        false
    }

    fn line_starts(&self) -> &'static [&'static str] {
        &["{\"part\":", "{\"message\":"]
    }
}
