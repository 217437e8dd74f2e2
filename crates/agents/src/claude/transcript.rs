//! Claude Code's transcript files.

use std::collections::HashMap;

use serde::Deserialize;

use super::wire::{Block, Message};
use crate::raw::Raw;
use crate::tokens::TokenCounts;
use crate::transcript::{CallStatus, Position, Transcript, TranscriptCall, each_line};

/// One line. There are many more types; only these say what happened.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Line {
    r#type: Option<String>,
    subtype: Option<String>,
    uuid: Option<String>,
    session_id: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
    is_sidechain: bool,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_api_error_message: Option<bool>,
    message: Option<Message>,
}

/// Reads a transcript, whole or cut off anywhere.
pub(super) fn read(bytes: &[u8]) -> Transcript {
    let mut transcript = Transcript::default();
    // A message is written once per block, each time with what was known of its usage then: the last one counts.
    let mut usage: HashMap<String, TokenCounts> = HashMap::new();
    each_line(bytes, &mut transcript, &mut |transcript, text, offset, end| {
        let Ok(line) = serde_json::from_str::<Line>(text) else { return false };
        take(line, offset, end, transcript, &mut usage);
        true
    });
    transcript.tokens = usage.values().fold(TokenCounts::default(), |sum, counts| sum.plus(*counts));
    transcript
}

fn take(
    line: Line,
    offset: u64,
    end: u64,
    transcript: &mut Transcript,
    usage: &mut HashMap<String, TokenCounts>,
) {
    for (known, new) in [
        (&mut transcript.native_id, line.session_id),
        (&mut transcript.cwd, line.cwd),
        (&mut transcript.version, line.version),
    ] {
        if new.is_some() {
            *known = new;
        }
    }
    match (line.r#type.as_deref(), line.message) {
        (Some("system"), _) if line.subtype.as_deref() == Some("compact_boundary") => {
            transcript.compactions += 1
        }
        (Some("assistant"), Some(message)) if line.is_api_error_message != Some(true) => {
            if let (Some(id), Some(counts)) = (&message.id, &message.usage) {
                usage.insert(id.clone(), counts.counts());
            }
            assistant(&message, offset, line.is_sidechain, transcript);
            if !line.is_sidechain {
                transcript.last_message_id = message.id.or_else(|| transcript.last_message_id.take());
                transcript.model =
                    message.model.filter(|model| model != "<synthetic>").or_else(|| transcript.model.take());
                if let Some(id) = line.uuid {
                    transcript.position = Some(Position { id, end });
                }
            }
        }
        (Some("user"), Some(message)) => {
            let from_person =
                !line.is_sidechain && line.is_meta != Some(true) && line.is_compact_summary != Some(true);
            user(&message, from_person, transcript);
        }
        _ => {}
    }
}

fn assistant(message: &Message, offset: u64, sub_agent: bool, transcript: &mut Transcript) {
    for block in blocks(message) {
        match block.r#type.as_deref() {
            Some("text") if !sub_agent => transcript.last_text = block.text,
            Some("tool_use") => {
                let Some(call_id) = block.id else { continue };
                transcript.calls.push(TranscriptCall {
                    call_id,
                    tool: block.name.unwrap_or_default(),
                    input: block.input.unwrap_or_else(Raw::null),
                    status: CallStatus::Open,
                    output: None,
                    offset,
                    sub_agent,
                });
            }
            _ => {}
        }
    }
}

fn user(message: &Message, from_person: bool, transcript: &mut Transcript) {
    let mut answered = false;
    let mut text = String::new();
    for block in blocks(message) {
        match (block.r#type.as_deref(), block.tool_use_id) {
            (Some("tool_result"), Some(call_id)) => {
                answered = true;
                transcript.answer(&call_id, block.content, block.is_error == Some(true));
            }
            _ => text.push_str(block.text.as_deref().unwrap_or_default()),
        }
    }
    if text.starts_with("[Request interrupted by user") {
        transcript.aborted_turns += 1;
    } else if from_person && !answered && !text.is_empty() {
        transcript.prompts += 1;
    }
}

fn blocks(message: &Message) -> Vec<Block> {
    let Some(content) = &message.content else { return Vec::new() };
    match content.read::<String>() {
        Some(text) => vec![Block { text: Some(text), ..Block::default() }],
        None => content.read().unwrap_or_default(),
    }
}
