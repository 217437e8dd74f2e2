//! The payloads of our own plug-in for opencode.

use serde::Deserialize;

use super::calls::refusal;
use super::wire::Metadata;
use super::wire::ToolInput;
use crate::classify::understand;
use crate::event::AgentEvent;
use crate::event::ChangeKind;
use crate::event::CompactionPhase;
use crate::event::InputSource;
use crate::hook::Answers;
use crate::hook::HookError;
use crate::hook::HookReport;
use crate::hook::Moment;
use crate::hook_events;
use crate::raw::Raw;
use crate::tokens::TokenCounts;

/// All payloads in one shape: each has its own few of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payload {
    hook_event_name: String,
    session_id: Option<String>,
    /// The conversation that a sub-agent's belongs to.
    parent_id: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
    prompt: Option<String>,
    tool_name: Option<String>,
    call_id: Option<String>,
    tool_input: Option<Raw>,
    tool_output: Option<Raw>,
    metadata: Metadata,
    error: Option<String>,
    /// Only of a request that is tried again: which try it was, and how long it waits, in milliseconds.
    attempt: Option<u64>,
    delay_ms: Option<f64>,
    /// Only of an answer of the model that is whole.
    message_id: Option<String>,
    texts: Option<Vec<String>>,
    model: Option<String>,
    tokens: Option<Used>,
    cost: Option<f64>,
}

/// What one answer used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Used {
    input: u64,
    output: u64,
    reasoning: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Used {
    fn counts(&self) -> TokenCounts {
        TokenCounts {
            input: self.input,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            output: self.output.saturating_add(self.reasoning),
            reasoning: self.reasoning,
        }
    }
}

pub(super) fn read(payload: &[u8]) -> Result<HookReport, HookError> {
    let payload: Payload = serde_json::from_slice(payload)?;
    let report =
        HookReport::of(payload.hook_event_name.clone(), [&payload.tool_name], payload.moment(), |out| {
            payload.events(out)
        });
    // A sub-agent has a conversation of its own, inside of the one that is driven.
    let (native_id, agent_id) = match (payload.parent_id, payload.session_id) {
        (Some(parent), child) => (Some(parent), child),
        (None, session) => (session, None),
    };
    Ok(HookReport { native_id, agent_id, cwd: payload.cwd, ..report })
}

impl Payload {
    fn events(&self, out: &mut Vec<AgentEvent>) -> Answers {
        match self.hook_event_name.as_str() {
            "session.created" => out.extend(self.session_id.clone().map(|id| match self.parent_id {
                Some(_) => hook_events::sub_agent_started(id, &None),
                None => AgentEvent::SessionStarted {
                    native_id: id,
                    model: None,
                    cwd: self.cwd.clone(),
                    version: self.version.clone(),
                    permission_mode: None,
                    tools: Vec::new(),
                },
            })),
            "session.idle" => {
                let child = self.session_id.clone().filter(|_| self.parent_id.is_some());
                out.push(match child {
                    Some(agent_id) => hook_events::sub_agent_stopped(agent_id, &None),
                    None => AgentEvent::State { state: "idle".to_owned() },
                });
            }
            "session.error" => {
                let message = self.error.clone().unwrap_or_default();
                out.push(understand(None, None, &message).event(message, None));
            }
            "session.status" => out.push(self.tries_again()),
            "session.compacted" => out.push(hook_events::compaction(CompactionPhase::Finished, &None)),
            "chat.message" => {
                let source = if self.parent_id.is_some() { InputSource::SubAgent } else { InputSource::User };
                out.push(AgentEvent::TurnStarted);
                let text = self.prompt.clone().unwrap_or_default();
                out.push(AgentEvent::Input { source, text, parent: None });
                return Answers { context: self.parent_id.is_none(), ..Answers::default() };
            }
            "message.completed" => self.answered(out),
            "tool.execute.before" => {
                out.extend(self.started());
                return Answers { deny: true, ..Answers::default() };
            }
            "tool.execute.after" => self.finished(out),
            "tool.execute.error" => self.failed(out),
            _ => {}
        }
        Answers::default()
    }

    /// A request failed and is tried again, perhaps after hours.
    fn tries_again(&self) -> AgentEvent {
        let delay = self.delay_ms.filter(|delay| (0.0..1e12).contains(delay)).map(|delay| delay as u64);
        AgentEvent::Retry {
            attempt: self.attempt.unwrap_or_default(),
            max: None,
            delay_ms: delay,
            api_status: None,
            error: self.error.clone().unwrap_or_default(),
        }
    }

    fn moment(&self) -> Option<Moment> {
        // What a sub-agent does is a part of what its agent does.
        if self.parent_id.is_some() {
            return None;
        }
        match self.hook_event_name.as_str() {
            "session.created" => Some(Moment::Opened),
            "chat.message" => Some(Moment::Asked),
            "session.idle" => Some(Moment::Waits),
            _ => None,
        }
    }

    /// One answer of the model: what was said, and what it used.
    fn answered(&self, out: &mut Vec<AgentEvent>) {
        for text in self.texts.iter().flatten() {
            let (message_id, text) = (self.message_id.clone(), text.clone());
            out.push(AgentEvent::Text { message_id, text, parent: self.parent_id.clone() });
        }
        if let Some(tokens) = &self.tokens {
            out.push(AgentEvent::Tokens {
                model: self.model.clone(),
                delta: Some(tokens.counts()),
                total: None,
            });
        }
        if let Some(usd) = self.cost.filter(|usd| *usd > 0.0) {
            out.push(AgentEvent::Cost { delta_usd: Some(usd), total_usd: None });
        }
    }

    fn started(&self) -> Option<AgentEvent> {
        Some(hook_events::tool_started(self.call_id.clone()?, &self.tool_name, &self.tool_input))
    }

    fn finished(&self, out: &mut Vec<AgentEvent>) {
        let (Some(call_id), tool) = (self.call_id.clone(), self.tool_name.clone()) else { return };
        let code = self.metadata.exit;
        if code.is_some_and(|code| code != 0) || tool.as_deref() == Some("invalid") {
            let error = self.tool_output.as_ref().and_then(Raw::read).unwrap_or_default();
            out.push(AgentEvent::ToolFailed {
                call_id,
                tool,
                error,
                exit_code: code,
                duration_ms: None,
                interrupted: false,
                parent: None,
            });
            return;
        }
        let writes = matches!(tool.as_deref(), Some("write" | "edit"));
        out.push(AgentEvent::ToolFinished {
            call_id: call_id.clone(),
            tool,
            output: self.tool_output.clone().unwrap_or_else(Raw::null),
            exit_code: code,
            duration_ms: None,
            background: None,
            parent: None,
        });
        let input: ToolInput = self.tool_input.as_ref().and_then(Raw::read).unwrap_or_default();
        let path = self.metadata.filepath.clone().or(input.file_path).filter(|_| writes);
        let created = self.metadata.exists == Some(false);
        out.extend(path.map(|path| AgentEvent::FileChanged {
            path,
            change: if created { ChangeKind::Created } else { ChangeKind::Modified },
            call_id: Some(call_id),
            moved_to: None,
        }));
    }

    fn failed(&self, out: &mut Vec<AgentEvent>) {
        let (Some(call_id), tool) = (self.call_id.clone(), self.tool_name.clone()) else { return };
        let error = self.error.clone().unwrap_or_default();
        out.push(match refusal(&error) {
            Some((by, _)) => AgentEvent::ToolDenied { call_id, tool, reason: error, by, parent: None },
            None => AgentEvent::ToolFailed {
                call_id,
                tool,
                interrupted: error == "Tool execution aborted",
                error,
                exit_code: None,
                duration_ms: None,
                parent: None,
            },
        });
    }
}
