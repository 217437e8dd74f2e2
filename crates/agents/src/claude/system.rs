//! The `system` lines.

use std::collections::HashSet;

use super::parser::ClaudeParser;
use super::wire_system::ApiRetry;
use super::wire_system::BackgroundTasks;
use super::wire_system::CompactBoundary;
use super::wire_system::HookLine;
use super::wire_system::Note;
use super::wire_system::PermissionDenied;
use super::wire_system::Status;
use super::wire_system::Task;
use crate::bounds::is_short;
use crate::event::AgentEvent;
use crate::event::By;
use crate::event::CompactionPhase;
use crate::event::HookPhase;
use crate::lenient::read;

/// More running sub-agents than this are taken for plain tasks when they end.
const MAX_AGENTS: usize = 10_000;

/// Which tasks are sub-agents: their end does not say so.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    agents: HashSet<String>,
}

pub(super) fn line(
    state: &mut ClaudeParser,
    subtype: &str,
    json: &str,
    out: &mut Vec<AgentEvent>,
) -> Option<()> {
    let event = match subtype {
        "hook_started" => hook(read(json, &mut state.wrong)?, HookPhase::Started),
        "hook_progress" => hook(read(json, &mut state.wrong)?, HookPhase::Running),
        "hook_response" => hook(read(json, &mut state.wrong)?, HookPhase::Finished),
        "api_retry" => retry(read(json, &mut state.wrong)?),
        "background_tasks_changed" => {
            let tasks = read::<BackgroundTasks>(json, &mut state.wrong)?.tasks;
            AgentEvent::Background { tasks: tasks.into_iter().filter_map(|task| task.task_id).collect() }
        }
        "task_started" => state.tasks.started(read(json, &mut state.wrong)?),
        "task_notification" => state.tasks.stopped(read(json, &mut state.wrong)?),
        "task_progress" | "task_updated" => state.tasks.changed(read(json, &mut state.wrong)?),
        "compact_boundary" => {
            let metadata = read::<CompactBoundary>(json, &mut state.wrong)?.compact_metadata;
            AgentEvent::Compaction {
                phase: CompactionPhase::Finished,
                trigger: metadata.trigger,
                tokens_before: metadata.pre_tokens,
                tokens_after: metadata.post_tokens,
            }
        }
        "status" => status(read(json, &mut state.wrong)?),
        "session_state_changed" => {
            AgentEvent::State { state: read::<Status>(json, &mut state.wrong)?.state? }
        }
        "informational" | "notification" => {
            let note: Note = read(json, &mut state.wrong)?;
            let text = note.content.or(note.text).unwrap_or_default();
            if note.prompt_submit_outcome.is_some_and(|outcome| is_refusal(&outcome)) {
                // The process may end well after this, with or without a result.
                out.push(state.results.prompt_blocked(&text));
            }
            AgentEvent::Notice {
                level: note.level.or(note.priority).unwrap_or_else(|| "info".to_owned()),
                text,
            }
        }
        "permission_denied" => denied(read(json, &mut state.wrong)?),
        "thinking_tokens" => progress(None, "thinking"),
        _ => return None,
    };
    out.push(event);
    Some(())
}

impl Tasks {
    fn started(&mut self, task: Task) -> AgentEvent {
        let is_agent = task.subagent_type.is_some() || task.task_type.as_deref() == Some("local_agent");
        if !is_agent {
            return AgentEvent::TaskStarted {
                task_id: task.task_id,
                call_id: task.tool_use_id,
                task_type: task.task_type,
                description: task.description,
                background: task.is_backgrounded,
            };
        }
        if self.agents.len() < MAX_AGENTS && is_short(&task.task_id) {
            self.agents.insert(task.task_id.clone());
        }
        AgentEvent::SubAgentStarted {
            agent_id: task.task_id,
            call_id: task.tool_use_id,
            agent_type: task.subagent_type,
            description: task.description,
            background: task.is_backgrounded,
        }
    }

    fn stopped(&mut self, task: Task) -> AgentEvent {
        let status = task.status.unwrap_or_else(|| "unknown".to_owned());
        if self.agents.remove(&task.task_id) {
            return AgentEvent::SubAgentStopped {
                agent_id: task.task_id,
                call_id: task.tool_use_id,
                status,
                summary: task.summary,
            };
        }
        AgentEvent::TaskStopped {
            task_id: task.task_id,
            call_id: task.tool_use_id,
            status,
            summary: task.summary,
        }
    }

    fn changed(&self, task: Task) -> AgentEvent {
        let patch = task.patch.unwrap_or_default();
        if patch.is_backgrounded == Some(true) && !self.agents.contains(&task.task_id) {
            // A command that ran into its time limit goes on in the background.
            return AgentEvent::TaskStarted {
                task_id: task.task_id,
                call_id: task.tool_use_id,
                task_type: task.task_type,
                description: task.description,
                background: true,
            };
        }
        let what = task.description.or(patch.status).unwrap_or_else(|| "task".to_owned());
        progress(task.tool_use_id, &what)
    }
}

fn hook(line: HookLine, phase: HookPhase) -> AgentEvent {
    AgentEvent::Hook {
        event: line.hook_event.unwrap_or_default(),
        name: line.hook_name,
        hook_id: line.hook_id,
        phase,
        outcome: line.outcome,
        exit_code: line.exit_code,
        output: line.output.filter(|output| !output.is_empty()),
    }
}

fn retry(line: ApiRetry) -> AgentEvent {
    AgentEvent::Retry {
        attempt: line.attempt,
        max: line.max_retries,
        delay_ms: line.retry_delay_ms.map(|ms| ms as u64),
        api_status: line.error_status,
        error: line.error.unwrap_or_else(|| "unknown".to_owned()),
    }
}

fn status(line: Status) -> AgentEvent {
    let phase = match (line.status.as_deref(), line.compact_result.as_deref()) {
        (Some("compacting"), _) => CompactionPhase::Started,
        // Success is told by the boundary that follows.
        (_, Some(result)) if result != "success" => CompactionPhase::Failed,
        (status, _) => return AgentEvent::State { state: status.unwrap_or("ready").to_owned() },
    };
    AgentEvent::Compaction { phase, trigger: None, tokens_before: None, tokens_after: None }
}

fn denied(line: PermissionDenied) -> AgentEvent {
    AgentEvent::ToolDenied {
        call_id: line.tool_use_id,
        tool: line.tool_name,
        reason: line.message.unwrap_or_default(),
        by: if line.decision_reason_type.as_deref() == Some("hook") { By::Hook } else { By::Rules },
        parent: None,
    }
}

fn is_refusal(outcome: &str) -> bool {
    ["block", "prevent", "reject", "denied"].iter().any(|word| outcome.contains(word))
}

fn progress(call_id: Option<String>, what: &str) -> AgentEvent {
    AgentEvent::Progress { call_id, what: Some(what.to_owned()), elapsed_seconds: None, heartbeat: false }
}
