//! Signs to go back to.

use serde::Deserialize;
use serde::Serialize;

use crate::id::CheckpointId;

/// Why a checkpoint was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointReason {
    /// Somebody asked for it.
    #[default]
    Asked,
    /// A phase or step ended.
    PhaseComplete,
    /// A milestone was reached.
    Milestone,
    /// Another agent took over.
    AgentSwitch,
    /// Work waits for somebody to look.
    Breakpoint,
    /// The work is done.
    Final,
}

impl CheckpointReason {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::PhaseComplete => "phase_complete",
            Self::Milestone => "milestone",
            Self::AgentSwitch => "agent_switch",
            Self::Breakpoint => "breakpoint",
            Self::Final => "final",
        }
    }
}

/// A sign was set: the state at this event can be gone back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointCreated {
    /// Its id.
    pub id: CheckpointId,
    /// Its number in the session, from 1.
    pub ordinal: u64,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: CheckpointReason,
    /// How many tool calls had been made.
    pub tool_count: u64,
    /// How far the work had come, in percent, if known.
    pub progress: Option<u8>,
}
