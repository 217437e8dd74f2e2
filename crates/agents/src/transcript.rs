//! The agents' own records of a conversation, read as bytes.
//!
//! They know what a stream may have missed: calls without items, results written while the agent was dying.

use serde::Serialize;

use crate::conversation_log::LogUse;
use crate::event::AgentEvent;
use crate::event::CompactionPhase;
use crate::event::InputSource;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::Envelope;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
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
    /// It was not allowed to run.
    Denied,
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
    /// It was cut off: whether it had effects is not known.
    #[serde(skip)]
    pub(crate) unknown: bool,
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
        if self.status == CallStatus::Open || self.unknown {
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

impl Transcript {
    /// Calls without a recorded result.
    pub fn open_calls(&self) -> impl Iterator<Item = &TranscriptCall> {
        self.calls.iter().filter(|call| call.status == CallStatus::Open)
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

/// A reader for some use of a log.
type MakeReader<'a> = dyn Fn(&ReaderOptions, LogUse<'_>) -> Option<Reader> + 'a;

/// What the events of a whole log come to.
pub(crate) fn of_events(make: &MakeReader<'_>, bytes: &[u8]) -> Transcript {
    let mut transcript = Transcript::default();
    let options = ReaderOptions { line_limit: bytes.len().max(1), ..ReaderOptions::default() };
    let Some(mut reader) = make(&options, LogUse::Whole) else { return transcript };
    let mut interrupted = false;
    let mut end = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        end += line.len() as u64;
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            continue;
        }
        transcript.lines += 1;
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text.trim()).is_ok();
        transcript.unparsed += u64::from(!is_json);
        if is_json {
            let whole = if line.ends_with(b"\n") { &[][..] } else { b"\n" };
            reader.feed(line, &mut |envelope| transcript.take(envelope, end, &mut interrupted));
            reader.feed(whole, &mut |envelope| transcript.take(envelope, end, &mut interrupted));
        } else {
            // What is no line of the log must not be taken for the beginning of the next.
            reader.feed(&b"\n".repeat(line.len()), &mut |_| {});
        }
    }
    transcript
}

impl Transcript {
    fn take(&mut self, envelope: Envelope, end: u64, interrupted: &mut bool) {
        let Envelope { offset, native_event_id, event, .. } = envelope;
        if let Some(id) = native_event_id {
            self.position = Some(Position { id, end });
        }
        match event {
            AgentEvent::SessionStarted { native_id, model, cwd, version, .. } => {
                self.native_id = Some(native_id);
                keep(&mut self.model, model);
                keep(&mut self.cwd, cwd);
                keep(&mut self.version, version);
            }
            AgentEvent::Text { text, message_id, parent: None } => {
                self.last_text = Some(text);
                keep(&mut self.last_message_id, message_id);
            }
            AgentEvent::Input { source: InputSource::User, parent: None, .. } => self.prompts += 1,
            AgentEvent::Input { text, .. } if text.starts_with("[Request interrupted by user") => {
                self.aborted_turns += 1;
                *interrupted = true;
            }
            AgentEvent::Result { verdict, .. } => {
                // It may have been said before that the turn was cut off.
                let said = std::mem::take(interrupted);
                self.aborted_turns += u64::from(verdict == OutcomeKind::Stopped && !said);
            }
            AgentEvent::Compaction { phase: CompactionPhase::Finished, .. } => self.compactions += 1,
            AgentEvent::Tokens { delta: Some(delta), .. } => self.tokens = self.tokens.plus(delta),
            AgentEvent::ToolStarted { call_id, tool, input, message_id, parent } => {
                if parent.is_none() {
                    keep(&mut self.last_message_id, message_id);
                }
                self.calls.push(TranscriptCall {
                    call_id,
                    tool,
                    input,
                    status: CallStatus::Open,
                    output: None,
                    offset,
                    sub_agent: parent.is_some(),
                    unknown: false,
                });
            }
            // It goes on after it was answered.
            AgentEvent::ToolFinished { background: Some(_), .. } => {}
            AgentEvent::ToolFinished { call_id, output, .. } => {
                self.end(&call_id, CallStatus::Finished, Some(output), false);
            }
            AgentEvent::ToolFailed { call_id, error, interrupted, .. } => {
                self.end(&call_id, CallStatus::Failed, Some(Raw::string(&error)), interrupted);
            }
            AgentEvent::ToolDenied { call_id, reason, .. } => {
                self.end(&call_id, CallStatus::Denied, Some(Raw::string(&reason)), false);
            }
            AgentEvent::TaskStopped { call_id: Some(call_id), status, summary, .. }
            | AgentEvent::SubAgentStopped { call_id: Some(call_id), status, summary, .. } => {
                let end = if status == "completed" { CallStatus::Finished } else { CallStatus::Failed };
                self.end(&call_id, end, summary.as_deref().map(Raw::string), false);
            }
            _ => {}
        }
    }

    /// The oldest open call of that id ended.
    fn end(&mut self, call_id: &str, status: CallStatus, output: Option<Raw>, unknown: bool) {
        let open = |call: &&mut TranscriptCall| call.call_id == call_id && call.status == CallStatus::Open;
        if let Some(call) = self.calls.iter_mut().find(open) {
            (call.status, call.output, call.unknown) = (status, output, unknown);
        }
    }
}

fn keep<T>(known: &mut Option<T>, new: Option<T>) {
    if new.is_some() {
        *known = new;
    }
}
