//! The payloads of our own plug-in for opencode.

use serde::Deserialize;

use super::calls::refusal;
use super::wire::Metadata;
use super::wire::ToolInput;
use crate::classify::understand;
use crate::event::AgentEvent;
use crate::event::ChangeKind;
use crate::event::CompactionPhase;
use crate::event::HookPhase;
use crate::event::InputSource;
use crate::hook::Answers;
use crate::hook::HookError;
use crate::hook::HookReport;
use crate::hook::Moment;
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
    let mut events = Vec::new();
    let answers = payload.events(&mut events);
    let moment = payload.moment();
    events.push(AgentEvent::Hook {
        event: payload.hook_event_name.clone(),
        name: payload.tool_name,
        hook_id: None,
        phase: HookPhase::Received,
        outcome: None,
        exit_code: None,
        output: None,
    });
    // A sub-agent has a conversation of its own, inside of the one that is driven.
    let (native_id, agent_id) = match (payload.parent_id, payload.session_id) {
        (Some(parent), child) => (Some(parent), child),
        (None, session) => (session, None),
    };
    Ok(HookReport {
        event: payload.hook_event_name,
        native_id,
        agent_id,
        transcript_path: None,
        cwd: payload.cwd,
        permission_mode: None,
        moment,
        events,
        answers,
    })
}

impl Payload {
    fn events(&self, out: &mut Vec<AgentEvent>) -> Answers {
        match self.hook_event_name.as_str() {
            "session.created" => out.extend(self.session_id.clone().map(|id| match self.parent_id {
                Some(_) => AgentEvent::SubAgentStarted {
                    agent_id: id,
                    call_id: None,
                    agent_type: None,
                    description: None,
                    background: false,
                },
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
                    Some(agent_id) => AgentEvent::SubAgentStopped {
                        agent_id,
                        call_id: None,
                        status: "completed".to_owned(),
                        summary: None,
                    },
                    None => AgentEvent::State { state: "idle".to_owned() },
                });
            }
            "session.error" => {
                let message = self.error.clone().unwrap_or_default();
                out.push(understand(None, None, &message).event(message, None));
            }
            "session.compacted" => out.push(AgentEvent::Compaction {
                phase: CompactionPhase::Finished,
                trigger: None,
                tokens_before: None,
                tokens_after: None,
            }),
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
        Some(AgentEvent::ToolStarted {
            call_id: self.call_id.clone()?,
            tool: self.tool_name.clone().unwrap_or_default(),
            input: self.tool_input.clone().unwrap_or_else(Raw::null),
            message_id: None,
            parent: None,
        })
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
