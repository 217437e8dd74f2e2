//! Gemini CLI's hook payloads.

use segno_core::fnv;
use serde::Deserialize;

use super::transcript::exit_code;
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
    source: Option<String>,
    reason: Option<String>,
    trigger: Option<String>,
    prompt: Option<String>,
    prompt_response: Option<String>,
    tool_name: Option<String>,
    tool_input: Option<Raw>,
    tool_response: Option<Response>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response {
    #[serde(rename = "llmContent")]
    content: Option<Raw>,
    error: Option<super::wire::ErrorInfo>,
}

pub(super) fn read(payload: &[u8]) -> Result<HookReport, HookError> {
    let payload: Payload = serde_json::from_slice(payload)?;
    let names = [&payload.tool_name, &payload.source, &payload.trigger, &payload.reason];
    let report =
        HookReport::of(payload.hook_event_name.clone(), names, payload.moment(), |out| payload.events(out));
    Ok(HookReport {
        native_id: payload.session_id,
        transcript_path: payload.transcript_path,
        cwd: payload.cwd,
        ..report
    })
}

impl Payload {
    fn events(&self, out: &mut Vec<AgentEvent>) -> Answers {
        match self.hook_event_name.as_str() {
            "SessionStart" => {
                out.extend(hook_events::session_started(&self.session_id, &self.cwd, &None, &None));
                Answers { context: true, person: true, ..Answers::default() }
            }
            "BeforeAgent" => {
                out.extend(hook_events::asked(&self.prompt));
                hook_events::TO_PROMPT
            }
            "BeforeTool" => {
                out.push(AgentEvent::call_started(self.call_id(), self.tool(), self.input()));
                Answers { deny: true, halt: true, ..Answers::default() }
            }
            "AfterTool" => {
                self.tool_ended(out);
                Answers { block: true, context: true, halt: true, ..Answers::default() }
            }
            // It runs before every request, whether anything is shortened or not.
            "PreCompress" if self.trigger.as_deref() != Some("auto") => {
                out.push(hook_events::compaction(CompactionPhase::Started, &self.trigger));
                Answers::default()
            }
            "AfterAgent" => {
                let text = self.prompt_response.as_deref().map(|text| text.trim().to_owned());
                let text = text.filter(|text| !text.is_empty());
                out.extend(text.map(|text| AgentEvent::Text { message_id: None, text, parent: None }));
                Answers { block: true, halt: true, ..Answers::default() }
            }
            _ => Answers::default(),
        }
    }

    fn moment(&self) -> Option<Moment> {
        match self.hook_event_name.as_str() {
            "SessionStart" => Some(Moment::Opened),
            "BeforeAgent" => Some(Moment::Asked),
            "AfterAgent" => Some(Moment::Waits),
            "SessionEnd" => Some(Moment::Left),
            "PreCompress" if self.trigger.as_deref() != Some("auto") => Some(Moment::Shortens),
            _ => None,
        }
    }

    fn tool(&self) -> String {
        self.tool_name.clone().unwrap_or_default()
    }

    fn input(&self) -> Raw {
        self.tool_input.clone().unwrap_or_else(Raw::null)
    }

    fn call_id(&self) -> String {
        hook_call_id(&self.tool(), self.input().get())
    }

    fn tool_ended(&self, out: &mut Vec<AgentEvent>) {
        let (call_id, tool) = (self.call_id(), self.tool_name.clone());
        let none = Response::default();
        let response = self.tool_response.as_ref().unwrap_or(&none);
        let words = response.content.as_ref().and_then(Raw::read::<String>);
        let exit_code = words.as_deref().and_then(exit_code);
        let failed = response.error.as_ref().map(|error| error.message.clone().unwrap_or_default());
        let failed = failed.or_else(|| words.clone().filter(|_| exit_code.is_some_and(|code| code != 0)));
        let changed = if failed.is_none() { self.changed(&call_id) } else { None };
        out.push(match failed {
            Some(error) => AgentEvent::ToolFailed {
                call_id,
                tool,
                error,
                exit_code,
                duration_ms: None,
                interrupted: false,
                parent: None,
            },
            None => AgentEvent::ToolFinished {
                call_id,
                tool,
                output: response.content.clone().unwrap_or_else(Raw::null),
                exit_code,
                duration_ms: None,
                background: None,
                parent: None,
            },
        });
        out.extend(changed);
    }

    fn changed(&self, call_id: &str) -> Option<AgentEvent> {
        let input: super::wire::ToolInput = self.tool_input.as_ref().and_then(Raw::read)?;
        let path = input.file_path.filter(|_| super::wire::writes_file(&self.tool()))?;
        let call_id = Some(call_id.to_owned());
        Some(AgentEvent::FileChanged { path, change: ChangeKind::Modified, call_id, moved_to: None })
    }
}

/// The id under which hooks report a call. They do not name the one that the stream and the record use, so what ties
/// the hook before a call to the one after it is what is called: the same call again has the same id.
pub fn hook_call_id(tool: &str, input: &str) -> String {
    let hash = fnv::hash_from(fnv::hash_from(fnv::hash(tool.as_bytes()), &[0]), input.as_bytes());
    format!("hook_{hash:016x}")
}
