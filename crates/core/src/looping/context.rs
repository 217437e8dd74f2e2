//! In which conversation the next iteration is.

use super::plan::Context;

/// Whether the next iteration goes on in the conversation of the last one, whose context is `full` per cent full. An agent
/// that does not tell how full it is goes on in the same one: it shortens a conversation that is too long by itself.
pub fn in_same_conversation(context: Context, full: Option<u8>) -> bool {
    match context {
        Context::Same => true,
        Context::Fresh => false,
        Context::Auto { percent } => full.is_none_or(|full| full < percent),
    }
}
