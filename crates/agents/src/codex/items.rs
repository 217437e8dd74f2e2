//! Items: what Codex does inside a turn.
//!
//! Their ids count from zero in every process, so they name a call within one run only.

use std::collections::HashSet;

use serde_json::json;

use super::wire::Change;
use super::wire::Item;
use crate::bounds::is_short;
use crate::event::AgentEvent;
use crate::event::By;
use crate::event::ChangeKind;
use crate::raw::Raw;

/// More open items than this are announced twice.
const MAX_OPEN: usize = 10_000;

/// The items announced and not yet completed, and the sub-agents already told as ended.
#[derive(Debug, Default)]
pub(super) struct Items {
    open: HashSet<String>,
    agents: HashSet<String>,
}

impl Items {
    pub(super) fn started(&mut self, item: Item, out: &mut Vec<AgentEvent>) -> Option<()> {
        match item.r#type.as_deref()? {
            "todo_list" => out.push(plan(item)),
            // Words count when they are complete.
            "agent_message" | "reasoning" | "plan" => return self.updated(item, out),
            _ => {
                let event = announced(&item)?;
                if self.open.len() < MAX_OPEN && is_short(&item.id) {
                    self.open.insert(item.id);
                }
                out.push(event);
            }
        }
        Some(())
    }

    pub(super) fn updated(&mut self, item: Item, out: &mut Vec<AgentEvent>) -> Option<()> {
        match item.r#type.as_deref()? {
            "todo_list" => out.push(plan(item)),
            kind => out.push(AgentEvent::Progress {
                what: Some(kind.to_owned()),
                call_id: Some(item.id),
                elapsed_seconds: None,
                heartbeat: false,
            }),
        }
        Some(())
    }

    pub(super) fn completed(&mut self, item: Item, out: &mut Vec<AgentEvent>) -> Option<()> {
        match item.r#type.as_deref()? {
            "agent_message" => out.push(AgentEvent::Text {
                message_id: Some(item.id),
                text: item.text.unwrap_or_default(),
                parent: None,
            }),
            "reasoning" => out.push(AgentEvent::Thinking {
                message_id: Some(item.id),
                text: item.text.unwrap_or_default(),
                parent: None,
            }),
            "todo_list" | "plan" => out.push(plan(item)),
            // An item that is an error is a warning; errors that end a turn are lines of their own.
            "error" => out.push(AgentEvent::Notice {
                level: "warning".to_owned(),
                text: item.message.unwrap_or_default(),
            }),
            _ => {
                let event = announced(&item)?;
                if !self.open.remove(&item.id) {
                    // Some calls are only reported when they are over.
                    out.push(event);
                }
                self.ended(item, out);
            }
        }
        Some(())
    }

    fn ended(&mut self, item: Item, out: &mut Vec<AgentEvent>) {
        let (call_id, tool) = (item.id.clone(), Some(tool(&item)));
        out.push(match item.status.as_deref() {
            Some("declined") => {
                AgentEvent::ToolDenied { call_id, tool, reason: words(&item), by: By::Rules, parent: None }
            }
            Some("failed") => AgentEvent::ToolFailed {
                call_id,
                tool,
                error: words(&item),
                exit_code: item.exit_code,
                duration_ms: None,
                interrupted: false,
                parent: None,
            },
            _ => AgentEvent::ToolFinished {
                call_id,
                tool,
                output: output(&item),
                exit_code: item.exit_code,
                duration_ms: None,
                background: None,
                parent: None,
            },
        });
        if item.status.as_deref() == Some("completed") {
            out.extend(item.changes.iter().flatten().map(|change| changed(&item.id, change)));
        }
        self.sub_agents(&item, out);
    }

    fn sub_agents(&mut self, item: &Item, out: &mut Vec<AgentEvent>) {
        if item.tool.as_deref() == Some("spawn_agent") {
            for agent_id in item.receiver_thread_ids.iter().flatten() {
                out.push(AgentEvent::SubAgentStarted {
                    agent_id: agent_id.clone(),
                    call_id: Some(item.id.clone()),
                    agent_type: None,
                    description: item.prompt.clone(),
                    background: false,
                });
            }
        }
        for (agent_id, state) in item.agents_states.iter().flatten() {
            let status = state.status.as_deref().unwrap_or_default();
            let over = matches!(status, "completed" | "errored" | "shutdown" | "not_found");
            // Each later call that names the agent repeats its state.
            let told = self.agents.contains(agent_id);
            if over && !told && self.agents.len() < MAX_OPEN {
                if is_short(agent_id) {
                    self.agents.insert(agent_id.clone());
                }
                out.push(AgentEvent::SubAgentStopped {
                    agent_id: agent_id.clone(),
                    call_id: Some(item.id.clone()),
                    status: status.to_owned(),
                    summary: state.message.clone(),
                });
            }
        }
    }
}

fn announced(item: &Item) -> Option<AgentEvent> {
    let input = match item.r#type.as_deref()? {
        "command_execution" => Raw::from_value(&json!({ "command": item.command })),
        "file_change" => Raw::from_value(&json!({ "changes": item.changes })),
        "mcp_tool_call" => item.arguments.clone().unwrap_or_else(Raw::null),
        "collab_tool_call" => {
            Raw::from_value(&json!({ "prompt": item.prompt, "agents": item.receiver_thread_ids }))
        }
        "web_search" => Raw::from_value(&json!({ "query": item.query })),
        _ => return None,
    };
    Some(AgentEvent::ToolStarted {
        call_id: item.id.clone(),
        tool: tool(item),
        input,
        message_id: None,
        parent: None,
    })
}

fn tool(item: &Item) -> String {
    match (item.r#type.as_deref(), &item.server, &item.tool) {
        (Some("command_execution"), ..) => "shell".to_owned(),
        (Some("file_change"), ..) => "apply_patch".to_owned(),
        (_, Some(server), Some(tool)) => format!("mcp__{server}__{tool}"),
        (_, None, Some(tool)) => tool.clone(),
        (kind, ..) => kind.unwrap_or_default().to_owned(),
    }
}

fn output(item: &Item) -> Raw {
    if let Some(output) = &item.aggregated_output {
        return Raw::string(output);
    }
    match (&item.result, &item.agents_states) {
        (Some(result), _) => result.clone(),
        (None, Some(states)) => Raw::from_value(states),
        (None, None) => Raw::null(),
    }
}

/// What a failed or declined call says.
fn words(item: &Item) -> String {
    if let Some(output) = item.aggregated_output.as_ref().filter(|output| !output.is_empty()) {
        return output.clone();
    }
    let error = item.error.as_ref().map(|raw| {
        raw.read::<super::wire::Message>()
            .and_then(|error| error.message)
            .or_else(|| raw.read())
            .unwrap_or_else(|| raw.get().to_owned())
    });
    error.or_else(|| item.status.clone()).unwrap_or_default()
}

fn changed(call_id: &str, change: &Change) -> AgentEvent {
    AgentEvent::FileChanged {
        path: change.path.clone(),
        change: match change.kind.as_deref() {
            Some("add") => ChangeKind::Created,
            Some("delete") => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        },
        call_id: Some(call_id.to_owned()),
        moved_to: None,
    }
}

fn plan(item: Item) -> AgentEvent {
    let items = item.items.unwrap_or_else(|| {
        item.text.into_iter().map(|text| crate::event::PlanItem { text, done: false }).collect()
    });
    AgentEvent::Plan { items }
}
