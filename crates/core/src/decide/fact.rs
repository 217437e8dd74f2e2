//! What follows from itself, whatever the state: it can be made ready before a store is asked, or without one.

use super::no_rule;
use super::one;
use crate::command::Command;
use crate::event as ev;
use crate::event::Event;
use crate::limits;
use crate::refusal::Refusal;

/// Whether a command is a fact whose events do not depend on the state.
pub fn is_fact(command: &Command) -> bool {
    matches!(
        command,
        Command::StartTool { .. }
            | Command::EndTool { .. }
            | Command::RecordFile { .. }
            | Command::Say { .. }
            | Command::CompleteTurn(_)
            | Command::NameRun(_)
            | Command::Report { .. }
    )
}

/// The events of such a fact.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`decide` sends only these here; a test asks for every rule"
)]
pub fn decide_fact(command: Command) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::StartTool { call, tool, input, write_ahead, source } => {
            limits::name("call id", &call)?;
            limits::name("tool", &tool)?;
            // A call must be recorded whatever it was given; what could not be read back is kept as text.
            let input =
                if limits::is_shallow(&input) { input } else { serde_json::Value::String(input.to_string()) };
            one(ev::ToolStarted { call, tool, input, write_ahead, source, recurs: true })
        }
        Command::EndTool { call, tool, end, output, source } => {
            limits::name("call id", &call)?;
            limits::optional_name("tool", tool.as_deref())?;
            one(ev::ToolEnded { call, tool, end, output, source, evidence: None, recurs: true })
        }
        Command::RecordFile { path, change, call } => {
            limits::line("path", &path)?;
            limits::optional_name("call id", call.as_deref())?;
            one(ev::FileChanged { path, change, call })
        }
        Command::Say { channel, text, message, parent } => {
            limits::optional_name("message id", message.as_deref())?;
            limits::optional_name("call id", parent.as_deref())?;
            one(ev::Said { channel, text, message, parent })
        }
        Command::CompleteTurn(completed) => one(completed),
        Command::NameRun(named) => {
            limits::name("run", &named.run)?;
            limits::name("conversation", &named.native_id)?;
            limits::optional_name("model", named.model.as_deref())?;
            limits::optional_name("version", named.version.as_deref())?;
            one(named)
        }
        Command::Report { what, body } => {
            limits::name("report", &what)?;
            // As with calls: it must be recorded whatever it holds.
            let body = if limits::is_shallow(&body) {
                body
            } else {
                serde_json::json!({ "text": body.to_string() })
            };
            one(ev::Reported { what, body })
        }
        other => no_rule(&other),
    }
}
