//! Gemini CLI's chats line by line, for somebody who takes them into another record.
//!
//! A message is written again when its calls are over, and a resume writes all of them anew: each counts once, by its id.

use std::collections::HashMap;
use std::collections::HashSet;

use super::transcript::Line;
use super::transcript::Message;
use super::transcript::ToolCall;
use super::transcript::exit_code;
use super::transcript::text_in;
use super::transcript::text_of;
use super::wire::ToolInput;
use super::wire::writes_file;
use crate::bounds::is_short;
use crate::event::AgentEvent;
use crate::event::ChangeKind;
use crate::event::InputSource;
use crate::raw::Raw;
use crate::reader::LineMeta;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::reader::StreamParser;
use crate::tally::Ending;
use crate::tally::Tally;
use crate::tokens::TokenCounts;

/// Messages in one conversation, more than any has.
const MOST: usize = 1_000_000;
/// Calls in the chat of a sub-agent do not say whose it is.
const SUB_AGENT: &str = "sub-agent";

pub(super) fn reader(options: &ReaderOptions) -> Reader {
    Reader::new(Box::<Chat>::default(), options, Tally::new(Ending::Silent, options))
}

/// What must be remembered from line to line.
#[derive(Debug, Default)]
struct Chat {
    sub_agent: bool,
    told: (Option<String>, Option<String>),
    said: HashSet<String>,
    called: HashSet<String>,
    used: HashMap<String, TokenCounts>,
    turns: u64,
    asked: bool,
}

impl Chat {
    fn parent(&self) -> Option<String> {
        self.sub_agent.then(|| SUB_AGENT.to_owned())
    }

    fn opened(&mut self, line: &Line, out: &mut Vec<AgentEvent>) {
        let Some(id) = &line.session_id else { return };
        self.sub_agent = line.kind.as_deref() == Some("subagent");
        if self.told.0.as_ref() == Some(id) || self.sub_agent {
            return;
        }
        self.told.0 = Some(id.clone());
        let cwd = line.directories.as_ref().and_then(|list| list.first().cloned());
        out.push(started(id.clone(), None, cwd));
    }

    /// Whether something is told for the first time.
    fn is_new(known: &mut HashSet<String>, name: &str) -> bool {
        known.len() < MOST && is_short(name) && known.insert(name.to_owned())
    }

    fn message(&mut self, message: Message, out: &mut Vec<AgentEvent>) {
        let Some(id) = message.id.clone() else { return };
        match message.r#type.as_deref() {
            Some("user") => {
                let text = text_of(message.content.as_ref());
                let from_person = !text.is_empty() && !text.trim_start().starts_with("<session_context>");
                if from_person && Self::is_new(&mut self.said, &id) {
                    self.ended(out);
                    self.asked = true;
                    out.push(AgentEvent::TurnStarted);
                    let source = if self.sub_agent { InputSource::SubAgent } else { InputSource::User };
                    out.push(AgentEvent::Input { source, text, parent: self.parent() });
                }
            }
            Some("gemini") => self.answer(id, message, out),
            _ => {}
        }
    }

    /// The turn before ends where the next begins: nothing else says so.
    fn ended(&mut self, out: &mut Vec<AgentEvent>) {
        if std::mem::take(&mut self.asked) {
            self.turns += 1;
            out.push(AgentEvent::TurnCompleted {
                turn: self.turns,
                steps: None,
                duration_ms: None,
                api_duration_ms: None,
                stop_reason: None,
            });
        }
    }

    fn answer(&mut self, id: String, message: Message, out: &mut Vec<AgentEvent>) {
        if message.model.is_some() && message.model != self.told.1 {
            self.told.1.clone_from(&message.model);
            let named = self.told.0.clone().filter(|_| !self.sub_agent);
            out.extend(named.map(|native| started(native, message.model.clone(), None)));
        }
        let message_id = Some(id.clone());
        if Self::is_new(&mut self.said, &id) {
            for thought in message.thoughts.into_iter().flatten() {
                let words = [thought.subject, thought.description].into_iter().flatten();
                let text = words.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
                if !text.is_empty() {
                    out.push(AgentEvent::Thinking {
                        message_id: message_id.clone(),
                        text,
                        parent: self.parent(),
                    });
                }
            }
            let text = text_of(message.content.as_ref());
            if !text.is_empty() {
                out.push(AgentEvent::Text { message_id: message_id.clone(), text, parent: self.parent() });
            }
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.call(call, message_id.clone(), out);
        }
        if let Some(tokens) = message.tokens.map(|tokens| tokens.counts()) {
            let before = self.used.get(&id).copied().unwrap_or_default();
            let delta = tokens.since(before);
            if !delta.is_zero() && self.used.len() < MOST {
                self.used.insert(id, tokens);
                out.push(AgentEvent::Tokens { model: message.model, delta: Some(delta), total: None });
            }
        }
    }

    /// A call is written when it is over, so it begins and ends at once.
    fn call(&mut self, call: ToolCall, message_id: Option<String>, out: &mut Vec<AgentEvent>) {
        let (Some(call_id), parent) = (call.id, self.parent()) else { return };
        if !Self::is_new(&mut self.called, &call_id) {
            return;
        }
        let (tool, input) = (call.name.unwrap_or_default(), call.args.unwrap_or_else(Raw::null));
        let known: ToolInput = input.read().unwrap_or_default();
        let text = call.result.as_ref().map(text_in).unwrap_or_default();
        out.push(AgentEvent::ToolStarted {
            call_id: call_id.clone(),
            tool: tool.clone(),
            input,
            message_id,
            parent: parent.clone(),
        });
        let (exit_code, duration_ms) = (exit_code(&text), None);
        let name = Some(tool.clone());
        match call.status.as_deref() {
            Some("success") if exit_code.is_none_or(|code| code == 0) => {
                let output = Raw::string(&text);
                out.push(AgentEvent::ToolFinished {
                    call_id: call_id.clone(),
                    tool: name,
                    output,
                    exit_code,
                    duration_ms,
                    background: None,
                    parent,
                });
                out.extend(known.file_path.filter(|_| writes_file(&tool)).map(|path| {
                    AgentEvent::FileChanged {
                        path,
                        change: ChangeKind::Modified,
                        call_id: Some(call_id),
                        moved_to: None,
                    }
                }));
            }
            Some("success" | "error" | "cancelled") => {
                let interrupted = call.status.as_deref() == Some("cancelled");
                let words = call.result.as_ref().map(|result| result.get().to_owned()).unwrap_or_default();
                let error = if text.is_empty() { words } else { text };
                let failed = AgentEvent::ToolFailed {
                    call_id,
                    tool: name,
                    error,
                    exit_code,
                    duration_ms,
                    interrupted,
                    parent,
                };
                out.push(failed);
            }
            _ => {}
        }
    }
}

impl StreamParser for Chat {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta {
        let Ok(line) = serde_json::from_str::<Line>(json) else { return LineMeta::default() };
        self.opened(&line, out);
        let mut at = None;
        for message in line.set.and_then(|set| set.messages).into_iter().flatten() {
            at = message.timestamp.clone().or(at);
            self.message(message, out);
        }
        if let Ok(message) = serde_json::from_str::<Message>(json) {
            at = message.timestamp.clone().or(at);
            self.message(message, out);
        }
        LineMeta { session_id: None, event_id: None, at }
    }

    fn knows(&self, _event_type: &str) -> bool {
        false
    }

    fn line_starts(&self) -> &'static [&'static str] {
        &["{\"id\":\"", "{\"$set\":"]
    }

    fn end(&mut self, out: &mut Vec<AgentEvent>) {
        self.ended(out);
    }
}

fn started(native_id: String, model: Option<String>, cwd: Option<String>) -> AgentEvent {
    AgentEvent::SessionStarted {
        native_id,
        model,
        cwd,
        version: None,
        permission_mode: None,
        tools: Vec::new(),
    }
}
