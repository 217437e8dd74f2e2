//! Codex's rollout files.
//!
//! They hold what the stream leaves out: calls that failed before they ran, some refused by the sandbox, compactions.
//! Calls have other ids here than in the stream; hooks use the ones found here.

use serde::Deserialize;

use super::wire::Usage;
use crate::raw::Raw;
use crate::tokens::TokenCounts;
use crate::transcript::{CallStatus, Position, Transcript, TranscriptCall, each_line};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
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
    thread_id: Option<String>,
    turn_id: Option<String>,
    cwd: Option<String>,
    cli_version: Option<String>,
    model: Option<String>,
    role: Option<String>,
    content: Option<Raw>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<Raw>,
    input: Option<Raw>,
    action: Option<Raw>,
    output: Option<Raw>,
    info: Option<TokenInfo>,
    usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenInfo {
    total_token_usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContentPart {
    text: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Output {
    success: Option<bool>,
}

/// Reads a rollout, whole or cut off anywhere.
pub(super) fn read(bytes: &[u8]) -> Transcript {
    let mut transcript = Transcript::default();
    let mut recorded = TokenCounts::default();
    let mut turn_id: Option<String> = None;
    each_line(bytes, &mut transcript, &mut |transcript, text, offset, end| {
        let Ok(line) = serde_json::from_str::<Line>(text) else { return false };
        let Some(payload) = line.payload else { return true };
        match line.r#type.as_deref() {
            Some("session_meta") => meta(payload, transcript),
            Some("turn_context") => {
                keep(&mut transcript.model, payload.model);
                keep(&mut transcript.cwd, payload.cwd);
                keep(&mut turn_id, payload.turn_id);
            }
            Some("response_item") => item(payload, offset, transcript),
            Some("event_msg") => event(payload, end, transcript, &mut turn_id),
            Some("compacted") => transcript.compactions += 1,
            Some("token_usage_record") => {
                let ours = payload.thread_id.is_none() || payload.thread_id == transcript.native_id;
                if let Some(usage) = payload.usage.filter(|_| ours) {
                    recorded = recorded.plus(usage.counts());
                }
            }
            _ => {}
        }
        true
    });
    if transcript.tokens.is_zero() {
        transcript.tokens = recorded;
    }
    transcript
}

fn meta(payload: Payload, transcript: &mut Transcript) {
    // A fork begins with its own line and then repeats that of its origin.
    if transcript.native_id.is_none() {
        transcript.native_id = payload.id.or(payload.session_id);
    }
    keep(&mut transcript.cwd, payload.cwd);
    keep(&mut transcript.version, payload.cli_version);
}

fn event(payload: Payload, end: u64, transcript: &mut Transcript, turn_id: &mut Option<String>) {
    match payload.r#type.as_deref() {
        Some("user_message") => transcript.prompts += 1,
        Some("task_started" | "turn_started") => keep(turn_id, payload.turn_id),
        Some("token_count") => {
            if let Some(usage) = payload.info.and_then(|info| info.total_token_usage) {
                transcript.tokens = usage.counts();
            }
        }
        Some(kind @ ("task_complete" | "turn_complete" | "turn_aborted")) => {
            if kind == "turn_aborted" {
                transcript.aborted_turns += 1;
            }
            keep(turn_id, payload.turn_id);
            let id = turn_id.take().unwrap_or_default();
            transcript.position = Some(Position { id, end });
        }
        _ => {}
    }
}

fn item(payload: Payload, offset: u64, transcript: &mut Transcript) {
    match payload.r#type.as_deref() {
        Some("message") if payload.role.as_deref() == Some("assistant") => {
            let parts: Vec<ContentPart> = payload.content.as_ref().and_then(Raw::read).unwrap_or_default();
            let texts: Vec<String> = parts.into_iter().filter_map(|part| part.text).collect();
            transcript.last_text = Some(texts.join("\n"));
            keep(&mut transcript.last_message_id, payload.id);
        }
        Some(kind) if kind.ends_with("_call_output") => {
            if let Some(call_id) = &payload.call_id {
                let failed = payload.output.as_ref().is_some_and(failed);
                transcript.answer(call_id, payload.output, failed);
            }
        }
        Some(kind) if kind.ends_with("_call") => {
            let Some(call_id) = payload.call_id.or(payload.id) else { return };
            let input = payload.arguments.or(payload.input).or(payload.action);
            transcript.calls.push(TranscriptCall {
                call_id,
                tool: payload.name.unwrap_or_else(|| kind.to_owned()),
                input: input.map_or_else(Raw::null, |input| unquote(&input)),
                status: CallStatus::Open,
                output: None,
                offset,
                sub_agent: false,
            });
        }
        _ => {}
    }
}

/// Arguments are JSON inside a string.
pub(super) fn unquote(raw: &Raw) -> Raw {
    raw.read::<String>().and_then(|text| Raw::parse(&text).ok()).unwrap_or_else(|| raw.clone())
}

pub(super) fn failed(output: &Raw) -> bool {
    if let Some(Output { success: Some(success) }) = output.read() {
        return !success;
    }
    let Some(text) = output.read::<String>() else { return false };
    if text == "aborted" || text.starts_with("aborted by user") {
        return true;
    }
    ["Exit code: ", "Process exited with code "].iter().any(|words| {
        text.lines().take(8).any(|line| line.strip_prefix(words).is_some_and(|code| code.trim() != "0"))
    })
}

fn keep<T>(known: &mut Option<T>, new: Option<T>) {
    if new.is_some() {
        *known = new;
    }
}

/// A copy of a rollout that ends after byte `end` under another thread id, so that the conversation can go on from
/// there while the original stays as it is. The copy belongs beside the original, with the new id in its name.
///
/// `None` when `end` is not the end of a line or the ids are not of the same length.
pub fn fork_at(rollout: &[u8], end: u64, old_id: &str, new_id: &str) -> Option<Vec<u8>> {
    let end = usize::try_from(end).ok().filter(|end| *end <= rollout.len())?;
    let kept = &rollout[..end];
    if !kept.ends_with(b"\n") || old_id.is_empty() || old_id.len() != new_id.len() {
        return None;
    }
    let mut copy = kept.to_vec();
    let mut at = 0;
    while at + old_id.len() <= copy.len() {
        if copy[at..].starts_with(old_id.as_bytes()) {
            copy[at..at + new_id.len()].copy_from_slice(new_id.as_bytes());
            at += new_id.len();
        } else {
            at += 1;
        }
    }
    Some(copy)
}
