//! Hook payloads: what an agent tells us before and after it acts, and what we may answer.

use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use thiserror::Error;

use crate::event::AgentEvent;

/// What can be answered to a hook. Any other answer is ignored by the agent, so it is not offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// A call can be refused before it runs.
    pub deny: bool,
    /// The agent can be told to go on, or a prompt can be refused, with a reason.
    pub block: bool,
    /// Text can be put before the model.
    pub context: bool,
    /// The whole run can be ended.
    pub halt: bool,
    /// A line can be shown to the person.
    pub person: bool,
}

/// Where in a conversation a hook stands, as far as somebody who only watches has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// The conversation was opened: begun, taken up again or shortened.
    Opened,
    /// A person asked for something: a turn begins.
    Asked,
    /// The agent is done with it and waits for the person.
    Waits,
    /// The conversation was left.
    Left,
    /// It is about to be shortened.
    Shortens,
}

/// A hook payload, understood.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HookReport {
    /// The native name of the hook event.
    pub event: String,
    /// The native session id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    /// The sub-agent it comes from; absent for the main conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Where the agent writes its own record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_path: Option<String>,
    /// The agent's working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The agent's permission mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Where in the conversation it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moment: Option<Moment>,
    /// What it says, in order.
    pub events: Vec<AgentEvent>,
    /// What may be answered.
    pub answers: Answers,
}

/// Why a payload could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HookError {
    /// Not JSON, or not of the shape hooks have: no agent sends that.
    #[error("malformed hook payload")]
    Malformed(#[from] serde_json::Error),
    /// This agent has no hooks.
    #[error("{0} has no hooks")]
    NoHooks(String),
}

/// An answer to a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Go on as if there were no hook.
    Pass,
    /// Refuse the call, with a reason the model reads.
    Deny(String),
    /// Refuse the end or the prompt, with a reason the model reads.
    Block(String),
    /// Go on, and read this.
    Context(String),
    /// End the run, with a reason the person reads.
    Halt(String),
}

impl HookReport {
    /// What to write to stdout so that the person, the model or both read something; `None` where nobody would.
    pub fn tell(&self, person: Option<&str>, model: Option<&str>) -> Option<String> {
        let mut answer = serde_json::Map::new();
        if let Some(text) = person.filter(|_| self.answers.person) {
            answer.insert("systemMessage".to_owned(), text.into());
        }
        if let Some(text) = model.filter(|_| self.answers.context) {
            let context = json!({ "hookEventName": self.event, "additionalContext": text });
            answer.insert("hookSpecificOutput".to_owned(), context);
        }
        (!answer.is_empty()).then(|| Value::Object(answer).to_string())
    }

    /// What to write to stdout for `decision`; `None` when there is nothing to write, or when this hook cannot
    /// carry the decision.
    pub fn respond(&self, decision: &Decision) -> Option<String> {
        let event = self.event.as_str();
        let answer: Value = match decision {
            Decision::Deny(reason) if self.answers.deny && event == "PermissionRequest" => json!({
                "hookSpecificOutput": {
                    "hookEventName": event,
                    "decision": { "behavior": "deny", "message": reason },
                }
            }),
            Decision::Deny(reason) if self.answers.deny && event == "BeforeTool" => {
                json!({ "decision": "deny", "reason": reason })
            }
            Decision::Deny(reason) if self.answers.deny => json!({
                "hookSpecificOutput": {
                    "hookEventName": event,
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                }
            }),
            Decision::Block(reason) if self.answers.block => json!({ "decision": "block", "reason": reason }),
            Decision::Context(text) if self.answers.context => json!({
                "hookSpecificOutput": { "hookEventName": event, "additionalContext": text }
            }),
            Decision::Halt(reason) if self.answers.halt => json!({ "continue": false, "stopReason": reason }),
            _ => return None,
        };
        Some(answer.to_string())
    }
}
