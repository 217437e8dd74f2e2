//! The events that hooks of several agents tell of in the same way: what an agent sends is its own, what it means is not.

use crate::event::AgentEvent;
use crate::event::CompactionPhase;
use crate::event::HookPhase;
use crate::event::InputSource;
use crate::hook::Answers;
use crate::hook::HookReport;
use crate::hook::Moment;
use crate::raw::Raw;

impl HookReport {
    /// A report of what a hook said, and that it came, by the first of the names that it has. Where it comes from is for
    /// whoever knows it to add.
    pub(crate) fn of<const N: usize>(
        event: String,
        names: [&Option<String>; N],
        moment: Option<Moment>,
        tell: impl FnOnce(&mut Vec<AgentEvent>) -> Answers,
    ) -> Self {
        let mut events = Vec::new();
        let answers = tell(&mut events);
        events.push(AgentEvent::Hook {
            event: event.clone(),
            name: names.into_iter().flatten().next().cloned(),
            hook_id: None,
            phase: HookPhase::Received,
            outcome: None,
            exit_code: None,
            output: None,
        });
        Self {
            event,
            native_id: None,
            agent_id: None,
            transcript_path: None,
            cwd: None,
            permission_mode: None,
            moment,
            events,
            answers,
        }
    }
}

/// A conversation was opened, if it has a name.
pub(crate) fn session_started(
    native_id: &Option<String>,
    cwd: &Option<String>,
    model: &Option<String>,
    permission_mode: &Option<String>,
) -> Option<AgentEvent> {
    Some(AgentEvent::SessionStarted {
        native_id: native_id.clone()?,
        model: model.clone(),
        cwd: cwd.clone(),
        version: None,
        permission_mode: permission_mode.clone(),
        tools: Vec::new(),
    })
}

/// A person asked for something.
pub(crate) fn asked(prompt: &Option<String>) -> [AgentEvent; 2] {
    let text = prompt.clone().unwrap_or_default();
    [AgentEvent::TurnStarted, AgentEvent::Input { source: InputSource::User, text, parent: None }]
}

/// What can be answered when a person asked for something.
pub(crate) const TO_PROMPT: Answers =
    Answers { block: true, context: true, halt: true, deny: false, person: true };

/// A call is about to run.
pub(crate) fn tool_started(call_id: String, tool: &Option<String>, input: &Option<Raw>) -> AgentEvent {
    let input = input.clone().unwrap_or_else(Raw::null);
    AgentEvent::call_started(call_id, tool.clone().unwrap_or_default(), input)
}

/// The agent wants to know whether a call may run.
pub(crate) fn permission_requested(
    call_id: &Option<String>,
    tool: &Option<String>,
    input: &Option<Raw>,
) -> AgentEvent {
    AgentEvent::PermissionRequested {
        request_id: None,
        call_id: call_id.clone(),
        tool: tool.clone().unwrap_or_default(),
        input: input.clone().unwrap_or_else(Raw::null),
    }
}

/// A sub-agent was started.
pub(crate) fn sub_agent_started(agent_id: String, agent_type: &Option<String>) -> AgentEvent {
    AgentEvent::SubAgentStarted {
        agent_id,
        call_id: None,
        agent_type: agent_type.clone(),
        description: None,
        background: false,
    }
}

/// A sub-agent is done.
pub(crate) fn sub_agent_stopped(agent_id: String, summary: &Option<String>) -> AgentEvent {
    AgentEvent::SubAgentStopped {
        agent_id,
        call_id: None,
        status: "completed".to_owned(),
        summary: summary.clone(),
    }
}

/// A conversation is made shorter.
pub(crate) fn compaction(phase: CompactionPhase, trigger: &Option<String>) -> AgentEvent {
    AgentEvent::Compaction { phase, trigger: trigger.clone(), tokens_before: None, tokens_after: None }
}
