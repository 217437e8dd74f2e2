//! Gemini CLI's chat files.
//!
//! They hold what the stream leaves out: exit codes of commands, thoughts, the calls of sub-agents (each in a file of
//! its own). A call is written here only when it is over: one that was cut off is in the stream alone.

use std::collections::HashMap;

use serde::Deserialize;

use crate::conversation_log::ConversationLog;
use crate::conversation_log::Lineage;
use crate::conversation_log::LogLocation;
use crate::conversation_log::LogUse;
use crate::keeping::Arrival;
use crate::keeping::ConversationFile;
use crate::keeping::Keeping;
use crate::keeping::KeptFiles;
use crate::keeping::only_letters;
use crate::raw::Raw;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::tokens::TokenCounts;
use crate::transcript::CallStatus;
use crate::transcript::Position;
use crate::transcript::Transcript;
use crate::transcript::TranscriptCall;
use crate::transcript::each_line;

/// How much of an id is in the name of a chat.
const NAMED_BY: usize = 8;

/// The first line, or a change of what stands before. All others are messages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    #[serde(rename = "sessionId")]
    pub(super) session_id: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) directories: Option<Vec<String>>,
    #[serde(rename = "$set")]
    pub(super) set: Option<Set>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Set {
    pub(super) messages: Option<Vec<Message>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) r#type: Option<String>,
    /// A string, or a list of parts.
    pub(super) content: Option<Raw>,
    pub(super) tokens: Option<Tokens>,
    pub(super) model: Option<String>,
    #[serde(rename = "toolCalls")]
    pub(super) tool_calls: Option<Vec<ToolCall>>,
    pub(super) timestamp: Option<String>,
    pub(super) thoughts: Option<Vec<Thought>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Thought {
    pub(super) subject: Option<String>,
    pub(super) description: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    text: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) args: Option<Raw>,
    pub(super) result: Option<Raw>,
    pub(super) status: Option<String>,
}

/// Of one message. `input` is the whole prompt, the cached part included.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    input: u64,
    output: u64,
    cached: u64,
    thoughts: u64,
}

impl Tokens {
    pub(super) fn counts(&self) -> TokenCounts {
        TokenCounts {
            input: self.input.saturating_sub(self.cached),
            cache_read: self.cached,
            cache_write: 0,
            output: self.output.saturating_add(self.thoughts),
            reasoning: self.thoughts,
        }
    }
}

/// The chats of Gemini CLI. A resume writes a chat anew, so it can be read whole and not be followed.
#[derive(Debug)]
pub(super) struct ChatLog;

impl ConversationLog for ChatLog {
    /// A folder for each project, which is named after it and says which one it is in a file.
    fn keeping(&self) -> Option<Keeping> {
        let location = LogLocation {
            variable: "GEMINI_CLI_HOME",
            home: "",
            below: ".gemini/tmp",
            depth: 2,
            prefix: "session-",
            kept_open: false,
            sub_agents: None,
        };
        let target = |arrival: &Arrival<'_>| {
            let name = only_letters(&arrival.project.rsplit('/').next()?.to_lowercase());
            let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
            let project = if words.is_empty() { "project".to_owned() } else { words.join("-") };
            let minute = arrival.began.get(..16)?.replace(':', "-");
            let file = format!("session-{minute}-{}.jsonl", arrival.id.get(..NAMED_BY)?);
            Some(ConversationFile {
                directories: vec![project, "chats".to_owned()],
                file,
                owner: Some(".project_root"),
            })
        };
        Some(Keeping::Files(KeptFiles { location, named_by: Some(NAMED_BY), target }))
    }

    fn reader(&self, options: &ReaderOptions, usage: LogUse<'_>) -> Option<Reader> {
        (usage == LogUse::History).then(|| super::history::reader(options))
    }

    fn lineage(&self, head: &[u8]) -> Lineage {
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Ok(line) = serde_json::from_slice::<Line>(first) else { return Lineage::default() };
        let cwd = line.directories.and_then(|list| list.into_iter().next());
        Lineage { id: line.session_id, cwd, ..Lineage::default() }
    }

    fn transcript(&self, bytes: &[u8]) -> Transcript {
        read(bytes)
    }
}

/// Reads a chat, whole or cut off anywhere.
fn read(bytes: &[u8]) -> Transcript {
    let mut transcript = Transcript::default();
    let mut state = State::default();
    each_line(bytes, &mut transcript, &mut |transcript, text, offset, end| {
        let (Ok(line), Ok(message)) =
            (serde_json::from_str::<Line>(text), serde_json::from_str::<Message>(text))
        else {
            return false;
        };
        if line.session_id.is_some() {
            transcript.native_id = line.session_id;
            state.sub_agent = line.kind.as_deref() == Some("subagent");
            transcript.cwd = line.directories.and_then(|list| list.into_iter().next());
        }
        let set = line.set.and_then(|set| set.messages).unwrap_or_default();
        for message in set.into_iter().chain([message]) {
            state.message(message, offset, end, transcript);
        }
        true
    });
    transcript.tokens = state.used.values().fold(TokenCounts::default(), |sum, used| sum.plus(*used));
    transcript
}

#[derive(Debug, Default)]
struct State {
    sub_agent: bool,
    /// By message: each is written again when its calls are over.
    used: HashMap<String, TokenCounts>,
}

impl State {
    fn message(&mut self, message: Message, offset: u64, end: u64, transcript: &mut Transcript) {
        let id = message.id.unwrap_or_default();
        match message.r#type.as_deref() {
            Some("user") => {
                let text = text_of(message.content.as_ref());
                // The agent describes the machine in the person's name.
                let from_person = !text.is_empty() && !text.trim_start().starts_with("<session_context>");
                transcript.prompts += u64::from(from_person);
            }
            Some("gemini") => {
                let text = text_of(message.content.as_ref());
                if !text.is_empty() {
                    transcript.last_text = Some(text);
                }
                if let Some(tokens) = message.tokens {
                    self.used.insert(id.clone(), tokens.counts());
                }
                transcript.model = message.model.or_else(|| transcript.model.take());
                for call in message.tool_calls.into_iter().flatten() {
                    self.call(call, offset, transcript);
                }
                transcript.last_message_id = Some(id.clone());
                transcript.position = Some(Position { id, end });
            }
            _ => {}
        }
    }

    fn call(&self, call: ToolCall, offset: u64, transcript: &mut Transcript) {
        let Some(call_id) = call.id else { return };
        if transcript.calls.iter().any(|known| known.call_id == call_id) {
            return;
        }
        let code = call.result.as_ref().and_then(|result| exit_code(&text_in(result)));
        let status = match call.status.as_deref() {
            Some("success") if code.is_none_or(|code| code == 0) => CallStatus::Finished,
            Some("success" | "error" | "cancelled") => CallStatus::Failed,
            _ => CallStatus::Open,
        };
        transcript.calls.push(TranscriptCall {
            call_id,
            tool: call.name.unwrap_or_default(),
            input: call.args.unwrap_or_else(Raw::null),
            status,
            output: call.result,
            offset,
            sub_agent: self.sub_agent,
            unknown: false,
        });
    }
}

/// What a command's result says to the model: `Exit Code: 3` on a line of its own.
pub(super) fn exit_code(text: &str) -> Option<i64> {
    text.lines().find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
}

/// The text of a call's result: the first string called `output`.
pub(super) fn text_in(result: &Raw) -> String {
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Outer {
        #[serde(rename = "functionResponse")]
        inner: Inner,
    }
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Inner {
        response: Response,
    }
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Response {
        output: Option<String>,
    }
    let parts: Vec<Outer> = result.read().unwrap_or_default();
    parts.into_iter().find_map(|part| part.inner.response.output).unwrap_or_default()
}

pub(super) fn text_of(content: Option<&Raw>) -> String {
    let Some(content) = content else { return String::new() };
    if let Some(text) = content.read::<String>() {
        return text;
    }
    let parts: Vec<Part> = content.read().unwrap_or_default();
    parts.into_iter().filter_map(|part| part.text).collect::<Vec<_>>().join("\n")
}

/// A copy of a chat that ends after byte `end`, so that the conversation can go on from there while the original stays
/// as it is: a fork of the copy's path takes it in under an id of its own.
///
/// `None` when `end` is not the end of a line.
pub fn cut_at(chat: &[u8], end: u64) -> Option<Vec<u8>> {
    let kept = chat.get(..usize::try_from(end).ok()?)?;
    kept.ends_with(b"\n").then(|| kept.to_vec())
}
