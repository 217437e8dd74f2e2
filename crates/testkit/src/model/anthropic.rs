//! Anthropic Messages.

use serde_json::Value;
use serde_json::json;

use super::answer::Answer;
use super::answer::Event;
use super::answer::Piece;
use super::api::Api;
use super::api::Wire;
use super::query::Declared;
use super::query::Query;
use super::query::text_of;

pub(super) struct Anthropic;

/// Thinking comes signed; any text will do, since nobody here checks it.
const SIGNATURE: &str = "c2lnbmF0dXJl";

impl Wire for Anthropic {
    fn read(&self, _path: &str, body: &Value) -> Query {
        let mut query = Query::new(Api::Anthropic, body);
        for tool in body["tools"].as_array().into_iter().flatten() {
            if let Some(name) = tool["name"].as_str() {
                query.tools.insert(name.to_owned(), Declared::default());
            }
        }
        query.system = text_of(&body["system"]);
        for message in body["messages"].as_array().into_iter().flatten() {
            match message["role"].as_str() {
                Some("assistant") => query.answers += 1,
                Some("user") => query.user(text_of(&message["content"])),
                // Agents put notes of the system between the messages: they are not the user's words.
                _ => {}
            }
            query.hear(&message["content"]);
        }
        query
    }

    fn whole(&self, answer: &Answer) -> Value {
        let mut message = message(answer, stop_reason(answer).into(), usage(answer, answer.usage.output));
        message["content"] = answer.pieces.iter().map(block).collect();
        message
    }

    fn events(&self, answer: &Answer) -> Vec<Event> {
        let start = message(answer, Value::Null, usage(answer, 1));
        let mut events = vec![event("message_start", json!({ "message": start })), event("ping", json!({}))];
        for (index, piece) in answer.pieces.iter().enumerate() {
            stream_block(answer, index, piece, &mut events);
        }
        let delta = json!({
            "delta": { "stop_reason": stop_reason(answer), "stop_sequence": null },
            "usage": usage(answer, answer.usage.output),
        });
        events.extend([event("message_delta", delta), event("message_stop", json!({}))]);
        events
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        let kind = kind.unwrap_or(match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        });
        json!({ "type": "error", "error": { "type": kind, "message": message } })
    }

    fn stream_error(&self, _answer: &Answer, kind: &str, message: &str) -> Event {
        event("error", json!({ "error": { "type": kind, "message": message } }))
    }
}

/// Every event repeats its name as `type`.
fn event(name: &'static str, mut data: Value) -> Event {
    data["type"] = name.into();
    Event { name, data }
}

fn message(answer: &Answer, stop_reason: Value, usage: Value) -> Value {
    json!({
        "id": format!("msg_{}", answer.id),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn stop_reason(answer: &Answer) -> &str {
    let natural = if answer.calls() { "tool_use" } else { "end_turn" };
    answer.stop_reason.as_deref().unwrap_or(natural)
}

fn usage(answer: &Answer, output: u64) -> Value {
    json!({
        "input_tokens": answer.usage.input,
        "cache_creation_input_tokens": answer.usage.cache_write,
        "cache_read_input_tokens": answer.usage.cache_read,
        "output_tokens": output,
        "service_tier": "standard",
    })
}

fn block(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({ "type": "text", "text": text }),
        Piece::Thinking(text) => json!({ "type": "thinking", "thinking": text, "signature": SIGNATURE }),
        Piece::Call { id, name, input, .. } => tool_use(id, name, input),
        // There are no free-text tools here; the agent will say that the input is wrong.
        Piece::Custom { id, name, input } => tool_use(id, name, &json!({ "input": input })),
    }
}

fn tool_use(id: &str, name: &str, input: &Value) -> Value {
    json!({ "type": "tool_use", "id": id.replacen("call_", "toolu_", 1), "name": name, "input": input })
}

/// The events of one block: it starts empty, grows by deltas, and stops.
fn stream_block(answer: &Answer, index: usize, piece: &Piece, events: &mut Vec<Event>) {
    let mut start = block(piece);
    let mut deltas: Vec<Value> = Vec::new();
    let mut grow = |kind: &str, field: &str, text: &str| {
        deltas.extend(answer.chunks(text).into_iter().map(|part| json!({ "type": kind, field: part })));
    };
    match piece {
        Piece::Text(text) => {
            start["text"] = "".into();
            grow("text_delta", "text", text);
        }
        Piece::Thinking(text) => {
            start["thinking"] = "".into();
            start["signature"] = "".into();
            grow("thinking_delta", "thinking", text);
            deltas.push(json!({ "type": "signature_delta", "signature": SIGNATURE }));
        }
        Piece::Call { .. } | Piece::Custom { .. } => {
            grow("input_json_delta", "partial_json", &start["input"].to_string());
            start["input"] = json!({});
        }
    }
    events.push(event("content_block_start", json!({ "index": index, "content_block": start })));
    for delta in deltas {
        events.push(event("content_block_delta", json!({ "index": index, "delta": delta })));
    }
    events.push(event("content_block_stop", json!({ "index": index })));
}
