//! Tool calls: announced before they run, answered when they are over.

use super::wire::Line;
use super::wire::ToolInput;
use super::wire::writes_file;
use crate::event::AgentEvent;
use crate::event::By;
use crate::event::ChangeKind;
use crate::event::PlanItem;
use crate::open_calls::OpenCalls;
use crate::raw::Raw;

/// The tool that starts a sub-agent. What happens inside it is in a file of its own, not in the stream.
const SUB_AGENT: &str = "invoke_agent";

/// The tool that runs commands.
const SHELL: &str = "run_shell_command";

/// How a command ended that ended "well" in the output whatever it did, as far as the words for people tell: only a
/// command without output of its own has any. The exit code of one with output is in the agent's own log alone.
fn shell_end(call_id: &str, tool: &Option<String>, words: Option<&str>) -> Option<AgentEvent> {
    let words = words?;
    let (call_id, tool) = (call_id.to_owned(), tool.clone());
    if words == "Blocked: command substitution detected in shell command." {
        let reason = words.to_owned();
        return Some(AgentEvent::ToolDenied { call_id, tool, reason, by: By::Rules, parent: None });
    }
    if let Some(rest) = words.strip_prefix("Command moved to background (PID: ") {
        let background = rest.split(')').next().map(str::to_owned);
        let output = Raw::string(words);
        let (exit_code, duration_ms) = (None, None);
        return Some(AgentEvent::ToolFinished {
            call_id,
            tool,
            output,
            exit_code,
            duration_ms,
            background,
            parent: None,
        });
    }
    let code = words.strip_prefix("Command exited with code: ").and_then(|code| code.trim().parse().ok());
    let killed = words.starts_with("Command terminated by signal: ") && words.lines().count() == 1;
    (code.is_some() || killed).then(|| AgentEvent::ToolFailed {
        call_id,
        tool,
        error: words.to_owned(),
        exit_code: code,
        duration_ms: None,
        interrupted: false,
        parent: None,
    })
}

/// The calls of one conversation.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: OpenCalls,
}

impl Calls {
    pub(super) fn started(&mut self, line: Line, out: &mut Vec<AgentEvent>) -> Option<()> {
        let (call_id, tool) = (line.tool_id?, line.tool_name.unwrap_or_default());
        let input = line.parameters.unwrap_or_else(Raw::null);
        let known: ToolInput = input.read().unwrap_or_default();
        out.push(AgentEvent::call_started(call_id.clone(), tool.clone(), input));
        if tool == SUB_AGENT {
            out.push(AgentEvent::SubAgentStarted {
                // Its own id is never told here.
                agent_id: call_id.clone(),
                call_id: Some(call_id.clone()),
                agent_type: known.agent_name,
                description: known.prompt,
                background: false,
            });
        }
        if let Some(todos) = known.todos {
            let item = |todo: super::wire::Todo| PlanItem {
                text: todo.description.unwrap_or_default(),
                done: todo.status.as_deref() == Some("completed"),
            };
            out.push(AgentEvent::Plan { items: todos.into_iter().map(item).collect() });
        }
        let path = known.file_path.filter(|_| writes_file(&tool));
        self.open.remember(&call_id, &tool, path);
        Some(())
    }

    /// Says why, if this call's end is also the end of the run.
    pub(super) fn ended(&mut self, line: Line, out: &mut Vec<AgentEvent>) -> Option<Option<String>> {
        let call_id = line.tool_id?;
        let call = self.open.take(&call_id);
        let tool = call.as_ref().map(|call| call.tool.clone());
        let sub_agent = tool.as_deref() == Some(SUB_AGENT);
        let stopped = AgentEvent::SubAgentStopped {
            agent_id: call_id.clone(),
            call_id: Some(call_id.clone()),
            status: if line.error.is_some() { "failed" } else { "completed" }.to_owned(),
            summary: None,
        };
        let mut halted = None;
        if line.status.as_deref() == Some("error") {
            let error = line.error.unwrap_or_default();
            let text = error.message.or_else(|| line.output.as_ref().and_then(Raw::read)).unwrap_or_default();
            let kind = error.r#type.as_deref();
            // Nobody is there to be asked.
            let unasked = text.contains("requires user confirmation, which is not supported");
            out.push(match kind {
                _ if kind == Some("policy_violation") || unasked => {
                    let by = if text.starts_with("Tool execution blocked") { By::Hook } else { By::Rules };
                    AgentEvent::ToolDenied { call_id, tool, reason: text, by, parent: None }
                }
                kind => {
                    // A hook ended the run, before the call or after it: nobody says which.
                    halted = (kind == Some("stop_execution")).then(|| text.clone());
                    AgentEvent::ToolFailed {
                        call_id,
                        tool,
                        error: text,
                        exit_code: None,
                        duration_ms: None,
                        interrupted: false,
                        parent: None,
                    }
                }
            });
        } else {
            let output = line.output.unwrap_or_else(Raw::null);
            let words = output.read::<String>().filter(|_| tool.as_deref() == Some(SHELL));
            out.push(shell_end(&call_id, &tool, words.as_deref()).unwrap_or_else(|| {
                AgentEvent::ToolFinished {
                    call_id: call_id.clone(),
                    tool,
                    output,
                    exit_code: None,
                    duration_ms: None,
                    background: None,
                    parent: None,
                }
            }));
            out.extend(call.and_then(|call| call.path).map(|path| AgentEvent::FileChanged {
                path,
                change: ChangeKind::Modified,
                call_id: Some(call_id),
                moved_to: None,
            }));
        }
        out.extend(sub_agent.then_some(stopped));
        Some(halted)
    }
}
