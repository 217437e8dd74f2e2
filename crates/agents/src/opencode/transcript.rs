//! What `opencode export` prints: its own record of a conversation.
//!
//! It holds what the stream leaves out: calls that were running when the program died, retries, compactions, and the
//! model. It is one JSON document, so it is read whole or not at all.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::Metadata;
use super::wire::Part;
use super::wire::Tokens;
use crate::conversation_log::ConversationLog;
use crate::conversation_log::LogUse;
use crate::keeping::Keeping;
use crate::keeping::KeptDatabase;
use crate::raw::Raw;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::tokens::TokenCounts;
use crate::transcript::CallStatus;
use crate::transcript::Transcript;
use crate::transcript::TranscriptCall;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Export<'a> {
    info: Info,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    id: Option<String>,
    directory: Option<String>,
    version: Option<String>,
    #[serde(rename = "parentID")]
    parent_id: Option<String>,
    tokens: Option<Tokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    info: MessageInfo,
    parts: Vec<Part>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MessageInfo {
    id: Option<String>,
    role: Option<String>,
    tokens: Option<Tokens>,
    #[serde(rename = "modelID")]
    model: Option<String>,
    error: Option<ErrorName>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorName {
    name: Option<String>,
}

/// What `opencode export` prints: one document, from a database that is not ours to read.
#[derive(Debug)]
pub(super) struct ExportLog;

impl ConversationLog for ExportLog {
    fn keeping(&self) -> Option<Keeping> {
        Some(Keeping::Database(KeptDatabase {
            variable: "XDG_DATA_HOME",
            home: ".local/share",
            file: "opencode/opencode.db",
            rows: super::history::ROWS,
        }))
    }

    fn reader(&self, options: &ReaderOptions, usage: LogUse<'_>) -> Option<Reader> {
        (usage == LogUse::History).then(|| super::history::reader(options))
    }

    fn transcript(&self, bytes: &[u8]) -> Transcript {
        read(bytes)
    }
}

/// Reads an export. Bytes that are none make an empty record that says so.
fn read(bytes: &[u8]) -> Transcript {
    let mut transcript = Transcript { lines: 1, ..Transcript::default() };
    let text = std::str::from_utf8(bytes).ok();
    let Some((text, export)) =
        text.and_then(|text| Some((text, serde_json::from_str::<Export<'_>>(text).ok()?)))
    else {
        transcript.unparsed = 1;
        return transcript;
    };
    transcript.native_id = export.info.id;
    transcript.cwd = export.info.directory;
    transcript.version = export.info.version;
    transcript.lines = export.messages.len() as u64;
    let sub_agent = export.info.parent_id.is_some();
    let mut sum = TokenCounts::default();
    for raw in &export.messages {
        let Ok(message) = serde_json::from_str::<Message>(raw.get()) else {
            transcript.unparsed += 1;
            continue;
        };
        let offset = offset_in(text, raw.get());
        if let Some(tokens) = &message.info.tokens {
            sum = sum.plus(tokens.counts());
        }
        take(message, offset, sub_agent, &mut transcript);
    }
    transcript.tokens = export.info.tokens.map(|tokens| tokens.counts()).unwrap_or(sum);
    transcript
}

/// Where `part`, which was borrowed from `whole`, stands in it.
fn offset_in(whole: &str, part: &str) -> u64 {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize) as u64
}

fn take(message: Message, offset: u64, sub_agent: bool, transcript: &mut Transcript) {
    let from_model = message.info.role.as_deref() == Some("assistant");
    if from_model {
        transcript.last_message_id = message.info.id;
        transcript.model = message.info.model.or_else(|| transcript.model.take());
        let aborted =
            message.info.error.is_some_and(|error| error.name.as_deref() == Some("MessageAbortedError"));
        transcript.aborted_turns += u64::from(aborted);
    } else {
        transcript.prompts += u64::from(message.parts.iter().any(|part| part.text.is_some()));
    }
    for part in message.parts {
        match part.r#type.as_deref() {
            Some("text") if from_model => transcript.last_text = part.text,
            Some("compaction") => transcript.compactions += 1,
            Some("tool") => transcript.calls.extend(call(part, offset, sub_agent)),
            _ => {}
        }
    }
}

fn call(part: Part, offset: u64, sub_agent: bool) -> Option<TranscriptCall> {
    let state = part.state.unwrap_or_default();
    let metadata: Metadata = state.metadata.as_ref().and_then(Raw::read).unwrap_or_default();
    let failed = metadata.exit.is_some_and(|code| code != 0) || part.tool.as_deref() == Some("invalid");
    Some(TranscriptCall {
        call_id: part.call_id?,
        tool: part.tool.unwrap_or_default(),
        input: state.input.unwrap_or_else(Raw::null),
        status: match state.status.as_deref() {
            Some("completed") if !failed => CallStatus::Finished,
            Some("completed" | "error") => CallStatus::Failed,
            _ => CallStatus::Open,
        },
        output: state.output.or_else(|| state.error.as_deref().map(Raw::string)),
        offset,
        sub_agent,
        unknown: false,
    })
}
