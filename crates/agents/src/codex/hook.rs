//! Codex's hook payloads, and the note it sends at the end of a turn.

use serde::Deserialize;

use super::patch;
use crate::event::AgentEvent;
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
    hook_event_name: Option<String>,
    session_id: Option<String>,
    transcript_path: Option<String>,
    cwd: Option<String>,
    model: Option<String>,
    permission_mode: Option<String>,
    source: Option<String>,
    reason: Option<String>,
    trigger: Option<String>,
    prompt: Option<String>,
    tool_name: Option<String>,
    tool_use_id: Option<String>,
    tool_input: Option<Raw>,
    tool_response: Option<Raw>,
    agent_id: Option<String>,
    agent_type: Option<String>,
    last_assistant_message: Option<String>,
    /// Only in the note at the end of a turn, which is no hook.
    r#type: Option<String>,
    #[serde(rename = "thread-id")]
    thread_id: Option<String>,
    #[serde(rename = "last-assistant-message")]
    last_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PatchInput {
    command: Option<String>,
    input: Option<String>,
}

pub(super) fn read(payload: &[u8]) -> Result<HookReport, HookError> {
    let payload: Payload = serde_json::from_slice(payload)?;
    let names = [&payload.tool_name, &payload.source, &payload.trigger, &payload.reason];
    let report = HookReport::of(payload.event(), names, payload.moment(), |out| payload.events(out));
    Ok(HookReport {
        native_id: payload.session_id.or(payload.thread_id),
        agent_id: payload.agent_id,
        transcript_path: payload.transcript_path,
        cwd: payload.cwd,
        permission_mode: payload.permission_mode,
        ..report
    })
}

impl Payload {
    fn event(&self) -> String {
        let note = || self.r#type.as_ref().map(|_| "notify".to_owned());
        self.hook_event_name.clone().or_else(note).unwrap_or_default()
    }

    fn events(&self, out: &mut Vec<AgentEvent>) -> Answers {
        match self.hook_event_name.as_deref() {
            Some("SessionStart") => {
                out.extend(hook_events::session_started(
                    &self.session_id,
                    &self.cwd,
                    &self.model,
                    &self.permission_mode,
                ));
                Answers { context: true, halt: true, person: true, ..Answers::default() }
            }
            Some("UserPromptSubmit") => {
                out.extend(hook_events::asked(&self.prompt));
                hook_events::TO_PROMPT
            }
            Some("PreToolUse") => {
                out.extend(
                    self.tool_use_id
                        .clone()
                        .map(|call_id| hook_events::tool_started(call_id, &self.tool_name, &self.tool_input)),
                );
                Answers { deny: true, ..Answers::default() }
            }
            Some("PermissionRequest") => {
                out.push(hook_events::permission_requested(
                    &self.tool_use_id,
                    &self.tool_name,
                    &self.tool_input,
                ));
                Answers { deny: true, ..Answers::default() }
            }
            Some("PostToolUse") => {
                self.tool_finished(out);
                Answers { block: true, context: true, halt: true, ..Answers::default() }
            }
            Some("SubagentStart") => {
                out.extend(
                    self.agent_id
                        .clone()
                        .map(|agent_id| hook_events::sub_agent_started(agent_id, &self.agent_type)),
                );
                Answers::default()
            }
            Some("SubagentStop") => {
                out.extend(
                    self.agent_id.clone().map(|agent_id| {
                        hook_events::sub_agent_stopped(agent_id, &self.last_assistant_message)
                    }),
                );
                Answers { block: true, ..Answers::default() }
            }
            Some("PreCompact") => {
                out.push(hook_events::compaction(CompactionPhase::Started, &self.trigger));
                Answers { halt: true, ..Answers::default() }
            }
            Some("PostCompact") => {
                out.push(hook_events::compaction(CompactionPhase::Finished, &self.trigger));
                Answers { halt: true, ..Answers::default() }
            }
            Some("Stop") => Answers { block: true, halt: true, ..Answers::default() },
            Some("Interrupt") => {
                out.push(AgentEvent::Notice { level: "warning".to_owned(), text: "interrupted".to_owned() });
                Answers::default()
            }
            None if self.r#type.as_deref() == Some("agent-turn-complete") => {
                out.extend(self.last_message.clone().map(|text| AgentEvent::Text {
                    message_id: None,
                    text,
                    parent: None,
                }));
                Answers::default()
            }
            _ => Answers::default(),
        }
    }

    fn tool_finished(&self, out: &mut Vec<AgentEvent>) {
        let Some(call_id) = self.tool_use_id.clone() else { return };
        out.push(AgentEvent::ToolFinished {
            call_id: call_id.clone(),
            tool: self.tool_name.clone(),
            output: self.tool_response.clone().unwrap_or_else(Raw::null),
            exit_code: None,
            duration_ms: None,
            background: None,
            parent: None,
        });
        if self.tool_name.as_deref() == Some("apply_patch") {
            let input: PatchInput = self.tool_input.as_ref().and_then(Raw::read).unwrap_or_default();
            if let Some(patch) = input.command.or(input.input) {
                out.extend(patch::changes(&patch, &call_id));
            }
        }
    }

    fn moment(&self) -> Option<Moment> {
        // What a sub-agent does is a part of what its agent does.
        if self.agent_id.is_some() {
            return None;
        }
        match self.hook_event_name.as_deref()? {
            "SessionStart" => Some(Moment::Opened),
            "UserPromptSubmit" => Some(Moment::Asked),
            "Stop" | "Interrupt" => Some(Moment::Waits),
            "SessionEnd" => Some(Moment::Left),
            "PreCompact" => Some(Moment::Shortens),
            _ => None,
        }
    }
}
