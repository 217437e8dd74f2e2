//! A rollout file while Codex writes it: every call with its start and its end, and the tokens of each answer.
//!
//! The stream leaves out calls that Codex turns down by itself and tells tokens only at the end of a turn. Here every
//! call is announced before it runs, by the id that hooks use too.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::Usage;
use crate::bounds::is_short;
use crate::event::{AgentEvent, By, ChangeKind, CompactionPhase};
use crate::raw::Raw;
use crate::reader::{Machine, Stamp};
use crate::tokens::{Baseline, TokenCounts};

/// More open calls than this are not remembered; nobody hears how those end.
const MAX_OPEN: usize = 10_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    timestamp: Option<String>,
    ordinal: Option<u64>,
    r#type: Option<String>,
    payload: Option<Payload>,
}

/// All payloads in one shape: each has its own few of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payload {
    r#type: Option<String>,
    id: Option<String>,
    thread_id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    status: Option<String>,
    arguments: Option<Raw>,
    input: Option<Raw>,
    action: Option<Raw>,
    output: Option<Raw>,
    item: Option<Item>,
    info: Option<TokenInfo>,
    usage: Option<Usage>,
    thread_token_usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenInfo {
    total_token_usage: Option<Usage>,
    last_token_usage: Option<Usage>,
}

/// What became of a call, for those that Codex shows to people.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    r#type: Option<String>,
    id: Option<String>,
    status: Option<String>,
    aggregated_output: Option<String>,
    exit_code: Option<i64>,
    changes: Option<HashMap<String, Change>>,
    stdout: Option<String>,
    stderr: Option<String>,
    result: Option<Raw>,
    error: Option<Raw>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Change {
    r#type: Option<String>,
    move_path: Option<String>,
}

/// What is known of a call that has not ended.
#[derive(Debug)]
struct Call {
    tool: String,
    /// A command that goes on when its call has been answered.
    yields: bool,
    /// Its answer is plain text only when something went wrong.
    answers_json: bool,
}

/// What must be remembered from line to line.
#[derive(Debug)]
pub(super) struct Rollout {
    open: HashMap<String, Call>,
    /// The thread's last known total.
    total: Option<TokenCounts>,
    /// Whether a line has told tokens: what was said of the time before does not count from then on.
    told: bool,
    /// The number of the first line: those before it are another thread's.
    first: Option<u64>,
    thread: Option<String>,
}

impl Rollout {
    pub(super) fn new(baseline: Baseline) -> Self {
        Self { open: HashMap::new(), total: baseline.counts(), told: false, first: None, thread: None }
    }

    fn line(&mut self, kind: &str, payload: Payload, out: &mut Vec<AgentEvent>) {
        match kind {
            "session_meta" if self.thread.is_none() => self.thread = payload.id,
            "response_item" => self.response(payload, out),
            "event_msg" => self.event(payload, out),
            "token_usage_record" => self.used(&payload, out),
            "compacted" => out.push(AgentEvent::Compaction {
                phase: CompactionPhase::Finished,
                trigger: None,
                tokens_before: None,
                tokens_after: None,
            }),
            _ => {}
        }
    }

    fn response(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) {
        match payload.r#type.as_deref() {
            Some(kind) if kind.ends_with("_output") => {
                if let Some(call_id) = payload.call_id {
                    self.answered(call_id, payload.output.unwrap_or_else(Raw::null), out);
                }
            }
            Some(kind) if kind.ends_with("_call") => {
                let kind = kind.to_owned();
                self.called(&kind, payload, out);
            }
            _ => {}
        }
    }

    fn called(&mut self, kind: &str, payload: Payload, out: &mut Vec<AgentEvent>) {
        let at_once = matches!(kind, "web_search_call" | "image_generation_call");
        let Some(call_id) = payload.call_id.or(payload.id) else { return };
        let name = payload.name.unwrap_or_else(|| kind.trim_end_matches("_call").to_owned());
        let given = payload.arguments.or(payload.input).or(payload.action).unwrap_or_else(Raw::null);
        let (tool, input) = described(&name, &given);
        out.push(AgentEvent::ToolStarted {
            call_id: call_id.clone(),
            tool: tool.clone(),
            input,
            message_id: None,
            parent: None,
        });
        if at_once {
            // The provider does these itself: the call is all that is told of them.
            let failed = payload.status.as_deref() == Some("failed");
            out.push(ended(
                call_id,
                Some(tool),
                Raw::null(),
                None,
                if failed { How::Failed } else { How::Well },
            ));
        } else if self.open.len() < MAX_OPEN && is_short(&call_id) && is_short(&tool) {
            let yields = tool == "shell";
            let answers_json = payload.namespace.is_some_and(|name| name.starts_with("multi_agent"));
            self.open.insert(call_id, Call { tool, yields, answers_json });
        }
    }

    /// The model was given the result of a call.
    fn answered(&mut self, call_id: String, output: Raw, out: &mut Vec<AgentEvent>) {
        // An item has told the end already, and more of it.
        let Some(call) = self.open.get(&call_id) else { return };
        let text = output.read::<String>();
        let how = match text.as_deref() {
            Some(text) if call.yields && head(text).any(|line| line.starts_with("Process running with ")) => {
                return;
            }
            Some(text) => judged(text, call),
            None => match output.read::<Success>() {
                Some(Success { success: Some(false) }) => How::Failed,
                _ => How::Well,
            },
        };
        let tool = self.open.remove(&call_id).map(|call| call.tool);
        out.push(ended(call_id, tool, output, None, how));
    }

    fn event(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) {
        match payload.r#type.as_deref() {
            Some("item_completed") => {
                if let Some(item) = payload.item {
                    self.completed(item, out);
                }
            }
            Some("token_count") => {
                let Some(info) = payload.info else { return };
                let Some(total) = info.total_token_usage else { return };
                if self.total.is_none() {
                    let last = info.last_token_usage.unwrap_or_default().counts();
                    self.total = Some(less(total.counts(), last));
                }
                self.counted(total.counts(), out);
            }
            _ => {}
        }
    }

    /// A call that is shown to people has ended, perhaps long after it was answered.
    fn completed(&mut self, item: Item, out: &mut Vec<AgentEvent>) {
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
        if let Some(call) = self.open.remove(&call_id) {
            let how = match item.status.as_deref() {
                Some("declined") => How::Denied,
                // What was cut off, by Codex itself, has no exit code of its own.
                _ if !well && item.exit_code.is_some_and(|code| code < 0) => How::CutOff,
                _ if !well => How::Failed,
                _ => How::Well,
            };
            let words = item.stderr.filter(|text| !well && !text.is_empty()).or(item.stdout);
            let output = item.aggregated_output.or(words).map(|text| Raw::string(&text));
            let output = output.or(item.error.filter(|error| error.get() != "null")).or(item.result);
            let output = output.unwrap_or_else(Raw::null);
            out.push(ended(call_id.clone(), Some(call.tool), output, item.exit_code, how));
        }
        if well {
            let mut changes: Vec<_> = item.changes.into_iter().flatten().collect();
            changes.sort_by(|a, b| a.0.cmp(&b.0));
            out.extend(changes.into_iter().map(|(path, change)| changed(&call_id, path, change)));
        }
    }

    /// The tokens of one answer, and of the thread with it.
    fn used(&mut self, payload: &Payload, out: &mut Vec<AgentEvent>) {
        let ours = payload.thread_id.is_none() || self.thread.is_none() || payload.thread_id == self.thread;
        let (Some(usage), Some(total)) = (&payload.usage, &payload.thread_token_usage) else { return };
        if !ours {
            return;
        }
        if !self.told {
            // Better than what anybody remembers: a run that died may have told nobody what it used.
            self.total = Some(less(total.counts(), usage.counts()));
        }
        self.counted(total.counts(), out);
    }

    fn counted(&mut self, total: TokenCounts, out: &mut Vec<AgentEvent>) {
        let delta = self.total.map(|before| less(total, before)).unwrap_or(total);
        if !delta.is_zero() {
            self.told = true;
            self.total = Some(total);
            out.push(AgentEvent::Tokens { model: None, delta: Some(delta), total: Some(total) });
        }
    }
}

impl Machine for Rollout {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> Stamp {
        // A line that nobody understands is no loss: it is in the file, and the output has what is said.
        let Ok(line) = serde_json::from_str::<Line>(json) else { return Stamp::default() };
        let first = *self.first.get_or_insert(line.ordinal.unwrap_or(0));
        if line.ordinal.is_some_and(|ordinal| ordinal < first) {
            return Stamp::default();
        }
        if let (Some(kind), Some(payload)) = (line.r#type, line.payload) {
            self.line(&kind, payload, out);
        }
        Stamp { at: line.timestamp, ..Stamp::default() }
    }

    fn text(&mut self, _text: &str, _out: &mut Vec<AgentEvent>) {}

    fn knows(&self, event_type: &str) -> bool {
        matches!(event_type, "response_item" | "event_msg" | "session_meta" | "turn_context")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Success {
    success: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Well,
    Failed,
    CutOff,
    Denied,
}

/// The tool by the name it has in the stream too, and its input as an object.
fn described(name: &str, given: &Raw) -> (String, Raw) {
    // Arguments are JSON inside a string; a patch is just a string.
    let text = given.read::<String>();
    let value = match &text {
        Some(text) => serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_string()),
        None => given.read::<Value>(),
    };
    match (name, value, text) {
        ("exec_command", Some(Value::Object(mut input)), _) => {
            if let Some(command) = input.remove("cmd") {
                input.insert("command".to_owned(), command);
            }
            ("shell".to_owned(), Raw::from_value(&input))
        }
        ("exec_command" | "shell", value, _) => ("shell".to_owned(), Raw::from_value(&value)),
        ("apply_patch", None, Some(patch)) => (name.to_owned(), Raw::from_value(&json!({ "patch": patch }))),
        (name, Some(value), _) => (name.to_owned(), Raw::from_value(&value)),
        (name, None, Some(text)) => (name.to_owned(), Raw::from_value(&json!({ "input": text }))),
        (name, None, None) => (name.to_owned(), given.clone()),
    }
}

/// How a call went that only its answer tells of.
fn judged(text: &str, call: &Call) -> How {
    if head(text).any(|line| line == "aborted" || line.starts_with("aborted by user")) {
        return How::CutOff;
    }
    let code = head(text).find_map(|line| {
        ["Exit code: ", "Process exited with code "].iter().find_map(|words| line.strip_prefix(words))
    });
    if let Some(code) = code {
        return if code.trim() == "0" { How::Well } else { How::Failed };
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

/// Kind by kind, never below zero.
fn less(a: TokenCounts, b: TokenCounts) -> TokenCounts {
    TokenCounts {
        input: a.input.saturating_sub(b.input),
        cache_read: a.cache_read.saturating_sub(b.cache_read),
        cache_write: a.cache_write.saturating_sub(b.cache_write),
        output: a.output.saturating_sub(b.output),
        reasoning: a.reasoning.saturating_sub(b.reasoning),
    }
}
