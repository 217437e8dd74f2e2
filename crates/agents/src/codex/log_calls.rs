//! The calls in a rollout: each with one start and one end.
//!
//! A call is told up to three times: when the model asks for it, when what Codex shows to people of it is over, and when
//! the model is given its result. What is shown tells most, so it counts where there is any; a command that goes on
//! after it was answered ends when that is shown.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::json;

use super::log_wire::Change;
use super::log_wire::Item;
use super::log_wire::Payload;
use super::log_wire::Success;
use super::patch;
use crate::bounds::is_short;
use crate::event::AgentEvent;
use crate::event::By;
use crate::event::ChangeKind;
use crate::raw::Raw;

/// More open calls than this are not remembered; nobody hears how those end.
const MAX_OPEN: usize = 10_000;
/// The longest patch whose files are remembered until it is applied.
const MAX_PATCH: usize = 1 << 20;

/// The calls that have not ended.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<String, Call>,
    /// The call whose files were told from its patch, because nothing else had told of them.
    told_files: Option<String>,
}

#[derive(Debug)]
struct Call {
    tool: String,
    /// A command that goes on when its call has been answered.
    yields: bool,
    /// Its answer is plain text only when something went wrong.
    answers_json: bool,
    /// It was answered and went on.
    goes_on: bool,
    /// The patch that it applies, if it is one.
    patch: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Well,
    Failed,
    CutOff,
    Denied,
}

impl Calls {
    /// The model asks for a call.
    pub(super) fn called(&mut self, kind: &str, payload: Payload, out: &mut Vec<AgentEvent>) {
        let at_once = matches!(kind, "web_search_call" | "image_generation_call" | "tool_search_call");
        let Some(call_id) = payload.call_id.or(payload.id) else { return };
        let name = payload.name.unwrap_or_else(|| kind.trim_end_matches("_call").to_owned());
        let given = payload.arguments.or(payload.input).or(payload.action).unwrap_or_else(Raw::null);
        let (tool, input) = described(&name, &given);
        let patch = given.read::<String>().filter(|text| tool == "apply_patch" && text.len() <= MAX_PATCH);
        out.push(AgentEvent::call_started(call_id.clone(), tool.clone(), input));
        if at_once {
            // The provider does these itself: the call is all that is told of them.
            let failed = payload.status.as_deref() == Some("failed");
            let how = if failed { How::Failed } else { How::Well };
            out.push(ended(call_id, Some(tool), Raw::null(), None, how));
        } else if self.open.len() < MAX_OPEN && is_short(&call_id) && is_short(&tool) {
            let yields = tool == "shell";
            let answers_json = payload.namespace.is_some_and(|name| name.starts_with("multi_agent"));
            self.open.insert(call_id, Call { tool, yields, answers_json, goes_on: false, patch });
        }
    }

    /// The model was given the result of a call.
    pub(super) fn answered(&mut self, call_id: String, output: Raw, out: &mut Vec<AgentEvent>) {
        // What was shown has told the end already, and more of it.
        let Some(call) = self.open.get_mut(&call_id) else { return };
        let text = output.read::<String>();
        let how = match text.as_deref() {
            Some(text) if call.yields && head(text).any(|line| line.starts_with("Process running with ")) => {
                call.goes_on = true;
                return;
            }
            Some(text) => judged(text, call),
            None => match output.read::<Success>() {
                Some(Success { success: Some(false) }) => How::Failed,
                _ => How::Well,
            },
        };
        let exit_code = text.as_deref().and_then(exit_code);
        let Some(call) = self.open.remove(&call_id) else { return };
        out.push(ended(call_id.clone(), Some(call.tool), output, exit_code, how));
        if let Some(patch) = call.patch.filter(|_| how == How::Well) {
            out.extend(patch::changes(&patch, &call_id));
            self.told_files = Some(call_id);
        }
    }

    /// A call that is shown to people has ended, perhaps long after it was answered.
    pub(super) fn completed(&mut self, item: Item, out: &mut Vec<AgentEvent>) {
        let Some(call_id) = item.id else { return };
        let shown = matches!(
            item.r#type.as_deref(),
            Some(
                "CommandExecution" | "FileChange" | "McpToolCall" | "CollabAgentToolCall" | "DynamicToolCall"
            )
        );
        if !shown {
            return;
        }
        let well = item.status.as_deref().is_none_or(|status| status == "completed");
        // Which sub-agent was started is in the answer.
        if well && self.open.get(&call_id).is_some_and(|call| call.tool == "spawn_agent") {
            return;
        }
        if let Some(call) = self.open.remove(&call_id) {
            let how = match item.status.as_deref() {
                Some("declined") => How::Denied,
                // What was cut off, by Codex itself, has no exit code of its own.
                _ if !well && item.exit_code.is_some_and(|code| code < 0) => How::CutOff,
                _ if !well => How::Failed,
                _ => How::Well,
            };
            // Codex ends what goes on when it ends itself, with a signal: how far that came, nobody knows.
            let by_itself = item.exit_code.is_some_and(|code| (0..128).contains(&code));
            if call.goes_on && !well && !by_itself {
                return;
            }
            let words = item.stderr.filter(|text| !well && !text.is_empty()).or(item.stdout);
            let output = item.aggregated_output.or(words).map(|text| Raw::string(&text));
            let output = output.or(item.error.filter(|error| error.get() != "null")).or(item.result);
            let output = output.unwrap_or_else(Raw::null);
            out.push(ended(call_id.clone(), Some(call.tool), output, item.exit_code, how));
        }
        if well && self.told_files.as_ref() != Some(&call_id) {
            let mut changes: Vec<_> = item.changes.into_iter().flatten().collect();
            changes.sort_by(|a, b| a.0.cmp(&b.0));
            out.extend(changes.into_iter().map(|(path, change)| changed(&call_id, path, change)));
        }
    }
}

/// The tool by the name it has in the stream too, and its input as an object.
fn described(name: &str, given: &Raw) -> (String, Raw) {
    // Arguments are JSON inside a string; a patch is just a string.
    let text = given.read::<String>();
    let value = match &text {
        Some(text) => serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_string()),
        None => given.read::<Value>(),
    };
    let shell = matches!(name, "exec_command" | "shell" | "shell_command" | "local_shell");
    match (name, value, text) {
        (_, Some(Value::Object(mut input)), _) if shell => {
            if let Some(command) = input.remove("cmd") {
                input.insert("command".to_owned(), command);
            }
            ("shell".to_owned(), Raw::from_value(&input))
        }
        (_, value, _) if shell => ("shell".to_owned(), Raw::from_value(&value)),
        ("apply_patch", None, Some(patch)) => (name.to_owned(), Raw::from_value(&json!({ "patch": patch }))),
        (name, Some(value), _) => (name.to_owned(), Raw::from_value(&value)),
        (name, None, Some(text)) => (name.to_owned(), Raw::from_value(&json!({ "input": text }))),
        (name, None, None) => (name.to_owned(), given.clone()),
    }
}

/// How a call went that only its answer tells of.
fn judged(text: &str, call: &Call) -> How {
    if head(text).any(|line| line == "aborted" || line.starts_with("aborted by user")) {
        // A patch is applied in no time: what a person leaves is the question whether it may be. Of a command nobody can
        // tell whether it ran already.
        let refused = call.tool == "apply_patch" && text.starts_with("aborted by user");
        return if refused { How::Denied } else { How::CutOff };
    }
    if let Some(code) = exit_word(text) {
        return if code == "0" { How::Well } else { How::Failed };
    }
    let first = text.lines().next().unwrap_or_default();
    if REFUSALS.iter().any(|words| first.contains(words)) {
        return How::Denied;
    }
    let errors =
        ["unsupported call", "failed to parse function arguments", "apply_patch verification failed"];
    if errors.iter().any(|words| first.starts_with(words)) {
        return How::Failed;
    }
    // These say so when they have done something.
    let silent = call.yields || call.tool == "apply_patch";
    let broken = call.answers_json && !text.trim_start().starts_with(['{', '[']);
    if silent || broken { How::Failed } else { How::Well }
}

/// How Codex words it when it does not let a call run.
const REFUSALS: &[&str] =
    &[" rejected: ", "; reject command", "rejected by user", "review rejected", "was rejected due to"];

/// Where the answer to a call says how it went, before the output of the command itself.
fn head(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take(6).take_while(|line| *line != "Output:")
}

fn exit_word(text: &str) -> Option<&str> {
    let words = ["Exit code: ", "Process exited with code "];
    head(text).find_map(|line| words.iter().find_map(|words| line.strip_prefix(words))).map(str::trim)
}

fn exit_code(text: &str) -> Option<i64> {
    exit_word(text)?.parse().ok()
}

fn ended(call_id: String, tool: Option<String>, output: Raw, exit_code: Option<i64>, how: How) -> AgentEvent {
    let words = |output: &Raw| output.read::<String>().unwrap_or_else(|| output.get().to_owned());
    match how {
        How::Well => AgentEvent::ToolFinished {
            call_id,
            tool,
            output,
            exit_code,
            duration_ms: None,
            background: None,
            parent: None,
        },
        How::Denied => {
            AgentEvent::ToolDenied { call_id, tool, reason: words(&output), by: By::Rules, parent: None }
        }
        How::Failed | How::CutOff => AgentEvent::ToolFailed {
            call_id,
            tool,
            error: words(&output),
            exit_code,
            duration_ms: None,
            interrupted: how == How::CutOff,
            parent: None,
        },
    }
}

fn changed(call_id: &str, path: String, change: Change) -> AgentEvent {
    let kind = match (change.r#type.as_deref(), &change.move_path) {
        (_, Some(_)) => ChangeKind::Moved,
        (Some("add"), _) => ChangeKind::Created,
        (Some("delete"), _) => ChangeKind::Deleted,
        _ => ChangeKind::Modified,
    };
    AgentEvent::FileChanged {
        path,
        change: kind,
        call_id: Some(call_id.to_owned()),
        moved_to: change.move_path,
    }
}
