//! The agents' own records of a conversation, read as bytes.
//!
//! They know what a stream may have missed: calls without items, results written while the agent was dying.

use serde::Serialize;

use crate::raw::Raw;
use crate::tokens::TokenCounts;

/// How a call in a transcript stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// No result is recorded.
    Open,
    /// It has a result.
    Finished,
    /// Its result is an error.
    Failed,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TranscriptCall {
    /// The native id of the call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Raw,
    /// How it stands.
    pub status: CallStatus,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Raw>,
    /// Offset of the line that announced it.
    pub offset: u64,
    /// It belongs to a sub-agent.
    pub sub_agent: bool,
}

/// A point in a conversation to which the agent can go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Position {
    /// The native id of the event or turn.
    pub id: String,
    /// Offset of the first byte after its line: a copy cut here ends with it.
    pub end: u64,
}

/// What a transcript says.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Transcript {
    /// The native session id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    /// The last model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The last working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The agent's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The id of the last message of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message_id: Option<String>,
    /// The last text of the model in the main conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_text: Option<String>,
    /// The last point to which the agent can go back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Calls, in order.
    pub calls: Vec<TranscriptCall>,
    /// Prompts of the person.
    pub prompts: u64,
    /// Times the conversation was shortened.
    pub compactions: u64,
    /// Turns that were cut off.
    pub aborted_turns: u64,
    /// Tokens of the whole conversation.
    pub tokens: TokenCounts,
    /// Lines read.
    pub lines: u64,
    /// Lines that are not JSON; a last one cut off by a crash is normal.
    pub unparsed: u64,
}

/// What an agent writes in place of a result when it does not know how a call ended, or that it goes on.
const NO_RESULT: &[&str] = &[
    "[Tool call interrupted: the session ended",
    "[Request interrupted by user",
    "[Tool execution was interrupted]",
    "Process running with session ID",
];

impl TranscriptCall {
    /// Whether its end is really known: it has a result, and that is not a word of the agent's own that it has none.
    pub fn is_settled(&self) -> bool {
        if self.status == CallStatus::Open {
            return false;
        }
        let text = self.output_text().unwrap_or_default();
        let text = text.trim();
        // Codex may say before it how long it had waited.
        let aborted =
            text.lines().take(8).any(|line| line.trim() == "aborted" || line.starts_with("aborted by user"));
        let head = text.get(..text.floor_char_boundary(2_000)).unwrap_or_default();
        !aborted && !NO_RESULT.iter().any(|words| head.contains(words))
    }

    /// Its result as text, whatever form the agent keeps it in.
    pub fn output_text(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Part {
            #[serde(default)]
            text: String,
        }
        #[derive(serde::Deserialize)]
        struct Whole {
            content: String,
        }
        let output = self.output.as_ref().filter(|output| !output.is_null())?;
        if let Some(text) = output.read::<String>() {
            return Some(text);
        }
        if let Some(parts) = output.read::<Vec<Part>>() {
            return Some(parts.into_iter().map(|part| part.text).collect::<Vec<_>>().join("\n"));
        }
        if let Some(Whole { content }) = output.read() {
            return Some(content);
        }
        Some(output.get().to_owned())
    }
}

/// Where an agent keeps its own record of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// The folder that all of them are below.
    pub folder: String,
    /// How many folders deep they are in it.
    pub depth: usize,
    /// How the file's name ends.
    pub name: String,
    /// Whether that is the whole name.
    pub whole: bool,
    /// The folder beside the file with the records of its sub-agents.
    pub sub_agents: Option<String>,
}

/// The folder that a variable names, or else this one in the home directory.
pub(crate) fn folder(
    variable: &dyn Fn(&str) -> Option<String>,
    name: &str,
    in_home: &str,
    below: &str,
) -> Option<String> {
    let own = variable(name).filter(|folder| !folder.is_empty());
    let base =
        own.or_else(|| Some(format!("{}/{in_home}", variable("HOME").filter(|home| !home.is_empty())?)))?;
    Some(format!("{}/{below}", base.trim_end_matches('/')))
}

/// Whether an id can be a part of a file's name: it comes from an agent's output, and must not lead elsewhere.
pub(crate) fn is_plain_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 128
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

impl Transcript {
    /// Calls without a recorded result.
    pub fn open_calls(&self) -> impl Iterator<Item = &TranscriptCall> {
        self.calls.iter().filter(|call| call.status == CallStatus::Open)
    }

    pub(crate) fn answer(&mut self, call_id: &str, output: Option<Raw>, failed: bool) {
        if let Some(call) = self.calls.iter_mut().rev().find(|call| call.call_id == call_id) {
            call.status = if failed { CallStatus::Failed } else { CallStatus::Finished };
            call.output = output;
        }
    }
}

/// Calls `f` with each line that is UTF-8, its offset and the offset after it; counts the others.
pub(crate) fn each_line(
    bytes: &[u8],
    transcript: &mut Transcript,
    f: &mut dyn FnMut(&mut Transcript, &str, u64, u64) -> bool,
) {
    let mut offset = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let end = offset + line.len() as u64;
        let understood = match std::str::from_utf8(line) {
            Ok(text) if text.trim().is_empty() => true,
            Ok(text) => {
                transcript.lines += 1;
                f(transcript, text.trim(), offset, end)
            }
            Err(_) => {
                transcript.lines += 1;
                false
            }
        };
        if !understood {
            transcript.unparsed += 1;
        }
        offset = end;
    }
}
