//! Codex's rollout, followed while a person works in its terminal.
//!
//! Calls have lasting ids here, unlike in the output of `codex exec`. What Codex tells only itself is left there.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::json;

use super::patch;
use super::transcript::{failed, unquote};
use super::wire::Usage;
use crate::bounds::is_short;
use crate::classify::{classify, status_in};
use crate::diary::Live;
use crate::event::{AgentEvent, CompactionPhase, InputSource};
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::{Machine, Stamp};
use crate::tokens::TokenCounts;

/// More open calls than this are not tracked by name; nothing else depends on it.
const MAX_CALLS: usize = 2_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    timestamp: Option<String>,
    r#type: Option<String>,
    payload: Option<Payload>,
}

/// All payloads in one shape: each has its own few of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payload {
    r#type: Option<String>,
    id: Option<String>,
    session_id: Option<String>,
    timestamp: Option<String>,
    cwd: Option<String>,
    cli_version: Option<String>,
    thread_source: Option<String>,
    source: Option<Raw>,
    model: Option<String>,
    role: Option<String>,
    content: Option<Raw>,
    summary: Option<Raw>,
    message: Option<String>,
    reason: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<Raw>,
    input: Option<Raw>,
    action: Option<Raw>,
    output: Option<Raw>,
    info: Option<TokenInfo>,
    thread_id: Option<String>,
    usage: Option<Usage>,
    item: Option<Item>,
    last_agent_message: Option<String>,
    duration_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenInfo {
    total_token_usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    r#type: Option<String>,
    content: Option<Raw>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    text: Option<String>,
}

#[derive(Debug)]
struct Call {
    tool: String,
    /// The patch that it applies, if it is one.
    patch: Option<String>,
}

/// What must be remembered from line to line.
#[derive(Debug, Default)]
pub(super) struct Diary {
    live: Live,
    /// The conversation that goes on, and all that were seen.
    thread: Option<String>,
    threads: HashSet<String>,
    model: Option<String>,
    calls: HashMap<String, Call>,
    /// The thread's last total, for versions that do not tell each answer.
    total: TokenCounts,
    tells_answers: bool,
    turns: u64,
    steps: u64,
    /// What the person asked last: some versions write it twice.
    asked: Option<String>,
    failure: Option<String>,
    last_text: Option<String>,
}

/// Whether the first line of a rollout is that of a conversation with a person, not of a sub-agent.
pub(super) fn is_main(head: &[u8]) -> bool {
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // The beginning holds what Codex is told, so it may be longer than what was read; then the file counts.
    let Ok(line) = serde_json::from_slice::<Line>(first) else { return true };
    let Some(payload) = line.payload else { return true };
    let plain = payload.source.is_none_or(|source| source.read::<String>().is_some());
    plain && payload.thread_source.is_none_or(|source| source == "user")
}

impl Diary {
    pub(super) fn new(since: Option<&str>) -> Self {
        Self { live: Live::new(since), ..Self::default() }
    }

    fn line(&mut self, line: Line, out: &mut Vec<AgentEvent>) {
        let live = self.live.look(line.timestamp.as_deref());
        let Some(payload) = line.payload else { return };
        match line.r#type.as_deref() {
            Some("session_meta") => self.meta(payload, out),
            Some("turn_context") if live => self.context(payload, out),
            Some("response_item") if live => self.item(payload, out),
            Some("token_usage_record") => self.answer(payload, live, out),
            Some("event_msg") if payload.r#type.as_deref() == Some("token_count") => {
                self.count(payload, live, out);
            }
            Some("event_msg") if live => self.event(payload, out),
            Some("compacted") if live => out.push(AgentEvent::Compaction {
                phase: CompactionPhase::Finished,
                trigger: None,
                tokens_before: None,
                tokens_after: None,
            }),
            _ => {}
        }
    }

    fn meta(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) {
        let Some(id) = payload.id.or(payload.session_id) else { return };
        // A copy begins with its own line and may repeat that of its origin, which is older than this run.
        if self.threads.len() < MAX_CALLS && is_short(&id) {
            self.threads.insert(id.clone());
        }
        let ours = payload.timestamp.is_some_and(|at| self.live.covers(&at));
        if !ours && self.thread.is_some() {
            return;
        }
        self.thread = Some(id.clone());
        self.model = None;
        if ours {
            self.total = TokenCounts::default();
            out.push(AgentEvent::SessionStarted {
                native_id: id,
                model: None,
                cwd: payload.cwd,
                version: payload.cli_version,
                permission_mode: None,
                tools: Vec::new(),
            });
        }
    }

    fn context(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) {
        if payload.model.is_none() || payload.model == self.model {
            return;
        }
        self.model = payload.model;
        out.extend(self.thread.clone().map(|native_id| AgentEvent::SessionStarted {
            native_id,
            model: self.model.clone(),
            cwd: payload.cwd,
            version: None,
            permission_mode: None,
            tools: Vec::new(),
        }));
    }

    fn item(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) {
        match payload.r#type.as_deref() {
            Some("message") if payload.role.as_deref() == Some("assistant") => {
                let text = words(payload.content.as_ref());
                self.last_text = Some(text.clone());
                out.push(AgentEvent::Text { message_id: payload.id, text, parent: None });
            }
            Some("reasoning") => {
                let text = words(payload.summary.as_ref());
                if !text.is_empty() {
                    out.push(AgentEvent::Thinking { message_id: payload.id, text, parent: None });
                }
            }
            Some(kind) if kind.ends_with("_call_output") => {
                if let Some(call_id) = payload.call_id {
                    self.ended(call_id, payload.output.unwrap_or_else(Raw::null), out);
                }
            }
            Some(kind) if kind.ends_with("_call") => self.started(kind.to_owned(), payload, out),
            _ => {}
        }
    }

    fn started(&mut self, kind: String, payload: Payload, out: &mut Vec<AgentEvent>) {
        let Some(call_id) = payload.call_id.or(payload.id) else { return };
        let name = payload.name.unwrap_or_else(|| kind.clone());
        let input = payload.arguments.or(payload.input).or(payload.action);
        let input = input.map_or_else(Raw::null, |input| unquote(&input));
        let (tool, input) = as_elsewhere(&name, input);
        let patch = input.read::<String>().filter(|_| tool == "apply_patch");
        out.push(AgentEvent::ToolStarted {
            call_id: call_id.clone(),
            tool: tool.clone(),
            input,
            message_id: None,
            parent: None,
        });
        if matches!(kind.as_str(), "web_search_call" | "image_generation_call" | "tool_search_call") {
            // These run at the provider; there is no line for their end.
            return self.ended(call_id, Raw::null(), out);
        }
        if self.calls.len() < MAX_CALLS && is_short(&call_id) && is_short(&tool) {
            self.calls.insert(call_id, Call { tool, patch });
        }
    }

    fn ended(&mut self, call_id: String, output: Raw, out: &mut Vec<AgentEvent>) {
        let call = self.calls.remove(&call_id);
        let tool = call.as_ref().map(|call| call.tool.clone());
        let words = output.read::<String>();
        let unknown = words.as_deref().is_some_and(|words| words.starts_with("unsupported call: "));
        let cut_off = words.as_deref().is_some_and(is_cut_off);
        if unknown || cut_off || failed(&output) {
            let error = words.unwrap_or_else(|| output.get().to_owned());
            out.push(AgentEvent::ToolFailed {
                call_id,
                tool,
                interrupted: cut_off,
                error,
                exit_code: None,
                duration_ms: None,
                parent: None,
            });
            return;
        }
        let changes =
            call.and_then(|call| call.patch).map_or_else(Vec::new, |text| patch::changes(&text, &call_id));
        out.push(AgentEvent::ToolFinished {
            call_id,
            tool,
            output,
            exit_code: None,
            duration_ms: None,
            background: None,
            parent: None,
        });
        out.extend(changes);
    }

    /// What one answer of the model used.
    fn answer(&mut self, payload: Payload, live: bool, out: &mut Vec<AgentEvent>) {
        // Those of sub-agents are counted by nobody: what they use is not told here.
        if payload.thread_id.is_some_and(|thread| !self.threads.contains(&thread)) {
            return;
        }
        self.tells_answers = true;
        if let Some(usage) = payload.usage.filter(|_| live) {
            self.steps += 1;
            out.push(AgentEvent::Tokens { model: None, delta: Some(usage.counts()), total: None });
        }
    }

    /// What the thread has used altogether.
    fn count(&mut self, payload: Payload, live: bool, out: &mut Vec<AgentEvent>) {
        let Some(usage) = payload.info.and_then(|info| info.total_token_usage) else { return };
        let news = usage.counts().since(self.total);
        self.total = usage.counts();
        if live && !self.tells_answers && news.total() > 0 {
            self.steps += 1;
            out.push(AgentEvent::Tokens { model: None, delta: Some(news), total: None });
        }
    }

    /// The person may go back to a conversation that they left.
    fn went_back(&mut self, thread: &str, out: &mut Vec<AgentEvent>) {
        if self.threads.contains(thread) && self.thread.as_deref() != Some(thread) {
            self.thread = Some(thread.to_owned());
            out.push(AgentEvent::SessionStarted {
                native_id: thread.to_owned(),
                model: None,
                cwd: None,
                version: None,
                permission_mode: None,
                tools: Vec::new(),
            });
        }
    }

    fn event(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) {
        if let Some(thread) = &payload.thread_id {
            self.went_back(thread, out);
        }
        match payload.r#type.as_deref() {
            Some("task_started" | "turn_started") => {
                (self.asked, self.failure, self.last_text, self.steps) = (None, None, None, 0);
                out.push(AgentEvent::TurnStarted);
            }
            Some("user_message") => self.asked(payload.message.unwrap_or_default(), out),
            Some("item_completed") => {
                let item = payload.item.unwrap_or_default();
                if item.r#type.as_deref() == Some("UserMessage") {
                    self.asked(words(item.content.as_ref()), out);
                }
            }
            Some("error") => {
                let message = payload.message.unwrap_or_default();
                self.failure = Some(message.clone());
                let class = classify(None, None, &message);
                out.push(AgentEvent::Error { api_status: status_in(&message), class, message });
            }
            Some("task_complete" | "turn_complete") => {
                let text = payload.last_agent_message.or_else(|| self.last_text.take());
                match self.failure.take() {
                    Some(why) => self.turn(OutcomeKind::Failed, Some(why), text, payload.duration_ms, out),
                    None => self.turn(OutcomeKind::Completed, None, text, payload.duration_ms, out),
                }
            }
            Some("turn_aborted") => {
                let reason = Some(payload.reason.unwrap_or_else(|| "interrupted".to_owned()));
                let text = self.last_text.take();
                self.turn(OutcomeKind::Stopped, reason, text, payload.duration_ms, out);
            }
            _ => {}
        }
    }

    fn asked(&mut self, text: String, out: &mut Vec<AgentEvent>) {
        if text.is_empty() || self.asked.as_ref() == Some(&text) {
            return;
        }
        self.asked = Some(text.clone());
        out.push(AgentEvent::Input { source: InputSource::User, text, parent: None });
    }

    fn turn(
        &mut self,
        verdict: OutcomeKind,
        reason: Option<String>,
        text: Option<String>,
        duration_ms: Option<u64>,
        out: &mut Vec<AgentEvent>,
    ) {
        self.turns += 1;
        out.push(AgentEvent::TurnCompleted {
            turn: self.turns,
            steps: Some(std::mem::take(&mut self.steps)),
            duration_ms,
            api_duration_ms: None,
            stop_reason: None,
        });
        out.push(AgentEvent::Result { verdict, text, reason, api_status: None });
    }
}

impl Machine for Diary {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> Stamp {
        // A shape that is not known here is Codex's own affair.
        let Ok(line) = serde_json::from_str::<Line>(json) else { return Stamp::default() };
        let at = line.timestamp.clone();
        self.line(line, out);
        Stamp { session_id: None, event_id: None, at }
    }

    fn knows(&self, _event_type: &str) -> bool {
        false
    }
}

/// Commands have the name and the shape that the output of `codex exec` gives them.
fn as_elsewhere(name: &str, input: Raw) -> (String, Raw) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Shell {
        cmd: Option<Raw>,
        command: Option<Raw>,
    }
    if !matches!(name, "exec_command" | "shell" | "shell_command" | "local_shell" | "local_shell_call") {
        return (name.to_owned(), input);
    }
    let Shell { cmd, command } = input.read().unwrap_or_default();
    let line = cmd.or(command).map(|raw| {
        let words: Option<Vec<String>> = raw.read();
        raw.read::<String>().or_else(|| words.map(|words| words.join(" "))).unwrap_or_default()
    });
    match line {
        Some(line) => ("shell".to_owned(), Raw::from_value(&json!({ "command": line }))),
        None => ("shell".to_owned(), input),
    }
}

/// A call that the person cut off says so at once, or after how long it took.
fn is_cut_off(output: &str) -> bool {
    let rest = match output.split_once('\n') {
        Some((first, rest)) if first.starts_with("Wall time:") => rest,
        _ => output,
    };
    rest == "aborted" || rest.starts_with("aborted by user")
}

/// All the text in a list of parts.
fn words(parts: Option<&Raw>) -> String {
    let parts: Vec<Part> = parts.and_then(Raw::read).unwrap_or_default();
    let texts: Vec<String> = parts.into_iter().filter_map(|part| part.text).collect();
    texts.join("\n")
}
