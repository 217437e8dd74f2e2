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
use crate::hook::Answers;
use crate::hook::HookError;
use crate::hook::HookReport;
use crate::hook::Moment;
use crate::hook_events;
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
    let names = [&payload.tool_name, &payload.source, &payload.trigger, &payload.reason];
    let report =
        HookReport::of(payload.hook_event_name.clone(), names, payload.moment(), |out| payload.events(out));
    Ok(HookReport {
        native_id: payload.session_id,
        agent_id: payload.agent_id,
        transcript_path: payload.transcript_path,
        cwd: payload.cwd,
        permission_mode: payload.permission_mode,
        ..report
    })
}

impl Payload {
    fn events(&self, out: &mut Vec<AgentEvent>) -> Answers {
        let halt = Answers { halt: true, ..Answers::default() };
        match self.hook_event_name.as_str() {
            "SessionStart" => {
                out.extend(hook_events::session_started(
                    &self.session_id,
                    &self.cwd,
                    &self.model,
                    &self.permission_mode,
                ));
                Answers { context: true, halt: true, person: true, ..Answers::default() }
            }
            "UserPromptSubmit" => {
                out.extend(hook_events::asked(&self.prompt));
                hook_events::TO_PROMPT
            }
            "PreToolUse" => {
                if let Some(call_id) = self.tool_use_id.clone() {
                    out.push(hook_events::tool_started(call_id, &self.tool_name, &self.tool_input));
                }
                Answers { deny: true, context: true, halt: true, ..Answers::default() }
            }
            "PermissionRequest" => {
                out.push(hook_events::permission_requested(
                    &self.tool_use_id,
                    &self.tool_name,
                    &self.tool_input,
                ));
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
                out.extend(
                    self.agent_id
                        .clone()
                        .map(|agent_id| hook_events::sub_agent_started(agent_id, &self.agent_type)),
                );
                halt
            }
            "SubagentStop" => {
                // Without a type it is the helper that writes a compaction's summary; it never started for us.
                let agent_id = self.agent_id.clone().filter(|_| self.has_agent_type());
                out.extend(
                    agent_id.map(|agent_id| {
                        hook_events::sub_agent_stopped(agent_id, &self.last_assistant_message)
                    }),
                );
                Answers { block: true, halt: true, ..Answers::default() }
            }
            "PreCompact" => {
                out.push(hook_events::compaction(CompactionPhase::Started, &self.trigger));
                halt
            }
            "PostCompact" => {
                out.push(hook_events::compaction(CompactionPhase::Finished, &self.trigger));
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

    fn duration(&self) -> Option<u64> {
        self.duration_ms.map(|ms| ms as u64)
    }
}
