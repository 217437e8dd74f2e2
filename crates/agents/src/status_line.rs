//! What an agent tells the command that draws its status line.

use crate::event::LimitWindow;

/// What the command is told. All of it may be missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatusInput {
    /// The native id of the conversation.
    pub native_id: Option<String>,
    /// Where the agent works.
    pub directory: Option<String>,
    /// The model, as people call it.
    pub model: Option<String>,
    /// The agent's version.
    pub version: Option<String>,
    /// How much of the model's context is used, in percent.
    pub context_percent: Option<u8>,
    /// The windows of the plan.
    pub windows: Vec<LimitWindow>,
}
