//! From Claude Code's lines to events.

use std::collections::HashSet;

use super::content::Calls;
use super::limits;
use super::result;
use super::system;
use super::wire;
use super::wire::ControlLine;
use super::wire::Head;
use super::wire::Init;
use super::wire::RateLimitLine;
use super::wire::ResultLine;
use super::wire::StreamLine;
use super::wire::ToolProgress;
use super::wire::User;
use crate::bounds::is_short;
use crate::classify::understand;
use crate::event::AgentEvent;
use crate::event::InputSource;
use crate::event::PartialPart;
use crate::lenient::read;
use crate::lenient::{self};
use crate::raw::Raw;
use crate::reader::LineMeta;
use crate::reader::StreamParser;

/// Types of top-level lines.
const TYPES: &[&str] = &[
    "assistant",
    "auth_status",
    "command_lifecycle",
    "control_cancel_request",
    "control_request",
    "control_response",
    "conversation_reset",
    "keep_alive",
    "prompt_suggestion",
    "rate_limit_event",
    "result",
    "stream_event",
    "system",
    "tool_progress",
    "tool_use_summary",
    "user",
];

/// More refusals than this are told twice.
const MAX_DENIED: usize = 10_000;

/// What must be remembered from line to line.
#[derive(Debug, Default)]
pub(super) struct ClaudeParser {
    pub(super) calls: Calls,
    pub(super) results: result::Results,
    pub(super) tasks: system::Tasks,
    /// The last message whose cost was noted: its blocks come as one line each, with the same numbers.
    last_message: Option<String>,
    /// Refused calls already told, because results list them again.
    denied: HashSet<String>,
    /// Members of the line that were left out.
    pub(super) wrong: Vec<String>,
}

impl StreamParser for ClaudeParser {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta {
        let Some(head) = lenient::read::<Head>(json, &mut self.wrong) else {
            keep(json, out);
            return LineMeta::default();
        };
        // The line is read again as what its head says it is.
        self.wrong.clear();
        let before = out.len();
        let understood = self.line(&head, json, out).is_some();
        let wrong = lenient::notice(&mut self.wrong);
        if !understood || (wrong.is_some() && out.len() == before) {
            out.truncate(before);
            keep(json, out);
        }
        out.extend(wrong);
        for event in &out[before..] {
            if let AgentEvent::ToolDenied { call_id, .. } = event
                && self.denied.len() < MAX_DENIED
                && is_short(call_id)
            {
                self.denied.insert(call_id.clone());
            }
        }
        LineMeta { session_id: head.session_id, event_id: head.uuid, at: head.timestamp }
    }

    fn knows(&self, event_type: &str) -> bool {
        TYPES.contains(&event_type)
    }

    fn holds(&self) -> bool {
        self.results.awaits_the_end_of_a_refused_prompt()
    }
}

impl ClaudeParser {
    /// `None` means that the line has a type or a shape not known here.
    fn line(&mut self, head: &Head, json: &str, out: &mut Vec<AgentEvent>) -> Option<()> {
        match (head.r#type.as_deref()?, head.subtype.as_deref()) {
            ("system", Some("init")) => out.push(started(read(json, &mut self.wrong)?, head)),
            ("system", Some(subtype)) => system::line(self, subtype, json, out)?,
            ("assistant", _) => {
                let line = read(json, &mut self.wrong)?;
                self.assistant(line, out)?;
            }
            ("user", _) => {
                let line: User = read(json, &mut self.wrong)?;
                self.calls.user(&line, out)?;
            }
            ("result", _) => {
                let before = out.len();
                let line: ResultLine = read(json, &mut self.wrong)?;
                self.results.line(line, out);
                self.forget_told_denials(before, out);
            }
            ("rate_limit_event", _) => {
                let line: RateLimitLine = read(json, &mut self.wrong)?;
                out.push(limits::event(&line.rate_limit_info));
            }
            ("tool_progress", _) => out.push(progress(read(json, &mut self.wrong)?)),
            ("stream_event", _) => out.push(partial(read(json, &mut self.wrong)?)?),
            ("control_request", _) => out.push(control(json, read(json, &mut self.wrong)?)?),
            ("control_response" | "control_cancel_request" | "command_lifecycle", _) => {
                out.push(AgentEvent::Control { raw: Raw::parse(json).ok()? });
            }
            ("keep_alive", _) => out.push(AgentEvent::Progress {
                call_id: None,
                what: Some("keep_alive".to_owned()),
                elapsed_seconds: None,
                heartbeat: true,
            }),
            _ => return None,
        }
        Some(())
    }

    fn assistant(&mut self, line: wire::Assistant, out: &mut Vec<AgentEvent>) -> Option<()> {
        let synthetic = line.message.model.as_deref() == Some("<synthetic>");
        if line.is_api_error_message == Some(true) {
            let text = super::content::text_of(line.message.content.as_ref());
            if let Some(info) = line.api_error_params.and_then(|params| params.rate_limit_info) {
                out.push(limits::event(&info));
            }
            let code = [&line.api_error, &line.api_error_type, &line.error]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .find(|code| *code != "unknown");
            let meaning = understand(line.api_error_status, code, &text);
            out.push(meaning.event(text, line.api_error_status));
            return Some(());
        }
        if synthetic {
            // Words the program puts into the model's mouth.
            let text = super::content::text_of(line.message.content.as_ref());
            out.push(AgentEvent::Input {
                source: InputSource::Harness,
                text,
                parent: line.parent_tool_use_id,
            });
            return Some(());
        }
        self.calls.assistant(&line.message, line.parent_tool_use_id.as_deref(), out)?;
        if let Some(usage) = line.message.usage.as_ref().filter(|_| line.parent_tool_use_id.is_none()) {
            self.results.saw_message(line.message.model.as_deref(), usage.counts().total());
        }
        if let (Some(id), Some(usage)) = (line.message.id, line.message.usage)
            && self.last_message.as_ref() != Some(&id)
        {
            self.last_message = Some(id.clone());
            out.push(AgentEvent::MessageUsage { message_id: id, tokens: usage.counts() });
        }
        Some(())
    }

    fn forget_told_denials(&self, from: usize, out: &mut Vec<AgentEvent>) {
        let told = |event: &AgentEvent| match event {
            AgentEvent::ToolDenied { call_id, .. } => self.denied.contains(call_id),
            _ => false,
        };
        let fresh: Vec<AgentEvent> = out.drain(from..).filter(|event| !told(event)).collect();
        out.extend(fresh);
    }
}

fn keep(json: &str, out: &mut Vec<AgentEvent>) {
    out.push(match Raw::parse(json) {
        Ok(raw) => AgentEvent::Unknown { raw },
        Err(_) => AgentEvent::Noise { text: json.to_owned() },
    });
}

fn started(init: Init, head: &Head) -> AgentEvent {
    AgentEvent::SessionStarted {
        native_id: init.session_id.or_else(|| head.session_id.clone()).unwrap_or_default(),
        model: init.model,
        cwd: init.cwd,
        version: init.claude_code_version,
        permission_mode: init.permission_mode,
        tools: init.tools,
    }
}

fn progress(line: ToolProgress) -> AgentEvent {
    // A heartbeat has an id of its own and names the call as its parent.
    let call_id =
        if line.heartbeat { line.parent_tool_use_id.or(line.tool_use_id) } else { line.tool_use_id };
    AgentEvent::Progress {
        call_id,
        what: line.tool_name,
        elapsed_seconds: line.elapsed_time_seconds,
        heartbeat: line.heartbeat,
    }
}

fn partial(line: StreamLine) -> Option<AgentEvent> {
    let kind = line.event.r#type?;
    if let (Some(message_id), Some(usage)) = (&line.api_message_id, &line.event.usage) {
        return Some(AgentEvent::MessageUsage { message_id: message_id.clone(), tokens: usage.counts() });
    }
    let piece = line.event.delta.and_then(|delta| {
        delta
            .text
            .map(|text| (PartialPart::Text, text))
            .or(delta.thinking.map(|text| (PartialPart::Thinking, text)))
            .or(delta.partial_json.map(|text| (PartialPart::ToolInput, text)))
    });
    Some(match piece {
        Some((part, text)) => AgentEvent::Partial {
            message_id: line.api_message_id,
            part,
            text,
            parent: line.parent_tool_use_id,
        },
        None => {
            AgentEvent::Progress { call_id: None, what: Some(kind), elapsed_seconds: None, heartbeat: false }
        }
    })
}

fn control(json: &str, line: ControlLine) -> Option<AgentEvent> {
    match line.request {
        Some(request) if request.subtype.as_deref() == Some("can_use_tool") => {
            Some(AgentEvent::PermissionRequested {
                request_id: line.request_id,
                call_id: request.tool_use_id,
                tool: request.tool_name.unwrap_or_default(),
                input: request.input.unwrap_or_else(Raw::null),
            })
        }
        _ => Some(AgentEvent::Control { raw: Raw::parse(json).ok()? }),
    }
}
