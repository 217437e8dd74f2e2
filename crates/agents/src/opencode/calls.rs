//! Tool calls, which the stream reports when they are over.

use super::wire::CallState;
use super::wire::Metadata;
use super::wire::Part;
use super::wire::ToolInput;
use crate::event::AgentEvent;
use crate::event::By;
use crate::event::ChangeKind;
use crate::event::PlanItem;
use crate::raw::Raw;

/// How the error of a call begins that our plug-in refused. It stands in the plug-in's text too.
pub(super) const BY_HOOK: &str = "refused by a hook: ";

/// What a call does to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The run goes on.
    GoesOn,
    /// Nobody was there to approve the call: the run ends, as if all were well.
    Ends,
    /// A sub-agent worked: what it used is not told here.
    NullParser,
}

pub(super) fn ended(part: Part, out: &mut Vec<AgentEvent>) -> Option<After> {
    let call_id = part.call_id?;
    let tool = part.tool.unwrap_or_default();
    let state = part.state?;
    let input: ToolInput = state.input.as_ref().and_then(Raw::read).unwrap_or_default();
    let metadata: Metadata = state.metadata.as_ref().and_then(Raw::read).unwrap_or_default();
    out.push(AgentEvent::ToolStarted {
        call_id: call_id.clone(),
        tool: tool.clone(),
        input: state.input.clone().unwrap_or_else(Raw::null),
        message_id: part.message_id,
        parent: None,
    });
    let sub_agent = metadata.session_id.clone().filter(|_| tool == "task");
    out.extend(sub_agent.clone().map(|agent_id| AgentEvent::SubAgentStarted {
        agent_id,
        call_id: Some(call_id.clone()),
        agent_type: input.subagent_type.clone(),
        description: input.description.clone(),
        background: false,
    }));
    let failed = state.status.as_deref() == Some("error");
    let after = end(&call_id, &tool, state, &metadata, out);
    if failed {
        return Some(after);
    }
    if matches!(tool.as_str(), "write" | "edit") {
        out.extend(metadata.filepath.or(input.file_path).map(|path| AgentEvent::FileChanged {
            path,
            change: if metadata.exists == Some(false) { ChangeKind::Created } else { ChangeKind::Modified },
            call_id: Some(call_id.clone()),
            moved_to: None,
        }));
    }
    out.extend(input.todos.map(|todos| {
        AgentEvent::Plan {
            items: todos
                .into_iter()
                .map(|todo| PlanItem {
                    text: todo.content.unwrap_or_default(),
                    done: todo.status.as_deref() == Some("completed"),
                })
                .collect(),
        }
    }));
    if let Some(agent_id) = sub_agent {
        let status = "completed".to_owned();
        out.push(AgentEvent::SubAgentStopped { agent_id, call_id: Some(call_id), status, summary: None });
        return Some(After::NullParser);
    }
    Some(after)
}

fn end(call_id: &str, tool: &str, state: CallState, metadata: &Metadata, out: &mut Vec<AgentEvent>) -> After {
    let (call_id, name) = (call_id.to_owned(), Some(tool.to_owned()));
    let duration_ms = state.time.and_then(|time| time.duration_ms());
    let words = |raw: Option<Raw>| raw.and_then(|raw| raw.read::<String>()).unwrap_or_default();
    // A command that exits with an error and a call of a tool that is not there end well by their status.
    let failed = metadata.exit.is_some_and(|code| code != 0) || tool == "invalid";
    let (event, after) = match state.status.as_deref() {
        Some("error") => {
            let error = state.error.unwrap_or_default();
            match refusal(&error) {
                Some((by, after)) => {
                    let denied =
                        AgentEvent::ToolDenied { call_id, tool: name, reason: error, by, parent: None };
                    (denied, after)
                }
                None => {
                    let interrupted = error == "Tool execution aborted";
                    (failure(call_id, name, error, None, duration_ms, interrupted), After::GoesOn)
                }
            }
        }
        _ if failed => {
            let error = words(state.output);
            (failure(call_id, name, error, metadata.exit, duration_ms, false), After::GoesOn)
        }
        _ => {
            let finished = AgentEvent::ToolFinished {
                call_id,
                tool: name,
                output: state.output.unwrap_or_else(Raw::null),
                exit_code: metadata.exit,
                duration_ms,
                background: None,
                parent: None,
            };
            (finished, After::GoesOn)
        }
    };
    out.push(event);
    after
}

fn failure(
    call_id: String,
    tool: Option<String>,
    error: String,
    exit_code: Option<i64>,
    duration_ms: Option<u64>,
    interrupted: bool,
) -> AgentEvent {
    AgentEvent::ToolFailed { call_id, tool, error, exit_code, duration_ms, interrupted, parent: None }
}

/// Who refused a call, if that is what its error says.
pub(super) fn refusal(error: &str) -> Option<(By, After)> {
    if error.starts_with("The user rejected permission") {
        // Nobody is there: what a rule says to ask about is rejected.
        Some((By::Rules, After::Ends))
    } else if error.starts_with("The user has specified a rule which prevents") {
        Some((By::Rules, After::GoesOn))
    } else if error.contains(BY_HOOK) {
        Some((By::Hook, After::GoesOn))
    } else {
        None
    }
}
