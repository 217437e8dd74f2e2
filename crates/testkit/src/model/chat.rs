//! OpenAI chat completions.

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
use super::responses;

pub(super) struct Chat;

impl Wire for Chat {
    fn read(&self, _path: &str, body: &Value) -> Query {
        let mut query = Query::new(Api::Chat, body);
        for tool in body["tools"].as_array().into_iter().flatten() {
            if let Some(name) = tool["function"]["name"].as_str() {
                query.tools.insert(name.to_owned(), Declared::default());
            }
        }
        for message in body["messages"].as_array().into_iter().flatten() {
            match message["role"].as_str() {
                Some("assistant") => query.answers += 1,
                Some("user") => query.user(text_of(&message["content"])),
                Some("system" | "developer") => {
                    query.system.push_str(&text_of(&message["content"]));
                    // The maker's words are no part of the conversation.
                    continue;
                }
                _ => {}
            }
            query.hear(&message["content"]);
            query.hear(&message["tool_calls"]);
        }
        query
    }

    fn whole(&self, answer: &Answer) -> Value {
        let text = |wanted: fn(&Piece) -> Option<&str>| -> Option<String> {
            let parts: Vec<&str> = answer.pieces.iter().filter_map(wanted).collect();
            (!parts.is_empty()).then(|| parts.concat())
        };
        let mut message = json!({ "role": "assistant", "content": text(said) });
        if let Some(thoughts) = text(thought) {
            message["reasoning_content"] = thoughts.into();
        }
        let calls: Vec<Value> = answer.pieces.iter().filter_map(call).collect();
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason(answer) });
        frame(answer, "chat.completion", choice, usage(answer))
    }

    fn events(&self, answer: &Answer) -> Vec<Event> {
        let mut events = vec![delta(answer, json!({ "role": "assistant", "content": "" }))];
        let mut calls = 0;
        for piece in &answer.pieces {
            let grow = |field: &str, text: &str| -> Vec<Event> {
                answer.chunks(text).into_iter().map(|part| delta(answer, json!({ field: part }))).collect()
            };
            match piece {
                Piece::Text(text) => events.extend(grow("content", text)),
                Piece::Thinking(text) => events.extend(grow("reasoning_content", text)),
                Piece::Call { .. } | Piece::Custom { .. } => {
                    stream_call(answer, calls, piece, &mut events);
                    calls += 1;
                }
            }
        }
        let last = json!({ "index": 0, "delta": {}, "finish_reason": finish_reason(answer) });
        events.push(event(frame(answer, CHUNK, last, usage(answer))));
        events
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        responses::error(status, kind, message)
    }

    fn stream_error(&self, _answer: &Answer, kind: &str, message: &str) -> Event {
        event(responses::error(500, Some(kind), message))
    }

    fn closing(&self) -> &'static str {
        "data: [DONE]\n\n"
    }
}

const CHUNK: &str = "chat.completion.chunk";

fn event(data: Value) -> Event {
    Event { name: "", data }
}

fn delta(answer: &Answer, delta: Value) -> Event {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
    event(frame(answer, CHUNK, choice, Value::Null))
}

fn frame(answer: &Answer, object: &str, choice: Value, usage: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.id),
        "object": object,
        "created": 0,
        "model": answer.model,
        "choices": [choice],
        "usage": usage,
    })
}

fn finish_reason(answer: &Answer) -> &str {
    let natural = if answer.calls() { "tool_calls" } else { "stop" };
    answer.stop_reason.as_deref().unwrap_or(natural)
}

fn usage(answer: &Answer) -> Value {
    let used = answer.usage;
    let input = used.input + used.cache_read + used.cache_write;
    json!({
        "prompt_tokens": input,
        "completion_tokens": used.output,
        "total_tokens": input + used.output,
        "prompt_tokens_details": { "cached_tokens": used.cache_read },
        "completion_tokens_details": { "reasoning_tokens": 0 },
    })
}

fn said(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Text(text) => Some(text),
        Piece::Thinking(_) | Piece::Call { .. } | Piece::Custom { .. } => None,
    }
}

fn thought(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Thinking(text) => Some(text),
        Piece::Text(_) | Piece::Call { .. } | Piece::Custom { .. } => None,
    }
}

/// A call with its arguments, which are JSON inside a string.
fn call(piece: &Piece) -> Option<Value> {
    let (id, name, arguments) = match piece {
        Piece::Call { id, name, input, .. } => (id, name, input.to_string()),
        // There are no free-text tools here; the agent will say that the input is wrong.
        Piece::Custom { id, name, input } => (id, name, json!({ "input": input }).to_string()),
        Piece::Text(_) | Piece::Thinking(_) => return None,
    };
    Some(json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }))
}

/// The events of one call: its name comes first, its arguments grow.
fn stream_call(answer: &Answer, index: usize, piece: &Piece, events: &mut Vec<Event>) {
    let Some(mut start) = call(piece) else { return };
    let arguments = start["function"]["arguments"].as_str().unwrap_or_default().to_owned();
    start["index"] = index.into();
    start["function"]["arguments"] = "".into();
    events.push(delta(answer, json!({ "tool_calls": [start] })));
    for part in answer.chunks(&arguments) {
        let piece = json!({ "index": index, "function": { "arguments": part } });
        events.push(delta(answer, json!({ "tool_calls": [piece] })));
    }
}
