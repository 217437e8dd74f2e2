//! Claude Code's hook payloads.

use serde::Deserialize;

use super::content::exit_code;
use super::content::writes_file;
use super::wire::FileInput;
use super::wire::ToolUseResult;
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

/// All hooks in one shape: each has its own few of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payload {
    hook_event_name: String,
    session_id: Option<String>,
    transcript_path: Option<String>,
    cwd: Option<String>,
    permission_mode: Option<String>,
    agent_id: Option<String>,
    agent_type: Option<String>,
    model: Option<String>,
    source: Option<String>,
    reason: Option<String>,
    prompt: Option<String>,
    tool_name: Option<String>,
    tool_use_id: Option<String>,
    tool_input: Option<Raw>,
    tool_response: Option<Raw>,
    duration_ms: Option<f64>,
    error: Option<String>,
    is_interrupt: Option<bool>,
    trigger: Option<String>,
    last_assistant_message: Option<String>,
    background_tasks: Option<Vec<BackgroundTask>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BackgroundTask {
    id: Option<String>,
}

pub(super) fn read(payload: &[u8]) -> Result<HookReport, HookError> {
    let payload: Payload = serde_json::from_slice(payload)?;
    let mut events = Vec::new();
    let answers = payload.events(&mut events);
    let moment = payload.moment();
    events.push(AgentEvent::Hook {
        event: payload.hook_event_name.clone(),
        name: payload.tool_name.clone().or(payload.source).or(payload.trigger).or(payload.reason),
        hook_id: None,
        phase: HookPhase::Received,
        outcome: None,
        exit_code: None,
        output: None,
    });
    Ok(HookReport {
        event: payload.hook_event_name,
        native_id: payload.session_id,
        agent_id: payload.agent_id,
        transcript_path: payload.transcript_path,
        cwd: payload.cwd,
        permission_mode: payload.permission_mode,
        moment,
        events,
        answers,
    })
}

impl Payload {
    fn events(&self, out: &mut Vec<AgentEvent>) -> Answers {
        let halt = Answers { halt: true, ..Answers::default() };
        match self.hook_event_name.as_str() {
            "SessionStart" => {
                out.extend(self.session_id.clone().map(|native_id| AgentEvent::SessionStarted {
                    native_id,
                    model: self.model.clone(),
                    cwd: self.cwd.clone(),
                    version: None,
                    permission_mode: self.permission_mode.clone(),
                    tools: Vec::new(),
                }));
                Answers { context: true, halt: true, person: true, ..Answers::default() }
            }
            "UserPromptSubmit" => {
                out.push(AgentEvent::TurnStarted);
                out.push(AgentEvent::Input {
                    source: InputSource::User,
                    text: self.prompt.clone().unwrap_or_default(),
                    parent: None,
                });
                Answers { block: true, context: true, halt: true, deny: false, person: true }
            }
            "PreToolUse" => {
                if let Some(call_id) = self.tool_use_id.clone() {
                    out.push(AgentEvent::ToolStarted {
                        call_id,
                        tool: self.tool_name.clone().unwrap_or_default(),
                        input: self.tool_input.clone().unwrap_or_else(Raw::null),
                        message_id: None,
                        parent: None,
                    });
                }
                Answers { deny: true, context: true, halt: true, ..Answers::default() }
            }
            "PermissionRequest" => {
                out.push(AgentEvent::PermissionRequested {
                    request_id: None,
                    call_id: self.tool_use_id.clone(),
                    tool: self.tool_name.clone().unwrap_or_default(),
                    input: self.tool_input.clone().unwrap_or_else(Raw::null),
                });
                Answers { deny: true, ..Answers::default() }
            }
            "PostToolUse" => {
                self.tool_finished(out);
                Answers { block: true, context: true, halt: true, ..Answers::default() }
            }
            "PostToolUseFailure" => {
                if let Some(call_id) = self.tool_use_id.clone() {
                    let error = self.error.clone().unwrap_or_default();
                    out.push(AgentEvent::ToolFailed {
                        call_id,
                        tool: self.tool_name.clone(),
                        exit_code: exit_code(&error),
                        error,
                        duration_ms: self.duration(),
                        interrupted: self.is_interrupt == Some(true),
                        parent: None,
                    });
                }
                Answers { context: true, halt: true, ..Answers::default() }
            }
            "SubagentStart" => {
                out.extend(self.agent_id.clone().map(|agent_id| AgentEvent::SubAgentStarted {
                    agent_id,
                    call_id: None,
                    agent_type: self.agent_type.clone(),
                    description: None,
                    background: false,
                }));
                halt
            }
            "SubagentStop" => {
                // Without a type it is the helper that writes a compaction's summary; it never started for us.
                let agent_id = self.agent_id.clone().filter(|_| self.has_agent_type());
                out.extend(agent_id.map(|agent_id| AgentEvent::SubAgentStopped {
                    agent_id,
                    call_id: None,
                    status: "completed".to_owned(),
                    summary: self.last_assistant_message.clone(),
                }));
                Answers { block: true, halt: true, ..Answers::default() }
            }
            "PreCompact" => {
                out.push(self.compaction(CompactionPhase::Started));
                halt
            }
            "PostCompact" => {
                out.push(self.compaction(CompactionPhase::Finished));
                halt
            }
            "Stop" => {
                // Tasks that still run tell a pause from an end.
                let tasks = self.background_tasks.iter().flatten().filter_map(|task| task.id.clone());
                out.push(AgentEvent::Background { tasks: tasks.collect() });
                Answers { block: true, halt: true, ..Answers::default() }
            }
            "StopFailure" => {
                let message = self.last_assistant_message.clone().unwrap_or_default();
                let code = self.error.as_deref();
                out.push(understand(None, code, &message).event(message, None));
                Answers::default()
            }
            _ => Answers::default(),
        }
    }

    fn tool_finished(&self, out: &mut Vec<AgentEvent>) {
        let Some(call_id) = self.tool_use_id.clone() else { return };
        let response: ToolUseResult = self.tool_response.as_ref().and_then(Raw::read).unwrap_or_default();
        out.push(AgentEvent::ToolFinished {
            call_id: call_id.clone(),
            tool: self.tool_name.clone(),
            output: self.tool_response.clone().unwrap_or_else(Raw::null),
            exit_code: None,
            duration_ms: self.duration(),
            background: response.background(),
            parent: None,
        });
        if !self.tool_name.as_deref().is_some_and(writes_file) {
            return;
        }
        let input: FileInput = self.tool_input.as_ref().and_then(Raw::read).unwrap_or_default();
        if let Some(path) = response.file_path.or(input.file_path).or(input.notebook_path) {
            let created = response.r#type.as_deref() == Some("create");
            let change = if created { ChangeKind::Created } else { ChangeKind::Modified };
            out.push(AgentEvent::FileChanged { path, change, call_id: Some(call_id), moved_to: None });
        }
    }

    fn moment(&self) -> Option<Moment> {
        // What a sub-agent does is a part of what its agent does.
        if self.agent_id.is_some() {
            return None;
        }
        match self.hook_event_name.as_str() {
            "SessionStart" => Some(Moment::Opened),
            "UserPromptSubmit" => Some(Moment::Asked),
            "Stop" | "StopFailure" => Some(Moment::Waits),
            "SessionEnd" => Some(Moment::Left),
            "PreCompact" => Some(Moment::Shortens),
            _ => None,
        }
    }

    fn has_agent_type(&self) -> bool {
        self.agent_type.as_deref().is_some_and(|kind| !kind.is_empty())
    }

    fn compaction(&self, phase: CompactionPhase) -> AgentEvent {
        AgentEvent::Compaction {
            phase,
            trigger: self.trigger.clone(),
            tokens_before: None,
            tokens_after: None,
        }
    }

    fn duration(&self) -> Option<u64> {
        self.duration_ms.map(|ms| ms as u64)
    }
}
